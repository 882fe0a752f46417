//! The next version of a program in the place of the one that runs, with that one's state.

use std::{fmt, io};

use bumpless_config as config;
use bumpless_config::{ApplicationKind, ProgramHost, StateOnChange};
use bumpless_controller::Application;
use bumpless_controller::retain::Table;
use bumpless_controller::successor::{Anew, Before, Conversion, Successor};
use bumpless_sidecar::plc::{self, StateVariable, Succession};
use bumpless_sidecar::{ByProgram, ByVariables, Hash, Sidecar, StartCause, StartFault};

use crate::persist::identity::Saved;
use crate::program::{below, build_at, file_of, fits, sidecar};

/// Bytes of a process's saved state before its own (H-19).
const HEAD: usize = 8;

/// A version of an application that runs: what its successors must know of it.
#[derive(Clone)]
pub struct Version {
    /// Its settings.
    pub settings: config::Application,
    owner: Option<u64>,
    size_max: usize,
    retained: Table,
}

impl Version {
    /// What `application`, which was built from `settings`, is to its successors.
    pub fn of(settings: &config::Application, application: &dyn Application) -> Self {
        Self {
            settings: settings.clone(),
            owner: application.state_owner(),
            size_max: application.state_size_max(),
            retained: application.retained().cloned().unwrap_or_default(),
        }
    }

    /// Whether `settings` name another version of its program.
    pub fn is_another(&self, settings: &config::Application) -> bool {
        config::changes_program(&self.settings, settings)
    }

    /// What files say of it.
    pub fn saved(&self) -> Saved {
        Saved {
            told_by: self.told_by(),
            program: self.settings.program(),
            retained: self.retained.clone(),
        }
    }

    /// What tells its states from those of other versions, if it can have others.
    fn told_by(&self) -> Option<Before> {
        let owner = self.owner?;
        match &self.settings.kind {
            ApplicationKind::Program(program) if program.host == ProgramHost::Wasm => {
                module_told_by(owner)
            }
            _ => Some(Before {
                at: 0,
                owner: owner.to_le_bytes(),
            }),
        }
    }

    /// Most bytes of its states.
    pub fn size_max(&self) -> usize {
        self.size_max
    }
}

/// Builds what `settings` describe, so that it takes the place of `before`, another version of its program; `priority` is the
/// data plane's. `state`, one of that version, is taken over for trial.
///
/// # Errors
/// Why it cannot take that place, in words.
pub fn build(
    settings: &config::Application,
    before: &Version,
    priority: Option<u8>,
    state: Option<&[u8]>,
) -> Result<Box<dyn Application>, String> {
    let built = attempt(settings, before, priority, state);
    built.map_err(|why| format!("application '{}': {why}", settings.name))
}

fn attempt(
    settings: &config::Application,
    before: &Version,
    priority: Option<u8>,
    state: Option<&[u8]>,
) -> Result<Box<dyn Application>, String> {
    let both = (&before.settings.kind, &settings.kind);
    let (ApplicationKind::Program(was), ApplicationKind::Program(is)) = both else {
        return build_at(settings, priority).map_err(|error| error.to_string());
    };
    if is.host == ProgramHost::Wasm {
        return module(settings, (was, is), before, state);
    }
    let next = sidecar(is, below(priority), settings.period).map_err(not_started)?;
    fits(settings, &next).map_err(|error| no_room(&error))?;
    let owner = before.owner.unwrap_or_default();
    if next.owner() == owner {
        return same_layout(next, is, before);
    }
    if is.state == StateOnChange::Fresh {
        let told = Before {
            at: 0,
            owner: owner.to_le_bytes(),
        };
        return Ok(anew(next, told, before));
    }
    if is.host == ProgramHost::Plc {
        let succession = succession((&before.settings, was), (settings, is))?;
        let conversion = ByVariables::new(owner, succession, &next);
        return tried(next, conversion, state);
    }
    by_program(next, (was, owner), state)
}

/// Why a next version does not start, with what can be done while the one before runs.
fn not_started(error: io::Error) -> String {
    match is_too_large(&error) {
        true => no_room(&error),
        false => error.to_string(),
    }
}

/// Whether a program does not start since its state has more than `state_max`.
fn is_too_large(error: &io::Error) -> bool {
    let Some(why) = error.get_ref() else {
        return false;
    };
    #[cfg(feature = "wasm")]
    if let Some(fault) = why.downcast_ref::<bumpless_host::wasm::LoadFault>() {
        let too_large = |it: &_| matches!(it, bumpless_host::wasm::Problem::StateTooLarge { .. });
        return fault.problems.iter().any(too_large);
    }
    let fault = why.downcast_ref::<StartFault>();
    fault.is_some_and(|fault| matches!(fault.cause, StartCause::State { .. }))
}

/// `state_max` is what a new application may raise, and one that runs may not.
fn no_room(error: &io::Error) -> String {
    format!(
        "{error}. While the application runs, its state_max stays as it is: make the state smaller, or give the changed \
         application another name and channel; it then begins anew. Room for later versions is given beforehand"
    )
}

/// Why a version does not begin anew that has the state of the one that runs.
fn same_state(is: &config::Program) -> String {
    let remedy = match is.host {
        ProgramHost::Process { .. } => "give it another state_version, or leave that line out",
        // Their files alone tell their states.
        ProgramHost::Wasm | ProgramHost::Plc => "leave that line out",
    };
    format!(
        "its state is the same as that of the version that runs, and the file says state = \"fresh\"; {remedy}"
    )
}

/// Refuses what is to begin anew by the file, and is no other version: as the file that runs, under another name.
///
/// # Errors
/// It is, in words.
pub fn refuse_same(before: &config::Application, next: &config::Application) -> Result<(), String> {
    let (ApplicationKind::Program(was), ApplicationKind::Program(is)) = (&before.kind, &next.kind)
    else {
        return Ok(());
    };
    // The line may stand there from the change before.
    let asks = was.state != StateOnChange::Fresh || was.file.file_name() != is.file.file_name();
    match is.state == StateOnChange::Fresh && asks && !config::changes_program(before, next) {
        true => Err(same_state(is)),
        false => Ok(()),
    }
}

/// A version that says that its states have the layout of those of the one before.
fn same_layout(
    next: Sidecar,
    is: &config::Program,
    before: &Version,
) -> Result<Box<dyn Application>, String> {
    if is.state == StateOnChange::Fresh {
        return Err(same_state(is));
    }
    let (found, expected) = (next.state_size_max(), before.size_max);
    if found == expected {
        return Ok(Box::new(next));
    }
    Err(format!(
        "this version of its program has a state of {found} bytes, and the one that runs has one of {expected}, with the same \
         state_version; give it another one, and a function that converts"
    ))
}

fn by_program(
    mut next: Sidecar,
    (was, owner): (&config::Program, u64),
    state: Option<&[u8]>,
) -> Result<Box<dyn Application>, String> {
    if !next.converts() {
        return Err(
            "this version of its program does not say that its state has the layout of the one that runs, and converts none; \
             build it with the state_version of the one that runs if its state is the same, give it a function that converts \
             (spec/sidecar.md, H-36), or set state = \"fresh\" for it: it then begins anew"
                .into(),
        );
    }
    // Where a program gives no version, its file tells its states.
    let version = match Hash(was.sha256).short() == owner {
        true => 0,
        false => owner,
    };
    if let Some(state) = state {
        let told = Before {
            at: 0,
            owner: owner.to_le_bytes(),
        };
        try_with(&mut next, told, state, |next, state| {
            let old = state.get(HEAD..).unwrap_or_default();
            next.convert(version, old)
                .map_err(|cause| cause.to_string())
        })?;
    }
    Ok(Box::new(Successor::new(
        next,
        ByProgram::new(owner, version),
    )))
}

/// Has `next` take over `state` for trial: by `convert`, if the version `before` has saved it, else as it is.
fn try_with<A: Application>(
    next: &mut A,
    before: Before,
    state: &[u8],
    convert: impl FnOnce(&mut A, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    if before.has_saved(state) {
        convert(next, state).map_err(|why| {
            format!("this version of its program cannot convert the state of the one that runs: {why}; {REMEDY}")
        })?;
    } else {
        next.load(state).map_err(|error| {
            format!(
                "the newest state is neither of the version that runs nor of this one ({error}); let both nodes run the same \
                 version, and try again"
            )
        })?;
    }
    next.reset();
    Ok(())
}

const REMEDY: &str = "mend that, or set state = \"fresh\" for it: it then begins anew";

fn tried<A: Application + 'static, C: Conversion<A> + 'static>(
    next: A,
    conversion: C,
    state: Option<&[u8]>,
) -> Result<Box<dyn Application>, String> {
    let mut next = Successor::new(next, conversion);
    if let Some(state) = state {
        next.load(state)
            .map_err(|error| format!("{error}; {REMEDY}"))?;
        next.reset();
    }
    Ok(Box::new(next))
}

fn anew<A: Application + 'static>(next: A, told: Before, before: &Version) -> Box<dyn Application> {
    let conversion = Anew::new(told, before.retained.clone(), next.state_size_max());
    Box::new(Successor::new(next, conversion))
}

#[cfg(feature = "wasm")]
fn module_told_by(owner: u64) -> Option<Before> {
    Some(Before {
        at: bumpless_host::wasm::WASM_OWNER_AT,
        owner: owner.to_be_bytes(),
    })
}

#[cfg(not(feature = "wasm"))]
const fn module_told_by(_: u64) -> Option<Before> {
    None
}

#[cfg(feature = "wasm")]
fn module(
    settings: &config::Application,
    (was, is): (&config::Program, &config::Program),
    before: &Version,
    state: Option<&[u8]>,
) -> Result<Box<dyn Application>, String> {
    use bumpless_host::wasm::{ByModule, WASM_OWNER_AT};
    let next = crate::program::loaded(is).map_err(not_started)?;
    fits(settings, &next).map_err(|error| no_room(&error))?;
    let owner = before.owner.unwrap_or_default();
    if next.state_owner() == before.owner {
        return match is.state {
            StateOnChange::Fresh => Err(same_state(is)),
            _ => Ok(Box::new(next)),
        };
    }
    if is.state == StateOnChange::Fresh {
        let told = Before {
            at: WASM_OWNER_AT,
            owner: owner.to_be_bytes(),
        };
        return Ok(anew(next, told, before));
    }
    if !next.converts() {
        return Err(
            "this version of its program does not export bumpless_convert, so it makes nothing of the state of the one that runs; \
             export that function (spec/program.md, G-31), or set state = \"fresh\" for it: it then begins anew"
                .into(),
        );
    }
    let old = crate::program::loaded(was).map_err(|error| {
        format!("the version that runs is needed to read its state, and {error}; put it back")
    })?;
    tried(next, ByModule::new(old), state)
}

#[cfg(not(feature = "wasm"))]
fn module(
    settings: &config::Application,
    _: (&config::Program, &config::Program),
    _: &Version,
    _: Option<&[u8]>,
) -> Result<Box<dyn Application>, String> {
    // It says why there is none.
    build_at(settings, None).map_err(|error| error.to_string())
}

/// What becomes of the variables of a PLC program in its next version, which is refused where that does not permit it.
///
/// # Errors
/// Why it does not go on with that state.
fn succession(
    (before, was): (&config::Application, &config::Program),
    (next, is): (&config::Application, &config::Program),
) -> Result<Succession, String> {
    if before.period != next.period {
        return Err(
            "its period is another one, so its timers would jump; leave the tasks' intervals as they are, or set \
             state = \"fresh\" for it"
                .into(),
        );
    }
    let found = Succession::between(&variables(was)?, &variables(is)?);
    if is.state == StateOnChange::Kept && !found.other_type.is_empty() {
        let other = found.other_type.iter();
        let other = other.map(|it| format!("{} ({}, was {})", it.name, it.is, it.was));
        let other: Vec<String> = other.collect();
        return Err(format!(
            "{} variables of its program have another type: {}; give them other names, or set state = \"partly\" for it: they then \
             begin with their initial values",
            other.len(),
            other.join(", ")
        ));
    }
    Ok(found)
}

fn variables(program: &config::Program) -> Result<Vec<StateVariable>, String> {
    let bytes = file_of(program).map_err(|error| {
        format!("{error}; its table of variables is needed: put it back, or set state = \"fresh\" for the next version")
    })?;
    let file = program.file.display();
    let found = plc::variables(&bytes).map_err(|error| format!("{file}: {error}"))?;
    match found.is_empty() {
        true => Err(format!(
            "{file} does not tell its variables: an older `bumpless program build` has made it, or some cannot be told (spec/sidecar.md, H-33); build it again, \
             or set state = \"fresh\" for the next version"
        )),
        false => Ok(found),
    }
}

/// What becomes of the state of a program when its next version takes its place, as far as files tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its variables, one by one.
    Variables(Succession),
    /// It begins anew, as the file says.
    Fresh,
    /// The next version tells when it is started.
    ByStart,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variables(succession) => succession.fmt(f),
            Self::Fresh => {
                f.write_str("its state begins anew (state = \"fresh\"), but for what both versions retain")
            }
            Self::ByStart => f.write_str(
                "goes on with its state if the next version takes it over, which each node finds out by starting it",
            ),
        }
    }
}

/// What becomes of the state of `before` in `next`; `None`: it runs the same program.
///
/// # Errors
/// Why it is refused.
pub fn fate(
    before: &config::Application,
    next: &config::Application,
) -> Option<Result<Fate, String>> {
    let (ApplicationKind::Program(was), ApplicationKind::Program(is)) = (&before.kind, &next.kind)
    else {
        return None;
    };
    if let Err(why) = refuse_same(before, next) {
        return Some(Err(why));
    }
    if !config::changes_program(before, next) {
        return None;
    }
    Some(match (is.state, &is.host) {
        (StateOnChange::Fresh, _) => Ok(Fate::Fresh),
        (_, ProgramHost::Plc) => succession((before, was), (next, is)).map(Fate::Variables),
        _ => Ok(Fate::ByStart),
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::versions;

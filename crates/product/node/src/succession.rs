//! The next version of a program in the place of the one that runs, with that one's state.

mod fate;
mod files;
mod version;

use std::io;

use bumpless_config as config;
use bumpless_config::{ApplicationKind, ProgramHost, StateOnChange};
use bumpless_controller::Application;
use bumpless_controller::successor::{Anew, Before, Conversion, Successor};
use bumpless_sidecar::{ByProgram, ByVariables, Hash, Sidecar, StartCause, StartFault};

pub use self::fate::{Fate, fate};
pub use self::files::refuse_same;
use self::files::{same_state, succession};
pub use self::version::Version;
use crate::program::{below, build_at, fits, sidecar};

/// Bytes of a process's saved state before its own (H-19).
const HEAD: usize = 8;

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
    let next = sidecar(is, (below(priority), &|| true), settings.period).map_err(not_started)?;
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

/// Whether the module of `before` is to run on another engine, or with other room for its memory.
pub fn runs_otherwise(before: &Version, settings: &config::Application) -> bool {
    let ways = [&before.settings.kind, &settings.kind].map(|kind| match kind {
        ApplicationKind::Program(program) if program.host == ProgramHost::Wasm => {
            Some((program.engine, program.memory_max))
        }
        _ => None,
    });
    ways[0] != ways[1]
}

/// Starts what `settings` describe for trial, with the state of the program that runs.
///
/// # Errors
/// Why it does not run like that, in words.
pub fn try_again(settings: &config::Application, state: Option<&[u8]>) -> Result<(), String> {
    let told = |why: String| format!("application '{}': {why}", settings.name);
    let mut next = build_at(settings, None).map_err(|error| told(error.to_string()))?;
    let loaded = state.map_or(Ok(()), |state| next.load(state));
    loaded.map_err(|error| told(format!("the newest state does not fit: {error}")))
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

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::versions;

//! What the files of two versions say of their states.

use bumpless_config as config;
use bumpless_config::{ApplicationKind, ProgramHost, StateOnChange};
use bumpless_sidecar::plc::{self, StateVariable, Succession};

use crate::program::file_of;

/// Why a version does not begin anew that has the state of the one that runs.
pub fn same_state(is: &config::Program) -> String {
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

/// What becomes of the variables of a PLC program in its next version, which is refused where that does not permit it.
///
/// # Errors
/// Why it does not go on with that state.
pub fn succession(
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

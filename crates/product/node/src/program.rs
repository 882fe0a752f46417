//! From an application's settings to what runs it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use bumpless_base::{Duration, NodeId};
use bumpless_config::{
    self as config, ApplicationKind, Commit, ProgramHost, Weakness, WeaknessCode,
};
use bumpless_controller::executor::published_size_max;
use bumpless_controller::pid::PidParameters;
use bumpless_controller::retain::{Retained, Table};
use bumpless_controller::tanks::SENSOR_GAIN;
use bumpless_controller::{
    Application, CommitMode, ExecutorSettings, OnFailure, OnProgramFault, QuadrupleTank,
    QuadrupleTankParameters, SetPointStep, Synthetic, SyntheticParameters,
};
use bumpless_sidecar::{Command, Hash, Sidecar, plc};

/// How the application with these settings is executed on node `writer`.
pub fn executor_settings(settings: &config::Application, writer: NodeId) -> ExecutorSettings {
    let on_failure = settings.field.as_ref().map(|field| field.on_failure);
    ExecutorSettings {
        writer,
        period: settings.period,
        deadline: settings.deadline,
        expiry: settings.expiry,
        field_timeout: settings
            .field
            .as_ref()
            .map_or(settings.period, |field| field.timeout),
        commit: match settings.commit {
            Commit::BeforeOutput => CommitMode::BeforeOutput,
            Commit::Async => CommitMode::Async,
        },
        on_failure: match on_failure {
            Some(config::OnFailure::Fail) => OnFailure::Fail,
            Some(config::OnFailure::Hold) | None => OnFailure::Hold,
        },
        on_program_fault: match &settings.kind {
            ApplicationKind::Program(program) => match &program.on_fault {
                config::OnProgramFault::Hold => OnProgramFault::Hold,
                config::OnProgramFault::Safe(values) => OnProgramFault::Safe(values[..].into()),
            },
            _ => OnProgramFault::Hold,
        },
        begins_anew: settings.begins_anew,
    }
}

/// The application that `settings` describe.
///
/// # Errors
/// A program of the user is refused, with what to do about it.
pub fn build(settings: &config::Application) -> io::Result<Box<dyn Application>> {
    build_at(settings, None)
}

/// The same, where the data plane has this `priority`: a program in a process of its own gets one below its executor's,
/// which stops it if it does not answer. Where there is none below, it has no other than the rest of the system.
///
/// # Errors
/// As [`build`].
pub fn build_at(
    settings: &config::Application,
    priority: Option<u8>,
) -> io::Result<Box<dyn Application>> {
    build_while(settings, priority, &|| true)
}

/// The same, given up where nobody waits for the start of a program any more.
///
/// # Errors
/// As [`build`]; it is not wanted any more.
pub fn build_while(
    settings: &config::Application,
    priority: Option<u8>,
    wanted: &dyn Fn() -> bool,
) -> io::Result<Box<dyn Application>> {
    let by = StoppedBy::ClockAndSteps;
    made(settings, by, (below(priority), wanted))
}

/// The same, where a WebAssembly program is stopped by its steps alone, so that a run can be repeated to the bit.
///
/// # Errors
/// As [`build`].
pub fn build_untimed(settings: &config::Application) -> io::Result<Box<dyn Application>> {
    made(settings, StoppedBy::Steps, (None, &|| true))
}

/// How long a WebAssembly program may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoppedBy {
    /// By the computer's clock, and by its steps.
    ClockAndSteps,
    /// By its steps.
    Steps,
}

/// With the priority of a program's process, and whether its start is wanted.
fn made(
    settings: &config::Application,
    by: StoppedBy,
    start: (Option<u8>, &dyn Fn() -> bool),
) -> io::Result<Box<dyn Application>> {
    Ok(match &settings.kind {
        ApplicationKind::QuadrupleTank(tank) => Box::new(QuadrupleTank::new(tank_parameters(tank))),
        ApplicationKind::Synthetic(synthetic) => Box::new(Synthetic::new(SyntheticParameters {
            size: synthetic.size as usize,
            changed_share: synthetic.changed_share,
        })),
        ApplicationKind::Program(program) => {
            let hosted = hosted(program, by, start, settings.period)?;
            fits(settings, hosted.as_ref())?;
            hosted
        }
    })
}

/// The program of a user in its host.
fn hosted(
    program: &config::Program,
    by: StoppedBy,
    start: (Option<u8>, &dyn Fn() -> bool),
    period: Duration,
) -> io::Result<Box<dyn Application>> {
    if program.host == ProgramHost::Wasm {
        return wasm(program, by);
    }
    Ok(Box::new(sidecar(program, start, period)?))
}

/// Priority of a program in a process of its own, where the data plane has this `priority`.
pub(super) fn below(priority: Option<u8>) -> Option<u8> {
    priority
        .and_then(|it| it.checked_sub(2))
        .filter(|&it| it > 0)
}

/// The program of a user that runs in a process of its own.
pub(super) fn sidecar(
    program: &config::Program,
    (realtime, wanted): (Option<u8>, &dyn Fn() -> bool),
    period: Duration,
) -> io::Result<Sidecar> {
    // A name without a folder would be looked for in PATH.
    let file = std::path::absolute(&program.file)?;
    let first = match &program.host {
        ProgramHost::Process { command, .. } => command.split_first(),
        ProgramHost::Wasm | ProgramHost::Plc => None,
    };
    let mut command = match first {
        Some((first, more)) => {
            let words = more.iter().fold(Command::new(first), Command::argument);
            words.script(&file)
        }
        None => Command::new(&file),
    };
    if let ProgramHost::Process { arguments, .. } = &program.host {
        command = arguments.iter().fold(command, Command::argument);
    }
    command.realtime = realtime;
    command.hash = Some((file, Hash(program.sha256)));
    let shape = bumpless_sidecar::Shape {
        inputs: program.inputs.len(),
        outputs: program.outputs.len(),
        state_max: program.state_max as usize,
    };
    let limits = bumpless_sidecar::Limits {
        execute: program.execute_limit,
        memory: program.memory_max,
        ..Default::default()
    };
    let sidecar = Sidecar::start_while(&command, shape, limits, wanted);
    let sidecar = sidecar.map_err(io::Error::other)?;
    if let Some(needs) = sidecar.period().filter(|&needs| needs != period) {
        let (needs, period) = (needs.as_millis_f64(), period.as_millis_f64());
        return Err(io::Error::other(format!(
            "program {}: it runs with a period of {needs} ms only, what the intervals of all its tasks have in common, and \
             {period} ms are configured; set period_ms = {needs}",
            sidecar.name()
        )));
    }
    match &program.host {
        ProgramHost::Plc => {
            let variables = variables(program)?;
            sidecar.retaining(variables).map_err(io::Error::other)
        }
        _ => Ok(sidecar),
    }
}

/// The variables that the program of an application retains; none, if it is no PLC program.
///
/// # Errors
/// Its file cannot be read, is another one by now, or is damaged.
pub fn retained(settings: &config::Application) -> io::Result<Table> {
    let ApplicationKind::Program(program) = &settings.kind else {
        return Ok(Table::default());
    };
    if program.host != ProgramHost::Plc {
        return Ok(Table::default());
    }
    Table::new(variables(program)?, settings.state_max as usize).map_err(io::Error::other)
}

/// What it means that the application retains variables, where it keeps nothing on disk (K-19).
pub fn retains_in_memory_alone(settings: &config::Application) -> Option<Weakness> {
    let count = match settings.persist {
        None => retained(settings).map_or(0, |table| table.variables().len()),
        Some(_) => 0,
    };
    (count > 0).then(|| Weakness {
        code: WeaknessCode::RetainedInMemoryAlone,
        subject: format!("application {:?}", settings.name),
        hazard: format!(
            "its program retains {count} variables, and nothing of it is kept on disk: they begin anew when both nodes have \
             stopped"
        ),
        remedy: "set persist = \"file\", and state_dir for each node, or build the program without retain".into(),
    })
}

/// The bytes of a program's file.
///
/// # Errors
/// It cannot be read, or is another one by now.
pub(super) fn file_of(program: &config::Program) -> io::Result<Vec<u8>> {
    let bytes = read(&program.file).map_err(|error| {
        io::Error::new(error.kind(), format!("{}: {error}", program.file.display()))
    })?;
    if Hash::of(&bytes) != Hash(program.sha256) {
        return Err(io::Error::other(format!(
            "{}: it has changed since the configuration was read",
            program.file.display()
        )));
    }
    Ok(bytes)
}

/// What the regular file at `path` has, of which nobody waits for the end: what is longer than any program is another file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a pipe waits for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other(
            "it is no regular file any more; put the program back",
        ));
    }
    let mut bytes = Vec::new();
    let mut file = fs::File::open(path)?.take(config::PROGRAM_MAX + 1);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn variables(program: &config::Program) -> io::Result<Vec<Retained>> {
    let bytes = file_of(program)?;
    let name = |error| io::Error::other(format!("{}: {error}", program.file.display()));
    plc::retained(&bytes).map_err(name)
}

#[cfg(feature = "wasm")]
fn wasm(program: &config::Program, by: StoppedBy) -> io::Result<Box<dyn Application>> {
    let loaded = loaded(program)?;
    Ok(Box::new(match by {
        StoppedBy::ClockAndSteps => loaded,
        StoppedBy::Steps => loaded.timed_by(None),
    }))
}

/// The WebAssembly program of a user.
#[cfg(feature = "wasm")]
pub(super) fn loaded(program: &config::Program) -> io::Result<bumpless_host::wasm::Wasm> {
    let file = std::path::absolute(&program.file)?;
    let shape = bumpless_host::Shape {
        inputs: program.inputs.len(),
        outputs: program.outputs.len(),
        state_max: program.state_max as usize,
    };
    let mut limits = bumpless_host::Limits::within(program.execute_limit);
    if let Some(most) = program.memory_max {
        limits.memory = usize::try_from(most).unwrap_or(usize::MAX);
    }
    let engine = match program.engine {
        config::ModuleEngine::Wasmi => bumpless_host::wasm::Engine::Wasmi,
        config::ModuleEngine::Wasmtime => bumpless_host::wasm::Engine::Wasmtime,
    };
    let loaded = bumpless_host::wasm::Wasm::load(&file, engine, shape, limits);
    loaded.map_err(io::Error::other)
}

#[cfg(not(feature = "wasm"))]
fn wasm(program: &config::Program, _: StoppedBy) -> io::Result<Box<dyn Application>> {
    Err(io::Error::other(format!(
        "{}: this program was built without WebAssembly; build it with `cargo build --features wasm`",
        program.file.display()
    )))
}

/// Whether the channel can carry the states of `application`: one that it cannot would never reach the backup.
pub(super) fn fits(
    settings: &config::Application,
    application: &dyn Application,
) -> io::Result<()> {
    let needed = published_size_max(application);
    if needed > settings.state_max as usize {
        return Err(io::Error::other(format!(
            "states of '{}' have up to {needed} bytes with what the executor adds, its channel carries {}; raise \
             state_max",
            settings.name, settings.state_max
        )));
    }
    Ok(())
}

fn tank_parameters(tank: &config::QuadrupleTank) -> QuadrupleTankParameters {
    let mut parameters = QuadrupleTankParameters {
        time_scale: tank.time_scale,
        ..Default::default()
    };
    for (pid, configured) in parameters.loops.iter_mut().zip(&tank.loops) {
        *pid = PidParameters {
            // Configured per centimetre of level; the controller measures in sensor volts.
            gain: configured.gain / SENSOR_GAIN,
            integral_time: configured.integral_s,
            derivative_time: configured.derivative_s,
            ..*pid
        };
    }
    parameters.steps = tank
        .set_points
        .iter()
        .map(|point| SetPointStep {
            at: point.at.as_secs_f64(),
            levels: [point.tank1_cm, point.tank2_cm],
        })
        .collect();
    if let Some(first) = parameters.steps.first() {
        parameters.initial = first.levels;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_config::Config;

    #[test]
    fn every_channel_carries_the_largest_state_that_its_application_publishes() {
        for example in ["quadruple-tank", "table20", "two-computers"] {
            let path = format!(
                "{}/../../../examples/{example}.toml",
                env!("CARGO_MANIFEST_DIR")
            );
            let config = Config::load(path.as_ref()).unwrap();
            for settings in &config.applications {
                let needed = published_size_max(build(settings).unwrap().as_ref());
                assert!(
                    needed <= settings.state_max as usize,
                    "{example}: {} needs {needed}",
                    settings.name
                );
            }
        }
    }
}

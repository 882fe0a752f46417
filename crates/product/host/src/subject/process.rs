//! Programs in processes of their own.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration as StdDuration, Instant, SystemTime, UNIX_EPOCH};

use bumpless_base::Duration;
use bumpless_controller::{Application, CycleContext, LoadError, ProgramFault};
use bumpless_sidecar::{self as sidecar, Cause, Command, Hash, Sidecar};

use super::{HostKind, Maker, Named, Subject, Unfit, UnfitCause, outside};
use crate::kit::Seen;
use crate::{Kind, Shape};

/// What a cycle may take unless said otherwise: nothing is judged by how long something took.
const PATIENCE: Duration = Duration::from_secs(1);
/// What the beginning of a program may take, on a busy computer.
const BEGINNING: Duration = Duration::from_secs(20);

/// How a program is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// What stands before its file.
    pub command: Vec<String>,
    /// Its file, with its folder.
    pub file: PathBuf,
    /// What stands behind its file.
    pub arguments: Vec<String>,
}

impl Started {
    fn of(named: &Named) -> std::io::Result<Self> {
        let command = match named.command.is_empty() && needs_python(&named.file) {
            true => vec!["python3".into()],
            false => named.command.clone(),
        };
        Ok(Self {
            command,
            file: std::path::absolute(&named.file)?,
            arguments: named.arguments.clone(),
        })
    }

    fn as_command(&self) -> Command {
        let command = match self.command.split_first() {
            Some((first, more)) => {
                let words = more.iter().fold(Command::new(first), Command::argument);
                words.script(&self.file)
            }
            None => Command::new(&self.file),
        };
        self.arguments.iter().fold(command, Command::argument)
    }
}

/// Whether it is a script in Python that the system would not start by itself.
fn needs_python(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_python = file.extension().is_some_and(|ending| ending == "py");
    let may_run = file
        .metadata()
        .is_ok_and(|it| it.permissions().mode() & 0o111 != 0);
    let begins = std::fs::read(file).map(|bytes| Kind::of(&bytes));
    is_python && !(may_run && begins.is_ok_and(|kind| kind == Kind::Script))
}

/// What makes instances.
pub(super) struct Process {
    started: Started,
    limits: sidecar::Limits,
    /// The process of the instance that was made last.
    last: Option<u32>,
    /// The second in which the first one began.
    first_second: Option<u64>,
    made: u64,
}

/// The program that is named.
pub(super) fn open(
    named: Named,
    host: HostKind,
    sha256: Hash,
    suspects: Vec<&'static str>,
    wanted: &dyn Fn() -> bool,
) -> Result<Subject, Unfit> {
    if named.engine.is_some() {
        return Err(named.unfit(UnfitCause::NoEngine));
    }
    if named.memory_max.is_some() {
        return Err(named.unfit(UnfitCause::NoMemory));
    }
    let said = !named.command.is_empty() || !named.arguments.is_empty();
    if said && host == HostKind::Plc {
        return Err(named.unfit(UnfitCause::NoCommand));
    }
    let limits = sidecar::Limits {
        execute: named.limit.unwrap_or(PATIENCE),
        start: BEGINNING,
        ..sidecar::Limits::default()
    };
    let started = Started::of(&named)
        .map_err(|error| named.unfit(UnfitCause::Unreadable(error.to_string())))?;
    let told = sidecar::ask(&started.as_command(), named.state_max, limits, wanted)
        .map_err(|fault| named.unfit(UnfitCause::Start(Box::new(fault))))?;
    for (what, program, said) in [
        ("inputs", told.inputs, named.inputs),
        ("outputs", told.outputs, named.outputs),
    ] {
        if let Some(said) = said.filter(|&said| said != program) {
            let cause = UnfitCause::Count {
                what,
                program,
                said,
            };
            return Err(named.unfit(cause));
        }
    }
    if let (Some(program), Some(said)) = (told.period, named.period)
        && program != said
    {
        return Err(named.unfit(UnfitCause::Period { program, said }));
    }
    Ok(Subject {
        host,
        sha256,
        shape: Shape {
            inputs: told.inputs,
            outputs: told.outputs,
            state_max: told.state_len,
        },
        period: told.period.or(named.period).unwrap_or(Named::PERIOD),
        suspects,
        retained: Vec::new(),
        maker: Maker::Process(Process {
            started,
            limits,
            last: None,
            first_second: None,
            made: 0,
        }),
        named,
    })
}

impl Process {
    pub fn started(&self) -> &Started {
        &self.started
    }

    pub fn make(&mut self, shape: Shape) -> Result<Box<dyn Application>, String> {
        self.begin_at_another_time();
        let shape = sidecar::Shape {
            inputs: shape.inputs,
            outputs: shape.outputs,
            state_max: shape.state_max,
        };
        let sidecar = Sidecar::start(&self.started.as_command(), shape, self.limits);
        let sidecar = sidecar.map_err(|fault| fault.to_string())?;
        self.last = sidecar.process_id();
        self.made += 1;
        Ok(Box::new(Patient(sidecar)))
    }

    /// Clocks of seconds show another one to the second instance than to the first.
    fn begin_at_another_time(&mut self) {
        let second = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap_or_default().as_secs()
        };
        let first = *self.first_second.get_or_insert_with(second);
        while self.made == 1 && second() == first {
            thread::sleep(StdDuration::from_millis(5));
        }
    }

    pub fn look(&self) -> Vec<Seen> {
        self.last.map(outside::of_process).unwrap_or_default()
    }
}

/// A program that is waited for while it is started again, as nobody does in a plant.
struct Patient(Sidecar);

impl Application for Patient {
    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        // It goes on all the same, which is no good sign.
        if let Some(mishap) = self.0.mishap() {
            return Err(mishap.fault);
        }
        let began = Instant::now();
        loop {
            match self.0.run_cycle(context, inputs, outputs) {
                Err(fault) if fault.cause == Cause::NotReady && began.elapsed() < WAIT => {
                    thread::sleep(StdDuration::from_millis(1));
                }
                done => return Ok(done?),
            }
        }
    }

    fn state_size_max(&self) -> usize {
        self.0.state_size_max()
    }

    fn save(&self, into: &mut [u8]) -> usize {
        self.0.save(into)
    }

    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        self.0.load(state)
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

/// How long a start is waited for.
const WAIT: StdDuration = StdDuration::from_secs(20);

//! The demonstration: a pair, its plant and its networks on this machine, faults, and a verdict.
//!
//! [`run_demo`] needs no rights beyond the user's own. Everything it starts ends with it, and its
//! temporary directory goes too.

pub(crate) mod addresses;
pub(crate) mod configuration;
mod follow;
mod gather;
mod laboratory;
pub mod meter;
pub(crate) mod processes;
mod program;
pub(crate) mod progress;
mod repeat;
pub(crate) mod report_file;
pub(crate) mod result;
mod script;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_config::Problem;
use serde_json::Value;

use crate::evaluate::{Limits, evaluate};
use crate::report;
use crate::runlog::{LogError, PhaseKind};
use laboratory::{Laboratory, Load, Waiter};
use program::Shown;
use progress::Progress;
use report_file::ReportFile;

pub use program::device::{DeviceOptions, run_device};
pub use program::{CannotShow, DemoProgram, SEED, compare_log};

/// What to demonstrate, and where to put what comes of it.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// The `bumpless` program itself, of which the processes are started.
    pub binary: PathBuf,
    /// Where the report goes; repeated faults write none.
    pub report: PathBuf,
    /// What the pair runs in place of the tank's controller, in the whole course.
    pub program: Option<DemoProgram>,
    /// Repeat one fault this many times instead of the whole course.
    pub repeat: Option<u32>,
    /// Which fault; one kill after the other if only `repeat` is given.
    pub fault: Option<FaultKind>,
    /// Keep configuration and logs in this directory, which must be new or empty.
    pub keep: Option<PathBuf>,
    /// Set to end early.
    pub stop: Arc<AtomicBool>,
}

/// A fault that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The primary is killed.
    Kill,
    /// The roles change on order.
    Switchover,
    /// Network A is cut for a moment.
    CutA,
    /// Both networks between the pair are cut for a moment.
    CutBoth,
}

impl FaultKind {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Kill, Self::Switchover, Self::CutA, Self::CutBoth];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.phase().id()
    }

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kill => "primary killed",
            Self::Switchover => "ordered switchover",
            Self::CutA => "network A cut",
            Self::CutBoth => "both networks between the pair cut",
        }
    }

    /// The phase of the whole course that it comes from.
    pub const fn phase(self) -> PhaseKind {
        match self {
            Self::Kill => PhaseKind::Kill,
            Self::Switchover => PhaseKind::Switchover,
            Self::CutA => PhaseKind::CutOne,
            Self::CutBoth => PhaseKind::CutBoth,
        }
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| format!("no fault is called '{name}'; there are {names}"))
    }
}

/// What a demonstration gave.
#[derive(Clone, Debug)]
pub struct DemoOutcome {
    /// Whether every promise held.
    pub held: bool,
    /// What people read on the terminal, several lines without a last line end.
    pub text: String,
    /// What programs read: `bumpless.demo/1` or `bumpless.demo-repeat/1` (spec/demo.md).
    pub json: Value,
    /// The report, where one was written.
    pub report: Option<PathBuf>,
    /// Why the report was not written, if it should have been.
    pub report_failure: Option<String>,
}

/// Why a demonstration gave no verdict.
#[derive(Debug)]
pub enum DemoError {
    /// The user ended it.
    Interrupted,
    /// The system refused something.
    System {
        /// What it was about.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The report cannot be written, so nothing was started.
    Report {
        /// Where to.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The configuration that the demonstration wrote is refused: a defect of this program.
    Configuration(Vec<Problem>),
    /// A process ended by itself.
    Ended {
        /// Which.
        process: String,
        /// How.
        how: String,
        /// The last of what it said.
        words: String,
    },
    /// The pair did not become redundant in time; with what the nodes said last.
    NotRedundant(String),
    /// A node refused an order.
    Refused(String),
    /// A log cannot be read.
    Log(LogError),
    /// The user's program cannot be shown.
    Program(CannotShow),
    /// The user's program failed on the pair, and the course could not go on.
    Failed {
        /// The first failures, in the nodes' words.
        faults: Vec<String>,
        /// What could not be done then.
        then: Box<DemoError>,
    },
    /// The user's program does not run alone, after it ran on the pair.
    Alone(String),
}

impl DemoError {
    fn system(what: impl Into<String>, cause: io::Error) -> Self {
        Self::System {
            what: what.into(),
            cause,
        }
    }
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("ended early; nothing was judged"),
            Self::System { what, cause } => write!(f, "{what}: {cause}"),
            Self::Report { path, cause } => write!(
                f,
                "the report cannot be written to {}: {cause}; give another file with --report; nothing was started",
                path.display()
            ),
            Self::Configuration(problems) => {
                f.write_str(
                    "the demonstration's own configuration is refused; please report this:",
                )?;
                problems
                    .iter()
                    .try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Self::Ended {
                process,
                how,
                words,
            } => {
                write!(
                    f,
                    "the process {process} ended by itself ({how}); its last words:\n{words}"
                )
            }
            Self::NotRedundant(nodes) => write!(
                f,
                "the pair did not become redundant in time; is the machine overloaded?\n{nodes}"
            ),
            Self::Refused(what) => f.write_str(what),
            Self::Log(error) => error.fmt(f),
            Self::Program(cannot) => cannot.fmt(f),
            Self::Failed { faults, then } => {
                f.write_str("the program failed on the pair, and the course could not go on")?;
                faults
                    .iter()
                    .try_for_each(|fault| write!(f, "\n  {fault}"))?;
                write!(f, "\nthen: {then}")
            }
            Self::Alone(cause) => write!(
                f,
                "the program ran on the pair, and does not run alone to compare with: {cause}"
            ),
        }
    }
}

impl std::error::Error for DemoError {}

/// Runs the demonstration: the whole course, or one fault repeated.
///
/// Shows progress on standard error, prints nothing else.
///
/// # Errors
/// Whatever keeps it from giving a verdict. Broken promises are no error but in the outcome, and so is a
/// report that could be written at the beginning and cannot be at the end.
pub fn run_demo(options: &DemoOptions) -> Result<DemoOutcome, DemoError> {
    match (options.repeat, options.fault) {
        (None, None) => {
            let report = ReportFile::find(&options.report)?;
            let shown = options.program.as_ref();
            let shown = shown.map(|program| Shown::new(program, &options.stop));
            let shown = shown.transpose().map_err(DemoError::Program)?;
            let directory = Directory::new(options.keep.as_deref())?;
            run_course(options, &directory.path, (&report, shown.as_ref()))
        }
        (count, fault) => {
            let directory = Directory::new(options.keep.as_deref())?;
            let fault = fault.unwrap_or(FaultKind::Kill);
            repeat::run(options, &directory.path, fault, count.unwrap_or(1).max(1))
        }
    }
}

fn run_course(
    options: &DemoOptions,
    directory: &Path,
    (report, shown): (&ReportFile, Option<&Shown>),
) -> Result<DemoOutcome, DemoError> {
    let tank = configuration::controller(&script::SET_POINT_STEPS);
    let (load, limits) = match shown {
        None => (Load::Tank(&tank), Limits::default()),
        Some(shown) => {
            let period_ns = shown.period().as_nanos();
            (Load::Program(shown), Limits::for_period(period_ns))
        }
    };
    let waiter = Waiter::new(Arc::clone(&options.stop), Progress::new(script::planned()));
    let mut laboratory = Laboratory::start(&options.binary, directory, load, waiter)?;
    let phases = script::run(&mut laboratory).map_err(|error| laboratory.explained(error))?;
    let run = gather::gather(&mut laboratory, load, phases)?;
    let promises = evaluate(&run, &limits);
    let page = report::render(&run, &promises, &limits, &result::about());
    let written = report.write(&page);
    Ok(result::of_course(&run, &promises, (report.path(), written)))
}

/// The place for configuration, sockets and logs.
struct Directory {
    path: PathBuf,
    temporary: bool,
}

impl Directory {
    fn new(keep: Option<&Path>) -> Result<Self, DemoError> {
        let fail = |path: &Path, error| DemoError::system(path.display().to_string(), error);
        if let Some(path) = keep {
            fs::create_dir_all(path).map_err(|error| fail(path, error))?;
            let path = path.canonicalize().map_err(|error| fail(path, error))?;
            let mut entries = fs::read_dir(&path).map_err(|error| fail(&path, error))?;
            if entries.next().is_some() {
                let error = io::Error::new(
                    io::ErrorKind::DirectoryNotEmpty,
                    "choose an empty directory",
                );
                return Err(fail(&path, error));
            }
            return Ok(Self {
                path,
                temporary: false,
            });
        }
        let path = tempfile::Builder::new()
            .prefix("bumpless-demo-")
            .tempdir()
            .map_err(|error| DemoError::system("a temporary directory", error))?
            .keep();
        Ok(Self {
            path,
            temporary: true,
        })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.temporary {
            // Nothing can be done about a directory that does not go.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;

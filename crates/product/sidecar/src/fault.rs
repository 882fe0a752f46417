//! What can go wrong with a program, each with cause, place and remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use bumpless_base::Duration;
use bumpless_controller::{ProgramFault, ProgramFaultKind, Unanswered};
use bumpless_program::layout::VERSION;

use crate::Hash;

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowItEnded {
    /// By itself, with this exit status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for HowItEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |signal: &i32| match signal {
            4 => " (SIGILL)",
            6 => " (SIGABRT)",
            7 => " (SIGBUS)",
            8 => " (SIGFPE)",
            9 => " (SIGKILL)",
            11 => " (SIGSEGV)",
            15 => " (SIGTERM)",
            _ => "",
        };
        match self {
            Self::Status(status) => write!(f, "it ended with exit status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}{} ended it", name(signal)),
        }
    }
}

/// Why a program is not there.
#[derive(Debug)]
pub struct StartFault {
    /// The program.
    pub program: String,
    /// Why.
    pub cause: StartCause,
}

/// Why a program could not be started, or is not ready.
#[derive(Debug)]
pub enum StartCause {
    /// The system does not start it.
    System(io::Error),
    /// The system does not start the command that is to start the program's file.
    Starter(PathBuf, io::Error),
    /// The file that is to be checked cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The file is another one.
    Hash {
        /// The file.
        file: PathBuf,
        /// What it should have.
        expected: Hash,
        /// What it has.
        found: Hash,
    },
    /// There is no memory to share with it.
    Memory {
        /// Bytes that it takes.
        size: usize,
        /// Why.
        error: io::Error,
    },
    /// Its process ended before it was ready.
    Ended(HowItEnded),
    /// It was not ready in time.
    Slow(Duration),
    /// Its library speaks this version of the protocol.
    Version(u32),
    /// It says that it cannot begin.
    Refused(String),
    /// It has other numbers than the configuration.
    Count {
        /// Of what.
        what: &'static str,
        /// How many it has.
        program: u64,
        /// How many are configured.
        configured: u64,
    },
    /// Its state is larger than configured.
    State {
        /// Bytes that it has.
        program: u64,
        /// Most that are configured.
        configured: u64,
    },
    /// It is another program than at the first start.
    Changed,
    /// The thread that looks after it cannot be made.
    Thread(io::Error),
    /// Whoever wanted it does so no longer.
    Unwanted,
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, cause } = self;
        write!(f, "program {program}: {cause}")
    }
}

impl std::error::Error for StartFault {}

impl fmt::Display for StartCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => {
                write!(f, "the system does not start it: {error}; ")?;
                f.write_str(match error.kind() {
                    io::ErrorKind::NotFound => {
                        "give the path of a program, or install the interpreter that its first line names"
                    }
                    io::ErrorKind::PermissionDenied => {
                        "make the file executable for the user that runs bumpless"
                    }
                    _ => "it must be a program for this computer's processor",
                })
            }
            Self::Starter(starter, error) => write!(
                f,
                "{:?}, which is to start it, cannot be started: {error}; install it, or give another command",
                starter.display().to_string()
            ),
            Self::Unreadable(file, error) => write!(
                f,
                "{} cannot be read to check its SHA-256: {error}; make it readable for the user that runs bumpless",
                file.display()
            ),
            Self::Hash {
                file,
                expected,
                found,
            } => write!(
                f,
                "{} has the SHA-256 {found} instead of {expected}; put the same file on both nodes, and its hash \
                 into the configuration",
                file.display()
            ),
            Self::Memory { size, error } => write!(
                f,
                "{size} bytes of memory to share with it cannot be had: {error}; lower the configured state, or free \
                 memory"
            ),
            Self::Ended(how) => write!(
                f,
                "{how} before it was ready; look at what it printed, and whether it calls bumpless_run() or its like"
            ),
            Self::Slow(limit) => write!(
                f,
                "it was not ready within {} ms; raise the limit for the start, or look at what it waits for",
                limit.as_millis()
            ),
            Self::Version(speaks) => write!(
                f,
                "it speaks version {speaks} of the protocol, this host version {VERSION}; build it with the library of \
                 this release"
            ),
            Self::Refused(why) => write!(f, "it refuses to begin: {why}"),
            Self::Count {
                what,
                program,
                configured,
            } => write!(
                f,
                "it has {program} {what}, the configuration {configured}; name as many as the program has, in its order"
            ),
            Self::State {
                program,
                configured,
            } => write!(
                f,
                "its state has {program} bytes, the configuration allows {configured}; raise the configured state"
            ),
            Self::Changed => f.write_str(
                "it is not the program that ran before: its state has another size or version; restart the node to \
                 change a program",
            ),
            Self::Thread(error) => write!(
                f,
                "no thread can be made to look after it: {error}; raise the limit of threads"
            ),
            Self::Unwanted => f.write_str("it is no longer wanted"),
        }
    }
}

/// Why a cycle gave no outputs. The state is that of the last cycle which did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The program.
    pub program: String,
    /// The cycle.
    pub cycle: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a cycle failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It had not answered by its limit.
    Unanswered(Unanswered),
    /// Its process ended.
    Died(HowItEnded),
    /// It says so, with the reason.
    Failed(String),
    /// It answered with another value in this field.
    WrongAnswer {
        /// The field.
        field: &'static str,
        /// What is right.
        expected: u64,
        /// What it said.
        found: u64,
    },
    /// It cannot run with the configured period.
    Period {
        /// What it needs.
        needs: Duration,
        /// What is configured.
        configured: Duration,
    },
    /// It is being started again.
    NotReady,
    /// It does not run, with the reason.
    NotRunning(String),
}

impl Cause {
    fn kind(&self) -> ProgramFaultKind {
        match self {
            Self::Unanswered(unanswered) => unanswered.kind(),
            Self::Died(_) => ProgramFaultKind::Crash,
            Self::Failed(_) => ProgramFaultKind::Trap,
            Self::WrongAnswer { .. } => ProgramFaultKind::WrongAnswer,
            Self::NotReady => ProgramFaultKind::NotReady,
            Self::Period { .. } | Self::NotRunning(_) => ProgramFaultKind::NotRunning,
        }
    }
}

impl From<Fault> for ProgramFault {
    /// The cycle is told beside it.
    fn from(fault: Fault) -> Self {
        let Fault { program, cause, .. } = fault;
        Self::new(cause.kind(), format!("{program}: {cause}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            cycle,
            cause,
        } = self;
        write!(f, "program {program}, cycle {cycle}: {cause}")
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(unanswered) => write!(f, "{unanswered}"),
            Self::Died(how) => write!(f, "{how}; look at what it printed and mend it"),
            Self::Failed(why) => write!(f, "it failed: {why}"),
            Self::WrongAnswer {
                field,
                expected,
                found,
            } => write!(
                f,
                "it answered with {found} in the field {field:?} instead of {expected}; it writes where it must not, or \
                 is built with a broken library"
            ),
            Self::Period { needs, configured } => write!(
                f,
                "it can run with a period of {} us only, and {} us are configured; set the same period",
                needs.as_micros(),
                configured.as_micros()
            ),
            Self::NotReady => f.write_str("it is being started again"),
            Self::NotRunning(why) => write!(f, "it is not running: {why}"),
        }
    }
}

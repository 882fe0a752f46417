//! Why a file is not taken as a program.

use std::fmt;

use bumpless_base::Duration;
use bumpless_sidecar::StartFault;

/// Why a file is not taken as a program.
#[derive(Debug)]
pub struct Unfit {
    /// The file, as it was named.
    pub file: String,
    /// Why.
    pub cause: UnfitCause,
}

/// Why.
#[derive(Debug)]
pub enum UnfitCause {
    /// It cannot be read.
    Unreadable(String),
    /// It is a folder.
    Folder,
    /// It is a device, a pipe or a socket.
    NotRegular,
    /// It has more bytes than this.
    TooLong(u64),
    /// It is nothing that could run.
    NoProgram,
    /// It is an executable for another processor.
    OtherProcessor,
    /// It is an object that was compiled and not linked.
    NotLinked,
    /// It is an executable of which the end is missing.
    Cut,
    /// It takes a build with WebAssembly.
    WithoutWasm,
    /// It is not started by anything else.
    NoCommand,
    /// No such engine runs it.
    NoEngine,
    /// Its memory is not limited by its host.
    NoMemory,
    /// A module is refused, in its host's words.
    Module(String),
    /// A process does not begin.
    Start(Box<StartFault>),
    /// It does not tell how many of these it has.
    NotTold(&'static str),
    /// It has another number of these than its user says.
    Count {
        /// Of what.
        what: &'static str,
        /// How many it has.
        program: usize,
        /// How many its user says.
        said: usize,
    },
    /// It runs with another period only.
    Period {
        /// Its own.
        program: Duration,
        /// What its user says.
        said: Duration,
    },
}

impl Unfit {
    /// Whether it is the command and not the program that is wrong.
    pub fn is_usage(&self) -> bool {
        matches!(
            self.cause,
            UnfitCause::NotTold(_)
                | UnfitCause::Count { .. }
                | UnfitCause::Period { .. }
                | UnfitCause::NoCommand
                | UnfitCause::NoEngine
                | UnfitCause::NoMemory
        )
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, cause } = self;
        match cause {
            // They name the file themselves.
            UnfitCause::Module(said) => f.write_str(said),
            UnfitCause::Start(fault) => fault.fmt(f),
            UnfitCause::NotTold(what) => {
                write!(
                    f,
                    "{file} does not tell how many {what} it has; give --{what}"
                )
            }
            cause => write!(f, "{file}: {cause}"),
        }
    }
}

impl std::error::Error for Unfit {}

impl fmt::Display for UnfitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Folder => f.write_str(
                "it is a folder; give a program's file, or make one of a PLC's generated C with bumpless program build",
            ),
            Self::NotRegular => f.write_str(
                "it is no regular file (a device, pipe or socket); give the path of a program's file",
            ),
            Self::TooLong(max) => write!(
                f,
                "it has more than {max} bytes; give the path of a program's file"
            ),
            Self::NoProgram => f.write_str(
                "it is no program: neither an executable, a script with its interpreter in the first line, a .py file, nor \
                 a WebAssembly module",
            ),
            Self::OtherProcessor => f.write_str(
                "it is an executable for another processor or ABI than this computer's; build it for this one",
            ),
            Self::NotLinked => {
                f.write_str("it is a compiled object that was not linked; link it to an executable")
            }
            Self::Cut => f.write_str(
                "it is cut short: its end is missing; copy or build it again",
            ),
            Self::WithoutWasm => f.write_str(
                "this bumpless was built without WebAssembly; build it with: cargo build --release --features wasm",
            ),
            Self::NoCommand => f.write_str(
                "--command and --argument are for processes; this program is started by its host alone",
            ),
            Self::NoEngine => f.write_str(
                "--engine is for WebAssembly modules, which wasmi or wasmtime runs; leave it out",
            ),
            Self::NoMemory => f.write_str(
                "--memory-max is for WebAssembly modules; memory_max in the configuration limits a process where a node runs it, leave \
                 the option out",
            ),
            Self::Module(said) => f.write_str(said),
            Self::Start(fault) => fault.fmt(f),
            Self::NotTold(what) => write!(f, "it does not tell how many {what} it has"),
            Self::Count {
                what,
                program,
                said,
            } => write!(
                f,
                "it has {program} {what}, and --{what} says {said}; give the right number, or leave it out"
            ),
            Self::Period { program, said } => write!(
                f,
                "it runs with a period of {} ms only, and --period says {}; leave it out",
                program.as_millis_f64(),
                said.as_millis_f64()
            ),
        }
    }
}

#[cfg(test)]
impl PartialEq for UnfitCause {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

//! Why one execution of a program failed.

use std::fmt;
use std::sync::Arc;

/// What went wrong, so far as it makes a difference to whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramFaultKind {
    /// The program stopped itself: an illegal instruction, an access out of bounds, a division by zero, an exception.
    Trap,
    /// Its process is gone.
    Crash,
    /// It ran for longer than it may (`execute_limit_ms`), perhaps for ever.
    Overrun,
    /// What it gave is no answer: a wrong size, an output that is not a finite number, a broken protocol.
    WrongAnswer,
    /// It wanted more memory than it may have, or its state is larger than configured.
    Memory,
    /// It is being started again after a failure, and nothing was executed. This counts as no further failure for a
    /// second.
    NotReady,
    /// It does not run, and starting it again did not help.
    NotRunning,
}

impl ProgramFaultKind {
    /// The word in status and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Crash => "crash",
            Self::Overrun => "overrun",
            Self::WrongAnswer => "wrong answer",
            Self::Memory => "memory",
            Self::NotReady => "not ready",
            Self::NotRunning => "not running",
        }
    }
}

/// One failed execution. A copy costs no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFault {
    /// What went wrong.
    pub kind: ProgramFaultKind,
    /// More of it, for people: where in the program, which limit, with what to do about it.
    pub detail: Arc<str>,
}

impl ProgramFault {
    /// A failed execution of this kind.
    pub fn new(kind: ProgramFaultKind, detail: impl Into<Arc<str>>) -> Self {
        let detail = detail.into();
        Self { kind, detail }
    }
}

impl fmt::Display for ProgramFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.detail.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.detail),
        }
    }
}

impl std::error::Error for ProgramFault {}

//! Why one execution of a program failed.

use std::fmt;
use std::sync::Arc;

use bumpless_base::Duration;

/// What went wrong, so far as it makes a difference to whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramFaultKind {
    /// The program stopped itself: an illegal instruction, an access out of bounds, a division by zero, an exception.
    Trap,
    /// Its process is gone.
    Crash,
    /// It computed for longer than it may (`execute_limit_ms`), perhaps for ever.
    Overrun,
    /// It had not answered after `execute_limit_ms`, and had not been computing for so long: the computer stood still or
    /// was overloaded, or the program waited for something.
    Starved,
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
            Self::Starved => "starved",
            Self::WrongAnswer => "wrong answer",
            Self::Memory => "memory",
            Self::NotReady => "not ready",
            Self::NotRunning => "not running",
        }
    }

    /// Whether the program itself has brought it about, so that the same inputs most likely would again, on any node
    /// (F-38).
    pub const fn is_the_programs_own(self) -> bool {
        !matches!(self, Self::Starved | Self::NotReady | Self::NotRunning)
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

    /// A wrong answer, where one of `outputs` is not a finite number.
    pub fn of_outputs(outputs: &[f64]) -> Option<Self> {
        let at = outputs.iter().position(|value| !value.is_finite())?;
        let detail = format!("output {} is {}, not a finite number", at + 1, outputs[at]);
        Some(Self::new(ProgramFaultKind::WrongAnswer, detail))
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

/// Something wrong with a program for which no cycle has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// What.
    pub fault: ProgramFault,
    /// Whether it counts as a failed cycle does: the second one within 1,000 cycles stops the program (F-29).
    pub counts: bool,
}

/// A program that had not answered by its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// How long it may take (`execute_limit_ms`).
    pub limit: Duration,
    /// How long it had taken when its host looked.
    pub elapsed: Duration,
    /// Processor time that it had used of that; `None` where nobody counts it.
    pub computed: Option<Duration>,
}

/// A host that looks at least so much later than the limit has been kept from running itself. Wake-ups on a busy
/// computer that stands still nowhere are earlier.
const LATE: Duration = Duration::from_millis(1);

impl Unanswered {
    /// Whether it was kept from computing, or waited, rather than computed for too long (F-38): it had the processor for less than nine
    /// tenths of its limit, or its host was kept from looking in time, which tells of a computer that stood still.
    /// *A virtual machine that is stopped counts the time as computed by whoever was running.*
    pub fn was_starved(&self) -> bool {
        let waited = |computed: Duration| computed.as_nanos() < self.limit.as_nanos() / 10 * 9;
        let late = LATE.max(self.limit / 10);
        self.computed.is_some_and(waited) || self.elapsed > self.limit + late
    }

    /// What it is to an executor.
    pub fn kind(&self) -> ProgramFaultKind {
        match self.was_starved() {
            true => ProgramFaultKind::Starved,
            false => ProgramFaultKind::Overrun,
        }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, elapsed) = (self.limit.as_micros(), self.elapsed.as_micros());
        if !self.was_starved() {
            return write!(
                f,
                "it had not answered after {limit} us and was stopped; look for a loop that does not end, or raise its limit"
            );
        }
        write!(f, "no answer after {elapsed} us, limit {limit} us")?;
        if let Some(computed) = self.computed {
            write!(f, ", computing {} us", computed.as_micros())?;
        }
        f.write_str(
            ": the computer stood still or is overloaded, or the program waits; look what else runs there, and for what the \
             program sleeps or asks the system",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn kind(elapsed: Duration, computed: Option<Duration>) -> ProgramFaultKind {
        let limit = ms(50);
        Unanswered {
            limit,
            elapsed,
            computed,
        }
        .kind()
    }

    #[test]
    fn who_computed_all_the_time_has_run_over_and_who_did_not_was_starved() {
        use ProgramFaultKind::{Overrun, Starved};
        assert_eq!(kind(ms(50), Some(ms(50))), Overrun);
        assert_eq!(kind(ms(51), Some(ms(45))), Overrun);
        assert_eq!(kind(ms(50), Some(ms(44))), Starved);
        assert_eq!(kind(ms(50), Some(ms(0))), Starved);
        assert_eq!(kind(ms(50), None), Overrun);
    }

    #[test]
    fn a_host_that_looks_late_was_kept_from_running_as_the_program_was() {
        use ProgramFaultKind::{Overrun, Starved};
        assert_eq!(kind(ms(55), Some(ms(55))), Overrun);
        assert_eq!(kind(ms(56), Some(ms(56))), Starved);
        assert_eq!(kind(ms(56), None), Starved);
    }
}

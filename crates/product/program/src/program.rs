//! What a program gives.

use core::time::Duration;

use crate::Plain;

/// The circumstances of one cycle. There is no other clock that a program may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Its number: 1 at a cold start; it goes on counting where a predecessor stopped.
    pub number: u64,
    /// The application's period.
    pub period: Duration,
}

impl Cycle {
    /// The time that has passed for the program: number times period.
    pub fn time(self) -> Duration {
        let nanos = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.number.saturating_mul(nanos))
    }
}

/// A control program. It has no `self`: what it keeps from cycle to cycle stands in its state.
pub trait Program {
    /// Everything that the next cycle depends on besides its inputs; made with [`state!`](crate::state).
    type State: Plain;

    /// How many inputs it takes; the configuration names as many.
    const INPUTS: usize;

    /// How many outputs it gives; the configuration names as many.
    const OUTPUTS: usize;

    /// The layout's version, to be changed whenever `State` changes: builds with the same one take over each other's
    /// states. 0: only the same file does.
    const STATE_VERSION: u64 = 0;

    /// The only period with which it can run, if it cannot with any.
    const PERIOD: Option<Duration> = None;

    /// Makes the initial state, from one that is all zeros.
    fn start(_state: &mut Self::State) {}

    /// Whether [`convert`](Self::convert) makes anything of states of other versions.
    const CONVERTS: bool = false;

    /// Makes the state, which is an initial one, from `old`, the bytes of a state of another version of this program; `version`
    /// is that one's [`STATE_VERSION`](Self::STATE_VERSION). It has as long as a cycle may take.
    ///
    /// # Errors
    /// Why nothing can be made of it. Then the other version goes on.
    fn convert(_version: u64, _old: &[u8], _state: &mut Self::State) -> Result<(), String> {
        Err("it converts no states of other versions".into())
    }

    /// Runs one cycle. `outputs` holds those of the cycle before, zeros in the very first.
    ///
    /// # Errors
    /// Why there are no outputs. The host then ends this process and goes on from the state before this cycle.
    fn step(
        cycle: Cycle,
        inputs: &[f64],
        outputs: &mut [f64],
        state: &mut Self::State,
    ) -> Result<(), String>;
}

//! What a program is to its host in numbers: how many inputs and outputs, what it may use, and what it has used.

use bumpless_base::{Duration, Instant};
use bumpless_controller::TimeSource;
use bumpless_net_linux::Clock;

/// The computer's clock, and what the calling thread has computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTime;

impl TimeSource for ThreadTime {
    fn now(&self) -> Instant {
        Clock.now()
    }

    fn computed(&self) -> Option<Duration> {
        Some(Clock.computed())
    }
}

/// How many values go in and out, and how large the state may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Input values.
    pub inputs: usize,
    /// Output values.
    pub outputs: usize,
    /// Most bytes of a saved state.
    pub state_max: usize,
}

/// What one cycle may use (G-26, G-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time to execute in.
    pub execute: Duration,
    /// Steps to execute; `None`: more than any computer does in `execute`.
    pub fuel: Option<u64>,
    /// Bytes of memory, all of a program's together.
    pub memory: usize,
}

impl Limits {
    /// Bytes of memory that a program may have unless said otherwise.
    pub const MEMORY: usize = 16 << 20;

    /// Limits of a program that may execute for `execute`.
    pub const fn within(execute: Duration) -> Self {
        Self {
            execute,
            fuel: None,
            memory: Self::MEMORY,
        }
    }
}

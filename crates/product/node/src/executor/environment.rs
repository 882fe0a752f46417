//! The process around an executor's ports.

use bumpless_base::Instant;
use bumpless_net_linux::Waker;

/// The time of this call on the monotonic clock.
pub fn now() -> Instant {
    bumpless_net_linux::Clock.now()
}

/// What the ports need of the process around them.
pub trait Environment {
    /// The time of this call.
    fn now(&self) -> Instant;
    /// Wakes the data plane.
    fn wake_data_plane(&self);
}

/// A process in which the data plane has a thread of its own.
#[derive(Clone, Debug)]
pub struct Threads(pub Waker);

impl Environment for Threads {
    fn now(&self) -> Instant {
        now()
    }
    fn wake_data_plane(&self) {
        self.0.wake();
    }
}

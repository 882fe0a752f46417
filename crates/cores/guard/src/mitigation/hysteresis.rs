//! Hysteresis mitigation: what the critical task reports of itself stops and starts the network.

use bumpless_base::{Duration, Instant};

use super::policy::{Gates, Mitigation};
use crate::metric::{Earliness, Fill};

/// Two thresholds on the share of its target that the critical task has used.
///
/// Both are looked at in the driver: while interrupts leave it no time, it notices nothing, as the dissertation measured.
#[derive(Clone, Debug)]
pub struct Hysteresis {
    /// Above this share, in percent, the network is stopped.
    stop: u32,
    /// At or below this share it may go on.
    go_on: u32,
    /// So long the stopped driver sleeps before it looks again.
    nap: Duration,
    latest: Option<Earliness>,
    /// When the stopped driver looks again.
    stopped: Option<Instant>,
}

impl Hysteresis {
    /// A policy with these thresholds, in percent of the target; the dissertation's measurement stops at 90.
    pub const fn new(stop: u32, go_on: u32, nap: Duration) -> Self {
        Self {
            stop,
            go_on,
            nap,
            latest: None,
            stopped: None,
        }
    }

    fn used_more_than(&self, percent: u32) -> bool {
        self.latest.is_some_and(|latest| latest.is_beyond(percent))
    }
}

impl Mitigation for Hysteresis {
    fn handle_driver(&mut self, now: Instant, _fill: Fill) {
        if self.stopped.is_none() && self.used_more_than(self.stop) {
            self.stopped = Some(now + self.nap);
        }
    }

    fn handle_completion(&mut self, _now: Instant, earliness: Earliness) {
        self.latest = Some(earliness);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.stopped.is_some_and(|at| now >= at) {
            self.stopped = self.used_more_than(self.go_on).then(|| now + self.nap);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.stopped
    }

    fn gates(&self) -> Gates {
        match self.stopped {
            None => Gates::OPEN,
            Some(_) => Gates::SHUT,
        }
    }
}

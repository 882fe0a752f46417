//! Queue mitigation: a full queue says that the driver cannot keep up.

use bumpless_base::{Duration, Instant};

use super::policy::{Gates, Mitigation};
use crate::metric::Fill;

/// A packet that finds the queue full silences the network until the queue is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    shut: bool,
}

impl Queue {
    /// A policy that lets the network interrupt.
    pub const fn new() -> Self {
        Self { shut: false }
    }
}

impl Mitigation for Queue {
    fn handle_packet(&mut self, _now: Instant, fill: Fill) {
        self.shut |= fill.is_full();
    }

    fn handle_processed(&mut self, _now: Instant, _spent: Duration, fill: Fill) {
        self.shut &= fill.waiting > 0;
    }

    fn gates(&self) -> Gates {
        Gates {
            interrupts: !self.shut,
            driver: true,
        }
    }
}

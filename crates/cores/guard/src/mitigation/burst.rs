//! Burst mitigation: so many packets in a slice of time.

use bumpless_base::{Duration, Instant};

use super::policy::{Gates, Mitigation};
use crate::metric::{Fill, SliceCount};

/// Once a slice has had its packets, the network is silent until the slice ends.
#[derive(Clone, Debug)]
pub struct Burst {
    capacity: u32,
    slice: SliceCount,
    shut: bool,
}

impl Burst {
    /// `capacity` packets in each slice of `length`; the dissertation's measurement takes 600 in 20 ms.
    pub const fn new(capacity: u32, length: Duration) -> Self {
        Self {
            capacity,
            slice: SliceCount::new(length),
            shut: false,
        }
    }
}

impl Mitigation for Burst {
    fn handle_packet(&mut self, now: Instant, _fill: Fill) {
        self.shut = self.slice.add(now) >= self.capacity;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.shut &= now < self.slice.end();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.shut.then(|| self.slice.end())
    }

    fn gates(&self) -> Gates {
        Gates {
            interrupts: !self.shut,
            driver: true,
        }
    }
}

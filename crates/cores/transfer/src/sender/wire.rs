//! When what was handed to a link's driver has left it.

use crate::setup::LinkParameters;
use bumpless_base::{Duration, Instant};

/// A division for each packet is saved: at any bandwidth the error is below a thousandth.
const SHIFT: u32 = 20;

/// A link's wire, which carries one packet after the other.
///
/// The driver may take as much at once as its pacer allows. What it took waits in a queue of this node, and
/// that time is known: it belongs neither to the round trip nor to the wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    /// Time of a byte, nanoseconds, shifted by [`SHIFT`]; zero if no bandwidth is stated.
    byte_time: u64,
    /// Bytes that each packet costs below its UDP payload.
    overhead: u64,
    /// When the wire will have carried all that was handed over.
    free_at: Instant,
}

impl Wire {
    pub fn new(link: &LinkParameters) -> Self {
        Self {
            byte_time: byte_time(link.bandwidth),
            overhead: u64::from(link.frame_overhead),
            free_at: Instant::ZERO,
        }
    }

    /// What is handed over from here on leaves at `bandwidth`.
    pub fn set_bandwidth(&mut self, bandwidth: u64) {
        self.byte_time = byte_time(bandwidth);
    }

    /// When a datagram of `len` bytes that is handed over at `now` has left.
    pub fn carry(&mut self, len: usize, now: Instant) -> Instant {
        if self.byte_time == 0 {
            return now;
        }
        let bytes = len as u64 + self.overhead;
        let nanos = bytes.saturating_mul(self.byte_time) >> SHIFT;
        self.free_at = self.free_at.max(now) + Duration::from_nanos(nanos);
        self.free_at
    }
}

fn byte_time(bandwidth: u64) -> u64 {
    (8_000_000_000u64 << SHIFT)
        .checked_div(bandwidth)
        .unwrap_or(0)
}

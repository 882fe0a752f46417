//! Pacing: how much may go out at the link's bandwidth, so that the kernel's queue stays short and
//! a packet with a nearer deadline can still overtake (second step of the way of a state).

use bumpless_base::pacing::{self, MAX_BURST};
use bumpless_base::{Duration, Instant};

/// Credit for one byte. Credit is counted in bits times nanoseconds per second: in this unit a
/// nanosecond earns exactly the bandwidth, and nothing is ever rounded.
const BYTE: i64 = 8 * 1_000_000_000;

/// A token bucket at a link's bandwidth, counted in bytes on the wire (see [`Pacer::wire_bytes`]).
///
/// It starts full, never holds more than a burst, and may be overdrawn: a packet that must go out
/// (a heartbeat) is booked by [`Pacer::spent`] all the same, and what follows waits the longer.
/// Reads no clock; instants that go backwards count as no time passed.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Bits per second; zero is unlimited.
    bandwidth: u64,
    overhead: u16,
    /// A full packet's bytes on the wire.
    packet: u64,
    burst: u64,
    /// Most bytes on the wire in one message.
    message: u64,
    credit: i64,
    updated: Instant,
}

impl Pacer {
    /// A pacer for a link of `bandwidth` bits per second (0: unlimited), on which each packet
    /// costs `overhead` bytes beyond its UDP payload of at most `max_payload` bytes.
    ///
    /// A burst is 64 KiB or 500 us worth, whichever is smaller, but at least two full packets.
    pub fn new(bandwidth: u64, overhead: u16, max_payload: u16, now: Instant) -> Self {
        let packet = u64::from(overhead) + u64::from(max_payload).max(1);
        let (burst, message) = bounds(bandwidth, packet);
        Self {
            bandwidth,
            overhead,
            packet,
            burst,
            message,
            credit: credit(burst),
            updated: now,
        }
    }

    /// The link has another bandwidth from `now` on. What was overdrawn is earned back at that one.
    pub fn set_bandwidth(&mut self, bandwidth: u64, now: Instant) {
        self.earn(now);
        self.bandwidth = bandwidth;
        (self.burst, self.message) = bounds(bandwidth, self.packet);
        self.credit = self.credit.min(credit(self.burst));
    }

    /// What `packets` packets with `payload` bytes of UDP payload altogether cost on the wire.
    pub const fn wire_bytes(&self, packets: usize, payload: usize) -> usize {
        payload.saturating_add(packets.saturating_mul(self.overhead as usize))
    }

    /// Bytes on the wire that may be sent now; `usize::MAX` if unlimited.
    pub fn allowance(&mut self, now: Instant) -> usize {
        if self.bandwidth == 0 {
            return usize::MAX;
        }
        self.earn(now);
        (self.credit.max(0) / BYTE) as usize
    }

    /// Whether more than `wire_bytes` may be sent now: as [`allowance`](Self::allowance) says, at
    /// less cost.
    pub fn allows_more_than(&mut self, wire_bytes: usize, now: Instant) -> bool {
        self.bandwidth == 0 || {
            self.earn(now);
            self.credit >= credit((wire_bytes as u64).saturating_add(1))
        }
    }

    /// Books `wire_bytes` as sent.
    pub fn spent(&mut self, wire_bytes: usize, now: Instant) {
        if self.bandwidth != 0 {
            self.earn(now);
            self.credit = self.credit.saturating_sub(credit(wire_bytes as u64));
        }
    }

    /// When to go on sending: once half a burst (at least a full packet) may go out, so that
    /// segmentation offload has something to work with and the bucket cannot overflow before an
    /// ordinary wake-up. `None` if that much may be sent now.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        self.ready_at((self.burst / 2).max(self.packet) as usize, now)
    }

    /// Whether a message of so many packets and payload bytes has room for another full packet.
    ///
    /// A message occupies the wire for no longer than half a burst may. A shaper on the way, with a
    /// bucket of its own, then lets it pass whole instead of cutting it into packets, which costs both
    /// ends more than all else, and a nearer deadline does not wait longer for it.
    pub const fn has_room(&self, packets: usize, payload: usize) -> bool {
        self.bandwidth == 0
            || self.wire_bytes(packets, payload) + self.packet as usize <= self.message as usize
    }

    /// When `wire_bytes` may go out, counting at most a burst. `None` if they may now.
    pub fn ready_at(&mut self, wire_bytes: usize, now: Instant) -> Option<Instant> {
        if self.bandwidth == 0 {
            return None;
        }
        self.earn(now);
        let wanted = credit((wire_bytes as u64).min(self.burst));
        let missing = wanted.saturating_sub(self.credit);
        if missing <= 0 {
            return None;
        }
        let nanos = missing.unsigned_abs().div_ceil(self.bandwidth);
        Some(self.updated + Duration::from_nanos(nanos))
    }

    /// Most bytes on the wire that can go out at once.
    pub const fn burst(&self) -> usize {
        self.burst as usize
    }

    fn earn(&mut self, now: Instant) {
        let elapsed = now.since(self.updated).as_nanos();
        self.updated = self.updated.max(now);
        // What does not fit is more than any burst.
        let earned = elapsed.saturating_mul(self.bandwidth);
        let earned = i64::try_from(earned).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(earned).min(credit(self.burst));
    }
}

/// Most bytes on the wire at once, and in one message.
fn bounds(bandwidth: u64, packet: u64) -> (u64, u64) {
    let message = (pacing::worth(bandwidth) / 2).min(MAX_BURST).max(packet);
    (pacing::burst(bandwidth, packet), message)
}

/// The credit for so many bytes; the most there can be for more than a gigabyte.
fn credit(bytes: u64) -> i64 {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    bytes.saturating_mul(BYTE)
}

#[cfg(test)]
mod tests;

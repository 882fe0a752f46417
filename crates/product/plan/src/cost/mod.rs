//! What a transfer really takes: a model with few costs, fitted to what was measured between two nodes.
//!
//! The time of a state from its publication until its sender knows that it is safe is
//!
//! > what every transfer takes + the longest of: processing, the wire, pacing
//!
//! - **Processing** is so much for each packet and so much for each byte, of whichever end is the slower.
//! - **The wire** takes so much for each byte of a frame; what lies in the queue of a shaper or of a card when
//!   the sender goes on counts as gone ahead.
//! - **Pacing** is known: the sender may send a burst, and half of one each time that it has earned it
//!   ([`bumpless_base::pacing`]). It goes on a little late, and then has earned a little more; in the long run
//!   it loses what it could not use.
//!
//! [`Cost::predict`] is that sum, [`fit()`] finds the costs, and [`mod@file`] keeps them for the plan.

pub mod file;
pub mod fit;

use bumpless_base::pacing;
use serde::{Deserialize, Serialize};

pub use file::Costs;
pub use fit::{Sample, Unfit, fit};

/// How states travel on a route: what is known of it without measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// State bytes in every packet but a state's last.
    pub payload: u32,
    /// Bytes on the wire of each packet beyond the state bytes in it.
    pub overhead: u32,
    /// Bytes of the largest packet on the wire: the pacer counts with it.
    pub packet: u32,
    /// Bit/s at which each of its networks is paced; zero: not paced.
    pub bandwidth: u64,
    /// Networks over which packets are shared out; one if each carries all.
    pub shared_by: u32,
}

impl Route {
    /// Packets of a state of `size` bytes.
    pub fn packets(&self, size: u32) -> u64 {
        u64::from(size.div_ceil(self.payload.max(1)).max(1))
    }

    fn wire_bytes(&self, size: u32, packets: u64) -> f64 {
        f64::from(size) + packets as f64 * f64::from(self.overhead)
    }
}

/// What transfers on a route take. All of it is nanoseconds unless the name says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Every transfer: an empty state, from its publication until its sender knows that it is safe.
    pub per_transfer_ns: f64,
    /// Each packet, of the end that is the slower.
    pub per_packet_ns: f64,
    /// 1,000 state bytes, of the end that is the slower.
    pub per_kilobyte_ns: f64,
    /// 1,000 bytes on the wire; zero where the wire was never what took longest.
    pub wire_per_kilobyte_ns: f64,
    /// Bytes on the wire that have gone ahead before the wire's rate begins to hold.
    pub wire_ahead_bytes: f64,
    /// How much later than it may the paced sender goes on.
    pub pace_late_ns: f64,
    /// How many times as long as at the stated bandwidth pacing takes in the long run; at least 1.
    pub pace_stretch: f64,
}

/// What a transfer takes of each cost, if one thing is what takes longest: the factors of [`Cost::parts`].
pub(crate) type Takes = [f64; PARTS];

/// Number of costs.
pub(crate) const PARTS: usize = 6;

impl Route {
    /// What a state of `size` bytes takes if processing, the wire or pacing is what takes longest, where the paced
    /// sender goes on `late` nanoseconds later than it may. The last only where it has to wait.
    pub(crate) fn takes(&self, size: u32, late: f64) -> [Option<Takes>; 3] {
        let packets = self.packets(size);
        let wire = self.wire_bytes(size, packets) / f64::from(self.shared_by.max(1));
        let processing = [1.0, packets as f64, f64::from(size) / 1e3, 0.0, 0.0, 0.0];
        let wire = [1.0, 0.0, 0.0, wire / 1e3, -1.0, 0.0];
        [
            Some(processing),
            Some(wire),
            self.pacing(size, packets, late),
        ]
    }

    /// Until the last packets go out, and what remains to be done then.
    fn pacing(&self, size: u32, packets: u64, late: f64) -> Option<Takes> {
        if self.bandwidth == 0 {
            return None;
        }
        let packet = f64::from(self.packet.max(1));
        let burst = pacing::burst(self.bandwidth, u64::from(self.packet)) as f64;
        let half = (burst / 2.0).max(packet);
        let rate = self.bandwidth as f64 / 8e9;
        let full = f64::from(self.payload + self.overhead);
        let shared = u64::from(self.shared_by.max(1));
        let of_one = packets.div_ceil(shared);
        let (at_once, each) = (whole(burst, full), whole(half + late * rate, full));
        let waits = of_one.checked_sub(at_once + 1)? / each + 1;
        let gone = at_once + (waits - 1) * each;
        // At the last wait's end half a burst has been earned beyond all that has gone.
        let earned = (gone as f64 * full + half - burst).max(0.0);
        let rest = packets.saturating_sub(gone * shared).max(1);
        let bytes = (rest as f64 * f64::from(self.payload)).min(f64::from(size));
        let waited = earned / rate + late;
        Some([1.0, rest as f64, bytes / 1e3, 0.0, 0.0, waited])
    }
}

impl Cost {
    /// Nanoseconds that a state of `size` bytes typically takes on `route`.
    pub fn predict(&self, route: &Route, size: u32) -> f64 {
        let parts = self.parts();
        let takes = route.takes(size, self.pace_late_ns).into_iter().flatten();
        let each = takes.map(|takes| time(&takes, &parts));
        each.fold(self.per_transfer_ns, f64::max)
    }

    /// The costs as factors of [`Route::takes`].
    pub(crate) fn parts(&self) -> [f64; PARTS] {
        [
            self.per_transfer_ns,
            self.per_packet_ns,
            self.per_kilobyte_ns,
            self.wire_per_kilobyte_ns,
            self.wire_ahead_bytes * self.wire_per_kilobyte_ns / 1e3,
            self.pace_stretch.max(1.0),
        ]
    }

    /// The costs that have these factors, where the paced sender goes on so much later than it may.
    pub(crate) fn of_parts(parts: [f64; PARTS], pace_late_ns: f64) -> Self {
        let [
            per_transfer_ns,
            per_packet_ns,
            per_kilobyte_ns,
            wire,
            ahead,
            pace_stretch,
        ] = parts;
        Self {
            per_transfer_ns,
            per_packet_ns,
            per_kilobyte_ns,
            wire_per_kilobyte_ns: wire,
            wire_ahead_bytes: if wire > 0.0 { ahead * 1e3 / wire } else { 0.0 },
            pace_late_ns,
            pace_stretch,
        }
    }

    /// Whether every cost is a number that can be one.
    pub fn is_sound(&self) -> bool {
        let all = [
            self.per_transfer_ns,
            self.per_packet_ns,
            self.per_kilobyte_ns,
            self.wire_per_kilobyte_ns,
            self.wire_ahead_bytes,
            self.pace_late_ns,
            self.pace_stretch,
        ];
        // An hour for a byte is beyond any machine, and keeps sums far from what a number can hold.
        all.iter().all(|cost| (0.0..3.6e15).contains(cost))
    }
}

/// Nanoseconds of what is taken at these costs.
pub(crate) fn time(takes: &Takes, parts: &[f64; PARTS]) -> f64 {
    takes
        .iter()
        .zip(parts)
        .map(|(much, cost)| much * cost)
        .sum()
}

/// How many packets of `packet` bytes fit; at least one.
fn whole(bytes: f64, packet: f64) -> u64 {
    ((bytes / packet) as u64).max(1)
}

#[cfg(test)]
mod tests;

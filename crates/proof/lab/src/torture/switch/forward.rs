//! What becomes of each frame: a function of the frame, the time, the orders and a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use bumpless_base::Random;
use serde::{Deserialize, Serialize};

use super::faults::{Episode, NETWORKS, PORTS};
use super::frame;

/// Shortest and longest time for which a frame that others overtake waits, in nanoseconds.
const OVERTAKEN_NS: Range<u64> = 200_000..3_000_000;
/// Most frames that wait at a time. A switch has a finite memory, too.
const WAITING_MAX: usize = 1 << 14;

/// What has become of frames so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Passed on, second copies not counted.
    pub passed: u64,
    /// Taken by a cut.
    pub cut: u64,
    /// Longer than what passed.
    pub too_long: u64,
    /// Lost by chance.
    pub lost: u64,
    /// With a bit inverted.
    pub corrupted: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Held back until others had overtaken them.
    pub reordered: u64,
    /// For nobody on this network, or more than the memory holds.
    pub refused: u64,
}

/// An order to invert one bit in the next message that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Network on which it passes.
    pub network: usize,
    /// Port that sends it.
    pub from: usize,
    /// Port that it is for.
    pub to: usize,
    /// Type of the message (W-2).
    pub message: u16,
    /// Bytes of the message among which the bit is drawn; those beyond its end do not count.
    pub bytes: Range<usize>,
}

/// A bit that was inverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flipped {
    /// When.
    pub at_ns: u64,
    /// Byte of the message.
    pub byte: usize,
    /// The bit in it.
    pub mask: u8,
}

/// A frame on its way out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outgoing {
    due_ns: u64,
    order: u64,
    /// Network.
    pub network: usize,
    /// Port.
    pub to: usize,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The part of the switch that decides.
#[derive(Debug)]
pub struct Forwarder {
    random: Random,
    episodes: Vec<Episode>,
    flips: Vec<Flip>,
    waiting: BinaryHeap<Reverse<Outgoing>>,
    count: u64,
    /// What has become of frames.
    pub tally: Tally,
    /// Bits that were inverted on order.
    pub flipped: Vec<Flipped>,
}

impl Forwarder {
    /// Draws from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            episodes: Vec::new(),
            flips: Vec::new(),
            waiting: BinaryHeap::new(),
            count: 0,
            tally: Tally::default(),
            flipped: Vec::new(),
        }
    }

    /// Faults for some time, beside those that are there.
    pub fn begin(&mut self, episode: Episode) {
        self.episodes.push(episode);
    }

    /// One bit to invert.
    pub fn flip(&mut self, flip: Flip) {
        self.flips.push(flip);
    }

    /// Ends all faults. What is on its way arrives.
    pub fn clear(&mut self) {
        self.episodes.clear();
        self.flips.clear();
    }

    /// A frame has come in at `from`.
    pub fn arrive(&mut self, now_ns: u64, network: usize, from: usize, mut frame: Vec<u8>) {
        let to = frame::destination(&frame, network).filter(|&to| to < PORTS && to != from);
        let Some(to) = to.filter(|_| network < NETWORKS && self.waiting.len() < WAITING_MAX) else {
            self.tally.refused += 1;
            return;
        };
        self.episodes.retain(|episode| episode.to_ns > now_ns);
        let (mut due_ns, mut copies) = (now_ns, 1);
        for at in 0..self.episodes.len() {
            let episode = self.episodes[at];
            if !episode.is_active(network, now_ns) {
                continue;
            }
            let faults = episode.faults;
            let length = frame::packet_length(&frame);
            let dropped = if faults.cut.is_cut(from, to) {
                &mut self.tally.cut
            } else if faults.longest.is_some_and(|most| length > Some(most)) {
                &mut self.tally.too_long
            } else if self.random.chance(faults.loss) {
                &mut self.tally.lost
            } else {
                if self.random.chance(faults.corruption) {
                    self.corrupt(&mut frame);
                }
                if self.random.chance(faults.duplication) {
                    self.tally.duplicated += 1;
                    copies = 2;
                }
                if self.random.chance(faults.reordering) {
                    self.tally.reordered += 1;
                    let spread = OVERTAKEN_NS.end - OVERTAKEN_NS.start;
                    due_ns += OVERTAKEN_NS.start + self.random.below(spread);
                }
                due_ns += faults.delay_ns;
                continue;
            };
            *dropped += 1;
            return;
        }
        self.flip_as_ordered(now_ns, (network, from, to), &mut frame);
        self.tally.passed += 1;
        for _ in 1..copies {
            self.send(due_ns, network, to, frame.clone());
        }
        self.send(due_ns, network, to, frame);
    }

    fn send(&mut self, due_ns: u64, network: usize, to: usize, frame: Vec<u8>) {
        self.count += 1;
        self.waiting.push(Reverse(Outgoing {
            due_ns,
            order: self.count,
            network,
            to,
            frame,
        }));
    }

    fn corrupt(&mut self, frame: &mut [u8]) {
        let length = frame::payload(frame).map_or(0, |payload| payload.len());
        if length > 0 {
            let (byte, mask) = (self.random.below(length as u64), self.random.below(8));
            frame::flip(frame, byte as usize, 1 << mask);
            self.tally.corrupted += 1;
        }
    }

    fn flip_as_ordered(
        &mut self,
        now_ns: u64,
        (network, from, to): (usize, usize, usize),
        frame: &mut [u8],
    ) {
        let message = frame::message_type(frame);
        let fits = |flip: &Flip| {
            (flip.network, flip.from, flip.to) == (network, from, to)
                && message == Some(flip.message)
        };
        let Some(at) = self.flips.iter().position(fits) else {
            return;
        };
        let length = frame::payload(frame).map_or(0, |payload| payload.len());
        let Range { start, end } = self.flips.swap_remove(at).bytes;
        let Some(choice) = end.min(length).checked_sub(start).filter(|&n| n > 0) else {
            return;
        };
        let byte = start + self.random.below(choice as u64) as usize;
        let mask = 1 << self.random.below(8);
        frame::flip(frame, byte, mask);
        self.tally.corrupted += 1;
        self.flipped.push(Flipped {
            at_ns: now_ns,
            byte,
            mask,
        });
    }

    /// The next frame that is due.
    pub fn depart(&mut self, now_ns: u64) -> Option<Outgoing> {
        match self.next_due_ns()? <= now_ns {
            true => self.waiting.pop().map(|Reverse(outgoing)| outgoing),
            false => None,
        }
    }

    /// When the next frame is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse(first)| first.due_ns)
    }
}

#[cfg(test)]
mod tests;

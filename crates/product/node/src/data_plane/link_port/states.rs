//! Packets of states in bursts, as far as pacer and kernel allow.

use bumpless_base::{Counters, Instant};
use bumpless_net_linux::{Link, Segment};
use bumpless_secure::Suite;
use bumpless_transfer::{Sender, Transmit};

use super::LinkPort;
use crate::data_plane::addresses::Correspondent;
use crate::data_plane::protection::BURST;

/// Why [`LinkPort::send_states`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendState {
    /// Nothing is left to send.
    Drained,
    /// The pacer lets more go at this instant.
    Paced(Instant),
    /// The kernel's queue is full; wait until the descriptor is writable.
    Full,
}

/// What ended a burst early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exhausted {
    Sender,
    Allowance,
}

impl<L: Link, S: Suite> LinkPort<L, S> {
    /// Sends state packets, earliest deadline first, as far as pacer and kernel allow.
    pub fn send_states(
        &mut self,
        sender: &mut Sender,
        now: Instant,
        counters: &mut Counters,
    ) -> SendState {
        if self.full {
            return SendState::Full;
        }
        let mut carried = None;
        loop {
            // Most turns have no state to send: nothing is made ready for one before there is one.
            let first = match carried.take() {
                Some(packet) => Ok(packet),
                None => self.take(sender, (0, 0), now),
            };
            match first {
                Ok(first) => carried = self.send_from(first, sender, now, counters),
                Err(Exhausted::Sender) => return SendState::Drained,
                // One wake-up for half a burst instead of one for each packet.
                Err(Exhausted::Allowance) => {
                    if let Some(at) = self.pacer.next(now) {
                        return SendState::Paced(at);
                    }
                }
            }
            if self.full {
                return SendState::Full;
            }
        }
    }

    /// Sends a burst that begins with `first`; returns a packet for another partner that came up.
    #[inline(never)] // Its room on the stack is not made ready in turns that send no state.
    fn send_from(
        &mut self,
        first: Transmit,
        sender: &mut Sender,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<Transmit> {
        let mut burst = std::mem::take(&mut self.burst);
        burst.clear();
        let (bytes, next) = self.gather(sender, first, &mut burst, now);
        self.send_burst(sender, &burst, bytes, now, counters);
        self.burst = burst;
        next
    }

    /// Puts `first` into the empty `burst`, and packets for the same partner after it until the burst is
    /// full, the partner changes, the pacer's allowance is used, or nothing is left. Returns the burst's
    /// bytes, and the packet for another partner that came up.
    fn gather(
        &mut self,
        sender: &mut Sender,
        first: Transmit,
        burst: &mut Vec<Transmit>,
        now: Instant,
    ) -> (usize, Option<Transmit>) {
        let (peer, mut bytes) = (first.peer, first.datagram_len());
        burst.push(first);
        while burst.len() < BURST && self.pacer.has_room(burst.len(), bytes) {
            let Ok(packet) = self.take(sender, (burst.len(), bytes), now) else {
                break;
            };
            if packet.peer != peer {
                return (bytes, Some(packet));
            }
            bytes += packet.datagram_len();
            burst.push(packet);
        }
        (bytes, None)
    }

    /// Takes the next packet from the sender, if the pacer lets it follow a burst of so many packets
    /// and bytes.
    fn take(
        &mut self,
        sender: &mut Sender,
        (packets, bytes): (usize, usize),
        now: Instant,
    ) -> Result<Transmit, Exhausted> {
        if !sender.wants_to_send(self.id) {
            return Err(Exhausted::Sender);
        }
        let before = self.pacer.wire_bytes(packets, bytes);
        if !self.pacer.allows_more_than(before, now) {
            return Err(Exhausted::Allowance);
        }
        sender.poll_transmit(self.id, now).ok_or(Exhausted::Sender)
    }

    fn send_burst(
        &mut self,
        sender: &Sender,
        burst: &[Transmit],
        bytes: usize,
        now: Instant,
        counters: &mut Counters,
    ) {
        let Some(first) = burst.first() else {
            return;
        };
        let to = Correspondent::Partner(first.peer);
        if self.addresses.address(to).is_none() {
            return;
        }
        let mut segments = [Segment::default(); BURST];
        for (segment, packet) in segments.iter_mut().zip(burst) {
            *segment = Segment {
                header: packet.header(),
                payload: sender.payload(packet),
            };
        }
        self.pacer
            .spent(self.pacer.wire_bytes(burst.len(), bytes), now);
        self.hand_over(to, &segments[..burst.len()], (bytes, now), counters);
    }
}

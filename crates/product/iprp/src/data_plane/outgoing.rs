//! Captured packets leave as copies: those of one turn together, so that copies that go the same way take one call.

use std::net::SocketAddr;

use bumpless_base::Instant;
use bumpless_capture::{Decide, Departed, Departures, Held, Queued, Verdict, hops_of, parse};
use bumpless_iprp::{Copy, Flow, MAX_NETWORKS, Replication, Sender};
use bumpless_secure::RingSuite;

use super::own::{KnownMembers, keep_for_own};
use super::{BURST, PACKET_MAX, flow};
use crate::exchange::Attached;
use crate::snapshot::Passed;

/// Bytes of copies that wait.
const BYTES: usize = 1 << 20;
// Those of one packet always find room.
const _: () = assert!(BYTES >= MAX_NETWORKS * PACKET_MAX);

/// A packet whose copies wait.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Its number in the queue.
    id: u32,
    /// Whether a network has taken a copy.
    left: bool,
    /// The sender keeps it, and it leaves again: as it was it would come twice.
    kept: bool,
}

/// Packets whose copies wait, and these. It is empty between turns.
#[derive(Debug)]
pub struct Outgoing {
    departures: Departures,
    packets: Vec<Pending>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            departures: Departures::new(BURST * MAX_NETWORKS, BYTES),
            packets: Vec::with_capacity(BURST),
        }
    }
}

impl Outgoing {
    /// Whether the copies of one more packet can wait.
    fn has_room(&self, networks: usize, len: usize) -> bool {
        self.packets.len() < self.packets.capacity() && self.departures.have_room(networks, len)
    }

    /// All copies leave. A packet of which no network has taken one leaves as it is.
    fn leave(&mut self, attached: &mut Attached, passed: &mut Passed, held: Held<'_>) {
        let Self {
            departures,
            packets,
        } = self;
        departures.leave(&mut attached.ports, |it| {
            if let Departed::Left { packet, .. } = it {
                packets[packet].left = true;
            }
            passed.count(it);
        });
        for packet in packets.drain(..).filter(|it| !it.left && !it.kept) {
            passed.no_copy_left += 1;
            held.release(packet.id);
        }
    }
}

/// One turn of the queue.
pub struct Turn<'a> {
    pub now: Instant,
    pub sender: &'a mut Sender<RingSuite>,
    pub attached: &'a mut Attached,
    pub outgoing: &'a mut Outgoing,
    pub passed: &'a mut Passed,
    pub members: &'a KnownMembers,
    pub data_port: u16,
    /// Room for a copy, and for a packet.
    pub copy: &'a mut [u8],
    pub packet: &'a mut [u8],
}

impl Decide for Turn<'_> {
    fn decide(&mut self, packet: Queued<'_>, held: Held<'_>) -> Verdict {
        self.passed.captured += 1;
        let Some(parsed) = parse(packet.bytes) else {
            self.passed.unreadable += 1;
            return self.accept(held);
        };
        let flow = flow(&parsed);
        let room = (self.attached.inds.len(), self.copy.len());
        if !self.outgoing.has_room(room.0, room.1) || flow.destination.is_multicast() {
            self.leave(held);
        }
        if flow.destination.is_multicast() {
            return self.send_to_group(&packet, (&flow, parsed.payload));
        }
        let number = self.outgoing.packets.len();
        match self.replicate(number, &flow, parsed.payload) {
            Replication::Copies { kept, .. } => {
                self.outgoing.packets.push(Pending {
                    id: packet.id,
                    left: false,
                    kept,
                });
                Verdict::Drop
            }
            Replication::Unreplicated => self.accept(held),
        }
    }

    fn end(&mut self, held: Held<'_>) {
        self.leave(held);
    }
}

impl Turn<'_> {
    fn leave(&mut self, held: Held<'_>) {
        self.outgoing.leave(self.attached, self.passed, held);
    }

    /// The packet goes on, behind the copies of those before it.
    fn accept(&mut self, held: Held<'_>) -> Verdict {
        self.leave(held);
        Verdict::Accept
    }

    /// Has the copies of a packet wait.
    fn replicate(&mut self, number: usize, flow: &Flow, payload: &[u8]) -> Replication {
        let Self {
            sender,
            attached,
            outgoing,
            passed,
            data_port,
            ..
        } = self;
        let emit = |copy: Copy<'_>| {
            let Some(card) = attached.card(copy.ind) else {
                return;
            };
            let way = (card, SocketAddr::new(copy.to, *data_port));
            if !outgoing.departures.add(way, number, copy.bytes) {
                // There was room for a copy on each network.
                passed.count(Departed::NotTaken {
                    on: card,
                    packet: number,
                });
            }
        };
        sender.replicate(self.now, flow, payload, self.copy, emit)
    }

    /// Copies of a packet for a group leave by themselves: what becomes of the packet depends on them and on its bytes.
    fn send_to_group(&mut self, packet: &Queued<'_>, (flow, payload): (&Flow, &[u8])) -> Verdict {
        self.attached.ports.set_group_hops(hops_of(packet.bytes));
        let Replication::Copies { .. } = self.replicate(0, flow, payload) else {
            return Verdict::Accept;
        };
        let mut left = false;
        let Self {
            attached, passed, ..
        } = self;
        self.outgoing.departures.leave(&mut attached.ports, |it| {
            left |= matches!(it, Departed::Left { .. });
            passed.count(it);
        });
        if !left {
            self.passed.no_copy_left += 1;
            return Verdict::Accept;
        }
        let host = (self.members, &*self.attached);
        keep_for_own(self.now, host, (packet, flow), self.packet, self.passed)
    }
}

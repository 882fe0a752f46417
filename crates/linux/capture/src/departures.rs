//! Copies that wait for the end of a turn, so that those that go the same way leave in one call.
//!
//! What one read of the queue has brought is all that is waited for. Copies for one address on one network leave in the
//! order in which they were added; runs of equal size leave as segments of one message (UDP_SEGMENT, udp(7)), which the
//! kernel or the network card cuts apart. A run that is refused leaves copy by copy, so that each one meets with its own fate.
//! All memory is taken at the start.

use std::net::SocketAddr;

use bumpless_net_linux::{Rejected, Segment, SendBatch, Taken};

use crate::ports::Ports;

/// Copies that are looked at in one go: as many as one message takes.
const RUN: usize = 64;

/// What has become of a copy, or is told of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departed {
    /// The network `on` has taken a copy of `packet`.
    Left {
        /// The network.
        on: usize,
        /// The packet, as it was named when the copy was added.
        packet: usize,
    },
    /// The network has not.
    NotTaken {
        /// The network.
        on: usize,
        /// The packet.
        packet: usize,
    },
    /// So many copies have left on the network with others in one message.
    InSegments {
        /// The network.
        on: usize,
        /// How many.
        copies: usize,
    },
    /// The network has refused a message with several copies, which are tried one by one.
    RunRefused {
        /// The network.
        on: usize,
    },
}

/// A copy that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    on: usize,
    to: SocketAddr,
    packet: usize,
    begin: usize,
    len: usize,
    /// It has been handed to its network.
    done: bool,
}

/// Copies that wait, in memory taken once.
#[derive(Debug)]
pub struct Departures {
    bytes: Box<[u8]>,
    used: usize,
    waiting: Vec<Waiting>,
    batch: SendBatch,
}

impl Departures {
    /// Room for so many copies, and for so many bytes of them.
    pub fn new(copies: usize, bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes].into(),
            used: 0,
            waiting: Vec::with_capacity(copies),
            batch: SendBatch::new(),
        }
    }

    /// Whether so many further copies of at most so many bytes each can wait.
    pub fn have_room(&self, copies: usize, len: usize) -> bool {
        let is_enough = self.waiting.len() + copies <= self.waiting.capacity();
        is_enough && self.used + copies * len <= self.bytes.len()
    }

    /// Has a copy of `packet` wait, which is to leave on the network `on`. `false`: there is no room.
    pub fn add(&mut self, (on, to): (usize, SocketAddr), packet: usize, copy: &[u8]) -> bool {
        if !self.have_room(1, copy.len()) {
            return false;
        }
        let begin = self.used;
        self.used += copy.len();
        self.bytes[begin..self.used].copy_from_slice(copy);
        self.waiting.push(Waiting {
            on,
            to,
            packet,
            begin,
            len: copy.len(),
            done: false,
        });
        true
    }

    /// Hands all that wait to their networks, and tells what became of each. Never blocks.
    pub fn leave(&mut self, ports: &mut Ports, tell: impl FnMut(Departed)) {
        let Self {
            bytes,
            used,
            waiting,
            batch,
        } = self;
        let mut sockets = Sockets { ports, batch };
        leave(waiting, bytes, &mut sockets, tell);
        waiting.clear();
        *used = 0;
    }
}

/// Where copies leave.
trait Outlet {
    /// Whether the network takes segments.
    fn segmentation(&self, on: usize) -> bool;
    /// It does not.
    fn give_up_segmentation(&mut self, on: usize);
    /// Hands over the first of `copies`.
    fn send(
        &mut self,
        on: usize,
        to: SocketAddr,
        copies: &[Segment<'_>],
        segmentation: bool,
    ) -> Result<Taken, Rejected>;
}

struct Sockets<'a> {
    ports: &'a mut Ports,
    batch: &'a mut SendBatch,
}

impl Outlet for Sockets<'_> {
    fn segmentation(&self, on: usize) -> bool {
        self.ports.segmentation(on)
    }

    fn give_up_segmentation(&mut self, on: usize) {
        self.ports.give_up_segmentation(on);
    }

    fn send(
        &mut self,
        on: usize,
        to: SocketAddr,
        copies: &[Segment<'_>],
        segmentation: bool,
    ) -> Result<Taken, Rejected> {
        self.ports
            .send_all(on, self.batch, to, (copies, segmentation))
    }
}

fn leave(
    waiting: &mut [Waiting],
    bytes: &[u8],
    outlet: &mut impl Outlet,
    mut tell: impl FnMut(Departed),
) {
    for first in 0..waiting.len() {
        let Waiting { on, to, done, .. } = waiting[first];
        if done {
            continue;
        }
        let (mut copies, mut packets) = ([Segment::default(); RUN], [0; RUN]);
        let mut count = 0;
        let same = |it: &&mut Waiting| !it.done && it.on == on && it.to == to;
        for it in waiting[first..].iter_mut().filter(same).take(RUN) {
            it.done = true;
            copies[count].header = &bytes[it.begin..it.begin + it.len];
            packets[count] = it.packet;
            count += 1;
        }
        let mut group = Group {
            way: (on, to),
            copies: &copies[..count],
            packets: &packets[..count],
        };
        while !group.copies.is_empty() {
            let left = group.send_some(outlet, &mut tell);
            group.copies = &group.copies[left..];
            group.packets = &group.packets[left..];
        }
    }
}

/// Copies that go the same way, in order.
struct Group<'a> {
    way: (usize, SocketAddr),
    copies: &'a [Segment<'a>],
    packets: &'a [usize],
}

impl Group<'_> {
    /// Hands over the first ones; of how many it is known what became of them, at least one.
    fn send_some(&self, outlet: &mut impl Outlet, tell: &mut impl FnMut(Departed)) -> usize {
        let (on, to) = self.way;
        let segmentation = outlet.segmentation(on);
        match outlet.send(on, to, self.copies, segmentation) {
            Ok(taken) => {
                for &packet in &self.packets[..taken.packets] {
                    tell(Departed::Left { on, packet });
                }
                if taken.in_runs > 0 {
                    let copies = taken.in_runs;
                    tell(Departed::InSegments { on, copies });
                }
                taken.packets
            }
            Err(rejected) if rejected.run > 1 => {
                tell(Departed::RunRefused { on });
                let all = self.send_one_by_one(rejected.run, outlet, tell);
                if all && rejected.may_be_offload() {
                    outlet.give_up_segmentation(on);
                }
                rejected.run
            }
            Err(_) => {
                let packet = self.packets[0];
                tell(Departed::NotTaken { on, packet });
                1
            }
        }
    }

    /// Hands over the first `run`, each by itself; whether all were taken.
    fn send_one_by_one(
        &self,
        run: usize,
        outlet: &mut impl Outlet,
        tell: &mut impl FnMut(Departed),
    ) -> bool {
        let (on, to) = self.way;
        let mut all = true;
        for (copy, &packet) in self.copies.iter().zip(self.packets).take(run) {
            let sent = outlet.send(on, to, std::slice::from_ref(copy), false);
            all &= sent.is_ok();
            tell(match sent {
                Ok(_) => Departed::Left { on, packet },
                Err(_) => Departed::NotTaken { on, packet },
            });
        }
        all
    }
}

#[cfg(test)]
mod tests;

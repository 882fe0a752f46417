//! The link that makes faults.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bumpless_base::Random;
use bumpless_net_linux::{Link, ReceiveOutcome, Screen, Segment, SendFailure, SendOutcome};

use super::plan::Cut;
use super::state::{LinkState, PacketState};

/// Largest UDP payload.
const PACKET_MAX: usize = 65_535;

/// A link that loses, cuts, doubles, reorders and spoils packets of the link `L` inside it.
///
/// Packets that it takes away on sending count as sent, as they would on a real network. Equal
/// seeds and equal traffic give equal faults.
pub struct FaultyLink<L> {
    inner: L,
    state: Arc<LinkState>,
    partners: Vec<SocketAddr>,
    sending: Dice,
    receiving: Dice,
    /// Room to spoil a packet that leaves.
    scratch: Box<[u8]>,
    held: Held,
}

/// Draws one direction's faults.
struct Dice {
    random: Random,
    burst_left: u32,
}

/// What is to become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    lost: bool,
    doubled: bool,
    reordered: bool,
    /// Number from which the bit to turn over is taken.
    corrupted: Option<u64>,
}

/// A packet that waits to be overtaken, and room to spoil one that arrives.
struct Held {
    waiting: Option<(SocketAddr, usize)>,
    packet: Box<[u8]>,
    double: Box<[u8]>,
}

impl Dice {
    fn throw(&mut self, faults: &PacketState) -> Fate {
        // One draw for each fault, so that changing one share leaves the others' sequence alone.
        let [loss, burst, double, reorder, corrupt, bit] =
            std::array::from_fn(|_| self.random.next_u64());
        if self.burst_left == 0 && faults.burst.hits(burst) {
            self.burst_left = faults.burst_length.load(Relaxed);
        }
        let in_burst = self.burst_left > 0;
        self.burst_left = self.burst_left.saturating_sub(1);
        Fate {
            lost: faults.loss.hits(loss) || in_burst,
            doubled: faults.duplicate.hits(double),
            reordered: faults.reorder.hits(reorder),
            corrupted: faults.corrupt.hits(corrupt).then_some(bit),
        }
    }
}

fn turn_bit(packet: &mut [u8], drawn: u64) {
    if !packet.is_empty() {
        let bit = drawn % (packet.len() as u64 * 8);
        packet[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl<L: Link> FaultyLink<L> {
    /// A faulty link around `inner`; `partners` are the other nodes' addresses on its network.
    pub(super) fn new(
        inner: L,
        state: Arc<LinkState>,
        partners: Vec<SocketAddr>,
        seed: u64,
    ) -> Self {
        let dice = |seed| Dice {
            random: Random::new(seed),
            burst_left: 0,
        };
        let room = || vec![0; PACKET_MAX].into_boxed_slice();
        Self {
            inner,
            state,
            partners,
            sending: dice(seed),
            receiving: dice(!seed),
            scratch: room(),
            held: Held {
                waiting: None,
                packet: room(),
                double: room(),
            },
        }
    }

    /// Sends the packets of `run` as they are.
    fn pass(&mut self, to: SocketAddr, run: &[Segment<'_>]) -> SendOutcome {
        match run.is_empty() {
            true => SendOutcome::default(),
            false => self.inner.send(to, run),
        }
    }

    fn send_spoiled(&mut self, to: SocketAddr, packet: &Segment<'_>, drawn: u64) -> SendOutcome {
        let (header, len) = (packet.header.len(), packet.len());
        if len > self.scratch.len() {
            return SendOutcome {
                sent: 0,
                failure: Some(SendFailure::TooBig),
            };
        }
        self.scratch[..header].copy_from_slice(packet.header);
        self.scratch[header..len].copy_from_slice(packet.payload);
        turn_bit(&mut self.scratch[..len], drawn);
        self.inner.send(
            to,
            &[Segment {
                header: &self.scratch[..len],
                payload: &[],
            }],
        )
    }
}

fn is_cut(cut: Cut, partners: &[SocketAddr], peer: SocketAddr) -> bool {
    match cut {
        Cut::Nothing => false,
        Cut::Partners => partners.contains(&peer),
        Cut::All => true,
    }
}

impl<L: Link> Link for FaultyLink<L> {
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let state = Arc::clone(&self.state);
        if is_cut(state.cut(), &self.partners, to) {
            state.send.lost.fetch_add(packets.len() as u64, Relaxed);
            return SendOutcome {
                sent: packets.len(),
                failure: None,
            };
        }
        // Packets from `run` up to the current one wait to be passed on together.
        let mut run = 0;
        for (index, packet) in packets.iter().enumerate() {
            let fate = self.sending.throw(&state.send);
            if !fate.lost && !fate.doubled && fate.corrupted.is_none() {
                continue;
            }
            let passed = self.pass(to, &packets[run..index]);
            if passed.failure.is_some() {
                return SendOutcome {
                    sent: run + passed.sent,
                    ..passed
                };
            }
            run = index + usize::from(fate.lost || fate.corrupted.is_some());
            if fate.lost {
                state.send.lost.fetch_add(1, Relaxed);
                continue;
            }
            let extra = match fate.corrupted {
                Some(drawn) => {
                    state.send.corrupted.fetch_add(1, Relaxed);
                    self.send_spoiled(to, packet, drawn)
                }
                None => {
                    state.send.doubled.fetch_add(1, Relaxed);
                    self.inner.send(to, std::slice::from_ref(packet))
                }
            };
            if extra.failure.is_some() {
                return SendOutcome {
                    sent: index,
                    ..extra
                };
            }
        }
        let passed = self.pass(to, &packets[run..]);
        SendOutcome {
            sent: run + passed.sent,
            ..passed
        }
    }

    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        let Self {
            inner,
            state,
            partners,
            receiving,
            held,
            ..
        } = self;
        let cut = state.cut();
        inner.receive(&mut |from, packet| {
            if is_cut(cut, partners, from) {
                state.receive.lost.fetch_add(1, Relaxed);
                return;
            }
            let fate = receiving.throw(&state.receive);
            held.judge(fate, &state.receive, from, packet, sink);
        })
    }

    fn receive_drops(&self) -> Option<u32> {
        self.inner.receive_drops()
    }

    fn screen(&mut self, screen: Option<&Screen>) -> bool {
        self.inner.screen(screen)
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.inner.descriptor()
    }

    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }
}

impl Held {
    /// Lets `packet` meet its fate; one that was held back follows the next that gets through.
    fn judge(
        &mut self,
        fate: Fate,
        counts: &PacketState,
        from: SocketAddr,
        packet: &mut [u8],
        sink: &mut dyn FnMut(SocketAddr, &mut [u8]),
    ) {
        if fate.lost {
            counts.lost.fetch_add(1, Relaxed);
            return;
        }
        if fate.reordered && self.waiting.is_none() && packet.len() <= self.packet.len() {
            counts.reordered.fetch_add(1, Relaxed);
            self.packet[..packet.len()].copy_from_slice(packet);
            self.waiting = Some((from, packet.len()));
            return;
        }
        if let Some(drawn) = fate.corrupted.filter(|_| !packet.is_empty()) {
            counts.corrupted.fetch_add(1, Relaxed);
            turn_bit(packet, drawn);
        }
        if fate.doubled && packet.len() <= self.double.len() {
            counts.doubled.fetch_add(1, Relaxed);
            let double = &mut self.double[..packet.len()];
            double.copy_from_slice(packet);
            sink(from, double);
        }
        sink(from, packet);
        if let Some((from, len)) = self.waiting.take() {
            sink(from, &mut self.packet[..len]);
        }
    }
}

//! One sending channel: its buffer, its open transfer and what is left to send on each link.

use super::peer::{Peer, Rank};
use super::sent_record::{ChannelPath, Place};
use crate::handover::{Chain, Outgoing, Slot};
use crate::setup::{LinkParameters, SenderChannel};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bumpless_base::{
    BitSet, ChannelId, Distribution, Duration, Instant, LinkId, LinkSet, PeerId, Unsent,
};
use bumpless_wire::{WireVersion, packet_count, piece};

/// A state on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub ticket: u64,
    /// Bytes of the state.
    pub total: u32,
    /// Whether it is cut into short pieces.
    pub short: bool,
    /// Bytes of each packet but the last.
    pub piece: u16,
    /// Packets of the state.
    pub packets: u32,
    /// Packets that are there to be sent, from the first on; the others are still being copied (T-52).
    pub ready: u32,
    pub published_at: Instant,
    pub deadline: Instant,
    pub expires_at: Instant,
    /// Packets that left at least once: all below this number.
    pub started: u32,
    /// Packets acknowledged.
    pub acknowledged: u32,
    /// Everything below is acknowledged.
    pub whole_below: u32,
    /// Packets known to be lost and not sent again yet.
    pub lost: u32,
    /// When to ask for another report, because a packet that was reported missing is overdue on every link by then
    /// and may have come without an answer (T-20).
    pub ask_at: Option<Instant>,
    /// When an acknowledgement of this transfer was last taken into account; at first, when the transfer was opened.
    pub heard_at: Instant,
    /// When another channel's packet last asked for an acknowledgement of this transfer (T-25).
    pub asked_at: Instant,
    /// Probes sent since the last acknowledgement that revealed a new loss while no probe was due. Those before any
    /// later acknowledgement count as one.
    pub probes: u32,
    /// Time that a full packet takes on the channel's links (T-24); zero if one of them states no bandwidth.
    pub packet_time: Duration,
}

impl Transfer {
    /// The transfer of a state, of which nothing has been sent, in pieces of `payload_size` bytes or `short` ones.
    pub fn of(state: &Outgoing, (payload_size, short): (u16, bool), now: Instant) -> Self {
        // A buffer is no larger than its channel's largest state, which is stated in 32 bits.
        let total = state.len as u32;
        let piece = piece(payload_size, short);
        let packets = packet_count(total, piece);
        Self {
            ticket: state.ticket,
            total,
            short,
            piece,
            packets,
            ready: ready(state, packets, piece),
            published_at: state.published_at,
            deadline: state.deadline,
            expires_at: state.expires_at,
            started: 0,
            acknowledged: 0,
            whole_below: 0,
            lost: 0,
            ask_at: None,
            heard_at: now,
            asked_at: now,
            probes: 0,
            packet_time: Duration::ZERO,
        }
    }

    /// Packets sent and not acknowledged.
    pub fn in_flight(&self) -> u32 {
        self.started - self.acknowledged
    }

    /// Whether what is left to send can be sent before the deadline (first paper, 7.2.3).
    pub fn fits(&self, now: Instant) -> bool {
        let left = u64::from(self.packets - self.started + self.lost);
        now < self.deadline && now + self.packet_time * left <= self.deadline
    }
}

/// Of a state's packets, those whose bytes are all there.
fn ready(state: &Outgoing, packets: u32, piece: u16) -> u32 {
    match state.bytes().len() {
        there if there >= state.len => packets,
        there => there as u32 / u32::from(piece),
    }
}

/// Packets to send, lowest first; those acknowledged meanwhile are passed over.
#[derive(Debug)]
pub(super) struct Todo {
    set: BitSet,
    /// Nothing to send is below this.
    from: u32,
}

impl Todo {
    fn add(&mut self, sequence: u32) {
        self.set.insert(sequence as usize);
        self.from = self.from.min(sequence);
    }
}

pub(super) struct Channel {
    pub setup: SenderChannel,
    /// Position among its peer's channels.
    pub rank: Rank,
    /// Where the publisher leaves states.
    slot: Arc<Slot>,
    /// The state whose transfer is open or was last. With the next two, at most half of the channel's buffers.
    buffer: Option<Box<Outgoing>>,
    /// States that were taken with one before them, and are sent after it.
    next_states: Chain,
    /// What goes back with the next exchange.
    free: Chain,
    /// A later state waits for this transfer's end, in the slot or here.
    pub waiting: bool,
    /// Deadline of a state that was superseded by one that is not in the slot yet.
    pub inherited: Option<Instant>,
    /// Transfer cycle that began last.
    pub cycle: u32,
    pub transfer: Option<Transfer>,
    pub acknowledged: BitSet,
    /// Known to be lost and not sent again yet.
    pub lost: BitSet,
    pub paths: Box<[ChannelPath]>,
    /// What is left to send: on each path, or once for all paths if they share the packets.
    todo: Box<[Todo]>,
}

impl Channel {
    /// A channel whose states have at most `most` packets.
    pub fn new(setup: &SenderChannel, rank: Rank, most: u32, slot: Arc<Slot>) -> Self {
        let set = || BitSet::new(most as usize);
        let paths: Vec<_> = setup
            .links
            .iter()
            .map(|l| ChannelPath::new(l, most))
            .collect();
        let todos = match setup.distribution {
            Distribution::Replicate => paths.len(),
            Distribution::Spread => 1,
        };
        let todo = (0..todos).map(|_| Todo {
            set: set(),
            from: 0,
        });
        Self {
            setup: *setup,
            rank,
            slot,
            buffer: None,
            next_states: Chain::default(),
            free: Chain::default(),
            waiting: false,
            inherited: None,
            cycle: 0,
            transfer: None,
            acknowledged: set(),
            lost: set(),
            todo: todo.collect(),
            paths: paths.into_boxed_slice(),
        }
    }

    /// What stands in a place that no channel has. It has no buffers.
    pub fn vacant() -> Self {
        const ANY: ChannelId = ChannelId::new(1).unwrap();
        let setup = SenderChannel {
            id: ANY,
            peer: PeerId(0),
            links: LinkSet::EMPTY,
            distribution: Distribution::Replicate,
            unsent: Unsent::Replace,
            max_size: 0,
            deadline: Duration::ZERO,
            expiry: Duration::ZERO,
        };
        Self::new(&setup, Rank::FIRST, 1, Arc::default())
    }

    /// Whether this stands for no channel: every channel has a link.
    pub fn is_vacant(&self) -> bool {
        self.setup.links.is_empty()
    }

    /// The state in the sender's hands.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| buffer.bytes())
    }

    /// Whether the open transfer is of the state that was published last, as far as the publisher has noted.
    pub fn has_latest(&self) -> bool {
        self.transfer
            .is_some_and(|t| !self.slot.has_later(t.ticket))
    }

    /// Whether the open transfer makes way for a state that is published now.
    pub fn makes_way(&self) -> bool {
        let keeps = self.setup.unsent == Unsent::Keep;
        self.transfer
            .is_none_or(|transfer| transfer.started == 0 && !keeps)
    }

    /// Takes the state that waits first, and gives back what the sender is done with; returns it.
    pub fn take_published(&mut self) -> Option<&mut Outgoing> {
        if let Some(done) = self.buffer.take() {
            self.free.put_first(done);
        }
        if self.next_states.is_empty() {
            let taken = self.slot.swap(core::mem::take(&mut self.free));
            match taken.waits() {
                true => self.next_states = taken,
                false => self.free = taken,
            }
            self.waiting = false;
        }
        self.buffer = self.next_states.take_first();
        self.waiting |= !self.next_states.is_empty();
        let buffer = self.buffer.as_deref_mut()?;
        buffer.queued = false;
        Some(buffer)
    }

    /// Takes into account how far the open transfer's state has been copied; returns whether packets of it have become
    /// ready.
    pub fn grow(&mut self) -> bool {
        let Some((state, transfer)) = self.buffer.as_deref().zip(self.transfer.as_mut()) else {
            return false;
        };
        let before = transfer.ready;
        if before < transfer.packets {
            transfer.ready = ready(state, transfer.packets, transfer.piece);
        }
        transfer.ready > before
    }

    /// Opens `transfer`; nothing of it has been sent.
    pub fn open(&mut self, transfer: Transfer) {
        let end = transfer.packets as usize;
        for set in [&mut self.acknowledged, &mut self.lost] {
            set.clear_below(end);
        }
        for todo in &mut self.todo {
            todo.set.fill_below(end);
            todo.from = 0;
        }
        for path in &mut self.paths {
            path.probe = false;
        }
        self.transfer = Some(transfer);
    }

    /// Starts the transfer cycle, just before the first packet leaves (first paper, 7.2.3).
    pub fn begin(&mut self, version: WireVersion, packets: u32, now: Instant) {
        self.cycle = match version {
            WireVersion::V1 => u32::from((self.cycle as u16).wrapping_add(1)),
            WireVersion::V2 => self.cycle.wrapping_add(1),
        };
        for path in &mut self.paths {
            path.restart(packets, now);
        }
    }

    /// The links that carry the channel: of the healthy ones those that pass full packets, or all of them if none does;
    /// every link if none is healthy.
    pub fn usable(&self, peer: &Peer) -> LinkSet {
        let healthy = self.setup.links.intersection(peer.healthy);
        match (healthy, healthy.difference(peer.narrow)) {
            (LinkSet::EMPTY, _) => self.setup.links,
            (narrow, LinkSet::EMPTY) => narrow,
            (_, wide) => wide,
        }
    }

    /// Whether all links that carry the channel pass short packets only, and its version can say so.
    pub fn needs_short_pieces(&self, peer: &Peer) -> bool {
        let wide = self.usable(peer).difference(peer.narrow);
        peer.setup.version == WireVersion::V2 && wide.is_empty()
    }

    pub fn path_of(&self, link: LinkId) -> Option<usize> {
        self.paths.iter().position(|path| path.link == link)
    }

    /// Whether all paths take their packets from one set.
    pub fn shares(&self) -> bool {
        self.todo.len() < self.paths.len()
    }

    /// A channel with one path or a shared set of packets has one `Todo`.
    fn todo_of(&self, path: usize) -> usize {
        path.min(self.todo.len() - 1)
    }

    /// The next packet to send on a path.
    pub fn next(&mut self, path: usize) -> Option<u32> {
        let packets = self.transfer.as_ref()?.ready;
        let at = self.todo_of(path);
        let todo = &mut self.todo[at];
        // It is asked before and after a packet leaves, and mostly nothing has changed.
        let from = todo.from as usize;
        if todo.from < packets && todo.set.contains(from) && !self.acknowledged.contains(from) {
            return Some(todo.from);
        }
        let found = todo
            .set
            .next_present_and_absent_in(&self.acknowledged, from, packets as usize);
        todo.from = found.map_or(packets, |found| found as u32);
        found.map(|found| found as u32)
    }

    /// Whether a packet is left to send on a path, looked up the plain way.
    #[cfg(all(test, not(loom)))]
    pub fn is_left(&self, path: usize, sequence: u32) -> bool {
        let todo = &self.todo[self.todo_of(path)];
        todo.set.contains(sequence as usize) && !self.acknowledged.contains(sequence as usize)
    }

    /// In which of its link's queues the channel belongs.
    pub fn place(&mut self, path: usize, usable: LinkSet) -> Place {
        let Some(started) = self.transfer.as_ref().map(|t| t.started) else {
            return Place::Nowhere;
        };
        if !usable.contains(self.paths[path].link) {
            return Place::Nowhere;
        }
        match self.next(path) {
            Some(next) if next < started => Place::Again,
            // A probe need not wait for the in-flight limit as a first packet must.
            _ if self.paths[path].probe => Place::Again,
            Some(_) => Place::First,
            None => Place::Nowhere,
        }
    }

    /// Takes a packet that is about to leave on a path off what is left to send; returns whether
    /// it was known to be lost.
    pub fn take_off(&mut self, path: usize, sequence: u32) -> bool {
        let at = self.todo_of(path);
        self.todo[at].set.remove(sequence as usize);
        let lost = self.lost.remove(sequence as usize);
        if let Some(transfer) = &mut self.transfer {
            transfer.lost -= u32::from(lost);
        }
        lost
    }

    /// Puts a lost packet back to what is left to send: on every path, whether healthy or not, so
    /// that one whose link returns knows of it.
    pub fn put_back(&mut self, sequence: u32) {
        let new = self.lost.insert(sequence as usize);
        if let Some(transfer) = &mut self.transfer {
            transfer.lost += u32::from(new);
        }
        for todo in &mut self.todo {
            todo.add(sequence);
        }
    }

    /// Time that a full packet of `transfer` takes: on the fastest link if each carries all of them, on all
    /// together if they share.
    pub fn packet_time(
        &self,
        links: &[LinkParameters],
        peer: &Peer,
        transfer: &Transfer,
    ) -> Duration {
        let payload = u32::from(transfer.piece).min(transfer.total);
        let bytes = u64::from(payload) + u64::from(peer.setup.version.header_len());
        let mut rate = 0u64;
        for link in self.usable(peer).iter() {
            let Some(link) = links.get(usize::from(link.0)).filter(|l| l.bandwidth != 0) else {
                return Duration::ZERO;
            };
            let bits = (bytes + u64::from(link.frame_overhead)) * 8;
            let per_second = link.bandwidth / bits;
            rate = match self.setup.distribution {
                Distribution::Replicate => rate.max(per_second),
                Distribution::Spread => rate.saturating_add(per_second),
            };
        }
        Duration::from_nanos(1_000_000_000 / rate.max(1))
    }
}

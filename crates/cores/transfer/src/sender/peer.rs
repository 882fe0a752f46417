//! One peer: session, in-flight limit, and which of its channels has something to send where.

use super::sent_record::Place;
use crate::place::ChannelPlace;
use crate::round_trip::RoundTrip;
use crate::setup::{ChannelTable, LinkParameters, SenderPeer};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bumpless_base::{ChannelId, IndexedHeap, Instant, LinkId, LinkSet, Table, TableIndex, pacing};

/// Which channel goes first: the one with the earliest deadline, of equal ones that of the lowest number (T-10).
pub(super) type Urgency = (Instant, ChannelId);

/// The position of a channel among those of its peer, which is not its place among all of the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(usize);

impl Rank {
    pub const FIRST: Self = Self(0);
}

impl TableIndex for Rank {
    fn index(self) -> usize {
        self.0
    }
    fn from_index(index: usize) -> Self {
        Self(index)
    }
}

/// A peer on one link.
pub(super) struct PeerLink {
    pub round_trip: RoundTrip,
    /// Channels in [`Place::Again`].
    again: IndexedHeap<Urgency, Rank>,
    /// Channels in [`Place::First`].
    first: IndexedHeap<Urgency, Rank>,
}

/// Who has a rank among a peer's channels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holder {
    /// A channel.
    Taken,
    /// Nobody; a channel with this identity had it and began this transfer cycle last.
    Left(ChannelId, u32),
    /// Nobody had it yet.
    Free,
}

pub(super) struct Peer {
    pub setup: SenderPeer,
    /// Session, if there is one.
    pub tag: Option<u32>,
    pub healthy: LinkSet,
    /// Links that pass short packets only.
    pub narrow: LinkSet,
    /// `packetsInFlight`: packets sent and not acknowledged, over all channels.
    pub in_flight: u32,
    /// Probes of all channels sent since an acknowledgement last came from the peer.
    pub unanswered: u32,
    /// The channel that probes because the in-flight limit stops the peer's channels.
    pub stalled: Option<Rank>,
    /// Its channels, by identity, each with its place.
    pub table: ChannelTable,
    /// The places of its channels by rank, at first in ascending order. No queue holds a rank that nobody has.
    pub channels: Table<Rank, ChannelPlace>,
    pub ranks: Table<Rank, Holder>,
    pub links: Box<[PeerLink]>,
    /// Channels with packets in flight, by deadline.
    pub flight: IndexedHeap<Instant, Rank>,
    /// Channels that have sent everything and wait for acknowledgements, by deadline.
    pub waiting: IndexedHeap<Instant, Rank>,
}

impl Peer {
    /// A peer with the channels of `table` and ranks for `room` more.
    pub fn new(
        setup: &SenderPeer,
        mut table: ChannelTable,
        links: &[LinkParameters],
        room: usize,
    ) -> Self {
        let mut channels: Vec<_> = table.iter().map(|&(_, place)| place).collect();
        channels.sort_unstable();
        let (taken, n) = (channels.len(), channels.len() + room);
        channels.resize(n, ChannelPlace(0));
        let holder = |at| match at < taken {
            true => Holder::Taken,
            false => Holder::Free,
        };
        table.reserve_exact(room);
        let link = |link: &LinkParameters| PeerLink {
            round_trip: RoundTrip::new(link.initial_round_trip, pacing::blocking(link.bandwidth)),
            again: IndexedHeap::new(n),
            first: IndexedHeap::new(n),
        };
        Self {
            setup: *setup,
            tag: None,
            healthy: LinkSet::first(links.len()),
            narrow: LinkSet::EMPTY,
            in_flight: 0,
            unanswered: 0,
            stalled: None,
            table,
            channels: channels.into_iter().collect(),
            ranks: (0..n).map(holder).collect(),
            links: links.iter().map(link).collect(),
            flight: IndexedHeap::new(n),
            waiting: IndexedHeap::new(n),
        }
    }

    /// The channel that has a rank, if one has it.
    pub fn channel_at(&self, rank: Rank) -> Option<ChannelPlace> {
        let taken = matches!(self.ranks.get(rank), Some(Holder::Taken));
        self.channels.get(rank).copied().filter(|_| taken)
    }

    pub fn round_trip(&self, link: LinkId) -> Option<&RoundTrip> {
        self.links.get(usize::from(link.0)).map(|l| &l.round_trip)
    }

    pub fn has_room(&self) -> bool {
        self.in_flight < self.setup.in_flight_max
    }

    /// Packets were acknowledged, or nobody waits for them any more.
    pub fn release(&mut self, packets: u32) {
        self.in_flight -= packets;
        if self.has_room() {
            self.stalled = None;
        }
    }

    /// Puts a channel where it belongs in a link's queues.
    pub fn set_place(&mut self, link: LinkId, rank: Rank, place: Place, urgency: Urgency) {
        let Some(link) = self.links.get_mut(usize::from(link.0)) else {
            return;
        };
        keep(&mut link.again, rank, place == Place::Again, urgency);
        keep(&mut link.first, rank, place == Place::First, urgency);
    }

    /// The channel to serve next on a link: the most urgent of those that may send.
    pub fn next(&self, link: LinkId) -> Option<(Urgency, ChannelPlace)> {
        let link = self.links.get(usize::from(link.0))?;
        let first = link.first.first().filter(|_| self.has_room());
        let (urgency, rank) = match (link.again.first(), first) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some((urgency, *self.channels.get(rank)?))
    }

    /// Whether no channel has anything for a link.
    pub fn is_idle(&self, link: LinkId) -> bool {
        self.links
            .get(usize::from(link.0))
            .is_none_or(|link| link.first.is_empty() && link.again.is_empty())
    }

    /// Whether no channel has anything for any link.
    pub fn is_all_idle(&self) -> bool {
        let idle = |link: &PeerLink| link.first.is_empty() && link.again.is_empty();
        self.links.iter().all(idle)
    }

    /// Whether a rank is in a link's queues.
    #[cfg(all(test, not(loom)))]
    pub fn queues(&self, link: LinkId, rank: Rank) -> bool {
        let link = &self.links[usize::from(link.0)];
        link.again.key(rank).is_some() || link.first.key(rank).is_some()
    }

    /// Whether the in-flight limit keeps a channel from sending on a link.
    pub fn is_held_up(&self, link: LinkId) -> bool {
        !self.has_room()
            && self
                .links
                .get(usize::from(link.0))
                .is_some_and(|l| !l.first.is_empty())
    }
}

/// Has `index` in the heap with `key`, or not at all.
#[inline(always)] // For each packet, and mostly nothing has changed.
pub(super) fn keep<K: Ord + Copy, I: TableIndex>(
    heap: &mut IndexedHeap<K, I>,
    index: I,
    inside: bool,
    key: K,
) {
    if !inside {
        heap.remove(index);
    } else if heap.key(index) != Some(key) {
        heap.set(index, key);
    }
}

//! The receiving core: takes data packets, gives whole states and acknowledgements.

mod acknowledge;
mod channel;
mod places;
mod reception;

use crate::event::ReceiverEvent;
use crate::handover::Subscriber;
use crate::place::ChannelPlace;
use crate::setup::{self, ChannelTable, Common, ReceiverChannel, ReceiverPeer, SetupError};
use acknowledge::AckQueue;
use alloc::vec::Vec;
use bumpless_base::{
    BoundedQueue, Counter, Counters, Duration, IndexedHeap, Instant, LinkId, LinkSet, MAX_LINKS,
    PeerId, Table,
};
use bumpless_wire::{DataHeader, MAX_ACK_LEN, WireVersion};
use channel::{Channel, Stage, Trigger};
pub use places::{ReceiverFactory, ReceiverReplacement};

/// An acknowledgement to send: the first `len` bytes of the buffer given to
/// [`Receiver::poll_ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckTransmit {
    /// To whom.
    pub peer: PeerId,
    /// The channel's place in the receiver.
    pub channel: ChannelPlace,
    /// On which links, a copy on each.
    pub links: LinkSet,
    /// Bytes.
    pub len: usize,
}

struct Peer {
    setup: ReceiverPeer,
    /// Session, if there is one.
    tag: Option<u32>,
    /// Its channels, by identity, each with its place.
    table: ChannelTable,
    /// How many channels it can have.
    most: u32,
    /// Packets received since acknowledgements were last due, over all channels.
    unacknowledged: u32,
    /// The channels that have such packets.
    list: Vec<ChannelPlace>,
}

impl Peer {
    /// `packetsRcvdNoAckCntMax` (first paper, 7.3.3).
    fn ack_every(&self) -> u32 {
        (self.setup.in_flight_max / 5).max(1)
    }
}

/// What is to be reported of a channel. Cycle and expiry are those of the moment at which it is reported.
#[derive(Clone, Copy, Debug)]
enum Notice {
    Updated(ChannelPlace),
    Overdue(ChannelPlace),
}

impl Notice {
    fn channel(self) -> ChannelPlace {
        match self {
            Self::Updated(channel) | Self::Overdue(channel) => channel,
        }
    }
}

/// How many notices of so many `channels` may wait; each channel has few at a time (T-41).
fn notices_max(channels: usize) -> usize {
    channels * 4 + 16
}

/// Receives the states of all channels from all peers.
///
/// Driving: call `handle_*` with what arrived and the time, then `poll_ack` and `poll_event` until
/// they have nothing more; call `handle_timeout` at `poll_timeout`. The time must not go backwards.
/// Calling `poll_ack` after a batch of packets rather than after each merges acknowledgements.
/// Nothing is allocated after construction.
///
/// Each channel has a place. Places can be vacant, and [`Receiver::exchange`] changes who has one
/// while all others go on.
pub struct Receiver {
    peers: Vec<Peer>,
    /// Prepares others for its places.
    factory: ReceiverFactory,
    channels: Table<ChannelPlace, Channel>,
    acks: AckQueue,
    timers: IndexedHeap<Instant, ChannelPlace>,
    notices: BoundedQueue<Notice>,
    counters: Counters,
}

impl Receiver {
    /// A receiver and, in the order of `channels`, the application's end of each.
    ///
    /// # Errors
    /// [`SetupError`] names what contradicts itself or the wire version.
    pub fn new(
        peers: &[ReceiverPeer],
        channels: &[ReceiverChannel],
    ) -> Result<(Self, Vec<Subscriber>), SetupError> {
        Self::with_room(peers, channels, 0)
    }

    /// The same with `room` more places than channels, after theirs and vacant at first. Each peer
    /// can have so many channels more than at the start.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_room(
        peers: &[ReceiverPeer],
        channels: &[ReceiverChannel],
        room: usize,
    ) -> Result<(Self, Vec<Subscriber>), SetupError> {
        setup::check_peers(peers.iter().map(|p| (p.payload_size, p.in_flight_max)))?;
        let common = channels.iter().map(|c| Common::receiving(c, peers));
        let tables = setup::channel_tables(peers.len(), LinkSet::first(MAX_LINKS), common)?;
        let places = channels.len() + room;
        let factory = ReceiverFactory::new(peers, places);
        let mut subscribers = Vec::with_capacity(channels.len());
        let mut taken = Vec::with_capacity(places);
        for (place, setup) in channels.iter().enumerate() {
            let (channel, subscriber) = factory.make(ChannelPlace(place), setup)?;
            taken.push(channel);
            subscribers.push(subscriber);
        }
        taken.resize_with(places, Channel::vacant);
        let peer = |(setup, mut table): (&ReceiverPeer, Vec<_>)| {
            let most = table.len() + room;
            table.reserve_exact(room);
            Peer {
                setup: *setup,
                tag: None,
                unacknowledged: 0,
                list: Vec::with_capacity(most),
                table,
                most: u32::try_from(most).unwrap_or(u32::MAX),
            }
        };
        let receiver = Self {
            peers: peers.iter().zip(tables).map(peer).collect(),
            factory,
            acks: AckQueue::new(places),
            timers: IndexedHeap::new(places),
            notices: BoundedQueue::new(notices_max(places)),
            counters: Counters::default(),
            channels: taken.into_iter().collect(),
        };
        Ok((receiver, subscribers))
    }

    /// `peer` sends at most this many packets unacknowledged, at least one (T-51): every fifth is acknowledged.
    pub fn set_in_flight_max(&mut self, peer: PeerId, limit: u32) {
        if let Some(peer) = self.peers.get_mut(usize::from(peer.0)) {
            peer.setup.in_flight_max = limit.max(1);
        }
    }

    /// Starts, changes or ends (`None`) the session with `peer`. Packets are taken only within a
    /// session, and in version 2 only with its tag; a new session forgets the transfer cycles of
    /// the old one. States that were delivered stay readable until they expire: a backup takes
    /// over with them when the primary's session is gone.
    pub fn set_session(&mut self, peer: PeerId, tag: Option<u32>, _now: Instant) {
        let Some(peer) = self.peers.get_mut(usize::from(peer.0)) else {
            return;
        };
        if peer.tag == tag {
            return;
        }
        peer.tag = tag;
        peer.unacknowledged = 0;
        peer.list.clear();
        for &(_, index) in &peer.table {
            let channel = &mut self.channels[index];
            if channel.end_session() {
                self.counters.count(Counter::StatesAbandoned);
            }
            rearm(&mut self.timers, index, channel);
        }
    }

    /// Takes a data packet that came from `peer` on `link`.
    pub fn handle_data(
        &mut self,
        peer: PeerId,
        link: LinkId,
        header: &DataHeader,
        payload: &[u8],
        now: Instant,
    ) {
        if let Err(cause) = self.admit(peer, link, header) {
            self.counters.count(cause);
            return;
        }
        let table = &self.peers[usize::from(peer.0)].table;
        let forced = header.force_ack.and_then(|id| setup::find(table, id));
        match setup::find(table, header.channel) {
            Some(index) => {
                self.take(index, link, header, payload, forced == Some(index), now);
            }
            None => self.counters.count(Counter::DiscardUnknownChannel),
        }
        if let Some(index) = forced {
            self.request_ack(index, None);
        }
    }

    fn admit(&self, peer: PeerId, link: LinkId, header: &DataHeader) -> Result<(), Counter> {
        let Some(peer) = self.peers.get(usize::from(peer.0)) else {
            return Err(Counter::DiscardUnknownSource);
        };
        if header.version != peer.setup.version {
            return Err(Counter::DiscardWrongVersion);
        }
        match (peer.tag, header.version) {
            (Some(_), WireVersion::V1) => {}
            (Some(tag), WireVersion::V2) if tag == header.tag => {}
            _ => return Err(Counter::DiscardWrongSession),
        }
        if usize::from(link.0.max(header.link.0)) >= MAX_LINKS {
            return Err(Counter::DiscardMalformed);
        }
        Ok(())
    }

    fn take(
        &mut self,
        index: ChannelPlace,
        link: LinkId,
        header: &DataHeader,
        payload: &[u8],
        forced: bool,
        now: Instant,
    ) {
        // Version 2 says on which link the sender sent; evidence of loss is about that one.
        let path = match header.version {
            WireVersion::V1 => link,
            WireVersion::V2 => header.link,
        };
        let trigger = Trigger {
            link: path,
            ..Trigger::of(header)
        };
        let channel = &mut self.channels[index];
        let peer = &self.peers[usize::from(channel.setup.peer.0)];
        let payload_size = peer.setup.payload_size;
        match channel.take(payload_size, path, header, payload, now) {
            Err((cause, acknowledge)) => {
                self.counters.count(cause);
                if acknowledge {
                    self.request_ack(index, Some(trigger));
                }
            }
            Ok(taken) => {
                if taken.abandoned {
                    self.counters.count(Counter::StatesAbandoned);
                }
                if !taken.new {
                    self.counters.count(Counter::DiscardDuplicate);
                }
                if taken.complete {
                    self.deliver(index, now);
                }
                let due = taken.new && self.count_unacknowledged(index);
                if taken.acknowledge || due || forced {
                    self.request_ack(index, Some(trigger));
                }
                rearm(&mut self.timers, index, &self.channels[index]);
            }
        }
    }

    fn deliver(&mut self, index: ChannelPlace, now: Instant) {
        let channel = &mut self.channels[index];
        if !channel.deliver(now) {
            return self.counters.count(Counter::StatesAbandoned);
        }
        self.counters.count(Counter::StatesDelivered);
        // A driver may hand in any number of packets before it collects what they led to: an update
        // that waits gives its place to a later one of its channel (T-41).
        if !channel.update_waits {
            // One that finds no room must not keep later ones back.
            let waits = self.tell(Notice::Updated(index));
            self.channels[index].update_waits = waits;
        }
    }

    /// Returns whether there was room.
    fn tell(&mut self, notice: Notice) -> bool {
        // Vacant places give no room: whoever lets notices pile up is to be found by few channels.
        let channels = self.peers.iter().map(|peer| peer.table.len()).sum();
        let room = self.notices.len() < notices_max(channels) && self.notices.push(notice).is_ok();
        if !room {
            self.counters.count(Counter::EventsLost);
        }
        room
    }

    /// Writes the next acknowledgement to the front of `out`.
    pub fn poll_ack(&mut self, out: &mut [u8; MAX_ACK_LEN]) -> Option<AckTransmit> {
        let transmit = self.next_ack(out);
        if transmit.is_some() {
            self.counters.count(Counter::AcksSent);
        }
        transmit
    }

    /// Looks after what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, index)) = self.timers.first() {
            if due > now {
                return;
            }
            let channel = &mut self.channels[index];
            if channel.stage == Stage::Assembling && channel.expires_at <= now {
                channel.stage = Stage::Abandoned;
                self.counters.count(Counter::StatesAbandoned);
            }
            let overdue = channel.overdue_at.is_some_and(|at| at <= now);
            if overdue {
                channel.overdue_at = None;
            }
            rearm(&mut self.timers, index, channel);
            if overdue {
                self.counters.count(Counter::StatesOverdue);
                self.tell(Notice::Overdue(index));
            }
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| due)
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        match self.notices.pop()? {
            Notice::Updated(index) => {
                let channel = &mut self.channels[index];
                channel.update_waits = false;
                Some(ReceiverEvent::Updated {
                    channel: index,
                    cycle: channel.delivered,
                    expires_at: channel.fresh_until.unwrap_or(Instant::ZERO),
                })
            }
            Notice::Overdue(index) => Some(ReceiverEvent::Overdue { channel: index }),
        }
    }

    /// Until when the newest whole state of `channel` may be used; `None` if there was none.
    pub fn fresh_until(&self, channel: ChannelPlace) -> Option<Instant> {
        self.channels.get(channel)?.fresh_until
    }

    /// Changes when the channel at `place` is reported as overdue: so long after its last state, or
    /// after its next one if it has been reported already or was never to be.
    pub fn set_expect_within(&mut self, place: ChannelPlace, expect_within: Duration) {
        if let Some(channel) = self.channels.get_mut(place) {
            channel.expect_within(expect_within);
            rearm(&mut self.timers, place, channel);
        }
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn rearm(timers: &mut IndexedHeap<Instant, ChannelPlace>, index: ChannelPlace, channel: &Channel) {
    let due = channel.due();
    if timers.key(index) == due {
        return;
    }
    match due {
        Some(due) => timers.set(index, due),
        None => {
            timers.remove(index);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

//! The sending core: takes published states and acknowledgements, gives packets.

mod channel;
mod intake;
mod links;
mod loss;
mod peer;
mod places;
mod probe;
mod sent_record;
mod transmit;
mod wire;

use crate::event::{FailureCause, SenderEvent};
use crate::handover::Publisher;
use crate::place::ChannelPlace;
use crate::setup::{
    self, ChannelTable, Common, LinkParameters, SenderChannel, SenderPeer, SetupError,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bumpless_atomic_box::DirtySet;
use bumpless_base::{
    BoundedQueue, Counter, Counters, IndexedHeap, Instant, LinkSet, PeerId, Table, TableIndex,
};
use bumpless_wire::WireVersion;
use channel::{Channel, Transfer};
use peer::{Peer, Rank};
pub use places::{SenderFactory, SenderReplacement};
pub use transmit::Transmit;
use wire::Wire;

/// Sends the states of all channels to all peers.
///
/// Driving: call `handle_*` with what happened and the time; then, on every link that can take
/// packets, `poll_transmit` until it has nothing more or the link is full; `poll_event` until it
/// has nothing more; `handle_timeout` at `poll_timeout`, which polling may have brought forward to
/// the past. The time must not go backwards. Packets got from `poll_transmit` must be sent or
/// dropped before the next `handle_*` or `set_*`: their payload lies in buffers that those may give
/// back. Nothing is allocated after construction.
///
/// Each channel has a place. Places can be vacant, and [`Sender::exchange`] changes who has one
/// while all others go on.
pub struct Sender {
    links: Box<[LinkParameters]>,
    wires: Box<[Wire]>,
    peers: Box<[Peer]>,
    channels: Table<ChannelPlace, Channel>,
    dirty: Arc<DirtySet>,
    /// Prepares others for its places.
    factory: SenderFactory,
    /// One timer for each channel.
    timers: IndexedHeap<Instant, ChannelPlace>,
    events: BoundedQueue<SenderEvent>,
    counters: Counters,
}

impl Sender {
    /// A sender and, in the order of `channels`, the application's end of each. All links count as
    /// healthy and no peer has a session.
    ///
    /// # Errors
    /// [`SetupError`] names what contradicts itself or the wire version.
    pub fn new(
        links: &[LinkParameters],
        peers: &[SenderPeer],
        channels: &[SenderChannel],
    ) -> Result<(Self, Vec<Publisher>), SetupError> {
        Self::with_room(links, peers, channels, 0)
    }

    /// The same with `room` more places than channels, after theirs and vacant at first. Each peer
    /// can have so many channels more than at the start.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_room(
        links: &[LinkParameters],
        peers: &[SenderPeer],
        channels: &[SenderChannel],
        room: usize,
    ) -> Result<(Self, Vec<Publisher>), SetupError> {
        let tables = check(links, peers, channels)?;
        let places = channels.len() + room;
        let factory = SenderFactory::new(links.len(), peers, places);
        let dirty = Arc::clone(factory.dirty());
        let peers: Box<[Peer]> = peers
            .iter()
            .zip(tables)
            .map(|(setup, table)| Peer::new(setup, table, links, room))
            .collect();
        let mut publishers = Vec::with_capacity(channels.len());
        let mut taken = Vec::with_capacity(places);
        let mut ranks = vec![0; peers.len()];
        for (place, setup) in channels.iter().enumerate() {
            let (mut channel, publisher) = factory.make(ChannelPlace(place), setup)?;
            let rank = &mut ranks[usize::from(setup.peer.0)];
            channel.rank = Rank::from_index(*rank);
            *rank += 1;
            taken.push(channel);
            publishers.push(publisher);
        }
        taken.resize_with(places, Channel::vacant);
        let sender = Self {
            links: links.into(),
            wires: links.iter().map(Wire::new).collect(),
            peers,
            timers: IndexedHeap::new(places),
            events: BoundedQueue::new(places * 4 + 16),
            counters: Counters::default(),
            channels: taken.into_iter().collect(),
            dirty,
            factory,
        };
        Ok((sender, publishers))
    }

    /// Makes the next transfer of `channel` begin the transfer cycle after `cycle`. Without it, the
    /// first one is 1; peers take any number as the first of a session.
    pub fn set_last_cycle(&mut self, channel: ChannelPlace, cycle: u32) {
        let channel = self.channels.get_mut(channel);
        if let Some(channel) = channel.filter(|channel| !channel.is_vacant()) {
            let version = self.peers[usize::from(channel.setup.peer.0)].setup.version;
            channel.cycle = match version {
                WireVersion::V1 => cycle & u32::from(u16::MAX),
                WireVersion::V2 => cycle,
            };
        }
    }

    /// Starts, changes or ends (`None`) the session with `peer`. Nothing is sent without one; the
    /// transfers of the old one fail, and so does what is published while there is none.
    pub fn set_session(&mut self, peer: PeerId, tag: Option<u32>, now: Instant) {
        let at = usize::from(peer.0);
        let Some(peer) = self.peers.get_mut(at).filter(|peer| peer.tag != tag) else {
            return;
        };
        peer.tag = tag;
        peer.unanswered = 0;
        for rank in peer.channels.indices() {
            let Some(index) = self.peers[at].channel_at(rank) else {
                continue;
            };
            if self.channels[index].transfer.is_some() {
                self.fail(index, FailureCause::SessionEnded);
            }
            self.adopt_waiting(index, now);
        }
    }

    /// `peer` takes this many packets unacknowledged, at least one (T-51). What is in flight already stays so.
    pub fn set_in_flight_max(&mut self, peer: PeerId, limit: u32) {
        if let Some(peer) = self.peers.get_mut(usize::from(peer.0)) {
            peer.setup.in_flight_max = limit.max(1);
            // It may have room where it had none.
            peer.release(0);
        }
    }

    /// Takes over what applications have published since the last call. What they publish during
    /// it may be left to the next call, for which they wake the driver again: an application that
    /// never stops publishing cannot keep the data plane here.
    pub fn handle_published(&mut self, now: Instant) {
        if !self.dirty.is_clear() {
            self.take_published(now);
        }
    }

    #[inline(never)] // Mostly nothing was.
    fn take_published(&mut self, now: Instant) {
        let dirty = Arc::clone(&self.dirty);
        dirty.take(|at| self.note_published(ChannelPlace(at), now));
    }

    /// Whether an application has published something that [`Self::handle_published`] would take.
    pub fn has_published(&self) -> bool {
        !self.dirty.is_clear()
    }

    /// A transfer that has begun is finished or given up; one that has not makes way, if its channel does not keep it.
    fn note_published(&mut self, index: ChannelPlace, now: Instant) {
        let Some(channel) = self.channels.get_mut(index) else {
            return;
        };
        if channel.grow() {
            self.settle(index);
        }
        let channel = &mut self.channels[index];
        if !channel.makes_way() {
            channel.waiting = true;
        } else if !channel.has_latest() {
            self.adopt(index, now);
            self.adopt_waiting(index, now);
        }
        // Else it was taken over at the end of the transfer before, ahead of its mark and perhaps of the mark of a state
        // that it superseded, or more of it has been copied; nothing is there to take its place.
    }

    /// Opens the transfer of a state that waits, if none is open. One that fails at once makes way for the next that is kept.
    fn adopt_waiting(&mut self, index: ChannelPlace, now: Instant) {
        while self.channels[index].transfer.is_none() && self.channels[index].waiting {
            self.adopt(index, now);
        }
    }

    /// Takes the state that lies in a channel's slot and opens its transfer.
    fn adopt(&mut self, index: ChannelPlace, now: Instant) {
        let channel = &mut self.channels[index];
        if let Some(superseded) = channel.transfer {
            channel.inherited = Some(superseded.deadline);
            self.counters.count(Counter::StatesSuperseded);
            self.end_transfer(index);
            self.tell(SenderEvent::Superseded {
                channel: index,
                ticket: superseded.ticket,
            });
        }
        let channel = &mut self.channels[index];
        let peer = &self.peers[usize::from(channel.setup.peer.0)];
        let inherited = channel.inherited;
        let short = channel.needs_short_pieces(peer);
        let Some(state) = channel.take_published() else {
            // The publisher has taken it back to put a later one there, or the mark is of one that has
            // left this place.
            return;
        };
        let mut transfer = Transfer::of(state, (peer.setup.payload_size, short), now);
        transfer.deadline = transfer.deadline.min(inherited.unwrap_or(state.deadline));
        let superseded = u64::from(state.superseded);
        self.counters.add(Counter::StatesPublished, superseded + 1);
        self.counters.add(Counter::StatesSuperseded, superseded);
        transfer.packet_time = channel.packet_time(&self.links, peer, &transfer);
        channel.inherited = None;
        let has_session = peer.tag.is_some();
        channel.open(transfer);
        if !has_session {
            self.fail(index, FailureCause::SessionEnded);
        } else if !transfer.fits(now) {
            self.fail(index, FailureCause::DeadlineUnreachable);
        } else {
            self.settle(index);
        }
    }

    fn fail(&mut self, index: ChannelPlace, cause: FailureCause) {
        if let Some(transfer) = self.channels[index].transfer {
            self.counters.count(Counter::StatesFailed);
            self.end_transfer(index);
            self.tell(SenderEvent::Failed {
                channel: index,
                ticket: transfer.ticket,
                cause,
            });
        }
    }

    /// Closes a transfer. Its buffer stays as it is, since packets of it may have been polled and not
    /// sent; a state that waits is opened by the caller where that cannot be, else by the timer.
    fn end_transfer(&mut self, index: ChannelPlace) {
        let channel = &mut self.channels[index];
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        if let Some(transfer) = channel.transfer.take() {
            peer.release(transfer.in_flight());
        }
        self.settle(index);
    }

    fn tell(&mut self, event: SenderEvent) {
        if self.events.push(event).is_err() {
            self.counters.count(Counter::EventsLost);
        }
    }

    /// Looks after what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, index)) = self.timers.first() {
            if due > now {
                return;
            }
            self.on_timer(index, now);
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| due)
    }

    /// The next thing that happened to a published state.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop()
    }

    /// Packets sent to `peer` and not acknowledged, over all channels; never above its limit.
    pub fn in_flight(&self, peer: PeerId) -> u32 {
        self.peers
            .get(usize::from(peer.0))
            .map_or(0, |peer| peer.in_flight)
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn check(
    links: &[LinkParameters],
    peers: &[SenderPeer],
    channels: &[SenderChannel],
) -> Result<Vec<ChannelTable>, SetupError> {
    setup::check_links(links.len())?;
    setup::check_peers(peers.iter().map(|p| (p.payload_size, p.in_flight_max)))?;
    let common = channels.iter().map(|c| Common::sending(c, peers));
    let tables = setup::channel_tables(peers.len(), LinkSet::first(links.len()), common)?;
    Ok(tables)
}

#[cfg(all(test, loom))]
mod every_order;
#[cfg(all(test, not(loom)))]
mod tests;

//! Who has which place: channels come and go while all others run on.

use super::Sender;
use super::channel::Channel;
use super::peer::{Holder, Peer, Rank};
use crate::event::{FailureCause, SenderEvent};
use crate::exchange::{ExchangeError, Refused};
use crate::handover::{Publisher, sending_pair};
use crate::place::ChannelPlace;
use crate::setup::{
    Common, SenderChannel, SenderPeer, SetupError, Times, check_channel, find, most_packets,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bumpless_atomic_box::DirtySet;
use bumpless_base::{ChannelId, Counter, Instant, LinkSet};
use core::fmt;

/// Prepares channels for the places of one [`Sender`], in any thread: whatever a channel needs is
/// allocated here.
#[derive(Clone, Debug)]
pub struct SenderFactory {
    links: LinkSet,
    peers: Arc<[SenderPeer]>,
    dirty: Arc<DirtySet>,
    places: usize,
}

impl SenderFactory {
    pub(super) fn new(links: usize, peers: &[SenderPeer], places: usize) -> Self {
        Self {
            links: LinkSet::first(links),
            peers: peers.into(),
            dirty: Arc::new(DirtySet::new(places)),
            places,
        }
    }

    /// What publishers mark.
    pub(super) fn dirty(&self) -> &Arc<DirtySet> {
        &self.dirty
    }

    /// How many places there are, vacant ones included.
    pub fn places(&self) -> usize {
        self.places
    }

    /// A channel for `place`, and its application's end. What is published before the channel is in
    /// its place waits until then.
    ///
    /// # Errors
    /// [`SetupError`] as from [`Sender::new`], with the place as the channel's position, or
    /// [`SetupError::NoSuchPlace`]. That an identity is taken is found by [`Sender::exchange`].
    pub fn prepare(
        &self,
        place: ChannelPlace,
        setup: &SenderChannel,
    ) -> Result<(SenderReplacement, Publisher), SetupError> {
        if place.0 >= self.places {
            return Err(SetupError::NoSuchPlace {
                channel: place,
                places: self.places,
            });
        }
        let (channel, publisher) = self.make(place, setup)?;
        Ok((self.replacement(Some(place), channel), publisher))
    }

    /// Nobody, for any place.
    pub fn vacant(&self) -> SenderReplacement {
        self.replacement(None, Channel::vacant())
    }

    fn replacement(&self, place: Option<ChannelPlace>, channel: Channel) -> SenderReplacement {
        SenderReplacement {
            place,
            dirty: Arc::clone(&self.dirty),
            channel: Box::new(channel),
        }
    }

    /// A channel that has no rank.
    pub(super) fn make(
        &self,
        place: ChannelPlace,
        setup: &SenderChannel,
    ) -> Result<(Channel, Publisher), SetupError> {
        let peer = check_channel(place, &Common::sending(setup, &self.peers), self.links)?;
        let peer = &self.peers[usize::from(peer.0)];
        let times = Times::check(place, peer.version, setup.deadline, setup.expiry)?;
        let (publisher, slot) = sending_pair(place, &self.dirty, setup, times);
        let most = most_packets(peer.version, peer.payload_size, setup.max_size);
        let channel = Channel::new(setup, Rank::FIRST, most, slot);
        Ok((channel, publisher))
    }
}

/// What goes into a place of a [`Sender`] or came out of one: a channel with its memory, or nobody.
/// Dropping it frees that memory, so it is dropped off the data plane.
pub struct SenderReplacement {
    /// Where a channel belongs; nobody belongs anywhere.
    place: Option<ChannelPlace>,
    dirty: Arc<DirtySet>,
    channel: Box<Channel>,
}

impl SenderReplacement {
    /// The channel; `None`: nobody.
    pub fn channel(&self) -> Option<&SenderChannel> {
        (!self.channel.is_vacant()).then_some(&self.channel.setup)
    }
}

impl fmt::Debug for SenderReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderReplacement")
            .field("place", &self.place)
            .field("channel", &self.channel())
            .finish_non_exhaustive()
    }
}

impl Sender {
    /// What prepares channels for this sender's places.
    pub fn factory(&self) -> SenderFactory {
        self.factory.clone()
    }

    /// Puts `replacement` in `place` and returns who was there. Nothing is allocated or freed.
    ///
    /// The open transfer of the one who leaves and the state that waits behind it fail as
    /// [`FailureCause::Withdrawn`]; what its publisher publishes afterwards goes nowhere and is not
    /// answered. It may come back as long as it is kept. The one who comes takes part in the peer's
    /// session at once; what its publisher has published already is taken by the next
    /// [`Self::handle_published`]. Packets polled before must have been sent or dropped.
    ///
    /// All events that wait when this returns are of those who were there until then: whoever
    /// attributes events by place collects them first.
    ///
    /// # Errors
    /// [`Refused`] with the reason and `replacement`; nothing was changed.
    pub fn exchange(
        &mut self,
        place: ChannelPlace,
        mut replacement: SenderReplacement,
        _now: Instant,
    ) -> Result<SenderReplacement, Refused<SenderReplacement>> {
        if let Err(reason) = self.may_enter(place, &replacement) {
            return Err(Refused {
                reason,
                replacement,
            });
        }
        self.withdraw(place);
        core::mem::swap(&mut self.channels[place], &mut *replacement.channel);
        replacement.place = replacement.channel().map(|_| place);
        self.enter(place);
        Ok(replacement)
    }

    fn may_enter(
        &self,
        place: ChannelPlace,
        entrant: &SenderReplacement,
    ) -> Result<(), ExchangeError> {
        let Some(leaving) = self.channels.get(place) else {
            let places = self.channels.len();
            return Err(ExchangeError::NoSuchPlace { place, places });
        };
        if !Arc::ptr_eq(&self.dirty, &entrant.dirty) {
            return Err(ExchangeError::OtherFactory);
        }
        if let Some(prepared_for) = entrant.place.filter(|&prepared| prepared != place) {
            return Err(ExchangeError::OtherPlace {
                place,
                prepared_for,
            });
        }
        let Some(&SenderChannel { id, peer, .. }) = entrant.channel() else {
            return Ok(());
        };
        let at = &self.peers[usize::from(peer.0)];
        if let Some(place) = find(&at.table, id).filter(|&holder| holder != place) {
            return Err(ExchangeError::IdentityTaken { peer, id, place });
        }
        let makes_way = !leaving.is_vacant() && leaving.setup.peer == peer;
        let most = at.channels.len();
        if !makes_way && at.table.len() == most {
            return Err(ExchangeError::PeerFull { peer, most });
        }
        Ok(())
    }

    /// Ends what a channel has begun and takes it out of its peer's and the sender's queues.
    fn withdraw(&mut self, place: ChannelPlace) {
        if self.channels[place].is_vacant() {
            return;
        }
        self.fail(place, FailureCause::Withdrawn);
        self.channels[place].inherited = None;
        // No more than there can be: its publisher may go on.
        for _ in 0..self.channels[place].setup.unsent.buffers() {
            let Some(state) = self.channels[place].take_published() else {
                break;
            };
            let (ticket, superseded) = (state.ticket, u64::from(state.superseded));
            self.counters.add(Counter::StatesPublished, superseded + 1);
            self.counters.add(Counter::StatesSuperseded, superseded);
            self.counters.count(Counter::StatesFailed);
            self.tell(SenderEvent::Failed {
                channel: place,
                ticket,
                cause: FailureCause::Withdrawn,
            });
        }
        self.settle(place);
        let channel = &self.channels[place];
        self.peers[usize::from(channel.setup.peer.0)].leave(channel);
    }

    fn enter(&mut self, place: ChannelPlace) {
        let channel = &mut self.channels[place];
        if channel.is_vacant() {
            return;
        }
        self.peers[usize::from(channel.setup.peer.0)].enter(channel, place);
        // What was published before found another one here, or nobody.
        self.dirty.mark(place.0);
    }

    /// The transfer cycle that the channel at `place` began last; `None` if there is no channel.
    pub fn last_cycle(&self, place: ChannelPlace) -> Option<u32> {
        let channel = self.channels.get(place)?;
        (!channel.is_vacant()).then_some(channel.cycle)
    }
}

impl Peer {
    fn leave(&mut self, channel: &Channel) {
        let (id, rank) = (channel.setup.id, channel.rank);
        self.ranks[rank] = Holder::Left(id, channel.cycle);
        if let Ok(at) = self.table.binary_search_by_key(&id, |&(id, _)| id) {
            self.table.remove(at);
        }
    }

    /// The caller knows that a rank is left and the identity is not taken.
    fn enter(&mut self, channel: &mut Channel, place: ChannelPlace) {
        let id = channel.setup.id;
        let Some((rank, former)) = self.rank_for(id) else {
            return;
        };
        self.ranks[rank] = Holder::Taken;
        self.channels[rank] = place;
        channel.rank = rank;
        if let Some(cycle) = former {
            // The peer takes only newer ones.
            channel.cycle = cycle;
        }
        let at = self.table.partition_point(|&(other, _)| other < id);
        self.table.insert(at, (id, place));
    }

    /// The rank of the channel that had the identity, with its last cycle; else the lowest that
    /// nobody had, else the lowest that nobody has.
    fn rank_for(&self, id: ChannelId) -> Option<(Rank, Option<u32>)> {
        let mut found = None;
        for rank in self.ranks.indices() {
            match self.ranks[rank] {
                Holder::Left(former, cycle) if former == id => return Some((rank, Some(cycle))),
                Holder::Free => found = found.filter(|&(_, free)| free).or(Some((rank, true))),
                Holder::Left(..) => found = found.or(Some((rank, false))),
                Holder::Taken => {}
            }
        }
        found.map(|(rank, _)| (rank, None))
    }
}

//! Who has which place: channels come and go while all others run on.

use super::channel::{Channel, Stage};
use super::{Receiver, rearm};
use crate::exchange::{ExchangeError, Refused};
use crate::handover::{Subscriber, receiving_pair};
use crate::place::ChannelPlace;
use crate::setup::{
    Common, ReceiverChannel, ReceiverPeer, SetupError, check_channel, find, most_packets,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bumpless_base::{Counter, Instant, LinkSet, MAX_LINKS};
use core::fmt;

/// Prepares channels for the places of one [`Receiver`], in any thread: whatever a channel needs is
/// allocated here.
#[derive(Clone, Debug)]
pub struct ReceiverFactory {
    peers: Arc<[ReceiverPeer]>,
    places: usize,
}

impl ReceiverFactory {
    pub(super) fn new(peers: &[ReceiverPeer], places: usize) -> Self {
        Self {
            peers: peers.into(),
            places,
        }
    }

    /// How many places there are, vacant ones included.
    pub fn places(&self) -> usize {
        self.places
    }

    /// A channel for `place`, and its application's end.
    ///
    /// # Errors
    /// [`SetupError`] as from [`Receiver::new`], with the place as the channel's position, or
    /// [`SetupError::NoSuchPlace`]. That an identity is taken is found by [`Receiver::exchange`].
    pub fn prepare(
        &self,
        place: ChannelPlace,
        setup: &ReceiverChannel,
    ) -> Result<(ReceiverReplacement, Subscriber), SetupError> {
        if place.0 >= self.places {
            return Err(SetupError::NoSuchPlace {
                channel: place,
                places: self.places,
            });
        }
        let (channel, subscriber) = self.make(place, setup)?;
        Ok((self.replacement(Some(place), channel), subscriber))
    }

    /// Nobody, for any place.
    pub fn vacant(&self) -> ReceiverReplacement {
        self.replacement(None, Channel::vacant())
    }

    fn replacement(&self, place: Option<ChannelPlace>, channel: Channel) -> ReceiverReplacement {
        ReceiverReplacement {
            place,
            peers: Arc::clone(&self.peers),
            session: None,
            channel: Box::new(channel),
        }
    }

    pub(super) fn make(
        &self,
        place: ChannelPlace,
        setup: &ReceiverChannel,
    ) -> Result<(Channel, Subscriber), SetupError> {
        let common = Common::receiving(setup, &self.peers);
        let peer = check_channel(place, &common, LinkSet::first(MAX_LINKS))?;
        let peer = &self.peers[usize::from(peer.0)];
        let most = most_packets(peer.version, peer.payload_size, setup.max_size);
        let (subscriber, delivery, spare) = receiving_pair(place, setup.max_size);
        let channel = Channel::new(setup, most, delivery, spare);
        Ok((channel, subscriber))
    }
}

/// What goes into a place of a [`Receiver`] or came out of one: a channel with its memory, or nobody.
/// Dropping it frees that memory, so it is dropped off the data plane.
pub struct ReceiverReplacement {
    /// Where a channel belongs; nobody belongs anywhere.
    place: Option<ChannelPlace>,
    peers: Arc<[ReceiverPeer]>,
    /// The session in which the channel left, which its transfer cycles belong to.
    session: Option<u32>,
    channel: Box<Channel>,
}

impl ReceiverReplacement {
    /// The channel; `None`: nobody.
    pub fn channel(&self) -> Option<&ReceiverChannel> {
        (!self.channel.is_vacant()).then_some(&self.channel.setup)
    }
}

impl fmt::Debug for ReceiverReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverReplacement")
            .field("place", &self.place)
            .field("channel", &self.channel())
            .finish_non_exhaustive()
    }
}

impl Receiver {
    /// What prepares channels for this receiver's places.
    pub fn factory(&self) -> ReceiverFactory {
        self.factory.clone()
    }

    /// Puts `replacement` in `place` and returns who was there. Nothing is allocated or freed.
    ///
    /// What the one who leaves had not whole is given up, what it was to acknowledge or to tell is
    /// forgotten. Its subscriber can go on reading the state that was delivered last; it may come
    /// back as long as it is kept. The one who comes takes part in the peer's session at once; if it
    /// has the identity of the one who leaves, it takes only newer transfer cycles.
    ///
    /// # Errors
    /// [`Refused`] with the reason and `replacement`; nothing was changed.
    pub fn exchange(
        &mut self,
        place: ChannelPlace,
        mut replacement: ReceiverReplacement,
        _now: Instant,
    ) -> Result<ReceiverReplacement, Refused<ReceiverReplacement>> {
        if let Err(reason) = self.may_enter(place, &replacement) {
            return Err(Refused {
                reason,
                replacement,
            });
        }
        let session = self.withdraw(place);
        self.brief(place, &mut replacement);
        core::mem::swap(&mut self.channels[place], &mut *replacement.channel);
        replacement.place = replacement.channel().map(|_| place);
        replacement.session = session;
        self.enter(place);
        Ok(replacement)
    }

    fn may_enter(
        &self,
        place: ChannelPlace,
        entrant: &ReceiverReplacement,
    ) -> Result<(), ExchangeError> {
        let Some(leaving) = self.channels.get(place) else {
            let places = self.channels.len();
            return Err(ExchangeError::NoSuchPlace { place, places });
        };
        if !Arc::ptr_eq(&self.factory.peers, &entrant.peers) {
            return Err(ExchangeError::OtherFactory);
        }
        if let Some(prepared_for) = entrant.place.filter(|&prepared| prepared != place) {
            return Err(ExchangeError::OtherPlace {
                place,
                prepared_for,
            });
        }
        let Some(&ReceiverChannel { id, peer, .. }) = entrant.channel() else {
            return Ok(());
        };
        let at = &self.peers[usize::from(peer.0)];
        if let Some(place) = find(&at.table, id).filter(|&holder| holder != place) {
            return Err(ExchangeError::IdentityTaken { peer, id, place });
        }
        let makes_way = !leaving.is_vacant() && leaving.setup.peer == peer;
        let most = at.most as usize;
        if !makes_way && at.table.len() == most {
            return Err(ExchangeError::PeerFull { peer, most });
        }
        Ok(())
    }

    /// Gives up what a channel has begun and takes it out of its peer's and the receiver's queues.
    /// Returns the session that it was in.
    fn withdraw(&mut self, place: ChannelPlace) -> Option<u32> {
        let channel = &mut self.channels[place];
        if channel.is_vacant() {
            return None;
        }
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        if let Ok(at) = peer
            .table
            .binary_search_by_key(&channel.setup.id, |&(id, _)| id)
        {
            peer.table.remove(at);
        }
        peer.unacknowledged = peer.unacknowledged.saturating_sub(channel.unacknowledged);
        if channel.listed {
            peer.list.retain(|&other| other != place);
        }
        if core::mem::take(&mut channel.queued) {
            self.acks.remove(place);
        }
        channel.update_waits = false;
        self.notices.retain(|notice| notice.channel() != place);
        self.timers.remove(place);
        let had_any = channel.stage != Stage::Nothing;
        if channel.end_session() {
            self.counters.count(Counter::StatesAbandoned);
        }
        if had_any {
            channel.follow(channel.newest);
        }
        peer.tag
    }

    /// Tells the one who comes which transfer cycles are over.
    fn brief(&self, place: ChannelPlace, entrant: &mut ReceiverReplacement) {
        let Some(&ReceiverChannel { peer, .. }) = entrant.channel() else {
            return;
        };
        if entrant.session != self.peers[usize::from(peer.0)].tag {
            entrant.channel.end_session();
        }
        let leaving = &self.channels[place];
        if leaving.is_also(&entrant.channel) && leaving.stage != Stage::Nothing {
            entrant.channel.follow(leaving.newest);
        }
    }

    fn enter(&mut self, place: ChannelPlace) {
        let channel = &self.channels[place];
        if channel.is_vacant() {
            return;
        }
        let (peer, id) = (channel.setup.peer, channel.setup.id);
        let table = &mut self.peers[usize::from(peer.0)].table;
        let at = table.partition_point(|&(other, _)| other < id);
        table.insert(at, (id, place));
        rearm(&mut self.timers, place, channel);
    }
}

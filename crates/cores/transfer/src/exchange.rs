//! Why a channel was not let into a place.

use crate::place::ChannelPlace;
use bumpless_base::{ChannelId, PeerId};
use core::fmt;

/// Why an exchange was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeError {
    /// There is no such place.
    NoSuchPlace {
        /// The place, counted from 0.
        place: ChannelPlace,
        /// How many there are.
        places: usize,
    },
    /// The channel was prepared for another place, to which its application's end belongs.
    OtherPlace {
        /// Where it was to go.
        place: ChannelPlace,
        /// For which it was prepared.
        prepared_for: ChannelPlace,
    },
    /// It was prepared by the factory of another sender or receiver.
    OtherFactory,
    /// Another channel with the same peer has its identity.
    IdentityTaken {
        /// The peer.
        peer: PeerId,
        /// The identity.
        id: ChannelId,
        /// The place of the channel that has it.
        place: ChannelPlace,
    },
    /// The peer has as many channels as it can have.
    PeerFull {
        /// The peer.
        peer: PeerId,
        /// So many.
        most: usize,
    },
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoSuchPlace { place, places } => write!(
                f,
                "place {place}: there are {places} places, counted from 0; start with more room"
            ),
            Self::OtherPlace {
                place,
                prepared_for,
            } => write!(
                f,
                "place {place}: the channel was prepared for place {prepared_for}; put it there"
            ),
            Self::OtherFactory => write!(
                f,
                "the channel was prepared for another node; prepare it with this one's factory"
            ),
            Self::IdentityTaken { peer, id, place } => write!(
                f,
                "channel {id} with peer {} is at place {place}; take it out there first",
                peer.0
            ),
            Self::PeerFull { peer, most } => write!(
                f,
                "peer {} has {most} channels, as many as it can; take one out first or start with more room",
                peer.0
            ),
        }
    }
}

impl core::error::Error for ExchangeError {}

/// A refused exchange: why, and what was to go in.
#[derive(Debug)]
pub struct Refused<R> {
    /// Why.
    pub reason: ExchangeError,
    /// What was to go in, as it was. To be dropped off the data plane.
    pub replacement: R,
}

impl<R> fmt::Display for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<R: fmt::Debug> core::error::Error for Refused<R> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.reason)
    }
}

//! What a node states once, before its first transfer, and what can be wrong with it.

use crate::place::ChannelPlace;
use alloc::vec::Vec;
use bumpless_base::{ChannelId, Distribution, Duration, LinkSet, MAX_LINKS, PeerId, Unsent};
use bumpless_wire::{WireVersion, max_state_size, packet_count, piece};
use core::fmt;

/// What the sender knows of a link (network) before it has measured anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkParameters {
    /// Lower of both ends' bandwidths, bit/s; 0 = not limited. Decides when a deadline cannot be
    /// met any more (first paper, 7.3.3); pacing is the driver's.
    pub bandwidth: u64,
    /// Bytes that each packet costs on the medium below its UDP payload (UDP, IP, Ethernet with
    /// preamble and gap).
    pub frame_overhead: u16,
    /// Round trip assumed until the first measurement. Too low: needless retransmissions in the
    /// first transfer; too high: the first loss is found that much later.
    pub initial_round_trip: Duration,
}

/// A partner to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderPeer {
    /// Wire version spoken with it.
    pub version: WireVersion,
    /// `PayloadSz_ht1`: state bytes in every data packet but the last one (first paper, 7.3.2), as long as the links pass it
    /// ([`Sender::set_link_narrow`](crate::Sender::set_link_narrow)).
    pub payload_size: u16,
    /// `packetsInFlightMax`: most packets sent and not acknowledged (first paper, 7.3.3).
    pub in_flight_max: u32,
}

/// A channel to send on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderChannel {
    /// Identity on the wire; unique among the channels to the same peer.
    pub id: ChannelId,
    /// The partner, an index into the peers.
    pub peer: PeerId,
    /// Links to use.
    pub links: LinkSet,
    /// How to use them.
    pub distribution: Distribution,
    /// What becomes of a state that waits when the next one is published.
    pub unsent: Unsent,
    /// Largest state, bytes. [`Unsent::buffers`] of this size are taken at the start.
    pub max_size: u32,
    /// A state must be acknowledged whole so long after its publication.
    pub deadline: Duration,
    /// A state must not be used later than so long after its publication.
    pub expiry: Duration,
}

/// A partner to receive from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverPeer {
    /// Wire version spoken with it.
    pub version: WireVersion,
    /// State bytes in every data packet of it but the last one of a transfer cycle.
    pub payload_size: u16,
    /// The in-flight limit it was given; every fifth of it is acknowledged (first paper, 7.3.3).
    pub in_flight_max: u32,
}

/// A channel to receive on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverChannel {
    /// Identity on the wire; unique among the channels from the same peer.
    pub id: ChannelId,
    /// The partner, an index into the peers.
    pub peer: PeerId,
    /// Links on which to acknowledge. Data is taken from any link.
    pub links: LinkSet,
    /// Largest state, bytes. Two buffers of this size are taken at the start.
    pub max_size: u32,
    /// Report the channel as overdue when its next state is not whole so long after the last one;
    /// [`Duration::MAX`] = never.
    pub expect_within: Duration,
}

/// Why a sender or receiver cannot be built. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// More links than a [`LinkSet`] can name.
    TooManyLinks {
        /// How many were given.
        given: usize,
    },
    /// More peers than a [`PeerId`] can name.
    TooManyPeers {
        /// How many were given.
        given: usize,
    },
    /// A peer's payload size is zero.
    NoPayload {
        /// Position among the peers.
        peer: usize,
    },
    /// A peer's in-flight limit is zero.
    NoWindow {
        /// Position among the peers.
        peer: usize,
    },
    /// A channel names a peer that is not there.
    UnknownPeer {
        /// Its place.
        channel: ChannelPlace,
    },
    /// A channel names no link, or one that is not there.
    WrongLinks {
        /// Its place.
        channel: ChannelPlace,
    },
    /// Two channels with one peer have the same identity.
    DuplicateId {
        /// The place of the second.
        channel: ChannelPlace,
    },
    /// The wire version cannot carry states of the channel's largest size.
    TooLarge {
        /// Its place.
        channel: ChannelPlace,
        /// The largest that it can carry, bytes.
        limit: u32,
    },
    /// A channel's deadline or expiry is too short to be met or to be put on the wire.
    TooShort {
        /// Its place.
        channel: ChannelPlace,
        /// The shortest expiry that the wire version can carry.
        least: Duration,
    },
    /// A channel is prepared for a place that is not there.
    NoSuchPlace {
        /// The place, counted from 0.
        channel: ChannelPlace,
        /// How many there are.
        places: usize,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooManyLinks { given } => {
                write!(f, "{given} links given; use at most {MAX_LINKS}")
            }
            Self::TooManyPeers { given } => write!(f, "{given} peers given; use at most 256"),
            Self::NoPayload { peer } => write!(
                f,
                "peer {peer}: payload size is 0; give it the link's MTU less the headers"
            ),
            Self::NoWindow { peer } => write!(
                f,
                "peer {peer}: in-flight limit is 0, nothing could be sent; give it at least 1"
            ),
            Self::UnknownPeer { channel } => {
                write!(f, "channel {channel}: its peer is not in the list of peers")
            }
            Self::WrongLinks { channel } => write!(
                f,
                "channel {channel}: has no link or one that the node does not have; name at least one"
            ),
            Self::DuplicateId { channel } => write!(
                f,
                "channel {channel}: its identity is taken by another channel with the same peer"
            ),
            Self::TooLarge { channel, limit } => write!(
                f,
                "channel {channel}: the wire version carries at most {limit} bytes; \
                 make the state smaller, the payload larger, or use version 2"
            ),
            Self::TooShort { channel, least } => write!(
                f,
                "channel {channel}: deadline is 0 or expiry is below {least}; lengthen it"
            ),
            Self::NoSuchPlace { channel, places } => write!(
                f,
                "channel {channel}: there are {places} places, counted from 0; start with more room"
            ),
        }
    }
}

impl core::error::Error for SetupError {}

/// The shortest expiry that is not zero on the wire.
pub(crate) const fn expiry_unit(version: WireVersion) -> Duration {
    match version {
        WireVersion::V1 => Duration::from_millis(1),
        WireVersion::V2 => Duration::from_micros(1),
    }
}

pub(crate) fn check_links(given: usize) -> Result<(), SetupError> {
    if given > MAX_LINKS {
        return Err(SetupError::TooManyLinks { given });
    }
    Ok(())
}

pub(crate) fn check_peers(
    peers: impl ExactSizeIterator<Item = (u16, u32)>,
) -> Result<(), SetupError> {
    if peers.len() > usize::from(u8::MAX) + 1 {
        return Err(SetupError::TooManyPeers { given: peers.len() });
    }
    for (peer, (payload_size, in_flight_max)) in peers.enumerate() {
        if payload_size == 0 {
            return Err(SetupError::NoPayload { peer });
        }
        if in_flight_max == 0 {
            return Err(SetupError::NoWindow { peer });
        }
    }
    Ok(())
}

/// Most packets that a state of `max_size` bytes can have: cut into the shortest pieces that `version` knows.
pub(crate) fn most_packets(version: WireVersion, payload_size: u16, max_size: u32) -> u32 {
    packet_count(max_size, piece(payload_size, version == WireVersion::V2))
}

/// What both sides' channels have in common.
pub(crate) struct Common {
    pub id: ChannelId,
    pub links: LinkSet,
    pub max_size: u32,
    /// Version and payload size of the peer, if there is such a peer.
    pub peer: Option<(PeerId, WireVersion, u16)>,
}

impl Common {
    pub fn sending(channel: &SenderChannel, peers: &[SenderPeer]) -> Self {
        let peer = peers.get(usize::from(channel.peer.0));
        Self {
            id: channel.id,
            links: channel.links,
            max_size: channel.max_size,
            peer: peer.map(|peer| (channel.peer, peer.version, peer.payload_size)),
        }
    }

    pub fn receiving(channel: &ReceiverChannel, peers: &[ReceiverPeer]) -> Self {
        let peer = peers.get(usize::from(channel.peer.0));
        Self {
            id: channel.id,
            links: channel.links,
            max_size: channel.max_size,
            peer: peer.map(|peer| (channel.peer, peer.version, peer.payload_size)),
        }
    }
}

/// Checks a channel by itself, which is at the place `channel`; returns its peer.
pub(crate) fn check_channel(
    channel: ChannelPlace,
    common: &Common,
    links: LinkSet,
) -> Result<PeerId, SetupError> {
    let Some((peer, version, payload_size)) = common.peer else {
        return Err(SetupError::UnknownPeer { channel });
    };
    if common.links.is_empty() || common.links.intersection(links) != common.links {
        return Err(SetupError::WrongLinks { channel });
    }
    let limit = max_state_size(version, payload_size);
    if common.max_size > limit {
        return Err(SetupError::TooLarge { channel, limit });
    }
    Ok(peer)
}

/// A channel's deadline and expiry, which its wire version can carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub deadline: Duration,
    pub expiry: Duration,
    version: WireVersion,
}

impl Times {
    /// Those of the channel at the place `channel`.
    pub fn check(
        channel: ChannelPlace,
        version: WireVersion,
        deadline: Duration,
        expiry: Duration,
    ) -> Result<Self, SetupError> {
        let least = expiry_unit(version);
        if expiry < least || deadline == Duration::ZERO {
            return Err(SetupError::TooShort { channel, least });
        }
        Ok(Self {
            deadline,
            expiry,
            version,
        })
    }

    /// Others, of the same channel.
    pub fn change(
        &mut self,
        channel: ChannelPlace,
        deadline: Duration,
        expiry: Duration,
    ) -> Result<(), SetupError> {
        *self = Self::check(channel, self.version, deadline, expiry)?;
        Ok(())
    }
}

/// A peer's channels by identity, each with its place.
pub(crate) type ChannelTable = Vec<(ChannelId, ChannelPlace)>;

/// Checks channels and gives each peer's.
pub(crate) fn channel_tables(
    peers: usize,
    links: LinkSet,
    channels: impl Iterator<Item = Common>,
) -> Result<Vec<ChannelTable>, SetupError> {
    let mut tables: Vec<ChannelTable> = (0..peers).map(|_| Vec::new()).collect();
    for (channel, common) in (0..).map(ChannelPlace).zip(channels) {
        let peer = check_channel(channel, &common, links)?;
        let table = &mut tables[usize::from(peer.0)];
        match table.binary_search_by_key(&common.id, |&(id, _)| id) {
            Ok(_) => return Err(SetupError::DuplicateId { channel }),
            Err(at) => table.insert(at, (common.id, channel)),
        }
    }
    Ok(tables)
}

/// The channel with identity `id` in a peer's table.
pub(crate) fn find(table: &[(ChannelId, ChannelPlace)], id: ChannelId) -> Option<ChannelPlace> {
    table
        .binary_search_by_key(&id, |&(id, _)| id)
        .ok()
        .map(|at| table[at].1)
}

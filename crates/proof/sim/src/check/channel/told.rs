//! What the model is told: the channels' terms, what applications publish and learn, what a node exchanges.

use bumpless_base::{ChannelId, Duration, Instant, LinkSet, TransferOutcome};
use bumpless_wire::{AckHeader, DataHeader, WireVersion};

/// What a channel is told at the start.
#[derive(Clone, Debug)]
pub struct ChannelTerms {
    /// Its identity on the wire.
    pub id: ChannelId,
    /// The two nodes that it joins.
    pub nodes: [usize; 2],
    /// Largest state, bytes.
    pub max_size: u32,
    /// From publication to acknowledgement.
    pub deadline: Duration,
    /// From publication until it must not be used.
    pub expiry: Duration,
    /// The networks that carry it.
    pub networks: Vec<usize>,
    /// Whether each of them carries every packet.
    pub replicated: bool,
    /// Whether what is unsent is kept (T-54).
    pub keeps: bool,
    /// Wire version.
    pub version: WireVersion,
    /// State bytes in a packet.
    pub payload_size: u16,
    /// Packets in flight to one partner.
    pub in_flight_max: u32,
    /// Time that a full packet takes on the slowest network; zero if that is not limited.
    pub packet_time: Duration,
    /// How long a driver may hold packets back so as not to fill the network's queue.
    pub pacing: Duration,
    /// Round trip that the sender assumes before it has measured one.
    pub first_round_trip: Duration,
}

/// A state that an application published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Its number.
    pub ticket: u64,
    /// When it was published, by the node's clock.
    pub at: Instant,
    /// Its length, bytes.
    pub len: u32,
    /// Digest of its bytes.
    pub digest: u64,
}

/// A message of state transfer that a node exchanged with a partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// On which network.
    pub network: usize,
    /// With which node.
    pub partner: usize,
    /// What.
    pub message: Message,
}

/// See [`Passed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A packet of a state: its header, and how long its payload is.
    Data(DataHeader, usize),
    /// An acknowledgement and its blocks.
    Ack(AckHeader, Vec<(u32, u32)>),
}

/// A turn of a node's data plane.
pub struct TransferTurn<'a> {
    /// The node.
    pub node: usize,
    /// When it took what had come, by its clock.
    pub received: Instant,
    /// When it acted and sent.
    pub acted: Instant,
    /// What it took from its links, in order.
    pub taken: &'a [Passed],
    /// What it handed to them, in order.
    pub sent: &'a [Passed],
    /// The longest round trip that its status shows.
    pub round_trip: Duration,
    /// Its networks, as it says itself after the turn.
    pub networks: Networks,
    /// The session of each application's channel after the turn; beyond the end, none.
    pub sessions: &'a [Option<u32>],
    /// What an application is told of one of its states.
    pub answer: &'a dyn Fn(usize, u64) -> TransferOutcome,
    /// True time.
    pub at: u64,
}

/// What a node says of its networks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Networks {
    /// On which it hears every partner.
    pub up: LinkSet,
    /// Of those, which pass packets of full length to every partner.
    pub wide: LinkSet,
}

impl TransferTurn<'_> {
    pub(super) fn session(&self, application: usize) -> Option<u32> {
        self.sessions.get(application).copied().flatten()
    }
}

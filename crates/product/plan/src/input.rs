//! What a plan is made from.

mod faults;

pub use bumpless_base::Distribution;
use bumpless_base::{ChannelId, Duration, LinkId, LinkSet, pacing};
use serde::Serialize;

pub use self::faults::Fault;
use crate::rounding::nanos;

/// Longest period that a plan takes: with it, sums over years of cycles stay exact.
pub const MAX_PERIOD: Duration = Duration::from_secs(3600);
/// Largest bandwidth, bit/s.
pub const MAX_BANDWIDTH: u64 = 1_000_000_000_000;
/// Most retransmissions in a budget.
pub const MAX_BUDGET: u32 = 100;

/// How often frames are lost on a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Share of bits that arrive wrong; a frame with one is lost.
    BitErrors(f64),
    /// Share of frames that are lost, whatever their length.
    Frames(f64),
}

/// One network between the nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Bit/s at which the nodes send at most.
    pub bandwidth: u64,
    /// Bytes on the wire for each packet beyond its UDP payload (UDP, IP, Ethernet with preamble and gap).
    pub frame_overhead: u32,
    /// How much of `frame_overhead` an error does not hurt: preamble and gap, bytes.
    pub gap: u32,
    /// Shortest and longest time from a packet's last bit on the idle network to its acknowledgement at
    /// the sender: both ways, and the receiver's turn.
    pub round_trip: (Duration, Duration),
    /// Whether the acknowledgement may stand behind what its sender has committed of states of its own.
    pub answers_behind: bool,
    /// What of a less urgent channel cannot be overtaken any more.
    pub burst: Burst,
    /// Longest frame of other traffic that may stand in the way of each burst, bytes on the wire.
    pub other_frame: u32,
    /// How often frames are lost.
    pub loss: Loss,
    /// What the nodes send besides states, before any state: heartbeats, requests, acknowledgements.
    pub background: Vec<Background>,
}

impl Link {
    /// Whether it differs from `other` by its name at most.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self {
            name: _,
            bandwidth,
            frame_overhead,
            gap,
            round_trip,
            answers_behind,
            burst,
            other_frame,
            loss,
            background,
        } = self;
        (bandwidth, frame_overhead, gap, round_trip, burst)
            == (
                &other.bandwidth,
                &other.frame_overhead,
                &other.gap,
                &other.round_trip,
                &other.burst,
            )
            && (answers_behind, other_frame, loss, background)
                == (
                    &other.answers_behind,
                    &other.other_frame,
                    &other.loss,
                    &other.background,
                )
    }

    /// Most bytes of a less urgent channel that cannot be overtaken any more. Each partner may have a burst on its way to
    /// this node at the same moment.
    pub fn burst(&self) -> u64 {
        match self.burst {
            Burst::Fixed(bytes) => bytes.into(),
            Burst::Paced { partners, .. } => self.one_burst().saturating_mul(u64::from(partners)),
        }
    }

    fn one_burst(&self) -> u64 {
        match self.burst {
            Burst::Fixed(bytes) => bytes.into(),
            Burst::Paced { packet, .. } => pacing::burst(self.bandwidth, packet.into()),
        }
    }

    /// The longest time from a packet's last bit to its acknowledgement, with what that may stand behind.
    pub fn longest_round_trip(&self) -> Duration {
        if !self.answers_behind {
            return self.round_trip.1;
        }
        let bytes = u128::from(self.one_burst()) + u128::from(self.other_frame);
        let behind = u64::try_from(nanos(bytes, self.bandwidth)).unwrap_or(u64::MAX);
        self.round_trip.1 + Duration::from_nanos(behind)
    }
}

/// What a pacer has committed and cannot take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// Bytes on the wire, whatever the bandwidth.
    Fixed(u32),
    /// What pacers keep to at the network's bandwidth (`bumpless_base::pacing`).
    Paced {
        /// The largest packet, bytes on the wire.
        packet: u32,
        /// Nodes that may send to this one.
        partners: u32,
    },
}

/// Messages that come at a fixed interval and are sent before any state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// Bytes on the wire.
    pub bytes: u32,
    /// Between two of them.
    pub period: Duration,
    /// Position of the channel whose states they acknowledge, if that is what they are for.
    pub acknowledges: Option<usize>,
}

/// How states are cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// State bytes in every packet but a state's last.
    pub payload: u32,
    /// Header bytes of each packet.
    pub header: u32,
    /// Bytes of authentication of each packet.
    pub security: u32,
    /// Unacknowledged packets to one partner.
    pub in_flight_max: u32,
}

/// What the nodes themselves take for a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Processor time of a packet on one network, the slower of both nodes, nanoseconds.
    pub per_packet_ns: u64,
    /// Processor time of 1,000 bytes on one network, the slower of both nodes, nanoseconds.
    pub per_kilobyte_ns: u64,
    /// Time of a transfer that depends on nothing else: hand-overs between threads, both ends.
    pub per_transfer_ns: u64,
    /// How much later than intended a thread may go on.
    pub jitter_ns: u64,
}

/// One channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its number: of equal deadlines the lowest goes first (T-10).
    pub id: ChannelId,
    /// Its name.
    pub name: String,
    /// Largest state, bytes, with everything that travels in it.
    pub size: u32,
    /// Shortest time between two states.
    pub period: Duration,
    /// From publication to acknowledgement; at most the period.
    pub deadline: Duration,
    /// Packets of one state that may be lost, the retransmission budget.
    pub budget: u32,
    /// Whether that is the smallest with which no more than accepted is lost, and so another one for another channel.
    pub budget_follows: bool,
    /// States that may be lost in a year; `None`: not stated.
    pub accepted_loss_per_year: Option<f64>,
    /// Networks that carry it.
    pub links: LinkSet,
    /// How its packets use them.
    pub distribution: Distribution,
}

/// A sender with its channels and networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The networks; the position is the `LinkId`.
    pub links: Vec<Link>,
    /// How states are cut.
    pub packets: Packets,
    /// What the nodes take.
    pub machine: Machine,
    /// The channels, all of which one node may have to send.
    pub channels: Vec<Channel>,
}

/// Which networks are in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Those that are.
    pub up: LinkSet,
    /// Position of the one that is not; `None`: all are.
    pub without: Option<usize>,
}

impl Scenario {
    /// The networks `links`.
    pub(crate) fn members(&self, links: LinkSet) -> impl Iterator<Item = &Link> {
        let link = |id: LinkId| self.links.get(usize::from(id.0));
        let positions: Vec<LinkId> = links.iter().collect();
        positions.into_iter().filter_map(link)
    }

    /// What must be planned for: all networks in service first, then, of several, all but each one.
    pub fn services(&self) -> impl Iterator<Item = Service> {
        let all = LinkSet::first(self.links.len());
        let several = all.len() > 1;
        let without = all.iter().filter(move |_| several).map(move |link| {
            let mut up = all;
            up.remove(link);
            let without = Some(usize::from(link.0));
            Service { up, without }
        });
        std::iter::once(Service {
            up: all,
            without: None,
        })
        .chain(without)
    }

    /// The same, but of networks that are alike only the first is missing once: what holds without it holds without
    /// each of the others.
    pub fn different_services(&self) -> impl Iterator<Item = Service> {
        let all = LinkSet::first(self.links.len());
        self.services().filter(move |service| {
            let missing = service.without.map(|link| LinkId(link as u8));
            missing.is_none_or(|link| self.is_first_alike(link, all))
        })
    }

    /// Whether no earlier network of `among` could take the place of `link`: the same in everything but its name, and
    /// with the same channels. What holds on one of those, or without it, holds on, or without, the others.
    pub fn is_first_alike(&self, link: LinkId, among: LinkSet) -> bool {
        let mut earlier = among.iter().filter(|other| other.0 < link.0);
        !earlier.any(|other| self.are_alike(link, other))
    }

    fn are_alike(&self, one: LinkId, other: LinkId) -> bool {
        let of = |id: LinkId| self.links.get(usize::from(id.0));
        let (Some(first), Some(second)) = (of(one), of(other)) else {
            return false;
        };
        let carried =
            |channel: &Channel| channel.links.contains(one) == channel.links.contains(other);
        first.is_like(second) && self.channels.iter().all(carried)
    }
}

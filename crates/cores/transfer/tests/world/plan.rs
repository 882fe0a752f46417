//! What a world is made from: its links, its channels, the cores that go with them.

use bumpless_base::{ChannelId, Duration, LinkSet};
use bumpless_transfer::*;
use bumpless_wire::WireVersion;

use super::{PEER, World, ms, us};

/// One link in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// bit/s
    pub bandwidth: u64,
    /// One way.
    pub delay: Duration,
    /// Added at random, so that packets overtake each other.
    pub jitter: Duration,
    pub loss: f64,
    pub ack_loss: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    /// How often an arriving datagram finds a machine that stands still for 1 to 3 ms; what comes
    /// meanwhile is taken when it goes on.
    pub stall: f64,
    /// So far ahead of the wire the driver hands packets over: the longest queue of its own.
    pub ahead: Duration,
    pub up: bool,
    /// The sender's driver cannot send here at all.
    pub blocked: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            bandwidth: 1_000_000_000,
            delay: us(50),
            jitter: Duration::ZERO,
            loss: 0.0,
            ack_loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            stall: 0.0,
            ahead: Duration::ZERO,
            up: true,
            blocked: false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub version: WireVersion,
    pub payload_size: u16,
    pub in_flight_max: u32,
    pub paths: Vec<Path>,
    pub channels: Vec<ChannelPlan>,
    /// Vacant places besides, on both sides.
    pub room: usize,
    /// What the sender takes for each link's round trip at first; a good guess if `None`.
    pub first_round_trip: Option<Duration>,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct ChannelPlan {
    pub links: LinkSet,
    pub distribution: Distribution,
    pub unsent: Unsent,
    pub max_size: u32,
    pub deadline: Duration,
    pub expiry: Duration,
    pub expect_within: Duration,
}

impl Default for ChannelPlan {
    fn default() -> Self {
        Self {
            links: LinkSet::EMPTY,
            distribution: Distribution::Replicate,
            unsent: Unsent::Replace,
            max_size: 1_000_000,
            deadline: ms(100),
            expiry: ms(1000),
            expect_within: Duration::MAX,
        }
    }
}

impl ChannelPlan {
    /// The sending side, with the stated links only.
    pub fn sender(&self, id: ChannelId) -> SenderChannel {
        SenderChannel {
            id,
            peer: PEER,
            links: self.links,
            distribution: self.distribution,
            unsent: self.unsent,
            max_size: self.max_size,
            deadline: self.deadline,
            expiry: self.expiry,
        }
    }

    /// The receiving side.
    pub fn receiver(&self, id: ChannelId) -> ReceiverChannel {
        ReceiverChannel {
            id,
            peer: PEER,
            links: self.links,
            max_size: self.max_size,
            expect_within: self.expect_within,
        }
    }
}

impl Plan {
    /// One channel over so many equal links.
    pub fn links(n: usize) -> Self {
        Self {
            version: WireVersion::V2,
            payload_size: 1000,
            in_flight_max: 512,
            paths: vec![Path::default(); n],
            channels: vec![ChannelPlan::default()],
            room: 0,
            first_round_trip: None,
            seed: 1,
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn build(self) -> World {
        World::new(self)
    }
}

/// The largest state of [`roomy`]'s channels that come later.
pub const ROOMY_SIZE: usize = 20_000;

/// Two links, one channel and two vacant places.
pub fn roomy() -> Plan {
    Plan::links(2).with(|p| p.room = 2)
}

/// A channel that comes to a [`roomy`] world.
pub fn two_links() -> ChannelPlan {
    ChannelPlan {
        links: LinkSet::first(2),
        max_size: ROOMY_SIZE as u32,
        ..ChannelPlan::default()
    }
}

pub fn build_sender(plan: &Plan) -> (Sender, Vec<Publisher>) {
    let links: Vec<_> = plan
        .paths
        .iter()
        .map(|path| LinkParameters {
            bandwidth: path.bandwidth,
            frame_overhead: 66,
            initial_round_trip: plan.first_round_trip.unwrap_or(path.delay * 2 + us(50)),
        })
        .collect();
    let peer = SenderPeer {
        version: plan.version,
        payload_size: plan.payload_size,
        in_flight_max: plan.in_flight_max,
    };
    let channels: Vec<_> = plan
        .channels
        .iter()
        .enumerate()
        .map(|(i, c)| SenderChannel {
            links: links_of(plan, c),
            ..c.sender(id(i))
        })
        .collect();
    Sender::with_room(&links, &[peer], &channels, plan.room).unwrap()
}

pub fn build_receiver(plan: &Plan) -> (Receiver, Vec<Subscriber>) {
    let peer = ReceiverPeer {
        version: plan.version,
        payload_size: plan.payload_size,
        in_flight_max: plan.in_flight_max,
    };
    let channels: Vec<_> = plan
        .channels
        .iter()
        .enumerate()
        .map(|(i, c)| ReceiverChannel {
            links: links_of(plan, c),
            ..c.receiver(id(i))
        })
        .collect();
    Receiver::with_room(&[peer], &channels, plan.room).unwrap()
}

pub fn id(channel: usize) -> ChannelId {
    ChannelId::new(channel as u16 + 1).unwrap()
}

fn links_of(plan: &Plan, channel: &ChannelPlan) -> LinkSet {
    if channel.links.is_empty() {
        LinkSet::first(plan.paths.len())
    } else {
        channel.links
    }
}

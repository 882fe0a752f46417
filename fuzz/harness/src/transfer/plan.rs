//! How sender and receiver are set up.

use crate::input::Input;
use bumpless_base::{ChannelId, Duration, LinkSet, PeerId};
use bumpless_transfer::{
    ChannelPlace, Distribution, LinkParameters, Publisher, Receiver, ReceiverChannel, ReceiverPeer,
    Sender, SenderChannel, SenderPeer, Subscriber, Unsent,
};
use bumpless_wire::WireVersion;

/// Deadlines and expiries below this are not expected to be kept after the faults.
pub(super) const AMPLE: Duration = Duration::from_millis(20);

/// Most packets of a state, so that one conversation takes little time.
const MOST_PACKETS: u32 = 256;

pub(super) struct Plan {
    /// Somebody knows the session and forges anything: content is not checked, bounds are.
    pub hostile: bool,
    pub links: u8,
    pub bandwidth: u64,
    pub first_round_trip: Duration,
    pub peers: Vec<SenderPeer>,
    pub channels: Vec<SenderChannel>,
    pub expect_within: Duration,
    /// Last cycle before the first, of each channel.
    pub last_cycle: u32,
}

impl Plan {
    pub fn decode(input: &mut Input<'_>) -> Self {
        let ms = Duration::from_millis;
        let shape = input.u8();
        let links = 1 + shape % 3;
        let peers = (0..1 + (shape >> 4 & 1)).map(|_| SenderPeer {
            version: input.one_of(&[WireVersion::V2, WireVersion::V2, WireVersion::V1]),
            payload_size: input.one_of(&[16, 100, 1500, 1, 7]),
            in_flight_max: input.one_of(&[64, 1, 2, 5, 10, 512]),
        });
        let peers: Vec<_> = peers.collect();
        let channels = (0..1 + u16::from(shape >> 5 & 3) % 3).map(|at| {
            let peer = at as u8 % peers.len() as u8;
            let most = u32::from(peers[usize::from(peer)].payload_size) * MOST_PACKETS;
            let chosen = LinkSet(input.u8()).intersection(LinkSet::first(links.into()));
            SenderChannel {
                id: ChannelId::new(at * 300 + 1).expect("not 0"),
                peer: PeerId(peer),
                links: if chosen.is_empty() {
                    LinkSet::first(links.into())
                } else {
                    chosen
                },
                distribution: input.one_of(&[Distribution::Replicate, Distribution::Spread]),
                unsent: input.one_of(&[Unsent::Replace, Unsent::Keep]),
                max_size: input.one_of(&[200, 0, 1, 15, 64, 1000, 3000]).min(most),
                deadline: input.one_of(&[ms(100), ms(1), ms(5), ms(30), ms(1000)]),
                expiry: input.one_of(&[ms(200), ms(1), ms(8), ms(50), ms(70_000)]),
            }
        });
        let channels = channels.collect();
        Self {
            hostile: shape & 0x80 != 0,
            links,
            peers,
            channels,
            bandwidth: input.one_of(&[0, 1_000_000_000]),
            first_round_trip: input.one_of(&[ms(1), Duration::from_micros(50), ms(20)]),
            expect_within: input.one_of(&[Duration::MAX, ms(3), ms(40)]),
            last_cycle: input.one_of(&[0, u32::MAX - 2, 0xFFFD, 0x7FFF, 0x7FFF_FFFE]),
        }
    }

    pub fn sender(&self) -> (Sender, Vec<Publisher>) {
        let link = LinkParameters {
            bandwidth: self.bandwidth,
            frame_overhead: 66,
            initial_round_trip: self.first_round_trip,
        };
        let links = vec![link; self.links.into()];
        let (mut sender, publishers) =
            Sender::new(&links, &self.peers, &self.channels).expect("a plan that fits");
        for channel in 0..self.channels.len() {
            sender.set_last_cycle(ChannelPlace(channel), self.last_cycle);
        }
        (sender, publishers)
    }

    pub fn receiver(&self) -> (Receiver, Vec<Subscriber>) {
        let peers = self.peers.iter().map(|peer| ReceiverPeer {
            version: peer.version,
            payload_size: peer.payload_size,
            in_flight_max: peer.in_flight_max,
        });
        let channels = self.channels.iter().map(|channel| ReceiverChannel {
            id: channel.id,
            peer: channel.peer,
            links: channel.links,
            max_size: channel.max_size,
            expect_within: self.expect_within,
        });
        let (peers, channels): (Vec<_>, Vec<_>) = (peers.collect(), channels.collect());
        Receiver::new(&peers, &channels).expect("a plan that fits")
    }

    pub fn version_of(&self, channel: usize) -> WireVersion {
        self.peers[usize::from(self.channels[channel].peer.0)].version
    }

    pub fn channel_of(&self, peer: PeerId, id: ChannelId) -> Option<usize> {
        self.channels
            .iter()
            .position(|channel| channel.peer == peer && channel.id == id)
    }
}

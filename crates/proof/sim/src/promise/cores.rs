//! The shipped cores and ports, built from a plan's scenario.

use bumpless_base::{Duration, Instant, LinkId, NodeId};
use bumpless_node::LinkSettings;
use bumpless_node::data_plane::addresses::Addresses;
use bumpless_node::data_plane::link_port::LinkPort;
use bumpless_node::data_plane::protection::Protection;
use bumpless_plan::Scenario;
use bumpless_transfer::{
    self as transfer, LinkParameters, Publisher, Receiver, ReceiverChannel, ReceiverPeer, Sender,
    SenderChannel, SenderPeer, Subscriber, Unsent,
};
use bumpless_wire::WireVersion;

use super::draw::message_max;
use super::wire::{ADDRESS, Outbox};
use super::world::PEER;

/// The sender and the applications' ends.
pub(super) fn sender(
    scenario: &Scenario,
) -> Result<(Sender, Vec<Publisher>), transfer::SetupError> {
    let links: Vec<LinkParameters> = scenario
        .links
        .iter()
        .map(|link| LinkParameters {
            bandwidth: link.bandwidth,
            frame_overhead: link.frame_overhead as u16,
            initial_round_trip: Duration::from_millis(1),
        })
        .collect();
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size: scenario.packets.payload as u16,
        in_flight_max: scenario.packets.in_flight_max,
    };
    let channels = scenario.channels.iter();
    let channels: Vec<SenderChannel> = channels
        .map(|channel| SenderChannel {
            id: channel.id,
            peer: PEER,
            links: channel.links,
            distribution: channel.distribution,
            unsent: Unsent::Replace,
            max_size: channel.size,
            deadline: channel.deadline,
            expiry: channel.period * 2,
        })
        .collect();
    Sender::new(&links, &[peer], &channels)
}

/// The receiver and the applications' ends.
pub(super) fn receiver(
    scenario: &Scenario,
) -> Result<(Receiver, Vec<Subscriber>), transfer::SetupError> {
    let peer = ReceiverPeer {
        version: WireVersion::V2,
        payload_size: scenario.packets.payload as u16,
        in_flight_max: scenario.packets.in_flight_max,
    };
    let channels = scenario.channels.iter();
    let channels: Vec<ReceiverChannel> = channels
        .map(|channel| ReceiverChannel {
            id: channel.id,
            peer: PEER,
            links: channel.links,
            max_size: channel.size,
            expect_within: Duration::MAX,
        })
        .collect();
    Receiver::new(&[peer], &channels)
}

/// The sender's ports.
pub(super) fn ports(scenario: &Scenario, begin: Instant) -> Vec<LinkPort<Outbox>> {
    let links = scenario.links.iter().enumerate();
    let port = links.map(|(at, link)| {
        let settings = LinkSettings {
            name: link.name.clone(),
            local: ADDRESS,
            message_max: message_max(&scenario.packets),
            bandwidth: link.bandwidth,
            frame_overhead: link.frame_overhead as u16,
            dscp: 0,
            priority: 0,
            in_flight_max: scenario.packets.in_flight_max,
            screens: false,
            busy_poll: Duration::ZERO,
        };
        let addresses = Addresses {
            nodes: vec![NodeId(1)],
            partners: vec![Some(ADDRESS)],
            references: Vec::new(),
        };
        LinkPort::new(
            LinkId(at as u8),
            Outbox::default(),
            &settings,
            (addresses, Protection::none(1)),
            begin,
        )
    });
    port.collect()
}

//! One node with several partners: sending to one, receiving from another, with equal identities.

use bumpless_base::{ChannelId, Counter, Duration, Instant, LinkId, LinkSet, PeerId};
use bumpless_transfer::*;
use bumpless_wire::{MAX_ACK_LEN, Packet, WireVersion, parse};

const VERSIONS: [WireVersion; 3] = [WireVersion::V1, WireVersion::V2, WireVersion::V2];
const SIZE: u32 = 20_000;

/// A node whose partners are the two others, each with one channel to it and one from it.
struct Node {
    sender: Sender,
    publishers: Vec<Publisher>,
    receiver: Receiver,
    subscribers: Vec<Subscriber>,
}

/// The wire version that two nodes speak.
fn version(a: usize, b: usize) -> WireVersion {
    VERSIONS[(a + b) % 3]
}

/// Node `of`'s number for its partner `node`.
fn peer(of: usize, node: usize) -> PeerId {
    PeerId((node - usize::from(node > of)) as u8)
}

fn partners(of: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |&node| node != of)
}

fn build(of: usize) -> Node {
    let link = LinkParameters {
        bandwidth: 0,
        frame_overhead: 0,
        initial_round_trip: Duration::from_micros(100),
    };
    let id = ChannelId::new(7).unwrap();
    let senders: Vec<_> = partners(of)
        .map(|node| SenderPeer {
            version: version(of, node),
            payload_size: 1000,
            in_flight_max: 16,
        })
        .collect();
    let receivers: Vec<_> = partners(of)
        .map(|node| ReceiverPeer {
            version: version(of, node),
            payload_size: 1000,
            in_flight_max: 16,
        })
        .collect();
    let outgoing: Vec<_> = partners(of)
        .map(|node| SenderChannel {
            id,
            peer: peer(of, node),
            links: LinkSet::first(1),
            distribution: Distribution::Replicate,
            unsent: Unsent::Replace,
            max_size: SIZE,
            deadline: Duration::from_millis(100),
            expiry: Duration::from_millis(900),
        })
        .collect();
    let incoming: Vec<_> = partners(of)
        .map(|node| ReceiverChannel {
            id,
            peer: peer(of, node),
            links: LinkSet::first(1),
            max_size: SIZE,
            expect_within: Duration::MAX,
        })
        .collect();
    let (mut sender, publishers) = Sender::new(&[link], &senders, &outgoing).unwrap();
    let (mut receiver, subscribers) = Receiver::new(&receivers, &incoming).unwrap();
    for node in partners(of) {
        let tag = Some((of + node) as u32);
        sender.set_session(peer(of, node), tag, Instant::ZERO);
        receiver.set_session(peer(of, node), tag, Instant::ZERO);
    }
    Node {
        sender,
        publishers,
        receiver,
        subscribers,
    }
}

/// Hands a datagram from one node to another.
fn carry(nodes: &mut [Node], from: usize, to: usize, datagram: &[u8], now: Instant) {
    let (peer, link) = (peer(to, from), LinkId(0));
    match parse(datagram).unwrap() {
        Packet::Data { header, payload } => {
            nodes[to]
                .receiver
                .handle_data(peer, link, &header, payload, now);
        }
        Packet::Ack(ack) => nodes[to].sender.handle_ack(peer, &ack, link, now),
        other => panic!("{other:?}"),
    }
}

/// The partner that `of` numbers `peer`.
fn node(of: usize, peer: PeerId) -> usize {
    partners(of).nth(peer.0.into()).unwrap()
}

/// One packet and all acknowledgements of a node.
fn turn(nodes: &mut [Node], from: usize, now: Instant) {
    nodes[from].sender.handle_timeout(now);
    if let Some(transmit) = nodes[from].sender.poll_transmit(LinkId(0), now) {
        let payload = nodes[from].sender.payload(&transmit);
        let datagram = [transmit.header(), payload].concat();
        let to = node(from, transmit.peer);
        carry(nodes, from, to, &datagram, now);
    }
    let mut out = [0; MAX_ACK_LEN];
    while let Some(ack) = nodes[from].receiver.poll_ack(&mut out) {
        let to = node(from, ack.peer);
        carry(nodes, from, to, &out[..ack.len], now);
    }
}

#[test]
fn nodes_send_to_and_receive_from_several_partners_at_once() {
    let mut nodes: Vec<Node> = (0..3).map(build).collect();
    let mut now = Instant::from_nanos(1_000);
    let state = |from: usize, to: usize, round: u8| vec![(from * 3 + to) as u8 + round; 15_500];
    for round in 0..5 {
        for (from, node) in nodes.iter_mut().enumerate() {
            for to in partners(from) {
                let bytes = state(from, to, round);
                let publisher = &mut node.publishers[usize::from(peer(from, to).0)];
                publisher.publish(now, |buffer| {
                    buffer[..bytes.len()].copy_from_slice(&bytes);
                    bytes.len()
                });
            }
            node.sender.handle_published(now);
        }
        for _ in 0..200 {
            now += Duration::from_micros(5);
            (0..3).for_each(|from| turn(&mut nodes, from, now));
        }
        for (to, node) in nodes.iter_mut().enumerate() {
            for from in partners(to) {
                let subscriber = &mut node.subscribers[usize::from(peer(to, from).0)];
                assert!(subscriber.read(now).unwrap().data() == state(from, to, round));
            }
        }
    }
    for node in &nodes {
        assert_eq!(node.sender.counters().get(Counter::StatesSafe), 10);
        assert_eq!(node.receiver.counters().get(Counter::StatesDelivered), 10);
        assert_eq!(node.sender.counters().get(Counter::PacketsRetransmitted), 0);
    }
}

#[test]
fn what_is_not_a_partners_is_discarded_under_its_cause() {
    let mut node = build(0);
    let now = Instant::from_nanos(1_000);
    let header = bumpless_wire::DataHeader {
        version: version(0, 1),
        tag: 1,
        channel: ChannelId::new(7).unwrap(),
        link: LinkId(0),
        retransmission: false,
        short: false,
        cycle: 1,
        sequence: 0,
        total_size: 10,
        expiry: Duration::from_millis(5),
        force_ack: None,
    };
    let mut take = |peer: u8, link: u8, header| {
        node.receiver
            .handle_data(PeerId(peer), LinkId(link), &header, &[0; 10], now);
    };
    take(9, 0, header);
    let mut old = header;
    old.version = WireVersion::V1;
    take(1, 0, old);
    take(0, 0, bumpless_wire::DataHeader { tag: 99, ..header });
    take(0, 200, header);
    let mut strange = header;
    strange.channel = ChannelId::new(8).unwrap();
    take(0, 0, strange);
    take(
        0,
        0,
        bumpless_wire::DataHeader {
            expiry: Duration::ZERO,
            ..header
        },
    );
    let counters = node.receiver.counters();
    for (counter, times) in [
        (Counter::DiscardUnknownSource, 1),
        (Counter::DiscardWrongVersion, 1),
        (Counter::DiscardWrongSession, 1),
        (Counter::DiscardMalformed, 1),
        (Counter::DiscardUnknownChannel, 1),
        (Counter::DiscardExpired, 1),
        (Counter::StatesDelivered, 0),
    ] {
        assert_eq!(counters.get(counter), times, "{}", counter.name());
    }
}

#[test]
fn notices_that_nobody_collects_are_counted_and_do_no_harm() {
    let mut node = build(0);
    let now = Instant::from_nanos(1_000);
    node.sender.set_session(PeerId(0), None, now);
    for _ in 0..100 {
        node.publishers[0].publish(now, |_| 10);
        node.sender.handle_published(now);
    }
    let mut collected = 0;
    while let Some(event) = node.sender.poll_event() {
        assert!(matches!(
            event,
            SenderEvent::Failed {
                cause: FailureCause::SessionEnded,
                ..
            }
        ));
        collected += 1;
    }
    let lost = node.sender.counters().get(Counter::EventsLost);
    assert_eq!(collected + lost, 100);
    assert!(lost > 0);
}

//! The sender against a slow and obvious twin that looks at everything at every step.

use super::*;
use crate::Distribution;
use bumpless_base::{ChannelId, Random};
use bumpless_wire::{AckHeader, MAX_ACK_LEN, Packet, encode_ack, parse};
use proptest::prelude::*;
use std::vec::Vec;

const LINKS: usize = 3;
const PAYLOAD: u16 = 10;
const LIMIT: u32 = 7;
const MOST: u32 = 120;

fn build(versions: [Version; 2], random: &mut Random) -> (Sender, Vec<Publisher>) {
    let link = LinkParameters {
        bandwidth: 0,
        frame_overhead: 0,
        initial_round_trip: Duration::from_micros(100),
    };
    let peers = versions.map(|version| SenderPeer {
        version,
        payload_size: PAYLOAD,
        in_flight_max: LIMIT,
    });
    let channels: Vec<_> = (0..6u16)
        .map(|i| SenderChannel {
            id: ChannelId::new(1 + i).unwrap(),
            peer: PeerId((i % 2) as u8),
            links: LinkSet(1 + random.below(7) as u8),
            distribution: match random.below(2) {
                0 => Distribution::Replicate,
                _ => Distribution::Spread,
            },
            max_size: MOST,
            deadline: Duration::from_millis(1 + random.below(8)),
            expiry: Duration::from_millis(2 + random.below(8)),
        })
        .collect();
    Sender::new(&[link; LINKS], &peers, &channels).unwrap()
}

/// The channel that must send next on `link`, found by looking at every packet of every channel.
/// `None` if a transfer is to be given up first: that changes what the others may do.
fn expected(sender: &Sender, link: LinkId, now: Instant) -> Option<Option<usize>> {
    let mut found = Vec::new();
    for (index, channel) in sender.channels.iter().enumerate() {
        let peer = &sender.peers[usize::from(channel.setup.peer.0)];
        let in_flight: u32 = peer
            .channels
            .iter()
            .filter_map(|&c| sender.channels[c].transfer)
            .map(|t| t.started - t.acknowledged)
            .sum();
        assert_eq!(in_flight, peer.in_flight);
        assert!(in_flight <= LIMIT);
        let (Some(transfer), Some(lane)) = (channel.transfer, channel.lane_of(link)) else {
            continue;
        };
        if peer.tag.is_none() || !channel.usable(peer).contains(link) {
            continue;
        }
        let known_lost = (0..transfer.packets).filter(|&p| channel.lost.contains(p as usize));
        assert_eq!(known_lost.count() as u32, transfer.lost);
        let left = (0..transfer.packets).find(|&p| channel.is_left(lane, p));
        let may_start = in_flight < LIMIT;
        let packet = left.is_some_and(|p| p < transfer.started || may_start);
        let asks = channel.lanes[lane].probe && transfer.in_flight() > 0;
        let hope = transfer.fits(now)
            && transfer.expires_at.since(now) >= setup::expiry_unit(peer.setup.version);
        if !hope {
            return None;
        }
        if packet || asks {
            found.push((transfer.deadline, index));
        }
    }
    Some(found.into_iter().min().map(|(_, index)| index))
}

/// An acknowledgement of a random part of what a channel has sent; sometimes a wrong one.
fn acknowledge(sender: &mut Sender, index: usize, random: &mut Random, now: Instant) {
    let channel = &sender.channels[index];
    let peer_id = channel.setup.peer;
    let peer = &sender.peers[usize::from(peer_id.0)];
    let Some(transfer) = channel.transfer.filter(|t| t.started > 0) else {
        return;
    };
    let received: Vec<u32> = (0..transfer.started)
        .filter(|_| random.chance(0.7))
        .collect();
    let mut blocks: Vec<(u32, u32)> = Vec::new();
    for &sequence in &received {
        match blocks.last_mut() {
            Some((_, high)) if *high + 1 == sequence => *high = sequence,
            _ => blocks.push((sequence, sequence)),
        }
    }
    let version = peer.setup.version;
    let trigger = received.last().copied().filter(|_| version == Version::V2);
    let header = AckHeader {
        version,
        tag: peer.tag.unwrap_or(0),
        channel: channel.setup.id,
        link: trigger.map(|_| LinkId(random.below(LINKS as u64) as u8)),
        retransmission: trigger.is_some() && random.chance(0.3),
        cycle: channel.cycle.wrapping_sub(u32::from(random.chance(0.05))),
        trigger,
        received: None,
    };
    let mut out = [0; MAX_ACK_LEN];
    let len = encode_ack(&header, blocks, &mut out);
    let Ok(Packet::Ack(ack)) = parse(&out[..len]) else {
        panic!("not an acknowledgement");
    };
    sender.handle_ack(peer_id, &ack, LinkId(random.below(3) as u8), now);
}

fn step(sender: &mut Sender, publishers: &mut [Publisher], random: &mut Random, now: &mut Instant) {
    let index = random.below(6) as usize;
    let peer = PeerId(random.below(2) as u8);
    let link = LinkId(random.below(LINKS as u64) as u8);
    match random.below(20) {
        0..4 => {
            let len = random.below(u64::from(MOST) + 1) as usize;
            publishers[index].publish(*now, |_| len);
            sender.handle_published(*now);
        }
        4..8 => acknowledge(sender, index, random, *now),
        8..10 => {
            *now += Duration::from_nanos(random.below(400_000));
            sender.handle_timeout(*now);
            assert!(sender.poll_timeout().is_none_or(|due| due > *now));
        }
        10 => sender.set_link_healthy(peer, link, random.chance(0.6), *now),
        11 if random.chance(0.2) => {
            let tag = random.chance(0.8).then_some(random.below(3) as u32);
            sender.set_session(peer, tag, *now);
        }
        _ => {
            for _ in 0..random.below(6) {
                let expected = expected(sender, link, *now);
                let sent = sender.poll_transmit(link, *now);
                if let Some(expected) = expected {
                    assert_eq!(sent.map(|transmit| transmit.channel), expected);
                }
                let Some(sent) = sent else { break };
                let bytes = sender.payload(&sent).len();
                assert_eq!(bytes, sent.payload_len());
            }
        }
    }
    while sender.poll_event().is_some() {}
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn every_packet_is_of_the_earliest_deadline_that_may_send(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let versions = [Version::V1, Version::V2];
        let (mut sender, mut publishers) = build(versions, &mut random);
        let mut now = Instant::from_nanos(1_000_000);
        for peer in 0..2 {
            sender.set_session(PeerId(peer), Some(1), now);
        }
        for _ in 0..400 {
            step(&mut sender, &mut publishers, &mut random, &mut now);
        }
        // Everything ends: by its deadline, nothing is open and no timer is left.
        now += Duration::from_secs(1);
        sender.handle_timeout(now);
        prop_assert!(sender.channels.iter().all(|channel| channel.transfer.is_none()));
        prop_assert!(sender.peers.iter().all(|peer| peer.in_flight == 0));
        prop_assert_eq!(sender.poll_timeout(), None);
        prop_assert!(sender.counters().get(Counter::EventsLost) == 0);
    }
}

#[test]
fn a_full_window_of_one_peer_does_not_hold_up_another() {
    let mut random = Random::new(3);
    let (mut sender, mut publishers) = build([Version::V2; 2], &mut random);
    let now = Instant::from_nanos(1_000_000);
    for peer in 0..2 {
        sender.set_session(PeerId(peer), Some(1), now);
    }
    for publisher in &mut publishers {
        publisher.publish(now, |_| 120);
    }
    sender.handle_published(now);
    let mut sent = [0; 2];
    for link in (0..LINKS as u8).map(LinkId) {
        while let Some(transmit) = sender.poll_transmit(link, now) {
            sent[usize::from(transmit.peer.0)] += 1;
        }
    }
    assert!(sent.iter().all(|&n| n >= LIMIT));
    assert_eq!(
        [PeerId(0), PeerId(1)].map(|p| sender.in_flight(p)),
        [LIMIT; 2]
    );
    assert_eq!(sender.counters().get(Counter::WindowStalls), 2);
}

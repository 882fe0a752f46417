//! The sender against a slow and obvious twin that looks at everything at every step.

use super::*;
use crate::{Distribution, ExchangeError};
use bumpless_base::{ChannelId, Duration, LinkId, Random, Unsent};
use bumpless_wire::{AckHeader, MAX_ACK_LEN, Packet, encode_ack, parse};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

const LINKS: usize = 3;
const PAYLOAD: u16 = 10;
const LIMIT: u32 = 7;
const MOST: u32 = 120;
const CHANNELS: usize = 6;
/// Vacant places at the start.
const ROOM: usize = 3;

/// A channel's application: its end, and its states that were not answered.
struct Application {
    publisher: Publisher,
    open: BTreeSet<u64>,
}

impl Application {
    fn of(publisher: Publisher) -> Self {
        let open = BTreeSet::new();
        Self { publisher, open }
    }

    fn publish(&mut self, len: usize, now: Instant) {
        let published = self.publisher.publish(now, |_| len);
        self.open.insert(published.ticket);
        if let Some(superseded) = published.superseded {
            assert!(self.open.remove(&superseded), "answered twice");
        }
    }
}

/// A sender, the applications by place, and those that have left, with what they left.
struct Stage {
    sender: Sender,
    here: Table<ChannelPlace, Option<Application>>,
    gone: Vec<(Application, SenderReplacement)>,
    random: Random,
    now: Instant,
}

fn channel(id: u16, random: &mut Random) -> SenderChannel {
    SenderChannel {
        id: ChannelId::new(id).unwrap(),
        peer: PeerId((id % 2) as u8),
        links: LinkSet(1 + random.below(7) as u8),
        distribution: match random.below(2) {
            0 => Distribution::Replicate,
            _ => Distribution::Spread,
        },
        unsent: match random.below(2) {
            0 => Unsent::Replace,
            _ => Unsent::Keep,
        },
        max_size: MOST,
        deadline: Duration::from_millis(1 + random.below(8)),
        expiry: Duration::from_millis(2 + random.below(8)),
    }
}

fn build(versions: [WireVersion; 2], random: &mut Random) -> (Sender, Vec<Publisher>) {
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
    let channels: Vec<_> = (1..=CHANNELS as u16)
        .rev()
        .map(|id| channel(id, random))
        .collect();
    Sender::with_room(&[link; LINKS], &peers, &channels, ROOM).unwrap()
}

/// The channel that must send next on `link`, found by looking at every packet of every channel.
/// `None` if a transfer is to be given up first: that changes what the others may do.
fn expected(sender: &Sender, link: LinkId, now: Instant) -> Option<Option<ChannelPlace>> {
    let mut found = Vec::new();
    for index in sender.channels.indices() {
        let channel = &sender.channels[index];
        let peer = &sender.peers[usize::from(channel.setup.peer.0)];
        let in_flight: u32 = peer
            .channels
            .indices()
            .filter_map(|rank| sender.channels[peer.channel_at(rank)?].transfer)
            .map(|t| t.started - t.acknowledged)
            .sum();
        assert_eq!(in_flight, peer.in_flight);
        assert!(in_flight <= LIMIT);
        let (Some(transfer), Some(path)) = (channel.transfer, channel.path_of(link)) else {
            continue;
        };
        if peer.tag.is_none() || !channel.usable(peer).contains(link) {
            continue;
        }
        let known_lost = (0..transfer.packets).filter(|&p| channel.lost.contains(p as usize));
        assert_eq!(known_lost.count() as u32, transfer.lost);
        let left = (0..transfer.packets).find(|&p| channel.is_left(path, p));
        let may_start = in_flight < LIMIT;
        let packet = left.is_some_and(|p| p < transfer.started || may_start);
        let asks = channel.paths[path].probe && transfer.in_flight() > 0;
        let hope = transfer.fits(now)
            && transfer.expires_at.since(now) >= setup::expiry_unit(peer.setup.version);
        if !hope {
            return None;
        }
        if packet || asks {
            found.push((transfer.deadline, channel.setup.id, index));
        }
    }
    Some(found.into_iter().min().map(|(.., index)| index))
}

/// Whoever has a place, and nobody else, is in the tables and queues.
fn check_places(sender: &Sender) {
    for place in sender.channels.indices() {
        let channel = &sender.channels[place];
        if channel.is_vacant() {
            assert_eq!(sender.timers.key(place), None);
            continue;
        }
        let peer = &sender.peers[usize::from(channel.setup.peer.0)];
        assert_eq!(peer.channel_at(channel.rank), Some(place));
        assert_eq!(setup::find(&peer.table, channel.setup.id), Some(place));
    }
    for peer in &sender.peers {
        assert!(peer.table.is_sorted());
        let taken = |rank| peer.channel_at(rank).is_some();
        let ranks = peer.channels.indices();
        assert_eq!(
            peer.channels.indices().filter(|&rank| taken(rank)).count(),
            peer.table.len()
        );
        for rank in ranks.filter(|&rank| !taken(rank)) {
            assert_ne!(peer.stalled, Some(rank));
            assert_eq!(
                (peer.flight.key(rank), peer.waiting.key(rank)),
                (None, None)
            );
            assert!((0..LINKS as u8).all(|link| !peer.queues(LinkId(link), rank)));
        }
    }
}

/// An acknowledgement of a random part of what a channel has sent; sometimes a wrong one.
fn acknowledge(sender: &mut Sender, index: ChannelPlace, random: &mut Random, now: Instant) {
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
    let trigger = received
        .last()
        .copied()
        .filter(|_| version == WireVersion::V2);
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

impl Stage {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (mut sender, publishers) = build([WireVersion::V1, WireVersion::V2], &mut random);
        let now = Instant::from_nanos(1_000_000);
        for peer in 0..2 {
            sender.set_session(PeerId(peer), Some(1), now);
        }
        let here = publishers
            .into_iter()
            .map(|publisher| Some(Application::of(publisher)));
        let nobody = core::iter::repeat_with(|| None).take(ROOM);
        Self {
            sender,
            here: here.chain(nobody).collect(),
            gone: Vec::new(),
            random,
            now,
        }
    }

    fn step(&mut self) {
        let (random, now) = (&mut self.random, self.now);
        let index = ChannelPlace(random.below((CHANNELS + ROOM) as u64) as usize);
        let peer = PeerId(random.below(2) as u8);
        let link = LinkId(random.below(LINKS as u64) as u8);
        match random.below(21) {
            0..4 => self.publish(index),
            4..8 => acknowledge(&mut self.sender, index, random, now),
            8..10 => {
                self.now += Duration::from_nanos(random.below(400_000));
                self.sender.handle_timeout(self.now);
                let due = self.sender.poll_timeout();
                assert!(due.is_none_or(|due| due > self.now));
            }
            10 => {
                let (healthy, narrow) = (random.chance(0.6), random.chance(0.4));
                self.sender.set_link_healthy(peer, link, healthy, now);
                self.sender.set_link_narrow(peer, link, narrow);
            }
            11 if random.chance(0.2) => {
                let tag = random.chance(0.8).then_some(random.below(3) as u32);
                self.sender.set_session(peer, tag, now);
            }
            12 => self.exchange(index),
            _ => self.send(link),
        }
        self.collect();
    }

    /// Mostly by who is here, at times by one who has left.
    fn publish(&mut self, index: ChannelPlace) {
        let len = self.random.below(u64::from(MOST) + 1) as usize;
        let other = self.random.below(8) as usize;
        if let Some((application, _)) = self.gone.get_mut(other) {
            application.publish(len, self.now);
        } else if let Some(application) = &mut self.here[index] {
            application.publish(len, self.now);
        }
        if self.random.chance(0.9) {
            self.sender.handle_published(self.now);
        }
    }

    fn send(&mut self, link: LinkId) {
        for _ in 0..self.random.below(6) {
            let expected = expected(&self.sender, link, self.now);
            let sent = self.sender.poll_transmit(link, self.now);
            if let Some(expected) = expected {
                assert_eq!(sent.map(|transmit| transmit.channel), expected);
            }
            let Some(sent) = sent else { break };
            let bytes = self.sender.payload(&sent).len();
            assert_eq!(bytes, sent.payload_len());
        }
    }

    /// Somebody new, nobody, or one who was here before.
    fn exchange(&mut self, place: ChannelPlace) {
        let factory = self.sender.factory();
        let returning = self.random.below(12) as usize;
        let (place, application, replacement) = if returning < self.gone.len() {
            let (application, replacement) = self.gone.swap_remove(returning);
            (
                application.publisher.channel(),
                Some(application),
                replacement,
            )
        } else if self.random.chance(0.3) {
            (place, None, factory.vacant())
        } else {
            let setup = channel(1 + self.random.below(16) as u16, &mut self.random);
            let (replacement, publisher) = factory.prepare(place, &setup).unwrap();
            let mut application = Application::of(publisher);
            if self.random.chance(0.3) {
                application.publish(50, self.now);
            }
            (place, Some(application), replacement)
        };
        let refusal = self.refusal(place, replacement.channel());
        match self.sender.exchange(place, replacement, self.now) {
            Err(refused) => {
                assert_eq!(Some(refused.reason), refusal);
                assert!(refused.replacement.channel().is_some());
                self.gone
                    .extend(application.map(|it| (it, refused.replacement)));
            }
            Ok(left) => {
                assert_eq!(refusal, None);
                self.collect();
                if let Some(application) = core::mem::replace(&mut self.here[place], application) {
                    assert!(application.open.is_empty(), "not answered");
                    self.gone.push((application, left));
                }
            }
        }
        self.gone.truncate(10);
        check_places(&self.sender);
    }

    /// Why a channel may not enter a place, found the plain way.
    fn refusal(&self, place: ChannelPlace, setup: Option<&SenderChannel>) -> Option<ExchangeError> {
        let &SenderChannel { peer, id, .. } = setup?;
        let others: Vec<_> = self
            .here
            .indices()
            .filter(|&other| other != place && !self.sender.channels[other].is_vacant())
            .filter(|&other| self.sender.channels[other].setup.peer == peer)
            .collect();
        let most = CHANNELS / 2 + ROOM;
        if let Some(&place) = others
            .iter()
            .find(|&&other| self.sender.channels[other].setup.id == id)
        {
            return Some(ExchangeError::IdentityTaken { peer, id, place });
        }
        (others.len() == most).then_some(ExchangeError::PeerFull { peer, most })
    }

    fn collect(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            let (SenderEvent::Safe {
                channel, ticket, ..
            }
            | SenderEvent::Failed {
                channel, ticket, ..
            }
            | SenderEvent::Superseded { channel, ticket }) = event;
            let application = self.here[channel].as_mut().unwrap();
            assert!(application.open.remove(&ticket), "{event:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn every_packet_has_the_earliest_deadline_whoever_comes_and_goes(seed in any::<u64>()) {
        let mut stage = Stage::new(seed);
        for _ in 0..400 {
            stage.step();
        }
        // Everything ends: by its deadline, nothing is open and no timer is left.
        stage.now += Duration::from_secs(1);
        stage.sender.handle_published(stage.now);
        stage.sender.handle_timeout(stage.now);
        stage.collect();
        prop_assert!(stage.here.iter().flatten().all(|application| application.open.is_empty()));
        let sender = &stage.sender;
        prop_assert!(sender.channels.iter().all(|channel| channel.transfer.is_none()));
        prop_assert!(sender.peers.iter().all(|peer| peer.in_flight == 0));
        prop_assert_eq!(sender.poll_timeout(), None);
        prop_assert!(sender.counters().get(Counter::EventsLost) == 0);
    }
}

#[test]
fn a_full_window_of_one_peer_does_not_hold_up_another() {
    let mut random = Random::new(3);
    let (mut sender, mut publishers) = build([WireVersion::V2; 2], &mut random);
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
    let in_flight = [PeerId(0), PeerId(1)].map(|peer| sender.in_flight(peer));
    assert_eq!(in_flight, [LIMIT; 2]);
    assert_eq!(sender.counters().get(Counter::WindowStalls), 2);
}

//! The receiver's queues against what its channels say of themselves, whoever comes and goes.

use super::*;
use bumpless_base::{ChannelId, Random};
use proptest::prelude::*;

const PAYLOAD: u16 = 10;
const MOST: u32 = 120;
const CHANNELS: u16 = 4;
/// Vacant places at the start.
const ROOM: usize = 3;
const PLACES: usize = CHANNELS as usize + ROOM;
const VERSIONS: [WireVersion; 2] = [WireVersion::V1, WireVersion::V2];

fn channel(id: u16, random: &mut Random) -> ReceiverChannel {
    ReceiverChannel {
        id: ChannelId::new(id).unwrap(),
        peer: PeerId((id % 2) as u8),
        links: LinkSet::first(2),
        max_size: MOST,
        expect_within: Duration::from_millis(1 + random.below(10)),
    }
}

/// A receiver, the applications' ends by place, and who has left.
struct Stage {
    receiver: Receiver,
    here: Table<ChannelPlace, Option<Subscriber>>,
    gone: Vec<(Subscriber, ReceiverReplacement)>,
    random: Random,
    now: Instant,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let peers = VERSIONS.map(|version| ReceiverPeer {
            version,
            payload_size: PAYLOAD,
            in_flight_max: 40,
        });
        let channels: Vec<_> = (1..=CHANNELS).map(|id| channel(id, &mut random)).collect();
        let (mut receiver, subscribers) = Receiver::with_room(&peers, &channels, ROOM).unwrap();
        let now = Instant::from_nanos(1_000_000);
        for peer in 0..2 {
            receiver.set_session(PeerId(peer), Some(1), now);
        }
        let here = subscribers.into_iter().map(Some);
        let nobody = core::iter::repeat_with(|| None).take(ROOM);
        Self {
            receiver,
            here: here.chain(nobody).collect(),
            gone: Vec::new(),
            random,
            now,
        }
    }

    fn id(&mut self) -> u16 {
        1 + self.random.below(6) as u16
    }

    fn step(&mut self) {
        let place = ChannelPlace(self.random.below(PLACES as u64) as usize);
        match self.random.below(40) {
            0 if self.random.chance(0.5) => {
                let tag = self
                    .random
                    .chance(0.8)
                    .then_some(1 + self.random.below(2) as u32);
                let peer = PeerId(self.random.below(2) as u8);
                self.receiver.set_session(peer, tag, self.now);
            }
            1..3 => {
                let span = match self.random.chance(0.2) {
                    true => Duration::MAX,
                    false => Duration::from_millis(1 + self.random.below(10)),
                };
                self.receiver.set_expect_within(place, span);
            }
            3..8 => {
                self.now += Duration::from_nanos(self.random.below(2_000_000));
                self.receiver.handle_timeout(self.now);
                let due = self.receiver.poll_timeout();
                assert!(due.is_none_or(|due| due > self.now));
            }
            8..11 => {
                let mut out = [0; MAX_ACK_LEN];
                let ack = self.receiver.poll_ack(&mut out);
                assert!(ack.is_none_or(|ack| self.here[ack.channel].is_some()));
            }
            11..13 => {
                while let Some(event) = self.receiver.poll_event() {
                    let (ReceiverEvent::Updated { channel, .. }
                    | ReceiverEvent::Overdue { channel }) = event;
                    assert!(self.here[channel].is_some());
                }
            }
            13..17 => self.exchange(place),
            _ => self.take(),
        }
        self.check();
    }

    /// A packet of a state of three.
    fn take(&mut self) {
        let id = self.id();
        let peer = PeerId((id % 2) as u8);
        let other = ChannelId::new(self.id());
        let header = DataHeader {
            version: VERSIONS[usize::from(peer.0)],
            tag: 1,
            channel: ChannelId::new(id).unwrap(),
            link: LinkId(self.random.below(2) as u8),
            retransmission: self.random.chance(0.1),
            short: false,
            cycle: 1 + self.now.as_nanos() as u32 / 8_000_000,
            sequence: self.random.below(3) as u32,
            total_size: 25,
            expiry: Duration::from_millis(1 + self.random.below(20)),
            force_ack: other.filter(|_| self.random.chance(0.1)),
        };
        let payload = &[7; 10][..[10, 10, 5][header.sequence as usize]];
        let receiver = &mut self.receiver;
        receiver.handle_data(peer, header.link, &header, payload, self.now);
    }

    /// Somebody new, nobody, or one who was here before.
    fn exchange(&mut self, place: ChannelPlace) {
        let factory = self.receiver.factory();
        let returning = self.random.below(12) as usize;
        let (place, subscriber, replacement) = if returning < self.gone.len() {
            let (subscriber, replacement) = self.gone.swap_remove(returning);
            (subscriber.channel(), Some(subscriber), replacement)
        } else if self.random.chance(0.3) {
            (place, None, factory.vacant())
        } else {
            let id = self.id();
            let setup = channel(id, &mut self.random);
            let (replacement, subscriber) = factory.prepare(place, &setup).unwrap();
            (place, Some(subscriber), replacement)
        };
        let capacity = |r: &Receiver| r.peers.iter().map(|p| p.table.capacity()).sum::<usize>();
        let before = capacity(&self.receiver);
        if let Ok(left) = self.receiver.exchange(place, replacement, self.now) {
            let gone = core::mem::replace(&mut self.here[place], subscriber);
            self.gone.extend(gone.map(|gone| (gone, left)));
        }
        assert_eq!(capacity(&self.receiver), before);
        self.gone.truncate(8);
    }

    /// Every queue and count is what the channels in their places say.
    fn check(&self) {
        let receiver = &self.receiver;
        let here = |place: &ChannelPlace| !receiver.channels[*place].is_vacant();
        let acks = receiver.acks.list();
        let mut notices = receiver.notices.clone();
        let notices: Vec<_> = core::iter::from_fn(|| notices.pop()).collect();
        for place in receiver.channels.indices() {
            let channel = &receiver.channels[place];
            assert_eq!(!channel.is_vacant(), self.here[place].is_some());
            assert_eq!(receiver.timers.key(place), channel.due());
            let owed = acks.iter().filter(|&&other| other == place).count();
            assert_eq!(owed, usize::from(channel.queued));
            let told = notices
                .iter()
                .filter(|n| matches!(n, Notice::Updated(at) if *at == place));
            assert_eq!(told.count(), usize::from(channel.update_waits));
        }
        assert!(acks.iter().all(here));
        assert!(notices.iter().all(|notice| here(&notice.channel())));
        for (at, peer) in receiver.peers.iter().enumerate() {
            let its = |place: &ChannelPlace| {
                here(place) && usize::from(receiver.channels[*place].setup.peer.0) == at
            };
            let places: Vec<_> = receiver.channels.indices().filter(its).collect();
            let channels = || places.iter().map(|&place| &receiver.channels[place]);
            let unacknowledged: u32 = channels().map(|channel| channel.unacknowledged).sum();
            assert_eq!(peer.unacknowledged, unacknowledged);
            let mut listed = peer.list.clone();
            listed.sort_unstable();
            let lists = |place: &ChannelPlace| receiver.channels[*place].listed;
            assert!(listed.into_iter().eq(places.iter().copied().filter(lists)));
            let mut table: Vec<_> = places
                .iter()
                .map(|&place| (receiver.channels[place].setup.id, place))
                .collect();
            table.sort_unstable();
            assert_eq!(peer.table, table);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn queues_and_counts_are_those_of_whoever_is_here(seed in any::<u64>()) {
        let mut stage = Stage::new(seed);
        for _ in 0..600 {
            stage.step();
        }
    }
}

#[test]
fn the_steps_of_these_tests_deliver_states() {
    let delivered = (0..10).map(|seed| {
        let mut stage = Stage::new(seed);
        (0..600).for_each(|_| stage.step());
        stage.receiver.counters().get(Counter::StatesDelivered)
    });
    assert!(delivered.sum::<u64>() > 100);
}

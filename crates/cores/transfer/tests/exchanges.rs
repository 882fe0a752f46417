//! Random traffic with losses while channels come and go on both sides: those that stay notice
//! nothing, and whoever reads, reads what was published.

mod world;

use bumpless_base::{Duration, Instant, LinkSet, Random};
use bumpless_transfer::*;
use bumpless_wire::WireVersion;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use world::*;

/// Places and identities of the channels that stay.
const STAYING: Range<usize> = 0..3;
/// Places at which others come and go; the first two are taken at the start, by the identities of
/// the same numbers.
const COMING: Range<usize> = 3..7;
const MOST: usize = 12_000;

/// The state `number` of an identity, which names both.
fn content(identity: usize, number: u32) -> Vec<u8> {
    let seed = (identity as u64) << 32 | u64::from(number);
    let len = 8 + Random::new(seed).below(MOST as u64 - 8) as usize;
    let mut bytes = state(seed, len).0;
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes
}

/// The number of a state, which must be one of `identity`'s, byte for byte; `known` was looked at.
fn number_of(bytes: &[u8], identity: usize, known: u32) -> u32 {
    let seed = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let number = seed as u32;
    assert_eq!(seed >> 32, identity as u64, "another channel's state");
    assert!(
        number == known || bytes == content(identity, number),
        "torn"
    );
    number
}

fn channel(place: usize, deadline: Duration, random: &mut Random) -> ChannelPlan {
    ChannelPlan {
        links: LinkSet::first(2),
        distribution: match random.below(2) {
            0 => Distribution::Replicate,
            _ => Distribution::Spread,
        },
        unsent: Unsent::Replace,
        max_size: MOST as u32,
        // No two deadlines are equal.
        deadline: deadline + Duration::from_nanos(7 * place as u64),
        expiry: ms(200),
        expect_within: ms(1 + random.below(20)),
    }
}

/// An application's end of a channel.
struct End<T> {
    identity: usize,
    handle: T,
}

/// Both ends of all channels in a world with losses.
struct Stage {
    world: World,
    random: Random,
    deadline: Duration,
    /// What a channel at each place is like.
    plans: Vec<ChannelPlan>,
    sending: BTreeMap<usize, End<Publisher>>,
    receiving: BTreeMap<usize, End<Subscriber>>,
    /// Who has left the sender, with what it left there.
    gone: Vec<(End<Publisher>, SenderReplacement)>,
    /// How many states each identity has published, and by place the newest that was read.
    published: [u32; COMING.end],
    newest: [u32; COMING.end],
}

impl Stage {
    fn new(seed: u64, deadline: Duration, change: impl FnOnce(&mut Plan, &mut Random)) -> Self {
        let mut random = Random::new(seed);
        let mut plan = Plan::links(2);
        plan.seed = seed;
        plan.version = [WireVersion::V1, WireVersion::V2][random.below(2) as usize];
        let plans: Vec<_> = (0..COMING.end)
            .map(|place| channel(place, deadline, &mut random))
            .collect();
        plan.channels = plans[..COMING.start + 2].to_vec();
        plan.room = COMING.len() - 2;
        for path in &mut plan.paths {
            path.loss = random.below(4) as f64 * 0.02;
            path.ack_loss = random.below(4) as f64 * 0.02;
            path.duplicate = 0.02;
            path.delay = us(20 + random.below(100));
        }
        change(&mut plan, &mut random);
        let mut world = plan.build();
        let publishers = std::mem::take(&mut world.publishers).into_iter();
        let subscribers = std::mem::take(&mut world.subscribers).into_iter();
        Self {
            world,
            random,
            deadline,
            plans,
            sending: publishers.enumerate().map(at_its_place).collect(),
            receiving: subscribers.enumerate().map(at_its_place).collect(),
            gone: Vec::new(),
            published: [0; COMING.end],
            newest: [0; COMING.end],
        }
    }

    fn coming(&mut self) -> usize {
        COMING.start + self.random.below(COMING.len() as u64) as usize
    }

    fn run(&mut self, most: Duration) {
        let span = Duration::from_nanos(self.random.below(most.as_nanos()));
        self.world.run(span);
        self.read();
    }

    /// Publishes the next state of whoever sends at a place.
    fn publish(&mut self, place: usize) {
        if let Some(end) = self.sending.get_mut(&place) {
            publish(end, &mut self.published, self.world.now);
        }
    }

    /// What can be read was published by that identity, and never gets older.
    fn read(&mut self) {
        for (&place, end) in &mut self.receiving {
            if let Some(view) = end.handle.read(self.world.now) {
                let number = number_of(view.data(), end.identity, self.newest[place]);
                assert!(number <= self.published[end.identity]);
                assert!(number >= self.newest[place], "older than before");
                self.newest[place] = number;
            }
        }
    }

    /// Exchanges a place of the sender; `None`: nobody comes. Whether it could be.
    fn exchange_sender(&mut self, place: usize, identity: Option<usize>) -> bool {
        let factory = self.world.sender.factory();
        let (replacement, end) = match identity {
            None => (factory.vacant(), None),
            Some(identity) => {
                let setup = self.plans[place].sender(id(identity));
                let (replacement, handle) = factory.prepare(ChannelPlace(place), &setup).unwrap();
                (replacement, Some(End { identity, handle }))
            }
        };
        self.put_sender(place, replacement, end)
    }

    fn put_sender(
        &mut self,
        place: usize,
        replacement: SenderReplacement,
        end: Option<End<Publisher>>,
    ) -> bool {
        let (now, sender) = (self.world.now, &mut self.world.sender);
        let Ok(left) = sender.exchange(ChannelPlace(place), replacement, now) else {
            return false;
        };
        let before = match end {
            Some(end) => self.sending.insert(place, end),
            None => self.sending.remove(&place),
        };
        self.gone.extend(before.map(|end| (end, left)));
        true
    }

    fn exchange_receiver(&mut self, place: usize, identity: Option<usize>) -> bool {
        let factory = self.world.receiver.factory();
        let (replacement, end) = match identity {
            None => (factory.vacant(), None),
            Some(identity) => {
                let setup = self.plans[place].receiver(id(identity));
                let (replacement, handle) = factory.prepare(ChannelPlace(place), &setup).unwrap();
                (replacement, Some(End { identity, handle }))
            }
        };
        let (now, receiver) = (self.world.now, &mut self.world.receiver);
        if receiver
            .exchange(ChannelPlace(place), replacement, now)
            .is_err()
        {
            return false;
        }
        let before = match end {
            Some(end) => self.receiving.insert(place, end),
            None => self.receiving.remove(&place),
        };
        // Who succeeds its like reads nothing older than that.
        if before.map(|end| end.identity) != identity {
            self.newest[place] = 0;
        }
        true
    }

    /// Somebody who left publishes, and perhaps comes back.
    fn stir(&mut self) {
        let at = self.random.below(8) as usize;
        if at >= self.gone.len() {
            return;
        }
        publish(&mut self.gone[at].0, &mut self.published, self.world.now);
        if self.random.chance(0.5) {
            let (end, replacement) = self.gone.swap_remove(at);
            self.put_sender(end.handle.channel().0, replacement, Some(end));
        }
        self.gone.truncate(8);
    }

    /// Every state of a channel that stays was safe in time or made way for a later one.
    fn check_staying(&self) {
        for (at, event) in &self.world.events {
            if let SenderEvent::Failed { channel, .. } = event {
                assert!(!STAYING.contains(&channel.0), "{at:?} {event:?}");
            }
        }
    }

    /// When all has settled, whoever is on both sides gets its states through.
    fn check_end(&mut self) {
        self.world.run(self.deadline * 2);
        self.world.sender.handle_timeout(self.world.now);
        assert_eq!(self.world.sender.in_flight(PEER), 0);
        assert_eq!(self.world.sender.poll_timeout(), None);
        (0..COMING.end).for_each(|place| self.publish(place));
        self.world.run(self.deadline);
        self.read();
        for end in self.sending.values() {
            let there = self
                .receiving
                .iter()
                .find(|(_, r)| r.identity == end.identity);
            if let Some((&place, _)) = there {
                assert_eq!(self.newest[place], self.published[end.identity]);
            }
        }
        self.check_staying();
    }
}

fn at_its_place<T>((place, handle): (usize, T)) -> (usize, End<T>) {
    let identity = place;
    (place, End { identity, handle })
}

fn publish(end: &mut End<Publisher>, published: &mut [u32], now: Instant) {
    published[end.identity] += 1;
    let bytes = content(end.identity, published[end.identity]);
    end.handle.publish(now, |buffer| {
        buffer[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whoever_stays_loses_nothing_and_nobody_reads_what_was_not_published(seed in any::<u64>()) {
        let mut stage = Stage::new(seed, ms(40), |_, _| {});
        for _ in 0..400 {
            let place = stage.coming();
            let identity = stage.random.chance(0.7).then(|| stage.coming());
            match stage.random.below(10) {
                0..3 => stage.publish(place),
                3..6 => stage.publish(place % STAYING.end),
                6 => { stage.exchange_sender(place, identity); }
                7 => { stage.exchange_receiver(place, identity); }
                8 => stage.stir(),
                _ => {}
            }
            stage.run(us(500));
        }
        stage.check_end();
    }

    #[test]
    fn in_the_order_of_the_rules_a_small_in_flight_limit_holds_nobody_up(seed in any::<u64>()) {
        let mut stage = Stage::new(seed, ms(40), |plan, random| {
            plan.in_flight_max = 6 + random.below(10) as u32;
        });
        for _ in 0..60 {
            for _ in 0..4 {
                let place = stage.coming();
                stage.publish(place);
                stage.publish(place % STAYING.end);
                stage.run(ms(8));
            }
            let place = stage.coming();
            // Who leaves, leaves the sender first; who comes, comes to the receiver first.
            stage.exchange_sender(place, None);
            stage.run(us(300));
            let identity = stage.random.chance(0.7).then(|| stage.coming());
            if stage.exchange_receiver(place, identity) && identity.is_some() {
                stage.run(us(300));
                prop_assert!(stage.exchange_sender(place, identity));
            } else if identity.is_some() {
                stage.exchange_receiver(place, None);
            }
        }
        stage.check_end();
    }

    #[test]
    fn exchanges_of_channels_at_rest_change_nothing_for_anybody(seed in any::<u64>()) {
        prop_assert!(at_rest(seed, true) == at_rest(seed, false));
    }
}

/// What is seen of a run: packets, and what the sender and the receiver told. Tickets are left out.
type Seen = (
    Vec<Sent>,
    Vec<(Instant, usize, Option<(u32, Duration)>)>,
    Vec<(Instant, ReceiverEvent)>,
);

/// A run in which some channels publish now and then and are succeeded by their like while they are
/// at rest, or not, and others come and go without a word.
fn at_rest(seed: u64, exchanging: bool) -> Seen {
    let mut stage = Stage::new(seed, ms(20), |plan, _| {
        for path in &mut plan.paths {
            (path.loss, path.ack_loss, path.duplicate) = (0.0, 0.0, 0.0);
        }
    });
    // Each channel's losses are its own: the old one would answer when it is asked for its
    // acknowledgement before a packet of the next state has come, its successor does not.
    let mut losses: Vec<_> = (0..COMING.end as u64)
        .map(|place| Random::new(seed ^ place))
        .collect();
    stage.world.lose = Box::new(move |sent| losses[sent.channel].chance(0.05));
    let mut rests_from = [stage.world.now; COMING.end];
    for round in 0..600 {
        stage.publish(round % STAYING.end);
        stage.run(ms(1));
        let (place, gap) = (stage.coming(), stage.random.chance(0.5));
        let silent = place >= COMING.start + 2;
        if stage.world.now < rests_from[place] {
            continue;
        }
        let identity = (!silent || gap).then_some(place);
        if exchanging {
            if gap {
                stage.exchange_sender(place, None);
            }
            assert!(stage.exchange_receiver(place, identity));
            assert!(stage.exchange_sender(place, identity));
        }
        if !silent {
            stage.publish(place);
            // Over by the deadline; overdue within 20 ms of it.
            rests_from[place] = stage.world.now + ms(45);
        }
    }
    let told = stage.world.events.iter().map(|&(at, event)| match event {
        SenderEvent::Safe {
            channel,
            cycle,
            took,
            ..
        } => (at, channel.0, Some((cycle, took))),
        SenderEvent::Failed { channel, .. } | SenderEvent::Superseded { channel, .. } => {
            (at, channel.0, None)
        }
    });
    (stage.world.sent, told.collect(), stage.world.received)
}

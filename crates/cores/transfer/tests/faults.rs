//! Random faults of every kind at once never break an invariant, and when they stop, the newest
//! state arrives.

mod world;

use bumpless_base::{Duration, Instant, LinkSet, Random};
use bumpless_transfer::*;
use bumpless_wire::WireVersion;
use proptest::prelude::*;
use world::*;

const CHANNELS: usize = 3;
const EXPIRY: Duration = Duration::from_millis(80);

fn plan(random: &mut Random) -> Plan {
    let links = 1 + random.below(3) as usize;
    let mut plan = Plan::links(links);
    plan.seed = random.next_u64();
    plan.version = if random.chance(0.5) {
        WireVersion::V1
    } else {
        WireVersion::V2
    };
    plan.in_flight_max = 1 + random.below(100) as u32;
    plan.payload_size = 200 + random.below(1000) as u16;
    plan.channels = (0..CHANNELS)
        .map(|_| ChannelPlan {
            links: LinkSet(1 + random.below((1 << links) - 1) as u8),
            distribution: match random.below(2) {
                0 => Distribution::Replicate,
                _ => Distribution::Spread,
            },
            unsent: match random.below(2) {
                0 => Unsent::Replace,
                _ => Unsent::Keep,
            },
            max_size: 40_000,
            deadline: us(500 + random.below(30_000)),
            expiry: EXPIRY,
            expect_within: ms(20),
        })
        .collect();
    plan
}

fn faults(world: &mut World, random: &mut Random) {
    for link in 0..world.paths.len() {
        let path = &mut world.paths[link];
        path.loss = 0.3 * random.chance(0.5) as u8 as f64;
        path.ack_loss = 0.3 * random.chance(0.5) as u8 as f64;
        path.duplicate = 0.2 * random.chance(0.5) as u8 as f64;
        path.jitter = us(random.below(2) * random.below(1000));
        path.delay = us(10 + random.below(500));
        path.corrupt = 0.1 * random.chance(0.5) as u8 as f64;
        path.up = random.chance(0.8);
        path.blocked = random.chance(0.1);
        world.set_healthy(link as u8, random.chance(0.8));
    }
}

fn calm(world: &mut World) {
    for link in 0..world.paths.len() {
        world.paths[link] = Path::default();
        world.set_healthy(link as u8, true);
    }
}

/// What was published, by channel and number, with the time.
type Published = Vec<Vec<(Instant, State)>>;

/// Whole, forward and fresh. A state tells its number in its first bytes.
fn check(world: &mut World, published: &Published, newest: &mut [u64; CHANNELS]) {
    for channel in 0..CHANNELS {
        let Some((_, bytes)) = world.read(channel) else {
            continue;
        };
        let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
        let (at, state) = &published[channel][number as usize];
        assert_eq!(&bytes, state, "whole");
        assert!(number >= newest[channel], "forward");
        // Transit is what a receiver cannot know: delay, jitter and queueing of one packet.
        assert!(world.now < *at + EXPIRY + ms(3), "fresh");
        newest[channel] = number;
    }
}

fn publish(world: &mut World, random: &mut Random, published: &mut Published, channel: usize) {
    let number = published[channel].len() as u64;
    let len = 8 + random.below(39_000) as usize;
    let mut bytes = state(random.next_u64(), len);
    bytes.0[..8].copy_from_slice(&number.to_be_bytes());
    world.publish(channel, &bytes);
    published[channel].push((world.now, bytes));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn faults_break_no_invariant_and_after_them_the_newest_state_arrives(
        seed in any::<u64>(),
    ) {
        let mut random = Random::new(seed);
        let plan = plan(&mut random);
        let mut world = plan.build();
        let mut published: Published = vec![Vec::new(); CHANNELS];
        let mut newest = [0; CHANNELS];
        for round in 0..60u32 {
            if round % 6 == 0 {
                faults(&mut world, &mut random);
            }
            for channel in 0..CHANNELS {
                if random.chance(0.6) {
                    publish(&mut world, &mut random, &mut published, channel);
                }
            }
            match random.below(40) {
                0 => world.restart_sender(1000 + round),
                1 => world.restart_receiver(1000 + round),
                2 => world.set_session(None),
                3 => world.set_session(Some(2000 + round)),
                _ => {}
            }
            world.run(us(random.below(8000)));
            check(&mut world, &published, &mut newest);
        }
        calm(&mut world);
        world.set_session(Some(9999));
        world.run(ms(40));
        for channel in 0..CHANNELS {
            publish(&mut world, &mut random, &mut published, channel);
            world.run(ms(15));
            check(&mut world, &published, &mut newest);
        }
        for channel in 0..CHANNELS {
            let missed = world.events.iter().rev().take(6).any(|(_, event)| matches!(
                event, SenderEvent::Failed { channel: c, .. } if *c == ChannelPlace(channel)
            ));
            let last = published[channel].len() as u64 - 1;
            prop_assert!(newest[channel] == last || missed, "channel {channel}");
        }
    }
}

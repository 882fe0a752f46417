//! How long recovery takes when nothing that follows shows a loss, after a machine has stood still and
//! behind the link's own queue.

mod world;

use bumpless_base::{Counter, Duration};
use bumpless_transfer::{Distribution, SenderEvent};
use bumpless_wire::WireVersion;
use proptest::collection::btree_set;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use world::*;

const SIZES: [usize; 7] = [128, 512, 1000, 2000, 10_000, 100_000, 1_000_000];
/// A driver that sends bursts of half a millisecond's worth.
const AHEAD: Duration = Duration::from_micros(500);

/// A local network between two virtual machines.
fn machines(seed: u64) -> World {
    let mut world = Plan::links(1)
        .with(|p| {
            p.seed = seed;
            p.paths[0].ahead = AHEAD;
        })
        .build();
    // Round trips of 60 to 150 us.
    world.paths[0].delay = us(30 + seed % 46);
    world
}

/// A transfer while machines stand still now and then.
fn disturbed(world: &mut World, cycle: u64, size: usize) {
    world.lose = Box::new(|_| false);
    world.paths[0].stall = 150.0 / size.max(1000) as f64;
    world.transfer(&state(cycle, size)).unwrap();
    world.paths[0].stall = 0.0;
    world.run(ms(4));
}

/// The longest of transfers of `size` of which packet `lost` is lost, each after some that
/// stalls have disturbed, and the median without stalls and losses.
fn with_stalls_before(size: usize, lost: impl Fn(usize) -> usize) -> (Duration, Duration) {
    let packets = size.div_ceil(1000).max(1);
    let mut clean = Vec::new();
    let mut hurt = Vec::new();
    for seed in 0..5 {
        let mut world = machines(seed);
        for cycle in 0..12 {
            world.lose = Box::new(|_| false);
            clean.push(world.transfer(&state(cycle, size)).unwrap());
            world.run(ms(2));
            disturbed(&mut world, cycle, size);
            disturbed(&mut world, cycle, 100_000);
            let number = world.sent.len() + lost(packets);
            world.lose = Box::new(move |sent| sent.number == number);
            hurt.push(world.transfer(&state(cycle, size)).unwrap());
            world.run(ms(2));
        }
    }
    clean.sort();
    (clean[clean.len() / 2], hurt.into_iter().max().unwrap())
}

#[test]
fn after_stalls_a_lost_first_packet_costs_less_than_half_a_millisecond() {
    for size in SIZES {
        let (clean, hurt) = with_stalls_before(size, |_| 0);
        assert!(hurt <= clean + us(500), "{size}: {clean} {hurt}");
    }
}

#[test]
fn after_stalls_a_lost_last_packet_costs_less_than_half_a_millisecond() {
    for size in SIZES {
        let (clean, hurt) = with_stalls_before(size, |packets| packets - 1);
        assert!(hurt <= clean + us(500), "{size}: {clean} {hurt}");
    }
}

/// The data packets and acknowledgements of one transfer that are lost, in the order in which they leave.
fn losses() -> impl Strategy<Value = (BTreeSet<usize>, BTreeSet<usize>)> {
    let row = (0usize..20, 0usize..11).prop_map(|(from, n)| (from..from + n).collect());
    let scattered = btree_set(0usize..30, 0..8);
    let acks = btree_set(0usize..6, 0..4);
    (prop_oneof![row, scattered], acks)
}

/// So many channels with states of one packet, later ones with later deadlines; some transfers are over.
fn many(channels: usize) -> World {
    let mut world = Plan::links(1)
        .with(|p| {
            let plan = p.channels[0];
            p.channels = (0..channels as u64)
                .map(|n| ChannelPlan {
                    deadline: ms(50) + us(n),
                    max_size: 1000,
                    ..plan
                })
                .collect();
        })
        .build();
    for cycle in 0..10 {
        world.transfer(&state(cycle, 1000)).unwrap();
    }
    world.sent.clear();
    world.events.clear();
    world
}

#[test]
fn losses_of_every_channel_are_found_alike_whatever_its_deadline() {
    let mut world = many(5);
    world.lose = Box::new(|sent| sent.number < 30);
    for channel in 0..5 {
        world.publish(channel, &state(1, 1000));
    }
    world.run(ms(40));
    // Six waits, the five channels' packets before each, and the way there and back.
    let most = us(6 * 210 + 5 * 9 + 110);
    assert_eq!(world.events.len(), 5);
    for (_, event) in &world.events {
        assert!(
            matches!(event, SenderEvent::Safe { took, .. } if *took <= most),
            "{event:?}"
        );
    }
}

#[test]
fn a_partner_that_no_link_reaches_is_probed_rarely_until_one_does() {
    let asked = |healthy: bool| {
        let mut world = many(1);
        world.lose = Box::new(|_| true);
        world.set_healthy(0, healthy);
        world.publish(0, &state(1, 1000));
        world.run(ms(10));
        (world.sent.len(), world)
    };
    let (prompt, _) = asked(true);
    // Once, after a round trip, and after 2, 4, 8 and 16 times the probe timeout of a fifth of a millisecond.
    let (rare, mut world) = asked(false);
    assert!(prompt >= 13 && rare <= 7, "{prompt}, {rare}");
    world.set_healthy(0, true);
    world.run(us(1));
    assert_eq!(world.sent.len(), rare + 1);
}

#[test]
fn a_partner_that_stands_still_is_not_flooded_by_many_channels() {
    const CHANNELS: usize = 200;
    let mut world = many(CHANNELS);
    world.lose_ack = Box::new(|_, _| true);
    for channel in 0..CHANNELS {
        world.publish(channel, &state(1, 1000));
    }
    world.run(ms(40));
    let probes_within = |span: Duration| {
        let end = world.sent[0].at + span;
        world.sent.iter().filter(|s| s.probe && s.at < end).count()
    };
    // Each asks once, and then after two, four, eight and again and again sixteen times the probe timeout,
    // which is a fifth of a millisecond here; the one with the earliest deadline twelve times at once.
    let most = CHANNELS * (4 + 40 * 10 / 32) + 64 + 12;
    assert!(probes_within(ms(40)) <= most, "{}", probes_within(ms(40)));
    assert!(
        probes_within(ms(2)) <= 64 + 3 * CHANNELS,
        "{}",
        probes_within(ms(2))
    );
}

proptest! {
    #[test]
    fn up_to_twelve_losses_cost_a_round_trip_and_100_us_each(
        (packets, acks) in losses(),
        size in 1usize..25_000,
        (version, links, distribution) in prop_oneof![
            Just((WireVersion::V1, 1, Distribution::Replicate)),
            Just((WireVersion::V2, 1, Distribution::Replicate)),
            Just((WireVersion::V2, 2, Distribution::Replicate)),
            Just((WireVersion::V2, 2, Distribution::Spread)),
        ],
    ) {
        let mut world = Plan::links(links).with(|p| {
            p.version = version;
            p.channels[0].distribution = distribution;
            p.first_round_trip = Some(us(100));
        }).build();
        for cycle in 0..30 {
            world.transfer(&state(cycle, size)).unwrap();
        }
        let floor = world.transfer(&state(30, size)).unwrap();
        let (sent, answered) = (world.sent.len(), world.acks);
        let lost = Rc::new(Cell::new(0u64));
        let count = |doomed: bool, lost: &Cell<u64>| {
            let doomed = doomed && lost.get() < 12;
            lost.set(lost.get() + u64::from(doomed));
            doomed
        };
        let (a, b) = (Rc::clone(&lost), Rc::clone(&lost));
        world.lose = Box::new(move |s| count(packets.contains(&(s.number - sent)), &a));
        world.lose_ack = Box::new(move |n, _| count(acks.contains(&(n - answered)), &b));
        let took = world.transfer(&state(31, size)).unwrap();
        // A full packet takes 9 us, an answer 100.
        let each = us(110 + 100);
        prop_assert!(took <= floor + each * lost.get() + us(20), "{} {} {}", floor, took, lost.get());
    }
}

#[test]
fn a_longer_way_is_learned_though_every_packet_was_probed_meanwhile() {
    let mut world = Plan::links(1).build();
    for cycle in 0..20 {
        world.transfer(&state(cycle, 800)).unwrap();
    }
    world.paths[0].delay = ms(3);
    for cycle in 0..40 {
        world.transfer(&state(cycle, 800)).unwrap();
        world.run(ms(10));
    }
    let before = world.sent_count(Counter::PacketsProbe);
    for cycle in 0..20 {
        world.transfer(&state(cycle, 800)).unwrap();
        world.run(ms(10));
    }
    assert_eq!(world.sent_count(Counter::PacketsProbe), before);
}

#[test]
fn what_waits_in_the_senders_own_queue_is_not_asked_for() {
    let mut world = Plan::links(1).with(|p| p.paths[0].ahead = AHEAD).build();
    for cycle in 0..20 {
        world.transfer(&state(cycle, 800)).unwrap();
    }
    // Handed over at once, under way for as long as four round trips.
    world.transfer(&state(20, 50_000)).unwrap();
    assert_eq!(world.sent_count(Counter::PacketsProbe), 0);
}

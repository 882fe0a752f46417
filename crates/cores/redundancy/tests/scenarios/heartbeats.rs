//! Heartbeats of a pair that is well: a backup answers its primary's.

use super::world::{End, MS, Plan, World};
use bumpless_base::Counter;
use bumpless_redundancy::{Event, RedundancyLevel};

/// For how long the permit of `node` holds on, nanoseconds, when it is looked at every 50 us for 100 ms: the least.
fn least_left(world: &mut World, node: End) -> u64 {
    let look = |_| {
        world.run_for(MS / 20);
        let now = world.local(node);
        let permit = world.core(node).output_permit(super::world::GROUP);
        permit.map_or(0, |permit| permit.until.since(now).as_nanos())
    };
    (0..2000).map(look).min().unwrap_or_default()
}

fn rounds(world: &mut World, node: End) -> u64 {
    world.core(node).counters().get(Counter::HeartbeatsSent) / 2
}

#[test]
fn a_primarys_promise_is_no_older_than_heartbeat_and_round_trip() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        // The witnesses' leases would hide it.
        for node in 0..2 {
            (0..2).for_each(|witness| world.cut_reference(node, witness));
        }
        world.run_for(50 * MS);
        // Lease, heartbeat, round trip of 0.3 ms at most, clocks and timers that are a little late.
        let least = least_left(&mut world, 0);
        assert!(least >= 7_400_000, "seed {seed}: {least} ns");
    }
}

#[test]
fn a_backup_sends_one_round_just_after_each_of_its_primarys() {
    for seed in 0..10 {
        let mut world = World::settled(Plan::default(), seed);
        world.run_for(50 * MS);
        let before = [0, 1].map(|node| rounds(&mut world, node));
        let mut sent = [0; 2];
        let mut primary_sent_at = world.now;
        for _ in 0..20_000 {
            world.run_for(MS / 20);
            let now = [0, 1].map(|node| rounds(&mut world, node) - before[node]);
            if now[0] > sent[0] {
                primary_sent_at = world.now;
            }
            let after = world.now - primary_sent_at;
            assert!(
                now[1] == sent[1] || after <= MS / 4,
                "seed {seed}: {after} ns"
            );
            sent = now;
        }
        assert!(sent[0] >= 480 && sent[1].abs_diff(sent[0]) <= 2, "{sent:?}");
    }
}

#[test]
fn a_backup_whose_primary_is_not_heard_goes_on_with_its_heartbeats() {
    let mut world = World::settled(Plan::default(), 8);
    for link in 0..world.plan.links {
        world.cuts.insert((0, 1, link));
    }
    // Longer than a link may be silent; not so long that what is heard echoes nothing young.
    world.run_for(14 * MS);
    let silent = world.had(0, |event| matches!(event, Event::LinkDown { .. }));
    assert!(!silent);
}

#[test]
fn a_backup_that_answers_says_that_a_network_is_back() {
    let mut world = World::settled(Plan::default(), 9);
    let level = |world: &World| {
        let told = world.nodes[1].events.iter().rev();
        told.map(|(_, event)| event).find_map(|event| match event {
            Event::Redundancy { level, .. } => Some(*level),
            _ => None,
        })
    };
    world.cut(0, 1, 0);
    world.run_for(50 * MS);
    assert!(matches!(level(&world), Some(RedundancyLevel::Degraded(_))));
    world.cuts.clear();
    world.run_for(50 * MS);
    assert_eq!(level(&world), Some(RedundancyLevel::Ok));
}

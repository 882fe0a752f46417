//! Changing the configuration of a running pair, with crashes, pauses and loss at every
//! step.

mod world;

use bumpless_redundancy::*;
use world::*;

const OLD: u64 = 77;
const NEXT: u64 = 78;

fn prepare(world: &mut World, node: End, next: u64) {
    let now = world.local(node);
    if world.nodes[node].core.is_some()
        && world
            .core(node)
            .prepare_configuration(next, false, now)
            .is_ok()
    {
        world.nodes[node].next = Some(next);
        world.act(node);
    }
}

fn in_force(world: &World) -> [u64; 2] {
    [0, 1].map(|node| world.nodes[node].fingerprint)
}

fn never_apart(world: &World) {
    for node in 0..2 {
        assert!(!world.had(node, |e| matches!(e, Event::ConfigurationDiffers { .. })));
    }
}

#[test]
fn a_running_pair_changes_without_a_conflict_and_without_a_pause() {
    for order in [[0, 1], [1, 0]] {
        let mut world = World::settled(Plan::default(), 31);
        for node in order {
            prepare(&mut world, node, NEXT);
            world.run_for(20 * MS);
        }
        assert_eq!(in_force(&world), [NEXT; 2]);
        assert_eq!(world.roles(), [Some(Role::Primary), Some(Role::Backup)]);
        assert!(world.longest_gap < 10 * MS, "{}", world.longest_gap);
        never_apart(&world);
        world.expect_no_violation("change");
    }
}

#[test]
fn what_one_node_lacks_is_not_made_and_is_withdrawn() {
    for node in 0..2 {
        let mut world = World::settled(Plan::default(), 32);
        prepare(&mut world, node, NEXT);
        world.run_for(200 * MS);
        assert_eq!(in_force(&world), [OLD; 2]);
        let now = world.local(node);
        assert_eq!(world.core(node).withdraw_configuration(now), Ok(()));
        assert!(world.is_healed());
        never_apart(&world);
    }
}

#[test]
fn stragglers_from_before_a_change_stop_nobody() {
    let mut world = World::settled(Plan::default(), 33);
    world.record = true;
    world.run_for(10 * MS);
    world.record = false;
    prepare(&mut world, 0, NEXT);
    prepare(&mut world, 1, NEXT);
    world.run_for(20 * MS);
    assert_eq!(in_force(&world), [NEXT; 2]);
    for (from, link, bytes) in world.recorded.clone() {
        world.inject(1 - from, from, link, bytes);
    }
    world.run_for(50 * MS);
    never_apart(&world);
    assert!(world.is_healed());
}

#[test]
fn in_storms_with_crashes_at_any_step_both_end_with_one_configuration() {
    let mut changed = 0;
    for seed in 0..40 {
        let mut world = World::settled(Plan::default(), 1000 + seed);
        let mut next = OLD;
        for _ in 0..4 {
            next += 1;
            world.storm(30 * MS);
            for node in [seed as usize % 2, 1 - seed as usize % 2] {
                prepare(&mut world, node, next);
                let span = world.random.below(12 * MS);
                world.storm(span);
                if world.random.chance(0.3) {
                    let node = world.random.below(2) as usize;
                    world.kill(node);
                    world.storm(5 * MS);
                    world.start(node);
                }
            }
        }
        world.calm();
        world.run_for(3000 * MS);
        let [a, b] = in_force(&world);
        assert_eq!(a, b, "seed {seed}");
        changed += u64::from(a > OLD);
        assert!(world.is_healed(), "seed {seed}");
        never_apart(&world);
        world.expect_no_violation("storm");
    }
    assert!(changed > 25, "{changed}");
}

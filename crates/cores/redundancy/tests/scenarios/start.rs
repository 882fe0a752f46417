//! How a pair or one of its nodes starts.

use super::became;
use super::world::{MS, Plan, World};
use bumpless_redundancy::*;

#[test]
fn a_lone_node_starts_only_when_every_witness_grants() {
    let mut world = World::new(Plan::default(), 10);
    world.run_for(200 * MS);
    world.witnesses[1] = None;
    world.start(0);
    world.run_for(1000 * MS);
    assert_eq!(world.roles()[0], Some(Role::Starting));
    assert_eq!(
        world.status(0).waiting,
        Some(WaitCause::ReferenceSilent(ReferenceId(1)))
    );
    world.start_witness(1);
    world.run_for(200 * MS);
    assert!(world.writes(0).is_some());
    assert!(world.had(0, became(Role::Primary, RoleCause::LoneStart)));
}

#[test]
fn the_preferred_node_starts_as_primary_in_whatever_order_they_come() {
    for seed in 0..20 {
        let mut world = World::new(Plan::default(), seed);
        let first = seed as usize % 2;
        world.start(first);
        let later = world.random.below(90) * MS;
        world.run_for(later);
        world.start(1 - first);
        world.run_for(300 * MS);
        assert_eq!(
            world.roles(),
            [Some(Role::Primary), Some(Role::Backup)],
            "seed {seed}"
        );
    }
}

#[test]
fn with_different_configurations_both_say_so_and_neither_writes() {
    let mut world = World::new(Plan::default(), 15);
    world.run_for(200 * MS);
    world.nodes[1].fingerprint = 78;
    world.start(0);
    world.start(1);
    world.run_for(1000 * MS);
    for node in 0..2 {
        assert!(world.had(node, |e| matches!(e, Event::ConfigurationDiffers { .. })));
        assert!(world.writes(node).is_none());
        let cause = RedundancyCause::ConfigurationDiffers;
        assert_eq!(world.status(node).redundancy, RedundancyLevel::Lost(cause));
    }
    assert_eq!(world.last_write, 0);
    world.kill(1);
    world.nodes[1].fingerprint = 77;
    world.start(1);
    world.run_for(1000 * MS);
    assert!(world.is_healed());
}

//! Epochs that others have seen, and the end of their range.

use super::became;
use super::world::{GROUP, MS, Plan, World};
use bumpless_base::Epoch;
use bumpless_redundancy::*;

#[test]
fn a_higher_epoch_at_the_field_device_ends_the_primary_role() {
    let mut world = World::settled(Plan::default(), 19);
    let now = world.local(0);
    world.core(0).observe_epoch(GROUP, Epoch(1001), now);
    assert!(world.writes(0).is_none());
    world.run_for(300 * MS);
    assert!(world.is_healed());
    let writer = usize::from(world.writes(0).is_none());
    assert!(world.writes(writer).unwrap() > Epoch(1001));
}

#[test]
fn a_primary_goes_above_an_epoch_that_its_earlier_process_has_used() {
    let mut world = World::settled(Plan::default(), 22);
    let (spent, now) = (world.writes(0).unwrap(), world.local(0));
    world.core(0).observe_spent_epoch(GROUP, spent, now);
    world.run_for(50 * MS);
    assert!(world.writes(0).unwrap() > spent);
    assert!(!world.had(0, became(Role::Starting, RoleCause::HigherEpoch)));
    assert!(world.is_healed());
    world.expect_no_violation("spent epoch");
}

#[test]
fn a_node_stops_when_the_range_of_epochs_is_used_up() {
    let mut world = World::settled(Plan::default(), 20);
    let now = world.local(0);
    world.core(0).observe_epoch(GROUP, Epoch(u32::MAX), now);
    world.run_for(500 * MS);
    for node in 0..2 {
        assert!(world.writes(node).is_none());
    }
    assert!(world.had(0, became(Role::Stopped, RoleCause::EpochsExhausted)));
    world.expect_no_violation("exhausted");
}

#[test]
fn the_last_epochs_of_the_range_are_used_in_order() {
    let mut world = World::settled(Plan::default(), 21);
    let now = world.local(0);
    world.core(0).observe_epoch(GROUP, Epoch(u32::MAX - 4), now);
    world.run_for(200 * MS);
    world.expect_no_violation("near the end");
    let writer = usize::from(world.writes(0).is_none());
    world.kill(writer);
    world.run_for(400 * MS);
    world.start(writer);
    world.run_for(400 * MS);
    world.expect_no_violation("near the end");
}

//! Heartbeats that come again.

use super::TAKEOVER;
use super::world::{MS, Plan, World};
use bumpless_redundancy::*;

/// What was recorded of the first node.
fn sent_by_first(world: &World) -> Vec<(usize, u8, Vec<u8>)> {
    let recorded = world.recorded.iter();
    recorded.filter(|(from, ..)| *from == 0).cloned().collect()
}

#[test]
fn heartbeats_of_an_earlier_session_do_nothing() {
    let mut world = World::settled(Plan::default(), 13);
    world.record = true;
    world.run_for(100 * MS);
    world.record = false;
    let old = sent_by_first(&world);
    world.kill(0);
    world.run_for(200 * MS);
    world.start(0);
    world.run_for(200 * MS);
    assert!(world.is_healed());
    let tag = world.core(1).transfer_tag(bumpless_base::PeerId(0));
    let before = world.status(1);
    for (from, link, bytes) in old.iter().cycle().take(5000) {
        world.inject(1, *from, *link, bytes.clone());
    }
    let after = world.status(1);
    assert_eq!(
        Status {
            permit: after.permit,
            ..before
        },
        after
    );
    assert_eq!(world.core(1).transfer_tag(bumpless_base::PeerId(0)), tag);
    world.run_for(50 * MS);
    assert!(world.is_healed());
    world.expect_no_violation("replay");
}

#[test]
fn replayed_heartbeats_do_not_keep_a_dead_primary_alive() {
    let mut world = World::settled(Plan::default(), 14);
    world.record = true;
    world.run_for(50 * MS);
    world.kill(0);
    let start = world.now;
    while world.writes(1).is_none() && world.now < start + 100 * MS {
        for (from, link, bytes) in sent_by_first(&world) {
            world.inject(1, from, link, bytes);
        }
        world.run_for(MS);
    }
    assert!(world.now - start <= TAKEOVER + MS);
}

#[test]
fn a_differing_configuration_that_is_only_replayed_stops_nobody() {
    let mut world = World::new(Plan::default(), 16);
    world.nodes[0].fingerprint = 78;
    world.record = true;
    world.start(0);
    world.start(1);
    world.run_for(100 * MS);
    world.record = false;
    let old = sent_by_first(&world);
    world.kill(0);
    world.kill(1);
    world.nodes[0].fingerprint = 77;
    world.run_for(100 * MS);
    world.start(0);
    world.start(1);
    world.run_for(300 * MS);
    assert!(world.is_healed());
    for (from, link, bytes) in old {
        world.inject(1, from, link, bytes);
    }
    world.run_for(10 * MS);
    assert!(world.is_healed());
}

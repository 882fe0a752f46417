//! Going on in simplex: no output is older than one before, whoever fails next.

mod world;

use bumpless_redundancy::*;
use world::{GROUP, MS, Plan, World};

/// States that outlive every other time, so that only the rule keeps old ones out.
fn lasting() -> Plan {
    Plan {
        expiry: 2000 * MS,
        ..Plan::default()
    }
}

fn is_simplex(world: &mut World, node: usize) -> bool {
    world.core(node).is_simplex(GROUP)
}

fn became_primary(world: &World, node: usize) -> Option<RoleCause> {
    let mut events = world.nodes[node].events.iter().rev();
    events.find_map(|(_, event)| match event {
        Event::RoleChanged { to, cause, .. } if *to == Role::Primary => Some(*cause),
        _ => None,
    })
}

/// Node 0 writes although its states do not arrive; node 1 holds an old one.
fn primary_in_simplex(seed: u64) -> World {
    let mut world = World::settled(lasting(), seed);
    world.transfer_loss = 1.0;
    world.run_for(100 * MS);
    assert!(is_simplex(&mut world, 0));
    assert!(world.longest_gap < 12 * MS, "{} ns", world.longest_gap);
    assert!(world.now - world.last_write < 6 * MS, "it goes on");
    world
}

#[test]
fn a_primary_begins_in_simplex_until_its_first_state_is_safe() {
    let mut world = World::settled(lasting(), 1);
    assert!(!is_simplex(&mut world, 0) && world.status(1).synced);
    world.kill(0);
    world.run_for(50 * MS);
    assert!(is_simplex(&mut world, 1));
    assert!(!world.core(1).is_cold(GROUP));
    world.start(0);
    world.run_for(100 * MS);
    assert!(!is_simplex(&mut world, 1) && world.status(0).synced);
}

#[test]
fn a_backup_with_an_old_state_does_not_succeed_a_primary_in_simplex() {
    for seed in 0..20 {
        let mut world = primary_in_simplex(seed);
        assert!(!world.status(1).synced);
        world.kill(0);
        world.run_for(90 * MS);
        assert!(world.writes(1).is_none(), "seed {seed}");
        assert!(world.had(1, |e| matches!(
            e,
            Event::CannotTakeOver {
                cause: WaitCause::NotSynced,
                ..
            }
        )));
        // Later it starts anew, as it would without any state.
        world.run_for(300 * MS);
        assert_eq!(became_primary(&world, 1), Some(RoleCause::LoneStart));
        assert!(world.core(1).is_cold(GROUP));
        world.expect_no_violation("simplex");
    }
}

#[test]
fn the_witness_alone_keeps_a_backup_out_that_was_told_nothing() {
    for seed in 0..20 {
        let mut world = World::settled(lasting(), seed);
        world.split();
        world.run_for(100 * MS);
        assert!(is_simplex(&mut world, 0) && world.longest_gap < 12 * MS);
        world.kill(0);
        world.run_for(80 * MS);
        assert!(world.writes(1).is_none(), "seed {seed}");
        world.run_for(400 * MS);
        assert_eq!(became_primary(&world, 1), Some(RoleCause::LoneStart));
        world.expect_no_violation("split");
    }
}

#[test]
fn the_partner_alone_is_enough_when_no_witness_answers_the_primary() {
    let mut world = World::settled(lasting(), 3);
    for reference in 0..2 {
        world.cut_reference(0, reference);
    }
    world.transfer_loss = 1.0;
    world.longest_gap = 0;
    world.run_for(100 * MS);
    assert!(is_simplex(&mut world, 0) && !world.status(1).synced);
    assert!(world.longest_gap < 12 * MS, "{} ns", world.longest_gap);
    world.kill(0);
    world.run_for(90 * MS);
    assert!(world.writes(1).is_none());
    world.expect_no_violation("by the partner");
}

#[test]
fn nothing_is_certain_before_an_answer_and_after_a_change_of_mind() {
    let mut world = World::settled(lasting(), 4);
    world.transfer_loss = 1.0;
    world.run_for(50 * MS);
    assert!(is_simplex(&mut world, 0));
    let now = world.local(0);
    world.core(0).set_simplex(GROUP, false, now);
    assert!(!is_simplex(&mut world, 0));
    world.core(0).set_simplex(GROUP, true, now);
    assert!(!is_simplex(&mut world, 0), "it was told anew to nobody");
    world.run_for(5 * MS);
    assert!(is_simplex(&mut world, 0));
}

#[test]
fn a_state_that_becomes_safe_makes_the_backup_ready_at_once() {
    let mut world = primary_in_simplex(5);
    world.transfer_loss = 0.0;
    world.run_for(10 * MS);
    assert!(world.is_healed() && !is_simplex(&mut world, 0));
    world.kill(0);
    world.run_for(15 * MS);
    assert_eq!(became_primary(&world, 1), Some(RoleCause::PartnerSilent));
    world.run_for(50 * MS);
    world.expect_no_violation("safe again");
}

#[test]
fn a_mark_that_a_restarted_witness_has_lost_does_not_let_an_old_state_in() {
    for seed in 0..20 {
        let mut world = World::settled(lasting(), seed);
        world.split();
        world.run_for(60 * MS);
        assert!(is_simplex(&mut world, 0));
        world.kill(0);
        for reference in 0..2 {
            world.start_witness(reference);
        }
        world.run_for(700 * MS);
        assert_eq!(became_primary(&world, 1), Some(RoleCause::LoneStart));
        world.expect_no_violation("lost mark");
    }
}

#[test]
fn a_primary_that_returns_at_once_does_not_revive_the_backups_old_state() {
    for seed in 0..40 {
        let mut world = World::settled(lasting(), seed);
        world.split();
        let span = 20 * MS + world.random.below(20 * MS);
        world.run_for(span);
        assert!(is_simplex(&mut world, 0));
        world.kill(0);
        world.calm();
        world.run_for(300 * MS);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation(&format!("seed {seed}"));
    }
}

#[test]
fn beside_a_new_incarnation_a_backup_asks_whether_its_state_is_old() {
    for seed in 0..20 {
        let mut world = World::settled(lasting(), seed);
        world.split();
        // What the witnesses said last to the backup was before the primary went on in simplex.
        (0..2).for_each(|reference| world.cut_reference(1, reference));
        world.run_for(60 * MS);
        assert!(is_simplex(&mut world, 0) && world.status(1).synced);
        world.kill(0);
        world.start(0);
        world.cuts.retain(|&(from, to, _)| from > 1 || to > 1);
        world.run_for(100 * MS);
        assert!(world.writes(1).is_none(), "it waits for an answer");
        world.calm();
        world.run_for(300 * MS);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation(&format!("seed {seed}"));
    }
}

#[test]
fn a_primary_that_resigns_tells_that_it_was_in_simplex() {
    for seed in 0..20 {
        let mut world = World::settled(lasting(), seed);
        world.split();
        // No witness tells the backup.
        (0..2).for_each(|reference| world.cut_reference(1, reference));
        world.run_for(60 * MS);
        assert!(is_simplex(&mut world, 0) && world.status(1).synced);
        let now = world.local(0);
        let seen = bumpless_base::Epoch(1001);
        world.core(0).observe_epoch(GROUP, seen, now);
        world.cuts.retain(|&(from, to, _)| from > 1 || to > 1);
        world.run_for(300 * MS);
        world.expect_no_violation(&format!("seed {seed}"));
        world.calm();
        world.run_for(300 * MS);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation(&format!("seed {seed}"));
    }
}

#[test]
fn without_a_witness_a_primary_is_in_simplex_at_once() {
    let plan = Plan {
        references: vec![ReferenceKind::Ping],
        ..lasting()
    };
    let mut world = World::settled(plan, 6);
    let now = world.local(0);
    assert!(!is_simplex(&mut world, 0));
    world.core(0).set_simplex(GROUP, true, now);
    assert!(is_simplex(&mut world, 0));
    assert!(!is_simplex(&mut world, 1), "not the backup");
}

#[test]
fn who_has_asked_without_a_claim_makes_none_when_a_late_state_arrives() {
    let mut world = World::settled(Plan::default(), 7);
    world.kill(0);
    world.cut_reference(1, 0);
    world.cut_reference(1, 1);
    let now = world.local(1);
    world.core(1).set_holding(GROUP, Holding::until(None), now);
    world.run_for(600 * MS);
    let now = world.local(1);
    let until = now + bumpless_base::Duration::from_secs(1);
    world
        .core(1)
        .set_holding(GROUP, Holding::until(Some(until)), now);
    assert!(!world.status(1).synced);
    world.calm();
    world.run_for(300 * MS);
    assert!(world.is_healed());
    world.expect_no_violation("late state");
}

#[test]
fn a_failover_that_found_no_witness_in_time_becomes_a_lone_start() {
    let plan = Plan {
        expiry: 150 * MS,
        ..Plan::default()
    };
    let mut world = World::settled(plan, 8);
    world.kill(0);
    world.witnesses = vec![None, None];
    world.run_for(300 * MS);
    world.start_witness(0);
    world.start_witness(1);
    world.run_for(500 * MS);
    assert_eq!(became_primary(&world, 1), Some(RoleCause::LoneStart));
    world.expect_no_violation("no witness in time");
}

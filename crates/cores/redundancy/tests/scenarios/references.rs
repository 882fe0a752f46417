//! Reference points: which one counts, and what each kind can do.

use super::TAKEOVER;
use super::world::{MS, Plan, World};
use bumpless_base::{Counter, Duration};
use bumpless_redundancy::*;

#[test]
fn a_split_with_addresses_only_makes_two_writers_as_status_warns() {
    let plan = Plan {
        references: vec![ReferenceKind::Ping; 2],
        ..Plan::default()
    };
    let mut world = World::settled(plan, 1);
    assert!(
        world
            .status(0)
            .weaknesses
            .contains(Weakness::ReferenceIsPing)
    );
    world.split();
    world.run_for(100 * MS);
    assert!(world.writes(0).is_some() && world.writes(1).is_some());
    assert!(!world.violations.is_empty(), "the checker sees it");
}

#[test]
fn an_address_stops_an_isolated_primary_and_lets_the_backup_take_over() {
    let plan = Plan {
        references: vec![ReferenceKind::Ping; 2],
        ..Plan::default()
    };
    let mut world = World::settled(plan, 1);
    world.split();
    world.cut_reference(0, 0);
    world.cut_reference(0, 1);
    world.run_for(100 * MS);
    assert!(world.writes(0).is_none() && world.writes(1).is_some());
}

/// Requests that a node sends within 100 ms, which are 50 heartbeats and ten leases.
fn requests(world: &mut World, node: usize) -> u64 {
    let sent = |world: &World| {
        let core = world.nodes[node].core.as_ref().expect("it runs");
        core.counters().get(Counter::WitnessRequests)
    };
    let before = sent(world);
    world.run_for(100 * MS);
    sent(world) - before
}

#[test]
fn a_steady_primary_renews_two_rounds_before_the_end_and_a_backup_rarer() {
    let mut world = World::settled(Plan::default(), 3);
    // With a lease of five heartbeats every third one, and every fourth one; there are two witnesses.
    for (node, expected) in [(0, 32..=36), (1, 24..=28)] {
        let asked = requests(&mut world, node);
        assert!(expected.contains(&asked), "node {node}: {asked}");
    }
}

#[test]
fn with_a_long_lease_a_steady_pair_asks_with_every_fourth_heartbeat() {
    let mut plan = Plan::default();
    plan.timing.lease = Duration::from_millis(40);
    let mut world = World::settled(plan, 3);
    for node in 0..2 {
        let asked = requests(&mut world, node);
        assert!((24..=28).contains(&asked), "node {node}: {asked}");
    }
}

#[test]
fn a_witness_that_refuses_too_long_a_lease_is_reported_and_asked_rarely() {
    let lease = Duration::from_millis(100);
    let mut plan = Plan::default();
    (plan.timing.lease, plan.timing.start_wait) = (lease, lease * 3);
    let mut world = World::settled(plan, 3);
    assert_eq!(
        world.status(0).redundancy,
        RedundancyLevel::Lost(RedundancyCause::LeaseRefused(ReferenceId(0)))
    );
    let asked = requests(&mut world, 0);
    assert!((98..=104).contains(&asked), "{asked}");
}

/// The lease is asked for rarely while the backup promises, and must stand when the promise has ended.
#[test]
fn a_primary_without_backup_writes_on_though_a_round_of_requests_is_lost() {
    for quarter in 0..32 {
        for lost_from in 0..12 {
            let mut world = World::settled(Plan::default(), 6);
            world.run_for(quarter * MS / 4);
            world.kill(1);
            world.run_for(lost_from * MS);
            (0..2).for_each(|witness| world.cut_reference(0, witness));
            world.run_for(2 * MS);
            world.cuts.clear();
            world.run_for(50 * MS);
            let lapsed = world.had(0, |event| matches!(event, Event::LeaseLapsed { .. }));
            assert!(
                !lapsed,
                "dead at {quarter} quarters, lost from {lost_from} ms"
            );
            assert!(world.writes(0).is_some());
        }
    }
}

#[test]
fn what_a_witness_does_not_answer_is_asked_again_with_each_heartbeat() {
    for node in 0..2 {
        let mut world = World::settled(Plan::default(), 4);
        world.cut_reference(node, 0);
        world.run_for(200 * MS);
        // The other one is asked as before.
        let rest = [16..=18, 12..=14][node].clone();
        let asked = requests(&mut world, node);
        let rest_asked = asked.saturating_sub(50);
        assert!(rest.contains(&rest_asked), "node {node}: {asked}");
    }
}

#[test]
fn who_is_left_alone_asks_with_each_heartbeat() {
    for dead in 0..2 {
        let mut world = World::settled(Plan::default(), 5);
        world.kill(dead);
        world.run_for(50 * MS);
        let asked = requests(&mut world, 1 - dead);
        assert!((98..=104).contains(&asked), "node {dead} is dead: {asked}");
    }
}

#[test]
fn a_dead_witness_is_replaced_and_then_a_dead_primary_too() {
    for dead in 0..2 {
        let mut world = World::settled(Plan::default(), 6);
        world.witnesses[dead] = None;
        world.run_for(200 * MS);
        assert!(world.is_healed());
        assert_eq!(world.status(1).reference, Some(ReferenceId(1 - dead as u8)));
        assert_eq!(
            world.status(0).redundancy,
            RedundancyLevel::Degraded(RedundancyCause::ReferenceSilent(ReferenceId(dead as u8)))
        );
        world.kill(0);
        let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
        assert!(took <= TAKEOVER, "{took}");
    }
}

#[test]
fn a_witness_that_only_the_backup_cannot_reach_is_replaced() {
    let mut world = World::settled(Plan::default(), 7);
    let agreed = world.status(0).reference.unwrap();
    world.cut_reference(1, agreed.0.into());
    world.run_for(200 * MS);
    assert_ne!(world.status(0).reference, Some(agreed));
    assert!(world.status(0).reference_settled);
    world.kill(0);
    let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
    assert!(took <= TAKEOVER, "{took}");
}

#[test]
fn a_change_of_reference_point_under_loss_and_a_split_leaves_one_writer() {
    for seed in 0..60 {
        let mut world = World::settled(Plan::default(), seed);
        let agreed = world.status(0).reference.unwrap();
        world.loss = 0.5;
        world.cut_reference(0, agreed.0.into());
        let until = world.random.below(60 * MS);
        world.run_for(until);
        world.split();
        if seed % 2 == 0 {
            world.cut_reference(0, 1 - usize::from(agreed.0));
        }
        world.run_for(200 * MS);
        world.expect_no_violation(&format!("seed {seed}"));
        world.calm();
        world.run_for(700 * MS);
        world.expect_no_violation(&format!("seed {seed}"));
        assert!(world.is_healed(), "seed {seed}");
    }
}

#[test]
fn without_a_reference_point_silence_alone_decides() {
    let plan = Plan {
        references: Vec::new(),
        ..Plan::default()
    };
    let mut world = World::settled(plan, 12);
    assert!(world.status(0).weaknesses.contains(Weakness::NoReference));
    world.kill(0);
    let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
    assert!(took <= TAKEOVER, "{took}");
}

#[test]
fn just_started_witnesses_show_as_a_backup_that_cannot_take_over() {
    let mut world = World::settled(Plan::default(), 1);
    assert_eq!(world.status(0).redundancy, RedundancyLevel::Ok);
    for reference in 0..2 {
        world.start_witness(reference);
    }
    world.run_for(8 * MS);
    let unready = RedundancyLevel::Degraded(RedundancyCause::BackupWithoutReference);
    assert_eq!(world.status(0).redundancy, unready);
    let took = world.run_until(2000 * MS, |w| w.status(0).redundancy == RedundancyLevel::Ok);
    assert!(took > 0 && world.is_healed());
    world.kill(0);
    let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
    assert!(
        took <= TAKEOVER,
        "redundant means that a takeover is granted: {took} ns"
    );
    world.expect_no_violation("witnesses restarted");
}

#[test]
fn a_lone_start_tells_a_refused_lease_from_one_that_is_held() {
    let lease = Duration::from_millis(100);
    let mut plan = Plan::default();
    (plan.timing.lease, plan.timing.start_wait) = (lease, lease * 3);
    let mut world = World::new(plan, 3);
    world.run_for(60 * MS);
    world.start(0);
    world.run_for(1_000 * MS);
    assert_eq!(
        world.status(0).waiting,
        Some(WaitCause::LeaseRefused(ReferenceId(0)))
    );
}

//! An ordered switchover.

use super::became;
use super::world::{GROUP, MS, Plan, World};
use bumpless_redundancy::*;

#[test]
fn a_switchover_costs_no_lease_and_both_nodes_can_order_it() {
    for ordered_at in 0..2 {
        let mut world = World::settled(Plan::default(), 8);
        let before = world.writes(0).unwrap();
        world.command_switchover(ordered_at).unwrap();
        world.run_for(30 * MS);
        assert!(world.writes(1).unwrap() > before);
        assert!(world.longest_gap < 9 * MS, "{} ns", world.longest_gap);
        world.run_for(100 * MS);
        assert!(world.is_healed());
        assert!(world.had(1, became(Role::Primary, RoleCause::HandedOver)));
        assert!(world.had(0, became(Role::Backup, RoleCause::HandOver)));
        // And back.
        world.command_switchover(1 - ordered_at).unwrap();
        world.run_for(100 * MS);
        assert!(world.is_healed() && world.writes(0).is_some());
        world.expect_no_violation("switchover");
    }
}

#[test]
fn a_switchover_ordered_at_both_nodes_at_once_is_one_and_is_done() {
    for seed in (0..200).step_by(5) {
        for first in 0..2 {
            let mut world = World::settled(Plan::default(), seed);
            // At any moment of a cycle: a state may be on its way to the backup.
            world.run_for(seed * MS / 20);
            let before = world.writes(0).unwrap();
            world.command_switchover(first).unwrap();
            world.command_switchover(1 - first).unwrap();
            world.run_for(30 * MS);
            assert!(
                world.writes(1).is_some_and(|epoch| epoch > before),
                "seed {seed}"
            );
            let abandoned = |event: &Event| matches!(event, Event::HandOverAborted { .. });
            assert!(!world.had(0, abandoned), "seed {seed}");
            world.run_for(300 * MS);
            assert!(
                world.is_healed() && world.writes(0).is_none(),
                "seed {seed}"
            );
            world.expect_no_violation("switchover ordered on both");
        }
    }
}

/// The new primary has made nothing yet, so that its last state is at the backup, whichever that is.
#[test]
fn a_role_that_is_given_back_at_once_is_taken_back_at_once() {
    let mut given_back = 0;
    for seed in 0..400 {
        let mut world = World::settled(Plan::default(), seed);
        world.run_for(seed * MS / 15);
        world.command_switchover(0).unwrap();
        while world.roles()[1] != Some(Role::Primary) {
            world.run_for(MS / 100);
        }
        if world.command_switchover(1).is_err() {
            continue;
        }
        let now = world.local(1);
        world.core(1).hand_over_ready(GROUP, now);
        world.act(1);
        given_back += u32::from(world.roles()[1] == Some(Role::Backup));
        world.run_for(30 * MS);
        assert!(
            world.writes(0).is_some(),
            "seed {seed}: {:?}",
            world.roles()
        );
        assert!(world.had(0, became(Role::Primary, RoleCause::HandedOver)));
        let gap = world.longest_gap;
        assert!(gap < 14 * MS, "seed {seed}: {gap} ns");
        world.run_for(100 * MS);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation("a role given back");
    }
    assert!(given_back > 20, "{given_back}");
}

#[test]
fn a_switchover_with_any_loss_of_messages_leaves_one_writer_and_heals() {
    for seed in 0..40 {
        let mut world = World::settled(Plan::default(), seed);
        world.loss = [0.3, 0.6, 0.9, 1.0][seed as usize % 4];
        let _ = world.command_switchover(seed as usize % 2);
        world.run_for(100 * MS);
        world.expect_no_violation(&format!("seed {seed}"));
        world.calm();
        world.run_for(600 * MS);
        world.expect_no_violation(&format!("seed {seed}"));
        assert!(world.is_healed(), "seed {seed}: {:?}", world.roles());
    }
}

#[test]
fn a_switchover_is_refused_with_the_reason() {
    let mut world = World::settled(Plan::default(), 9);
    world.kill(1);
    world.run_for(50 * MS);
    assert_eq!(
        world.command_switchover(0),
        Err(SwitchoverRefused::PartnerSilent)
    );
    world.start(1);
    let now = world.local(0);
    assert_eq!(
        world.core(0).command_switchover(GroupId(99), now),
        Err(SwitchoverRefused::UnknownGroup)
    );
    world.run_for(100 * MS);
    let now = world.local(1);
    world.core(1).set_holding(GROUP, Holding::until(None), now);
    assert_eq!(
        world.command_switchover(1),
        Err(SwitchoverRefused::BackupNotSynced)
    );
    assert!(world.writes(0).is_some());
}

#[test]
fn an_unfit_backup_takes_no_role_by_order_and_says_why() {
    let mut world = World::settled(Plan::default(), 9);
    let now = world.local(1);
    let unfit = Holding {
        fit: false,
        ..Holding::until(None)
    };
    world.core(1).set_holding(GROUP, unfit, now);
    assert_eq!(
        world.command_switchover(1),
        Err(SwitchoverRefused::BackupUnfit)
    );
}

//! One test for each promise: failover, splits, reference points, switchover, return.

mod world;

use bumpless_base::{Duration, Epoch};
use bumpless_redundancy::*;
use world::{GROUP, MS, Plan, World};

/// Lease, heartbeat, round trip to the witness, and one timer grain.
const TAKEOVER: u64 = 14 * MS;

fn became(role: Role, cause: RoleCause) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::RoleChanged { to, cause: c, .. } if *to == role && *c == cause)
}

#[test]
fn a_killed_primary_is_replaced_within_a_lease_and_a_heartbeat() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        let offset = world.random.below(5 * MS);
        world.run_for(offset);
        let before = world.writes(0).unwrap();
        world.kill(0);
        let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
        assert!(took <= TAKEOVER, "seed {seed}: {took} ns");
        assert!(world.writes(1).unwrap() > before);
        assert!(world.had(1, became(Role::Primary, RoleCause::PartnerSilent)));
        world.expect_no_violation("kill");
    }
}

#[test]
fn a_killed_primary_returns_as_backup() {
    let mut world = World::settled(Plan::default(), 1);
    world.kill(0);
    world.run_for(500 * MS);
    world.start(0);
    let took = world.run_until(1000 * MS, World::is_healed);
    assert!(took < 50 * MS, "{took}");
    assert_eq!(world.roles(), [Some(Role::Backup), Some(Role::Primary)]);
    world.expect_no_violation("return");
}

#[test]
fn two_writers_after_link_loss_never() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        world.split();
        world.run_for(300 * MS);
        assert!(
            world.writes(0).is_some() && world.writes(1).is_none(),
            "the primary goes on"
        );
        assert!(world.longest_gap < 10 * MS, "without a gap");
        assert_eq!(
            world.status(0).redundancy,
            RedundancyLevel::Lost(RedundancyCause::PartnerSilent)
        );
        world.calm();
        world.run_for(300 * MS);
        assert!(world.is_healed());
        assert!(!world.had(0, |e| matches!(e, Event::LeaseLapsed { .. })));
        world.expect_no_violation("split");
    }
}

#[test]
fn a_split_with_addresses_only_makes_two_writers_and_status_says_why_beforehand() {
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
fn an_address_keeps_an_isolated_primary_from_writing_and_lets_the_backup_take_over() {
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

#[test]
fn an_isolated_primary_stops_and_the_backup_takes_over() {
    for seed in 0..15 {
        let mut world = World::settled(Plan::default(), seed);
        world.split();
        world.cut_reference(0, 0);
        world.cut_reference(0, 1);
        let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
        assert!(took <= TAKEOVER, "seed {seed}: {took}");
        assert!(world.writes(0).is_none());
        world.calm();
        world.run_for(300 * MS);
        assert!(world.is_healed());
        assert!(world.had(0, became(Role::Starting, RoleCause::HigherEpoch)));
        world.expect_no_violation("isolated");
    }
}

#[test]
fn one_network_cut_changes_no_role_and_costs_no_output() {
    for link in 0..2 {
        let mut world = World::settled(Plan::default(), 5);
        world.cut(0, 1, link);
        for node in 0..2 {
            world.cut_reference(node, link.into());
        }
        world.run_for(300 * MS);
        assert!(world.is_healed());
        assert!(world.longest_gap < 10 * MS);
        let level = world.status(0).redundancy;
        assert!(matches!(level, RedundancyLevel::Degraded(_)), "{level:?}");
        // The reference point that is left is agreed on, so that the next fault is survived too.
        world.kill(0);
        let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
        assert!(took <= TAKEOVER, "{took}");
        world.expect_no_violation("one network");
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
fn a_switchover_with_any_share_of_messages_lost_leaves_one_writer_and_heals() {
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
    world.core(1).set_synced_until(GROUP, None, now);
    assert_eq!(
        world.command_switchover(1),
        Err(SwitchoverRefused::BackupNotSynced)
    );
    assert!(world.writes(0).is_some());
}

#[test]
fn a_restart_within_the_old_lease_makes_no_second_writer() {
    for seed in 0..40 {
        let mut world = World::settled(Plan::default(), seed);
        world.kill(0);
        let down = world.random.below(15 * MS);
        world.run_for(down);
        world.start(0);
        world.run_for(300 * MS);
        world.expect_no_violation(&format!("seed {seed}"));
        assert!(world.is_healed(), "seed {seed}");
        assert_eq!(
            world.roles()[1],
            Some(Role::Primary),
            "who has the state goes on"
        );
    }
}

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
fn a_lone_node_may_be_allowed_to_start_without_a_silent_witness() {
    let mut world = World::new(
        Plan {
            lone_start_without: true,
            ..Plan::default()
        },
        10,
    );
    world.witnesses[1] = None;
    world.start(0);
    world.run_for(1000 * MS);
    assert!(world.writes(0).is_some());
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
fn an_unsynced_backup_does_not_take_over_at_once() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        world.kill(0);
        // What was under way has come.
        world.run_for(2 * MS);
        let now = world.local(1);
        world.core(1).set_synced_until(GROUP, None, now);
        world.run_for(60 * MS);
        assert!(world.writes(1).is_none(), "seed {seed}");
        assert!(world.had(1, |e| matches!(
            e,
            Event::CannotTakeOver {
                cause: WaitCause::NotSynced,
                ..
            }
        )));
        world.run_for(100 * MS);
        assert!(world.had(1, became(Role::Primary, RoleCause::LoneStart)));
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
fn heartbeats_of_an_earlier_session_do_nothing() {
    let mut world = World::settled(Plan::default(), 13);
    world.record = true;
    world.run_for(100 * MS);
    world.record = false;
    let old: Vec<_> = world
        .recorded
        .iter()
        .filter(|(from, ..)| *from == 0)
        .cloned()
        .collect();
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
        let all: Vec<_> = world
            .recorded
            .iter()
            .filter(|(from, ..)| *from == 0)
            .cloned()
            .collect();
        for (from, link, bytes) in all {
            world.inject(1, from, link, bytes);
        }
        world.run_for(MS);
    }
    assert!(world.now - start <= TAKEOVER + MS);
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

#[test]
fn a_differing_configuration_that_is_only_replayed_stops_nobody() {
    let mut world = World::new(Plan::default(), 16);
    world.nodes[0].fingerprint = 78;
    world.record = true;
    world.start(0);
    world.start(1);
    world.run_for(100 * MS);
    world.record = false;
    let old: Vec<_> = world
        .recorded
        .iter()
        .filter(|(from, ..)| *from == 0)
        .cloned()
        .collect();
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

#[test]
fn a_pause_of_the_observer_is_not_silence_of_the_partner() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        world.nodes[1].events.clear();
        world.pause(1, 55 * MS);
        world.run_for(200 * MS);
        assert!(
            !world.had(1, |e| matches!(e, Event::PartnerSilent { .. })),
            "seed {seed}"
        );
        assert!(world.is_healed());
    }
}

#[test]
fn a_paused_primary_wakes_up_without_a_permit_if_the_backup_took_over() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        let span = 5 * MS + world.random.below(60 * MS);
        world.pause(0, span);
        world.run_for(400 * MS);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation(&format!("seed {seed}"));
    }
}

#[test]
fn a_primary_whose_lease_lapsed_resumes_in_the_same_epoch_if_nobody_took_over() {
    let mut world = World::settled(Plan::default(), 18);
    let epoch = world.writes(0).unwrap();
    world.split();
    for node in 0..2 {
        world.cut_reference(node, 0);
        world.cut_reference(node, 1);
    }
    world.run_for(40 * MS);
    assert!(world.had(0, |e| matches!(e, Event::LeaseLapsed { .. })));
    assert_eq!((world.writes(0), world.writes(1)), (None, None));
    let cause = RedundancyCause::PartnerSilent;
    assert_eq!(world.status(0).redundancy, RedundancyLevel::Lost(cause));
    world.cuts.retain(|&(a, b, _)| a < 2 && b < 2);
    world.cut_reference(1, 0);
    world.cut_reference(1, 1);
    world.run_for(30 * MS);
    assert!(world.had(0, |e| matches!(e, Event::LeaseRegained { .. })));
    assert_eq!(world.writes(0), Some(epoch));
    world.expect_no_violation("resume");
}

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
fn a_primary_goes_above_an_epoch_that_an_earlier_process_of_its_node_has_used() {
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

#[test]
fn one_way_links_make_no_second_writer_and_end_in_a_working_pair() {
    for (from, to) in [(0, 1), (1, 0)] {
        let mut world = World::settled(Plan::default(), 22);
        (0..2).for_each(|link| {
            world.cuts.insert((from, to, link));
        });
        world.run_for(200 * MS);
        assert!(world.writes(0).is_some(), "its lease holds");
        world.cut_reference(0, 0);
        world.cut_reference(0, 1);
        world.run_for(100 * MS);
        world.expect_no_violation("one way");
        world.calm();
        world.run_for(400 * MS);
        assert!(world.is_healed());
        world.expect_no_violation("one way");
    }
}

#[test]
fn a_primary_on_the_far_side_of_a_one_way_link_loses_its_role_to_who_reaches_the_witness() {
    let mut world = World::settled(Plan::default(), 23);
    (0..2).for_each(|link| {
        world.cuts.insert((1, 0, link));
    });
    world.cut_reference(0, 0);
    world.cut_reference(0, 1);
    // The backup heard that its state is old, perhaps: it starts anew after waiting.
    world.run_for(300 * MS);
    assert!(world.writes(1).is_some());
    world.expect_no_violation("one way");
}

#[test]
fn a_primary_that_the_witness_hears_but_that_hears_nobody_does_not_keep_the_role_from_others() {
    let mut world = World::settled(Plan::default(), 27);
    world.split();
    for reference in 0..2usize {
        world.cuts.insert((2 + reference, 0, reference as u8));
    }
    world.run_for(400 * MS);
    assert!(world.writes(0).is_none() && world.writes(1).is_some());
    world.expect_no_violation("deaf");
}

#[test]
fn long_delays_on_the_networks_are_no_fault_if_the_lease_allows_them() {
    let timing = Timing {
        lease: Duration::from_millis(100),
        peer_timeout: Duration::from_millis(20),
        start_wait: Duration::from_millis(500),
        ..Timing::default()
    };
    let plan = Plan {
        timing,
        expiry: 300 * MS,
        ..Plan::default()
    };
    let mut world = World::new(plan, 24);
    world.delay = (10 * MS, 14 * MS);
    world.start(0);
    world.start(1);
    world.run_for(2000 * MS);
    assert_eq!(world.roles(), [Some(Role::Primary), Some(Role::Backup)]);
    assert!(world.writes(0).is_some());
    let peer = bumpless_base::PeerId(0);
    let round_trip = world
        .core(0)
        .round_trip(peer, bumpless_base::LinkId(0))
        .unwrap();
    assert!((20..30).contains(&round_trip.as_millis()), "{round_trip}");
}

#[test]
fn a_node_that_has_promised_waits_for_the_end_of_its_promise_even_if_the_partner_agrees() {
    for seed in 0..10 {
        let mut world = World::settled(Plan::default(), 25 + seed);
        // The primary leaves its role for a reason of its own, without handing over.
        let now = world.local(0);
        world.core(0).observe_epoch(GROUP, Epoch(1001), now);
        let took = world.run_until(100 * MS, |w| w.writes(1).is_some());
        // The backup's last promise left at most a heartbeat before.
        assert!((7 * MS..TAKEOVER).contains(&took), "{took}");
        assert!(world.had(1, became(Role::Primary, RoleCause::Start)));
        world.expect_no_violation("promised");
    }
}

#[test]
fn a_promise_of_a_partner_that_restarted_meanwhile_does_not_bring_a_lapsed_right_back() {
    let mut world = World::settled(Plan::default(), 26);
    let old = world.writes(0).unwrap();
    world.split();
    world.cut_reference(0, 0);
    world.cut_reference(0, 1);
    world.run_for(50 * MS);
    assert!(world.writes(1).unwrap() > old);
    // Who wrote last restarts and remembers nothing; the former primary hears only it.
    world.kill(1);
    world.cuts.retain(|&(a, b, _)| a > 1 || b > 1);
    world.cut_reference(1, 0);
    world.cut_reference(1, 1);
    world.start(1);
    for _ in 0..500 {
        world.run_for(MS);
        assert_ne!(world.writes(0), Some(old));
    }
    assert!(world.had(0, became(Role::Starting, RoleCause::LapsedTooLong)));
    world.expect_no_violation("restarted ally");
}

#[test]
fn a_pair_whose_witnesses_have_just_started_says_that_the_backup_could_not_take_over() {
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

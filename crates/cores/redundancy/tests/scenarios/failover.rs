//! What a dead, isolated, paused or cut-off primary means for the pair.

use super::world::{GROUP, MS, Plan, World};
use super::{TAKEOVER, became};
use bumpless_base::{Duration, Epoch};
use bumpless_redundancy::*;

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
fn an_unsynced_backup_does_not_take_over_at_once() {
    for seed in 0..20 {
        let mut world = World::settled(Plan::default(), seed);
        world.kill(0);
        // What was under way has come.
        world.run_for(2 * MS);
        let now = world.local(1);
        world.core(1).set_holding(GROUP, Holding::until(None), now);
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
fn a_lapsed_primary_resumes_in_its_epoch_if_nobody_took_over() {
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
fn a_primary_behind_a_one_way_link_loses_to_who_reaches_the_witness() {
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
fn a_primary_that_is_heard_but_deaf_does_not_keep_the_role_from_others() {
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
fn a_promise_is_waited_out_even_if_the_partner_agrees() {
    for seed in 0..10 {
        let mut world = World::settled(Plan::default(), 25 + seed);
        let now = world.local(0);
        world.core(0).command_switchover(GROUP, now).unwrap();
        world.run_for(100 * MS);
        assert!(world.writes(1).is_some());
        // The primary leaves its role without handing over: somebody has written in a higher epoch, so neither
        // claims to have the newest state, and the one takes the role to which that epoch belongs.
        let now = world.local(1);
        world.core(1).observe_epoch(GROUP, Epoch(1000), now);
        let took = world.run_until(100 * MS, |w| w.writes(0).is_some());
        // The backup's last promise left at most a heartbeat before.
        assert!((7 * MS..TAKEOVER).contains(&took), "{took}");
        assert!(world.had(0, became(Role::Primary, RoleCause::Start)));
        world.expect_no_violation("promised");
    }
}

#[test]
fn a_restarted_partners_promise_does_not_bring_a_lapsed_right_back() {
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
    world.expect_no_violation("restarted partner");
}

//! What a state is worth that an earlier process has left on disk.

use super::became;
use super::world::{GROUP, MS, Plan, World};
use bumpless_base::{Duration, Epoch};
use bumpless_redundancy::*;

const YOUNG: u64 = 400 * MS;

fn plan() -> Plan {
    Plan {
        // As long as a state may be gone on from.
        expiry: 500 * MS,
        ..Plan::default()
    }
}

#[test]
fn a_partner_that_lives_and_holds_the_state_goes_before_a_file() {
    for seed in 0..40 {
        let mut world = World::settled(plan(), seed);
        let epoch = world.writes(0).unwrap();
        world.kill(0);
        // Before, while and after the other one takes over.
        world.run_for(seed * MS);
        world.start_with_file(0, epoch, YOUNG);
        world.run_for(300 * MS);
        assert_eq!(
            world.roles(),
            [Some(Role::Backup), Some(Role::Primary)],
            "seed {seed}"
        );
        assert!(!world.core(1).is_cold(GROUP), "seed {seed}: begun anew");
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation("a file beside a state in memory");
    }
}

#[test]
fn a_living_partner_goes_before_a_file_even_after_silent_networks() {
    for seed in 0..40 {
        let mut world = World::settled(plan(), seed);
        let epoch = world.writes(0).unwrap();
        world.split();
        (0..2).for_each(|reference| {
            world.cut_reference(0, reference);
            world.cut_reference(1, reference);
        });
        world.run_for(5 * MS);
        world.kill(0);
        world.run_for(seed * MS);
        world.start_with_file(0, epoch, YOUNG);
        world.run_for(10 * MS);
        world.cuts.clear();
        world.run_for(300 * MS);
        assert_eq!(
            world.roles(),
            [Some(Role::Backup), Some(Role::Primary)],
            "seed {seed}"
        );
        assert!(!world.core(1).is_cold(GROUP), "seed {seed}: begun anew");
    }
}

#[test]
fn of_two_with_files_only_the_last_primary_takes_the_role() {
    for seed in 0..20 {
        for (epochs, primary) in [([100, 101], 1), ([102, 101], 0), ([101, 101], 1)] {
            let mut world = World::new(plan(), seed);
            world.run_for(60 * MS);
            for (node, epoch) in epochs.into_iter().enumerate() {
                world.start_with_file(node, Epoch(epoch), YOUNG);
            }
            world.run_for(200 * MS);
            let epoch = world.writes(primary).expect("the one whose epoch it was");
            assert!(epochs.iter().all(|&file| epoch > Epoch(file)), "{epoch}");
            assert!(world.core(primary).is_cold(GROUP), "a file is no claim");
        }
    }
}

#[test]
fn a_file_goes_before_nothing_at_all() {
    for seed in 0..20 {
        let mut world = World::new(plan(), seed);
        world.run_for(60 * MS);
        world.start(0);
        world.start_with_file(1, Epoch(7), YOUNG);
        world.run_for(200 * MS);
        assert_eq!(world.roles(), [Some(Role::Backup), Some(Role::Primary)]);
    }
}

#[test]
fn a_lone_node_with_a_young_file_starts_although_a_witness_knew_a_primary() {
    let hot_restart = Duration::from_millis(1_000);
    for (file, starts) in [(true, true), (false, false)] {
        let mut world = World::settled(
            Plan {
                expiry: hot_restart.as_nanos(),
                ..plan()
            },
            3,
        );
        let epoch = world.writes(0).unwrap();
        world.kill(0);
        world.kill(1);
        match file {
            true => world.start_with_file(0, epoch, 900 * MS),
            false => world.start(0),
        }
        world.run_for(400 * MS);
        assert_eq!(world.writes(0).is_some(), starts);
        let lone = became(Role::Primary, RoleCause::LoneStart);
        assert_eq!(world.had(0, lone), starts);
    }
}

#[test]
fn in_doubt_a_node_compares_or_awaits_its_field_devices_first() {
    // Whether what node 1 holds is found to be outdated when its device is looked at, and which node then takes the role.
    for (outdated, primary) in [(Some(false), 1), (Some(true), 0), (None, 1)] {
        let mut world = World::new(plan(), 5);
        world.run_for(60 * MS);
        world.start_with_file(0, Epoch(7), YOUNG);
        world.start_with_file(1, Epoch(9), YOUNG);
        let started = world.local(1);
        let held = Holding {
            some_usable_until: Some(started + Duration::from_nanos(YOUNG)),
            uncompared_since: Some(started),
            ..Holding::NOTHING
        };
        world.core(1).set_holding(GROUP, held, started);
        world.run_for(60 * MS);
        assert_eq!([0, 1].map(|node| world.writes(node)), [None, None]);
        if let Some(outdated) = outdated {
            let some_usable_until = held.some_usable_until.filter(|_| !outdated);
            let now = world.local(1);
            let compared = Holding {
                some_usable_until,
                uncompared_since: None,
                ..held
            };
            world.core(1).set_holding(GROUP, compared, now);
            world.run_for(20 * MS);
        } else {
            // No device answers.
            world.run_for(60 * MS);
        }
        assert!(world.writes(primary).is_some(), "{outdated:?}");
    }
}

#[test]
fn in_doubt_the_states_of_all_come_before_that_of_some_on_a_fitter_node() {
    // What node 1 holds of every application, if anything, and which node then takes the role.
    for (all, primary) in [(false, 0), (true, 1)] {
        let mut world = World::new(plan(), 6);
        world.run_for(60 * MS);
        for node in [0, 1] {
            world.start_with_file(node, Epoch(9), YOUNG);
            let now = world.local(node);
            let young = Some(now + Duration::from_nanos(YOUNG));
            let held = Holding {
                usable_until: young.filter(|_| all && node == 1),
                some_usable_until: young,
                fit: node == 0,
                ..Holding::NOTHING
            };
            world.core(node).set_holding(GROUP, held, now);
        }
        world.run_for(60 * MS);
        assert!(world.writes(primary).is_some(), "all: {all}");
    }
}

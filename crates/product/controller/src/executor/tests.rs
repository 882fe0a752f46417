//! Every rule of the executor, in simulated time.

mod commit;
mod failures;
mod ordered;
mod programs;
mod restored;
mod retained;
mod starved;
mod tuning;
mod world;

use super::handover::fill;
use super::*;
use crate::{FieldError, FieldErrorKind};
use bumpless_base::{Counter, Epoch, Instant};
use world::{World, at, ms, published, settings};

#[test]
fn cycles_run_on_the_absolute_grid_however_long_they_take() {
    let world = World::new();
    world.lock().execution = ms(7);
    let reports = world.run(settings(), at(50));
    let started: Vec<_> = reports.iter().map(|report| report.started).collect();
    assert_eq!(started, [at(0), at(10), at(20), at(30), at(40)]);
    assert!(reports.iter().all(|report| report.skipped == 0));
}

#[test]
fn a_backup_keeps_connections_warm_and_never_executes() {
    let world = World::new();
    world.lock().role = Role::Backup;
    let reports = world.run(settings(), at(40));
    assert_eq!(world.lock().warmed, [at(0), at(10), at(20), at(30)]);
    assert!(world.lock().executed.is_empty() && world.lock().writes.is_empty());
    assert!(reports.iter().all(|report| report.outcome == Outcome::Warm));
}

#[test]
fn a_new_primary_executes_at_once_and_its_grid_starts_there() {
    let world = World::new();
    world.lock().role = Role::Backup;
    world.lock().backup = false;
    world.lock().received = Some(published(1, 41, 41.0));
    world.schedule(at(14), |state| {
        state.role = Role::Primary;
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(40));
    let state = world.lock();
    let written: Vec<_> = state
        .writes
        .iter()
        .map(|w| (w.at, w.epoch, w.cycle))
        .collect();
    assert_eq!(written, [(at(14), 2, 42), (at(24), 2, 43), (at(34), 2, 44)]);
    assert_eq!(
        state.writes[0].outputs,
        [42.0],
        "it goes on from the predecessor's state"
    );
    let resumed = reports.iter().find_map(|report| report.resumed);
    assert_eq!(
        resumed,
        Some(Resumed::Loaded {
            epoch: Epoch(1),
            cycle: 41
        })
    );
}

#[test]
fn a_primary_whose_permit_comes_later_starts_when_it_is_woken() {
    let world = World::new();
    let permit = world.lock().permit.take();
    world.schedule(at(14), move |state| state.permit = permit);
    let reports = world.run(settings(), at(20));
    assert_eq!(reports[0].outcome, Outcome::Held(HoldCause::NoPermit));
    assert_eq!(world.lock().executed, [at(14)]);
}

#[test]
fn without_any_state_it_starts_cold() {
    let world = World::new();
    let reports = world.run(settings(), at(10));
    assert_eq!(reports[0].resumed, Some(Resumed::ColdStart));
    assert_eq!((reports[0].cycle, world.lock().writes[0].cycle), (1, 1));
}

#[test]
fn an_older_state_never_replaces_a_newer_one() {
    for (received, first) in [
        (published(1, 2, 77.0), 4.0),
        (published(1, 3, 77.0), 4.0),
        (published(2, 1, 77.0), 78.0),
    ] {
        let world = World::new();
        let permit = world.lock().permit;
        world.schedule(at(25), |state| state.role = Role::Backup);
        world.schedule(at(41), move |state| {
            state.role = Role::Primary;
            state.permit = permit.map(|p| Permit {
                epoch: Epoch(3),
                ..p
            });
            state.received = Some(received);
        });
        world.run(settings(), at(51));
        let state = world.lock();
        let after = state.writes.iter().find(|write| write.epoch == 3).unwrap();
        assert_eq!((after.at, &after.outputs[..]), (at(41), &[first][..]));
    }
}

#[test]
fn a_lease_regained_under_another_epoch_looks_for_a_newer_state_again() {
    let world = World::new();
    world.schedule(at(15), |state| {
        state.permit = Some(Permit {
            epoch: Epoch(5),
            until: Instant::FAR_FUTURE,
        });
        state.received = Some(published(3, 90, 90.0));
    });
    let reports = world.run(settings(), at(30));
    assert_eq!(
        reports[2].resumed,
        Some(Resumed::Loaded {
            epoch: Epoch(3),
            cycle: 90
        })
    );
    assert_eq!(world.lock().writes.last().unwrap().cycle, 91);
}

#[test]
fn a_lapse_before_the_first_cycle_keeps_the_state_taken_up_in_this_term() {
    let world = World::new();
    world.lock().received = Some(published(1, 41, 41.0));
    world.lock().input = Err(FieldErrorKind::Timeout);
    world.schedule(at(25), |state| state.permit = None);
    world.schedule(at(2000), |state| {
        state.input = Ok(0.0);
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(2050));
    let resumed: Vec<_> = reports.iter().filter_map(|r| r.resumed.as_ref()).collect();
    let loaded = Resumed::Loaded {
        epoch: Epoch(1),
        cycle: 41,
    };
    assert_eq!(resumed, [&loaded, &Resumed::Kept { cycle: 41 }]);
    assert_eq!(
        world.lock().writes.first().map(|write| write.cycle),
        Some(42)
    );
}

#[test]
fn grid_points_that_a_cycle_runs_into_are_skipped_and_never_piled_up() {
    let world = World::new();
    world.lock().execution = ms(25);
    let reports = world.run(settings(), at(90));
    let started: Vec<_> = reports.iter().map(|report| report.started).collect();
    assert_eq!(started, [at(0), at(30), at(60)]);
    assert!(reports.iter().all(|report| report.skipped == 2));
}

#[test]
fn a_cycle_that_ends_on_the_next_grid_point_skips_none() {
    let world = World::new();
    world.lock().execution = ms(10);
    let reports = world.run(settings(), at(30));
    assert_eq!(reports.len(), 3);
    assert!(reports.iter().all(|report| report.skipped == 0));
}

#[test]
fn a_late_wake_keeps_the_grid() {
    let world = World::new();
    world.schedule(at(5), |state| state.oversleep = ms(23));
    let reports = world.run(settings(), at(50));
    let seen: Vec<_> = reports
        .iter()
        .map(|r| (r.scheduled, r.started, r.skipped))
        .collect();
    let expected = [(at(0), at(0), 0), (at(30), at(33), 2), (at(40), at(40), 0)];
    assert_eq!(seen, expected);
}

#[test]
fn the_published_state_is_that_of_the_cycle_and_carries_its_outputs() {
    let world = World::new();
    let reports = world.run(settings(), at(30));
    let state = world.lock();
    assert_eq!(state.published.len(), 3);
    for (index, (_, bytes)) in state.published.iter().enumerate() {
        let cycle = index as u64 + 1;
        assert_eq!(*bytes, published(1, cycle, cycle as f64));
        assert_eq!(reports[index].state_bytes, bytes.len());
    }
}

#[test]
fn a_buffer_that_is_too_small_gets_an_empty_state() {
    let progress = Progress {
        epoch: Epoch(1),
        cycle: 1,
    };
    let application = crate::QuadrupleTank::new(crate::QuadrupleTankParameters::default());
    let need = published_size_max(&application);
    let mut buffer = vec![0; need];
    assert_eq!(fill(&application, progress, &[0.0; 2], &mut buffer), need);
    assert_eq!(fill(&application, progress, &[0.0; 2], &mut buffer[1..]), 0);
}

#[test]
fn epochs_that_a_device_tells_reach_the_redundancy_layer() {
    for role in [Role::Primary, Role::Backup] {
        let world = World::new();
        world.lock().role = role;
        world.lock().device_epoch = Some(Epoch(9));
        world.run(settings(), at(10));
        assert_eq!(world.lock().epochs_seen, [Epoch(9)]);
    }
}

#[test]
fn an_epoch_in_which_an_earlier_process_wrote_is_not_written_in() {
    let world = World::new();
    world.lock().device_epoch = Some(Epoch(1));
    world.schedule(at(25), |state| {
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(60));
    assert_eq!(reports[0].outcome, Outcome::Held(HoldCause::EpochSpent));
    let written: Vec<_> = world
        .lock()
        .writes
        .iter()
        .map(|w| (w.epoch, w.cycle))
        .collect();
    assert_eq!(written[..2], [(3, 1), (3, 2)]);
    assert_eq!(world.lock().epochs_spent[0], Epoch(1));
}

#[test]
fn the_epoch_in_which_this_process_writes_is_not_taken_for_spent() {
    let world = World::new();
    world.schedule(at(5), |state| state.device_epoch = Some(Epoch(1)));
    let reports = world.run(settings(), at(60));
    assert!(
        reports
            .iter()
            .all(|report| report.outcome == Outcome::Written)
    );
    assert_eq!(world.lock().epochs_spent, []);
}

#[test]
fn an_own_state_fresh_at_takeover_is_gone_on_from_however_late() {
    let world = World::new();
    world.schedule(at(35), |state| state.role = Role::Backup);
    world.schedule(at(45), |state| {
        (state.role, state.role_since) = (Role::Primary, at(45));
        state.permit = None;
    });
    world.schedule(at(335), |state| {
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(350));
    let resumed: Vec<_> = reports.iter().filter_map(|report| report.resumed).collect();
    assert_eq!(resumed, [Resumed::ColdStart, Resumed::Kept { cycle: 4 }]);
}

/// The redundancy layer takes the role with a state that expires so long after it was published; the executor must
/// not count from when it began to execute.
#[test]
fn an_own_state_counts_as_long_as_what_was_published_has_not_expired() {
    let world = World::new();
    world.lock().execution = ms(7);
    world.schedule(at(38), |state| state.role = Role::Backup);
    world.schedule(at(95), |state| {
        (state.role, state.role_since) = (Role::Primary, at(95));
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(110));
    assert_eq!(world.lock().published[3].0, at(37));
    let resumed: Vec<_> = reports.iter().filter_map(|report| report.resumed).collect();
    assert_eq!(resumed, [Resumed::ColdStart, Resumed::Kept { cycle: 4 }]);
}

#[test]
fn an_own_state_of_long_ago_is_not_gone_on_from() {
    let world = World::new();
    world.schedule(at(35), |state| state.role = Role::Backup);
    world.schedule(at(335), |state| {
        (state.role, state.role_since) = (Role::Primary, at(335));
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(350));
    let resumed: Vec<_> = reports.iter().filter_map(|report| report.resumed).collect();
    assert_eq!(resumed, [Resumed::ColdStart, Resumed::ColdStart]);
}

#[test]
fn a_primary_whose_permit_lapsed_goes_on_however_long_that_took() {
    let world = World::new();
    world.schedule(at(35), |state| state.permit = None);
    world.schedule(at(335), |state| {
        state.permit = Some(Permit {
            epoch: Epoch(1),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(settings(), at(350));
    let resumed: Vec<_> = reports.iter().filter_map(|report| report.resumed).collect();
    assert_eq!(resumed, [Resumed::ColdStart, Resumed::Kept { cycle: 4 }]);
}

#[test]
fn a_role_that_began_cold_goes_on_from_nothing_of_an_earlier_term() {
    for cold in [false, true] {
        let world = World::new();
        world.schedule(at(25), |state| state.role = Role::Backup);
        world.schedule(at(45), move |state| {
            state.cold = cold;
            state.role = Role::Primary;
            state.permit = Some(Permit {
                epoch: Epoch(3),
                until: Instant::FAR_FUTURE,
            });
        });
        let reports = world.run(settings(), at(60));
        let resumed = reports
            .iter()
            .filter_map(|report| report.resumed)
            .next_back();
        let expected = if cold {
            Resumed::ColdStart
        } else {
            Resumed::Kept { cycle: 3 }
        };
        assert_eq!(resumed, Some(expected));
    }
}

/// What a role that began in doubt goes on from, whose node has executed cycles 1 to 3 in epoch 1.
fn resumed_in_doubt(commit: CommitMode, told: Option<(u32, u64)>) -> Resumed {
    let world = World::new();
    world.schedule(at(25), |state| state.role = Role::Backup);
    world.schedule(at(45), move |state| {
        (state.cold, state.role) = (true, Role::Primary);
        state.device_epoch = told.map(|(epoch, _)| Epoch(epoch));
        state.device_cycle = told.map(|(_, cycle)| cycle);
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    let settings = ExecutorSettings {
        commit,
        ..settings()
    };
    let reports = world.run(settings, at(60));
    let mut resumed = reports.iter().filter_map(|report| report.resumed);
    resumed.next_back().unwrap()
}

#[test]
fn in_doubt_the_field_device_shows_whether_a_held_state_is_the_newest() {
    use CommitMode::{Async, BeforeOutput};
    let kept = Resumed::Kept { cycle: 3 };
    for (commit, told, expected) in [
        (BeforeOutput, Some((1, 3)), kept),
        (BeforeOutput, Some((1, 2)), kept),
        // Somebody has written what this node does not have.
        (BeforeOutput, Some((1, 4)), Resumed::ColdStart),
        (BeforeOutput, Some((2, 1)), Resumed::ColdStart),
        // A backup may be a cycle behind.
        (Async, Some((1, 4)), kept),
        (Async, Some((1, 5)), Resumed::ColdStart),
        // It tells nothing, or has forgotten what it accepted.
        (BeforeOutput, None, Resumed::ColdStart),
        (BeforeOutput, Some((0, 0)), Resumed::ColdStart),
    ] {
        assert_eq!(
            resumed_in_doubt(commit, told),
            expected,
            "{commit:?} {told:?}"
        );
    }
}

#[test]
fn in_doubt_a_silent_device_is_awaited_while_the_state_is_young_enough() {
    let kept = Resumed::Kept { cycle: 3 };
    for (answers, expected) in [(at(65), kept), (at(95), Resumed::ColdStart)] {
        let resumed = resumed_once_the_device_answers(answers);
        assert_eq!(resumed, [Resumed::ColdStart, expected]);
    }
}

/// With what the tenures began, the second in doubt, of a node that wrote until 25 ms and has the role again from
/// 45 ms on, while its device answers again from `answers` on.
fn resumed_once_the_device_answers(answers: Instant) -> Vec<Resumed> {
    let world = World::new();
    world.schedule(at(25), |state| state.role = Role::Backup);
    world.schedule(at(45), |state| {
        (state.cold, state.role) = (true, Role::Primary);
        state.input = Err(FieldErrorKind::Timeout);
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    world.schedule(answers, |state| {
        (state.device_epoch, state.device_cycle) = (Some(Epoch(1)), Some(3));
        state.input = Ok(1.0);
    });
    let reports = world.run(settings(), at(120));
    reports.iter().filter_map(|report| report.resumed).collect()
}

#[test]
fn an_abandoned_hand_over_costs_no_state_however_long_the_pause() {
    let world = World::new();
    let older = published(0, 7, 1.0);
    world.lock().received = Some(older);
    world.schedule(at(35), |state| state.paused = true);
    world.schedule(at(435), |state| state.paused = false);
    let reports = world.run(settings(), at(470));
    let executed: Vec<_> = reports
        .iter()
        .filter(|report| report.outcome == Outcome::Written)
        .map(|report| report.cycle)
        .collect();
    let first = executed[0];
    assert_eq!(
        executed,
        (first..first + executed.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(
        reports
            .iter()
            .filter(|report| report.resumed.is_some())
            .count(),
        1
    );
    assert_eq!(
        world
            .lock()
            .executed
            .iter()
            .filter(|when| (at(36)..at(434)).contains(when))
            .count(),
        0
    );
}

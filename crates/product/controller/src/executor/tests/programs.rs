//! Programs that fail.

use std::sync::Arc;

use super::world::{World, accumulator, at, fault, published, settings, written};
use crate::executor::*;
use crate::{Mishap, ProgramFault, ProgramFaultKind};
use bumpless_base::{Counter, Counters, Epoch, Instant};

/// A world whose program fails in its third cycle until somebody mends it.
fn failing_in_the_third() -> World {
    let world = World::new();
    world.lock().failing = vec![3];
    world
}

fn role(world: &World, when: u64, role: Role, epoch: u32) {
    world.schedule(at(when), move |state| {
        state.role = role;
        state.role_since = at(when);
        state.permit = (role == Role::Primary).then_some(Permit {
            epoch: Epoch(epoch),
            until: Instant::FAR_FUTURE,
        });
    });
}

#[test]
fn a_failed_execution_is_neither_written_nor_replicated() {
    let world = failing_in_the_third();
    world.schedule(at(25), |state| state.failing.clear());
    let reports = world.run(settings(), at(50));
    let outcomes: Vec<_> = reports.iter().map(|report| &report.outcome).collect();
    let held = Outcome::Held(HoldCause::Program(fault()));
    let fine = Outcome::Written;
    assert_eq!(outcomes, [&fine, &fine, &held, &fine, &fine]);
    let failed = FailedExecution {
        cycle: 3,
        fault: fault(),
        then: Then::TriedAtOnce,
    };
    assert_eq!(reports[2].program_fault, Some(failed));
    let expected = [
        (at(0), 1, 1.0),
        (at(10), 2, 2.0),
        (at(30), 3, 3.0),
        (at(40), 4, 4.0),
    ];
    assert_eq!(written(&world), expected);
    let state = world.lock();
    let states: Vec<_> = state.published.iter().map(|(_, state)| state).collect();
    let before = published(1, 2, 2.0);
    assert_eq!([states[1], states[2]], [&before, &before]);
    assert_eq!(*states[3], published(1, 3, 3.0));
    assert!(state.standings.is_empty() && state.fit.is_empty());
}

#[test]
fn a_program_that_fails_again_is_stopped_and_not_tried_for_ever() {
    let world = failing_in_the_third();
    let mut last = Counters::default();
    let mut outcome = None;
    let mut executor = world.executor(settings(), |report, counters| {
        last = counters.clone();
        outcome = Some(report.outcome.clone());
    });
    world.run_until(at(500), &mut executor);
    drop(executor);
    assert_eq!(outcome, Some(Outcome::Failed(FailCause::Program(fault()))));
    assert_eq!(last.get(Counter::ProgramFaults), 2);
    let state = world.lock();
    assert_eq!(state.executed, [at(0), at(10), at(20), at(30)]);
    assert_eq!(state.writes.len(), 2, "its outputs hold");
    assert_eq!(state.standings, [ProgramStanding::StoppedSeeksRelief]);
    assert_eq!(state.fit, [false]);
}

#[test]
fn the_last_whole_state_of_a_stopped_program_stays_at_the_backup_while_it_may_be_used() {
    let world = failing_in_the_third();
    world.run(settings(), at(500));
    let state = world.lock();
    let before = published(1, 2, 2.0);
    let again = state.published.iter().skip(2);
    assert!(again.clone().all(|(_, state)| *state == before));
    let last = again.map(|(when, _)| *when).max();
    // For 60 ms after it was last published before the program was stopped.
    assert_eq!(last, Some(at(70)));
}

#[test]
fn safe_values_are_written_when_nobody_has_taken_over() {
    let world = failing_in_the_third();
    let safe = ExecutorSettings {
        on_program_fault: OnProgramFault::Safe(Arc::from([7.5])),
        ..settings()
    };
    let reports = world.run(safe, at(115));
    let expected = [
        (at(0), 1, 1.0),
        (at(10), 2, 2.0),
        (at(90), 2, 7.5),
        (at(100), 2, 7.5),
        (at(110), 2, 7.5),
    ];
    assert_eq!(written(&world), expected);
    assert_eq!(reports[9].outcome, Outcome::SafeValues(fault()));
}

#[test]
fn safe_values_need_the_right_to_write_and_do_not_start_the_program_again() {
    let world = failing_in_the_third();
    world.schedule(at(95), |state| state.permit = None);
    world.schedule(at(125), |state| {
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    let safe = ExecutorSettings {
        on_program_fault: OnProgramFault::Safe(Arc::from([7.5])),
        ..settings()
    };
    world.run(safe, at(145));
    let state = world.lock();
    let stamps: Vec<_> = state
        .writes
        .iter()
        .map(|write| (write.at, write.epoch))
        .collect();
    assert_eq!(stamps[2..], [(at(90), 1), (at(130), 3), (at(140), 3)]);
    assert_eq!(state.executed.len(), 4);
}

#[test]
fn safe_values_that_a_device_refuses_leave_the_program_stopped() {
    let world = failing_in_the_third();
    world.schedule(at(85), |state| {
        state.write_error = Some(crate::FieldErrorKind::RejectedEpoch { seen: Epoch(8) });
    });
    let safe = ExecutorSettings {
        on_program_fault: OnProgramFault::Safe(Arc::from([7.5])),
        ..settings()
    };
    world.run(safe, at(200));
    let state = world.lock();
    assert_eq!((state.writes.len(), state.executed.len()), (2, 4));
    assert_eq!(state.epochs_seen[0], Epoch(8));
}

#[test]
fn a_program_that_fails_in_its_first_cycle_leaves_its_initial_state_to_the_backup() {
    let world = World::new();
    world.lock().failing = vec![1];
    world.run(settings(), at(40));
    let state = world.lock();
    assert!(state.writes.is_empty());
    assert_eq!(state.executed.len(), 2);
    let initial = published(1, 0, 0.0);
    assert!(!state.published.is_empty());
    assert!(state.published.iter().all(|(_, state)| *state == initial));
}

#[test]
fn where_it_was_stopped_it_may_run_again_once_the_partner_is_past_that_cycle() {
    let world = failing_in_the_third();
    role(&world, 45, Role::Backup, 2);
    world.schedule(at(55), |state| state.received = Some(published(2, 2, 2.0)));
    world.schedule(at(75), |state| state.received = Some(published(2, 3, 3.0)));
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(75), &mut executor);
    assert_eq!(
        world.lock().standings,
        [ProgramStanding::StoppedSeeksRelief]
    );
    assert_eq!(world.lock().fit, [false]);
    world.run_until(at(105), &mut executor);
    let runs = [ProgramStanding::StoppedSeeksRelief, ProgramStanding::Runs];
    assert_eq!(world.lock().standings, runs);
    assert_eq!(world.lock().fit, [false, true]);
}

#[test]
fn what_was_handed_over_once_stays_where_it_fails_the_next_time() {
    let world = failing_in_the_third();
    role(&world, 45, Role::Backup, 2);
    world.schedule(at(55), |state| {
        state.received = Some(published(2, 20, 20.0));
        state.failing = vec![25];
    });
    role(&world, 75, Role::Primary, 3);
    world.run(settings(), at(300));
    let state = world.lock();
    let expected = [
        ProgramStanding::StoppedSeeksRelief,
        ProgramStanding::Runs,
        ProgramStanding::Stopped,
    ];
    assert_eq!(state.standings, expected);
    // Four times before, then cycles 21 to 25, and no second attempt.
    assert_eq!(state.executed.len(), 4 + 5);
}

#[test]
fn a_failure_long_after_another_is_a_first_one() {
    let world = World::new();
    world.lock().failing = vec![3];
    world.schedule(at(25), |state| state.failing.clear());
    world.schedule(at(9_500), |state| state.failing = vec![1003]);
    world.schedule(at(10_035), |state| state.failing.clear());
    world.run(settings(), at(10_100));
    let state = world.lock();
    assert!(state.standings.is_empty());
    assert_eq!(state.writes.last().map(|write| write.cycle), Some(1008));
}

#[test]
fn a_program_that_does_not_start_again_is_stopped_at_once() {
    let world = failing_in_the_third();
    world.lock().dead = true;
    let reports = world.run(settings(), at(60));
    let Outcome::Failed(FailCause::Program(fault)) = &reports[2].outcome else {
        panic!("{:?}", reports[2].outcome);
    };
    assert_eq!(fault.kind, ProgramFaultKind::NotRunning);
    assert!(
        fault.detail.contains("dead") && fault.detail.contains("line 7"),
        "{fault}"
    );
    let state = world.lock();
    assert_eq!(state.executed.len(), 3);
    let before = published(1, 2, 2.0);
    assert!(
        state.published[2..]
            .iter()
            .all(|(_, state)| *state == before)
    );
}

#[test]
fn a_program_that_takes_a_while_to_start_again_has_failed_once() {
    let world = failing_in_the_third();
    world.schedule(at(25), |state| state.starting = true);
    world.schedule(at(65), |state| {
        state.starting = false;
        state.failing.clear();
    });
    world.run(settings(), at(90));
    assert_eq!(written(&world)[2..], [(at(70), 3, 3.0), (at(80), 4, 4.0)]);
    assert!(world.lock().standings.is_empty());
}

#[test]
fn a_program_that_has_not_started_again_after_a_second_is_stopped() {
    let world = failing_in_the_third();
    world.schedule(at(25), |state| state.starting = true);
    world.run(settings(), at(2_000));
    let state = world.lock();
    assert_eq!(state.standings, [ProgramStanding::StoppedSeeksRelief]);
    assert_eq!(state.executed.len(), 3);
}

#[test]
fn an_output_that_is_no_number_is_a_wrong_answer_and_leaves_no_trace_in_the_state() {
    let world = World::new();
    world.schedule(at(15), |state| state.input = Ok(f64::NAN));
    world.schedule(at(25), |state| state.input = Ok(0.0));
    let reports = world.run(settings(), at(40));
    let expected = ProgramFault::new(
        ProgramFaultKind::WrongAnswer,
        "output 1 is NaN, not a finite number",
    );
    let held = Outcome::Held(HoldCause::Program(expected));
    assert_eq!(reports[2].outcome, held);
    assert_eq!(written(&world)[2], (at(30), 3, 3.0));
}

/// Ways in which a program fails.
const FAILURES: [fn(&World); 4] = [
    |world| world.schedule(at(25), |state| state.failing.clear()),
    |_| {},
    |world| {
        world.lock().failing.clear();
        world.schedule(at(25), |state| state.input = Ok(f64::NAN));
        world.schedule(at(35), |state| state.input = Ok(0.5));
    },
    |world| {
        world.schedule(at(25), |state| state.starting = true);
        world.schedule(at(65), |state| {
            state.starting = false;
            state.failing.clear();
        });
    },
];

#[test]
fn a_program_that_keeps_its_state_goes_on_as_one_whose_state_is_copied() {
    for (number, fails) in FAILURES.iter().enumerate() {
        let [kept, copied] = [true, false].map(|keeps| {
            let world = failing_in_the_third();
            world.lock().keeps = keeps;
            fails(&world);
            let reports = world.run(settings(), at(400));
            let published: Vec<_> = world.lock().published.clone();
            let outcomes: Vec<_> = reports.into_iter().map(|report| report.outcome).collect();
            (outcomes, published, written(&world))
        });
        assert!(kept == copied, "{number}: {kept:?} {copied:?}");
        let held = kept.0.iter().any(|outcome| *outcome != Outcome::Written);
        assert!(held, "{number}: nothing failed");
    }
}

#[test]
fn another_program_in_its_place_goes_on_from_the_last_whole_state() {
    let world = failing_in_the_third();
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(45), &mut executor);
    world.lock().failing.clear();
    let next = (Box::new(accumulator(&world)), Box::new(world.clone()));
    assert!(executor.tune(settings(), next.0, next.1).is_ok());
    world.run_until(at(70), &mut executor);
    assert_eq!(written(&world)[2], (at(50), 3, 3.0));
    let standings = [ProgramStanding::StoppedSeeksRelief, ProgramStanding::Runs];
    assert_eq!(world.lock().standings, standings);
}

#[test]
fn a_successor_that_fails_as_well_keeps_what_it_has_received() {
    let world = World::new();
    {
        let mut state = world.lock();
        state.role = Role::Backup;
        state.received = Some(published(1, 41, 41.0));
        state.failing = vec![42];
    }
    role(&world, 5, Role::Primary, 2);
    world.run(settings(), at(60));
    let state = world.lock();
    assert!(state.writes.is_empty());
    assert_eq!(state.executed.len(), 2);
    // As one of its own epoch, so that what it may write from it counts as later.
    let kept = published(2, 41, 41.0);
    assert!(state.published.iter().all(|(_, state)| *state == kept));
    assert!(state.published.len() >= 2);
}

/// The program's process has ended before the cycle at each of these times, and another one has taken its place.
fn ending_before(cycles: &[u64], counts: bool) -> World {
    let world = World::new();
    for &when in cycles {
        world.schedule(at(when - 5), move |state| {
            let fault = ProgramFault::new(ProgramFaultKind::Crash, "exit status 3");
            state.mishap = Some(Mishap { fault, counts });
        });
    }
    world
}

#[test]
fn an_end_between_two_cycles_is_told_and_costs_none() {
    let world = ending_before(&[20], true);
    let reports = world.run(settings(), at(40));
    assert!(reports.iter().all(|it| it.outcome == Outcome::Written));
    let failed = reports[2].program_fault.as_ref().unwrap();
    assert_eq!((failed.cycle, failed.then), (3, Then::TriedAtOnce));
    assert_eq!(failed.fault.kind, ProgramFaultKind::Crash);
    let told = reports.iter().filter(|it| it.program_fault.is_some());
    assert_eq!(told.count(), 1);
}

#[test]
fn a_program_that_ends_between_cycles_again_is_stopped_with_its_last_whole_state() {
    let world = ending_before(&[20, 30], true);
    let mut last = Counters::default();
    let mut reports = Vec::new();
    let mut executor = world.executor(settings(), |report, counters| {
        last = counters.clone();
        reports.push(report.clone());
    });
    world.run_until(at(60), &mut executor);
    drop(executor);
    assert_eq!(last.get(Counter::ProgramFaults), 2);
    let failed = reports[3].program_fault.as_ref().unwrap();
    assert_eq!((failed.cycle, failed.then), (4, Then::Stopped));
    let state = world.lock();
    assert_eq!(state.executed, [at(0), at(10), at(20)]);
    assert_eq!(state.writes.len(), 3, "its outputs hold");
    assert_eq!(state.standings, [ProgramStanding::StoppedSeeksRelief]);
    let (_, newest) = state.published.last().unwrap();
    assert_eq!(*newest, published(1, 3, 3.0));
}

#[test]
fn what_counts_as_no_failure_is_told_and_stops_nothing() {
    let world = ending_before(&[20, 30], false);
    let reports = world.run(settings(), at(60));
    assert!(reports.iter().all(|it| it.outcome == Outcome::Written));
    let told = reports.iter().filter(|it| it.program_fault.is_some());
    assert_eq!(told.count(), 2);
}

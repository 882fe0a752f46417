//! Programs that are stopped for what is not their own doing, and tried again (F-38).

use std::sync::Arc;

use super::world::{World, at, ms, published, settings, written};
use crate::ProgramFaultKind;
use crate::executor::*;
use bumpless_base::{Duration, Epoch, Instant};

/// A world whose program fails in its third cycle in this way; its state may be used for `usable`.
pub fn failing(how: ProgramFaultKind, usable: Duration) -> World {
    let world = World::new();
    {
        let mut state = world.lock();
        (state.failing, state.failing_how) = (vec![3], how);
        state.usable_for = usable;
    }
    world
}

fn starved(usable: Duration) -> World {
    failing(ProgramFaultKind::Starved, usable)
}

pub const HOUR: Duration = Duration::from_secs(3600);

/// What was said to follow each failure.
pub fn followed(reports: &[CycleReport]) -> Vec<(u64, Then)> {
    let failed = reports.iter().filter_map(|report| {
        let failed = report.program_fault.as_ref()?;
        Some((failed.cycle, failed.then))
    });
    failed.collect()
}

pub fn epoch_at(world: &World, when: u64, epoch: u32) {
    world.schedule(at(when), move |state| {
        state.permit = Some(Permit {
            epoch: Epoch(epoch),
            until: Instant::FAR_FUTURE,
        });
    });
}

#[test]
fn a_program_that_was_starved_is_tried_again_and_goes_on_from_its_state() {
    let world = starved(HOUR);
    world.schedule(at(95), |state| state.failing.clear());
    let reports = world.run(settings(), at(145));
    assert_eq!(written(&world)[2..], [(at(130), 3, 3.0), (at(140), 4, 4.0)]);
    let expected = [(3, Then::TriedAtOnce), (3, Then::TriedAfter(ms(100)))];
    assert_eq!(followed(&reports), expected);
    let resumed = reports
        .iter()
        .filter_map(|report| report.resumed)
        .next_back();
    assert_eq!(resumed, Some(Resumed::Kept { cycle: 2 }));
    let state = world.lock();
    let standings = [ProgramStanding::StoppedSeeksRelief, ProgramStanding::Runs];
    assert_eq!(
        (&state.standings[..], &state.fit[..]),
        (&standings[..], &[false, true][..])
    );
}

#[test]
fn trials_of_a_starved_program_come_at_growing_intervals_that_are_bounded() {
    let world = starved(HOUR);
    world.run(settings(), at(40_000));
    let executed = world.lock().executed.clone();
    let expected = [130, 330, 730, 1530, 3130, 6330, 12_730, 22_730, 32_730];
    assert_eq!(executed[4..], expected.map(at));
    assert_eq!(world.lock().writes.len(), 2, "its outputs hold");
}

#[test]
fn a_failure_of_the_programs_own_is_never_tried_again_after_its_second_time() {
    use ProgramFaultKind::*;
    for own in [Trap, Crash, Overrun, WrongAnswer, Memory] {
        let world = failing(own, HOUR);
        let reports = world.run(settings(), at(60_000));
        let expected = [(3, Then::TriedAtOnce), (3, Then::Stopped)];
        assert_eq!(followed(&reports), expected, "{own:?}");
        assert_eq!(world.lock().executed.len(), 4, "{own:?}");
    }
}

#[test]
fn who_was_starved_first_and_fails_by_itself_in_two_trials_is_not_tried_a_third_time() {
    let world = starved(HOUR);
    world.schedule(at(95), |state| state.failing_how = ProgramFaultKind::Trap);
    let reports = world.run(settings(), at(60_000));
    let expected = [
        (3, Then::TriedAtOnce),
        (3, Then::TriedAfter(ms(100))),
        (3, Then::TriedAfter(ms(200))),
        (3, Then::Stopped),
    ];
    assert_eq!(followed(&reports), expected);
}

#[test]
fn a_program_that_has_not_started_again_is_tried_until_it_has() {
    let world = failing(ProgramFaultKind::Crash, HOUR);
    world.schedule(at(25), |state| state.starting = true);
    world.schedule(at(7_000), |state| {
        state.starting = false;
        state.failing.clear();
    });
    world.run(settings(), at(20_000));
    let writes = written(&world);
    // By the longest wait after it has.
    assert!(
        writes[2].0 <= at(17_000) && writes[2].1 == 3,
        "{:?}",
        writes[2]
    );
}

#[test]
fn where_its_state_may_not_be_used_any_more_it_begins_anew_in_a_higher_epoch() {
    let world = starved(ms(60));
    world.schedule(at(95), |state| state.failing.clear());
    epoch_at(&world, 155, 2);
    world.run(settings(), at(175));
    assert_eq!(written(&world)[2..], [(at(160), 1, 1.0), (at(170), 2, 2.0)]);
    let state = world.lock();
    assert_eq!(state.epochs_spent[0], Epoch(1));
    assert_eq!(state.writes[2].epoch, 2);
    assert_eq!(state.executed[4], at(160), "nothing is executed before");
}

#[test]
fn it_does_not_begin_anew_where_the_group_stops_then() {
    let world = starved(ms(60));
    let stops = ExecutorSettings {
        begins_anew: false,
        ..settings()
    };
    let reports = world.run(stops, at(60_000));
    assert_eq!(world.lock().executed.len(), 4);
    let last = followed(&reports).last().copied();
    assert_eq!(last, Some((3, Then::Stopped)), "and that is said");
    assert!(world.lock().epochs_spent.is_empty());
}

#[test]
fn it_begins_anew_once_in_a_thousand_cycles() {
    let world = starved(ms(60));
    world.schedule(at(95), |state| state.failing = vec![5]);
    epoch_at(&world, 155, 2);
    epoch_at(&world, 1_000, 3);
    let reports = world.run(settings(), at(60_000));
    // Cycles 1 to 4 after the new beginning; then it is tried twice, and once more within its time.
    assert_eq!(followed(&reports).last(), Some(&(5, Then::Stopped)));
    let writes = written(&world);
    assert_eq!(writes.last().map(|write| write.1), Some(4));
}

#[test]
fn it_begins_anew_however_long_the_machine_keeps_it_from_its_first_cycle() {
    let world = starved(ms(60));
    world.schedule(at(95), |state| state.failing = vec![1]);
    epoch_at(&world, 155, 2);
    world.schedule(at(30_000), |state| state.failing.clear());
    world.run(settings(), at(60_000));
    assert!(
        written(&world)[2..]
            .iter()
            .all(|write| write.0 > at(30_000))
    );
    assert_eq!(written(&world)[2].1, 1);
}

#[test]
fn the_wait_falls_back_after_a_thousand_cycles() {
    let world = starved(HOUR);
    world.schedule(at(200), |state| state.failing.clear());
    world.schedule(at(11_000), |state| state.failing = vec![1_200]);
    let reports = world.run(settings(), at(13_000));
    let followed = followed(&reports);
    let waits = followed.iter().filter_map(|(_, then)| match then {
        Then::TriedAfter(pause) => Some(pause.as_millis()),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), [100, 200, 100, 200, 400]);
}

#[test]
fn safe_values_go_on_where_a_trial_has_failed() {
    let world = starved(HOUR);
    let safe = ExecutorSettings {
        on_program_fault: OnProgramFault::Safe(Arc::from([7.5])),
        ..settings()
    };
    world.run(safe, at(165));
    let times: Vec<_> = written(&world)[2..].iter().map(|write| write.0).collect();
    assert_eq!(times, [91, 101, 111, 121, 141, 151, 161].map(at));
}

#[test]
fn a_backup_may_run_the_program_again_once_its_partner_has_begun_anew() {
    let world = starved(HOUR);
    world.lock().failing = vec![10];
    world.schedule(at(115), |state| {
        (state.role, state.permit) = (Role::Backup, None);
        state.role_since = at(115);
    });
    // The partner took over with a cycle less, and has executed nothing.
    world.schedule(at(125), |state| state.received = Some(published(2, 8, 8.0)));
    world.schedule(at(155), |state| state.received = Some(published(3, 1, 1.0)));
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(155), &mut executor);
    let mut standings = vec![ProgramStanding::StoppedSeeksRelief];
    assert_eq!(world.lock().standings, standings);
    world.run_until(at(175), &mut executor);
    standings.push(ProgramStanding::Runs);
    assert_eq!(world.lock().standings, standings);
}

//! When copy-out may go ahead.

use super::*;
use crate::state::Envelope;

fn before_output() -> ExecutorSettings {
    ExecutorSettings {
        commit: CommitMode::BeforeOutput,
        ..settings()
    }
}

fn written(world: &World) -> Vec<Instant> {
    world.lock().writes.iter().map(|write| write.at).collect()
}

#[test]
fn before_output_waits_until_this_cycles_state_is_safe() {
    let world = World::new();
    world.lock().transfer = Some(ms(4));
    let reports = world.run(before_output(), at(20));
    assert_eq!(written(&world), [at(4), at(14)]);
    assert!(
        reports
            .iter()
            .all(|r| r.settled == Some(TransferOutcome::Safe) && !r.backup_behind)
    );
    assert!(
        reports
            .iter()
            .all(|r| r.transfer_settled_after == Some(ms(4)))
    );
}

#[test]
fn before_output_writes_at_the_deadline_and_reports_the_backup_behind() {
    let world = World::new();
    world.lock().transfer = None;
    let reports = world.run(before_output(), at(20));
    assert_eq!(written(&world), [at(8), at(18)]);
    assert!(
        reports
            .iter()
            .all(|r| r.backup_behind && r.outcome == Outcome::Written)
    );
    assert!(
        reports
            .iter()
            .all(|r| r.settled == Some(TransferOutcome::Pending))
    );
}

#[test]
fn a_state_that_becomes_safe_just_before_the_write_is_not_behind() {
    for commit in [CommitMode::BeforeOutput, CommitMode::Async] {
        let world = World::new();
        world.lock().transfer = Some(ms(if commit == CommitMode::Async { 19 } else { 9 }));
        world.lock().simplex_after = ms(2);
        let settings = ExecutorSettings {
            commit,
            ..settings()
        };
        let reports = world.run(settings, at(20));
        let waited: Vec<_> = reports
            .iter()
            .filter(|r| r.settled == Some(TransferOutcome::Pending))
            .collect();
        assert!(!waited.is_empty());
        let written = |r: &&CycleReport| r.outcome == Outcome::Written && !r.backup_behind;
        assert!(waited.iter().all(written), "{waited:#?}");
    }
}

#[test]
fn a_transfer_given_up_ends_the_wait() {
    let world = World::new();
    world.lock().transfer = None;
    world.lock().transfer_fails = Some(ms(2));
    let reports = world.run(before_output(), at(10));
    assert_eq!(written(&world), [at(2)]);
    assert!(reports[0].backup_behind && reports[0].settled == Some(TransferOutcome::Failed));
}

#[test]
fn nothing_waits_while_no_backup_is_expected() {
    for commit in [CommitMode::BeforeOutput, CommitMode::Async] {
        let world = World::new();
        world.lock().backup = false;
        world.lock().transfer = None;
        let reports = world.run(
            ExecutorSettings {
                commit,
                ..settings()
            },
            at(20),
        );
        assert_eq!(written(&world), [at(0), at(10)]);
        assert!(
            reports
                .iter()
                .all(|r| r.settled.is_none() && !r.backup_behind)
        );
    }
}

#[test]
fn async_does_not_wait_for_this_cycles_state() {
    let world = World::new();
    world.lock().transfer = Some(ms(9));
    let reports = world.run(settings(), at(30));
    assert_eq!(written(&world), [at(0), at(10), at(20)]);
    assert!(reports.iter().all(|report| !report.backup_behind));
}

#[test]
fn async_waits_for_the_state_of_the_cycle_before() {
    let world = World::new();
    world.lock().transfer = Some(ms(13));
    let reports = world.run(settings(), at(30));
    assert_eq!(written(&world), [at(0), at(13), at(23)]);
    assert!(reports.iter().all(|report| !report.backup_behind));
}

#[test]
fn async_writes_at_the_deadline_when_the_backup_is_two_cycles_behind() {
    let world = World::new();
    world.lock().transfer = None;
    let reports = world.run(settings(), at(30));
    assert_eq!(written(&world), [at(0), at(18), at(28)]);
    let behind: Vec<_> = reports.iter().map(|report| report.backup_behind).collect();
    assert_eq!(behind, [false, true, true]);
}

#[test]
fn async_is_content_with_this_cycles_state_if_the_one_before_failed() {
    let world = World::new();
    world.lock().transfer = None;
    world.lock().transfer_fails = Some(ms(6));
    world.schedule(at(5), |state| {
        state.transfer = Some(ms(3));
        state.transfer_fails = None;
    });
    let reports = world.run(settings(), at(30));
    assert_eq!(written(&world), [at(0), at(13), at(20)]);
    assert!(reports.iter().all(|report| !report.backup_behind));
}

#[test]
fn a_new_term_waits_for_no_state_of_an_earlier_one() {
    let world = World::new();
    world.lock().transfer = None;
    world.schedule(at(5), |state| state.role = Role::Backup);
    world.schedule(at(15), |state| state.role = Role::Primary);
    world.run(settings(), at(20));
    assert_eq!(written(&world), [at(0), at(15)]);
}

#[test]
fn the_deadline_counts_from_the_publication() {
    let world = World::new();
    world.lock().execution = ms(1);
    world.lock().transfer = None;
    world.run(before_output(), at(10));
    assert_eq!(written(&world), [at(9)]);
}

/// `before_output` with a permit that ends at 5 ms, and no state that ever becomes safe.
fn losing_its_permit() -> World {
    let world = World::new();
    world.lock().transfer = None;
    world.lock().permit = Some(Permit {
        epoch: Epoch(1),
        until: at(5),
    });
    world
}

#[test]
fn the_wait_ends_with_the_permit_and_without_another_nothing_is_written() {
    let world = losing_its_permit();
    let reports = world.run(before_output(), at(10));
    assert_eq!(reports[0].outcome, Outcome::Held(HoldCause::PermitLost));
    assert_eq!(reports[0].ended, at(10), "until the next cycle is due");
    assert!(written(&world).is_empty());
}

#[test]
fn outputs_leave_late_in_their_cycle_if_the_permit_is_back_in_it() {
    let world = losing_its_permit();
    world.schedule(at(7), |state| {
        state.transfer = Some(ms(1));
        state.permit = Some(Permit {
            epoch: Epoch(1),
            until: Instant::FAR_FUTURE,
        });
    });
    let reports = world.run(before_output(), at(10));
    assert_eq!(reports[0].outcome, Outcome::Written);
    assert_eq!(written(&world), [at(8)]);
    assert_eq!(world.lock().executed.len(), 1, "no cycle is executed twice");
}

#[test]
fn a_permit_lost_between_execute_and_copy_out_holds_the_outputs() {
    let world = World::new();
    world.lock().execution = ms(2);
    world.schedule(at(11), |state| state.permit = None);
    let reports = world.run(settings(), at(40));
    assert_eq!(written(&world), [at(2)]);
    assert_eq!(reports[1].outcome, Outcome::Held(HoldCause::PermitLost));
    assert_eq!(reports[2].outcome, Outcome::Held(HoldCause::NoPermit));
    assert_eq!(world.lock().executed.len(), 2, "it stops acting as primary");
}

/// The permit's epoch is another from `when` on; with `left`, the role was left in between.
fn another_epoch(world: &World, when: Instant, epoch: u32, left: bool) {
    world.schedule(when, move |state| {
        state.permit = Some(Permit {
            epoch: Epoch(epoch),
            until: Instant::FAR_FUTURE,
        });
        if left {
            state.role_since = when;
        }
    });
}

#[test]
fn an_epoch_raised_before_copy_out_holds_no_output_and_resends_its_state() {
    for commit in [CommitMode::BeforeOutput, CommitMode::Async] {
        let world = World::new();
        world.lock().execution = ms(2);
        another_epoch(&world, at(11), 7, false);
        let settings = ExecutorSettings {
            commit,
            ..settings()
        };
        let reports = world.run(settings, at(30));
        assert!(reports.iter().all(|it| it.outcome == Outcome::Written));
        let state = world.lock();
        let stamps: Vec<_> = { state.writes.iter() }
            .map(|it| (it.epoch, it.cycle))
            .collect();
        assert_eq!(stamps, [(1, 1), (7, 2), (7, 3)]);
        let published = state.published.iter();
        let states: Vec<_> = published
            .map(|(_, state)| Envelope::parse(state).unwrap().progress)
            .map(|it| (it.epoch.0, it.cycle))
            .collect();
        assert_eq!(states, [(1, 1), (1, 2), (7, 2), (7, 3)]);
        assert_eq!(state.executed.len(), 3);
    }
}

#[test]
fn an_epoch_of_another_term_or_a_lower_one_holds_the_outputs() {
    for (epoch, left) in [(7, true), (0, false)] {
        let world = World::new();
        world.lock().execution = ms(2);
        another_epoch(&world, at(11), epoch, left);
        let reports = world.run(settings(), at(30));
        assert_eq!(reports[1].outcome, Outcome::Held(HoldCause::PermitLost));
    }
}

#[test]
fn a_permit_that_expires_during_execution_holds_the_outputs() {
    let world = World::new();
    world.lock().execution = ms(4);
    world.lock().permit = Some(Permit {
        epoch: Epoch(1),
        until: at(4),
    });
    let reports = world.run(settings(), at(10));
    assert_eq!(reports[0].outcome, Outcome::Held(HoldCause::PermitLost));
    assert!(written(&world).is_empty());
}

#[test]
fn no_write_may_outlast_the_permit() {
    let world = World::new();
    world.lock().permit = Some(Permit {
        epoch: Epoch(1),
        until: at(2),
    });
    world.run(settings(), at(10));
    assert_eq!(world.lock().writes[0].until, at(2));
}

#[test]
fn a_permit_that_comes_and_goes_never_makes_cycles_follow_without_a_pause() {
    let world = World::new();
    world.lock().permit = Some(Permit {
        epoch: Epoch(1),
        until: Instant::ZERO,
    });
    let reports = world.run(settings(), at(50));
    assert_eq!(reports.len(), 5);
}

#[test]
fn outputs_are_held_while_the_backup_could_take_over_with_an_older_state() {
    for (backup, commit) in [
        (true, CommitMode::BeforeOutput),
        (false, CommitMode::BeforeOutput),
        (true, CommitMode::Async),
    ] {
        let world = World::new();
        world.lock().transfer = None;
        world.lock().backup = backup;
        world.lock().simplex = false;
        world.schedule(at(45), |state| state.simplex = true);
        let settings = ExecutorSettings {
            commit,
            ..settings()
        };
        let reports = world.run(settings, at(80));
        let held = Outcome::Held(HoldCause::BackupBehind);
        let first = usize::from(commit == CommitMode::Async);
        assert!(
            reports[first..4]
                .iter()
                .all(|report| report.outcome == held),
            "{reports:#?}"
        );
        // Nothing left that the backup would have to know of.
        assert!(reports[first..4].iter().all(|report| !report.backup_behind));
        assert_eq!(reports.last().unwrap().outcome, Outcome::Written);
        // Held cycles were executed and published all the same: the application does not stand still.
        assert!(world.lock().published.len() >= 7);
    }
}

#[test]
fn async_awaits_the_state_of_the_cycle_before_even_in_a_raised_epoch() {
    let world = World::new();
    world.lock().transfer = None;
    world.lock().simplex = false;
    world.schedule(at(5), |state| {
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
    });
    let settings = ExecutorSettings {
        commit: CommitMode::Async,
        ..settings()
    };
    let reports = world.run(settings, at(40));
    assert_eq!(reports[0].outcome, Outcome::Written);
    let held = Outcome::Held(HoldCause::BackupBehind);
    assert!(
        reports[1..].iter().all(|report| report.outcome == held),
        "{reports:#?}"
    );
}

//! What a program that begins from its initial state keeps of an earlier one (K-17, K-18).

use super::world::{World, at, ms, published, settings, sum_as, written};
use super::*;
use crate::ProgramFaultKind;
use crate::retain::OtherType;

const fn up_to(epoch: u32, cycle: u64) -> Progress {
    Progress {
        epoch: Epoch(epoch),
        cycle,
    }
}

/// The record of a sum of `sum`, of the type `of`.
fn record(of: &str, sum: f64) -> Vec<u8> {
    let mut record = Vec::new();
    sum_as(of).cut(&sum.to_be_bytes(), &mut record);
    record
}

/// A role that begins in epoch 9 without the certainty to have the newest state; the device shows that cycle 70 of
/// epoch 8 was accepted. The program retains its sum.
fn cold() -> World {
    let world = World::new();
    let mut state = world.lock();
    (state.cold, state.backup, state.retains) = (true, false, true);
    state.permit = Some(Permit {
        epoch: Epoch(9),
        until: Instant::FAR_FUTURE,
    });
    (state.device_epoch, state.device_cycle) = (Some(Epoch(8)), Some(70));
    drop(state);
    world
}

/// The first cycle and its output, and what was kept; it begins from the initial state.
fn begun(world: &World) -> ((u64, f64), Option<RetainedReport>) {
    let reports = world.run(settings(), at(20));
    assert_eq!(reports[0].resumed, Some(Resumed::ColdStart));
    let state = world.lock();
    let first = &state.writes[0];
    ((first.cycle, first.outputs[0]), reports[0].retained.clone())
}

/// Cycles and outputs that were written.
fn cycles(world: &World) -> Vec<(u64, f64)> {
    let writes = written(world).into_iter();
    writes.map(|(_, cycle, output)| (cycle, output)).collect()
}

fn all_of(from: RetainedFrom, progress: Progress) -> Option<RetainedReport> {
    let applied = crate::retain::Applied {
        taken: 1,
        ..Default::default()
    };
    Some(RetainedReport {
        from,
        progress,
        applied,
    })
}

#[test]
fn a_cold_start_takes_the_record_on_disk_over_and_counts_from_one() {
    let world = cold();
    world.lock().restored = Some((published(8, 50, 50.0), Instant::ZERO));
    world.lock().record = Some((up_to(8, 50), record("LREAL", 50.0)));
    let kept = all_of(RetainedFrom::Disk, up_to(8, 50));
    assert_eq!(begun(&world), ((1, 51.0), kept));
}

#[test]
fn of_memory_and_disk_the_one_that_has_come_further_counts() {
    for (disk, from, sum) in [
        (up_to(8, 59), RetainedFrom::Memory, 60.0),
        (up_to(8, 60), RetainedFrom::Memory, 60.0),
        (up_to(8, 61), RetainedFrom::Disk, 1000.0),
        (up_to(7, 99), RetainedFrom::Memory, 60.0),
        (up_to(9, 1), RetainedFrom::Disk, 1000.0),
    ] {
        let world = cold();
        // It lacks cycles that were written, so it is not gone on from.
        world.lock().received = Some(published(8, 60, 60.0));
        world.lock().record = Some((disk, record("LREAL", 1000.0)));
        let progress = if from == RetainedFrom::Disk {
            disk
        } else {
            up_to(8, 60)
        };
        assert_eq!(
            begun(&world),
            ((1, sum + 1.0), all_of(from, progress)),
            "{disk:?}"
        );
    }
}

#[test]
fn what_does_not_fit_is_told_and_the_initial_value_holds() {
    let world = cold();
    world.lock().record = Some((up_to(8, 50), record("LINT", 50.0)));
    let (first, kept) = begun(&world);
    assert_eq!(first, (1, 1.0));
    let other = OtherType {
        name: "SUM".into(),
        was: "LINT".into(),
        is: "LREAL".into(),
    };
    assert_eq!(kept.unwrap().applied.other_type, [other]);
}

#[test]
fn a_program_that_retains_nothing_begins_from_its_initial_state_alone() {
    let world = cold();
    world.lock().retains = false;
    world.lock().record = Some((up_to(8, 50), record("LREAL", 50.0)));
    assert_eq!(begun(&world), ((1, 1.0), None));
}

#[test]
fn a_failure_in_the_first_cycle_after_a_cold_start_does_not_lose_what_was_kept() {
    let world = cold();
    {
        let mut state = world.lock();
        state.record = Some((up_to(8, 50), record("LREAL", 50.0)));
        (state.failing, state.failing_how) = (vec![1], ProgramFaultKind::Starved);
    }
    world.schedule(at(5), |state| state.failing.clear());
    world.run(settings(), at(40));
    let state = world.lock();
    let first = &state.writes[0];
    assert_eq!((first.cycle, first.outputs[0]), (1, 51.0));
}

/// F-38: it was stopped for so long that its state may not be gone on from.
#[test]
fn a_program_that_begins_anew_after_a_failure_keeps_the_values_that_are_in_memory() {
    let world = World::new();
    {
        let mut state = world.lock();
        state.retains = true;
        (state.failing, state.failing_how) = (vec![3], ProgramFaultKind::Starved);
        state.usable_for = ms(60);
        state.record = Some((up_to(0, 9), record("LREAL", 1000.0)));
    }
    world.schedule(at(45), |state| state.failing.clear());
    world.schedule(at(135), |state| {
        let until = Instant::FAR_FUTURE;
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until,
        });
    });
    let reports = world.run(settings(), at(400));
    let anew = reports
        .iter()
        .rfind(|report| report.resumed == Some(Resumed::ColdStart));
    let kept = anew.unwrap().retained.clone().unwrap();
    assert_eq!((kept.from, kept.progress.cycle), (RetainedFrom::Memory, 2));
    let writes = cycles(&world);
    // The first start takes the record over, the second one what the first has come to.
    assert_eq!(
        writes[..4],
        [(1, 1001.0), (2, 1002.0), (1, 1003.0), (2, 1004.0)]
    );
}

#[test]
fn what_is_kept_survives_a_role_that_ends_before_its_first_cycle() {
    let world = World::new();
    world.lock().retains = true;
    world.schedule(at(12), |state| state.role = Role::Backup);
    for (epoch, begins) in [(3, 200), (5, 400)] {
        world.schedule(at(begins), move |state| {
            // In the first of these roles no inputs come.
            let input = if epoch == 5 {
                Ok(0.0)
            } else {
                Err(FieldErrorKind::Timeout)
            };
            let until = Instant::FAR_FUTURE;
            let permit = Permit {
                epoch: Epoch(epoch),
                until,
            };
            (state.role, state.permit, state.input) = (Role::Primary, Some(permit), input);
            state.role_since = at(begins);
            if epoch == 5 {
                // A partner has sent what had come less far, and what the device shows goes beyond.
                state.received = Some(published(0, 9, 500.0));
                (state.cold, state.device_epoch) = (true, Some(Epoch(1)));
                state.device_cycle = Some(2);
            }
        });
        world.schedule(at(begins + 45), |state| state.role = Role::Backup);
    }
    let reports = world.run(settings(), at(440));
    let begun: Vec<_> = reports.iter().filter_map(|report| report.resumed).collect();
    assert_eq!(begun, [Resumed::ColdStart; 3]);
    let writes = cycles(&world);
    assert_eq!(writes[..3], [(1, 1.0), (2, 2.0), (1, 3.0)]);
}

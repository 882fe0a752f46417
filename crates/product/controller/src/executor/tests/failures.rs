//! Field devices and predecessors that fail.

use super::*;

fn fail_on_failure() -> ExecutorSettings {
    ExecutorSettings {
        on_failure: OnFailure::Fail,
        ..settings()
    }
}

fn error(kind: FieldErrorKind) -> FieldError {
    FieldError {
        kind,
        place: "device".into(),
    }
}

#[test]
fn hold_executes_with_the_last_inputs_and_writes_only_once_they_are_back() {
    let world = World::new();
    world.lock().input = Ok(5.0);
    world.schedule(at(5), |state| state.input = Err(FieldErrorKind::Timeout));
    world.schedule(at(25), |state| state.input = Ok(0.0));
    let reports = world.run(settings(), at(40));
    let state = world.lock();
    let written: Vec<_> = state.writes.iter().map(|w| (w.at, w.outputs[0])).collect();
    assert_eq!(written, [(at(0), 6.0), (at(30), 19.0)]);
    let held = Outcome::Held(HoldCause::NoInputs(error(FieldErrorKind::Timeout)));
    assert_eq!([&reports[1].outcome, &reports[2].outcome], [&held, &held]);
    assert_eq!(
        reports[1].ended,
        at(13),
        "the cycle costs the field timeout, no more"
    );
    assert_eq!(
        state.published.len(),
        4,
        "the state is replicated all the same"
    );
    assert_eq!(state.fit, [false, true]);
}

#[test]
fn a_new_primary_that_never_had_inputs_does_not_execute() {
    let world = World::new();
    world.lock().input = Err(FieldErrorKind::Exception(4));
    world.schedule(at(15), |state| state.input = Ok(0.0));
    let reports = world.run(settings(), at(30));
    let held = Outcome::Held(HoldCause::NoInputs(error(FieldErrorKind::Exception(4))));
    assert_eq!(reports[0].outcome, held);
    assert_eq!(world.lock().executed, [at(20)]);
}

#[test]
fn inputs_of_an_earlier_term_as_primary_do_not_count() {
    let world = World::new();
    world.schedule(at(15), |state| state.role = Role::Backup);
    world.schedule(at(35), |state| {
        state.role = Role::Primary;
        state.permit = Some(Permit {
            epoch: Epoch(3),
            until: Instant::FAR_FUTURE,
        });
        state.input = Err(FieldErrorKind::Timeout);
    });
    world.run(settings(), at(60));
    assert_eq!(world.lock().executed, [at(0), at(10)]);
}

#[test]
fn fail_stops_for_good_until_the_role_is_lost_and_regained() {
    let world = World::new();
    world.schedule(at(5), |state| state.input = Err(FieldErrorKind::Timeout));
    world.schedule(at(15), |state| state.input = Ok(0.0));
    world.schedule(at(45), |state| state.role = Role::Backup);
    world.schedule(at(55), |state| state.role = Role::Primary);
    let reports = world.run(fail_on_failure(), at(70));
    let failed = Outcome::Failed(FailCause::Field(error(FieldErrorKind::Timeout)));
    assert!(reports[1..5].iter().all(|report| report.outcome == failed));
    let state = world.lock();
    assert_eq!(state.executed, [at(0), at(55), at(65)]);
    assert_eq!(state.fit, [false, true]);
}

#[test]
fn a_failed_write_is_reported_and_with_hold_the_next_cycle_tries_again() {
    let world = World::new();
    world.lock().write_error = Some(FieldErrorKind::Timeout);
    world.schedule(at(5), |state| state.write_error = None);
    let reports = world.run(settings(), at(20));
    assert_eq!(
        reports[0].outcome,
        Outcome::WriteFailed(error(FieldErrorKind::Timeout))
    );
    assert_eq!(reports[1].outcome, Outcome::Written);
}

#[test]
fn a_failed_write_with_fail_stops_the_application() {
    let world = World::new();
    world.lock().write_error = Some(FieldErrorKind::Exception(4));
    world.schedule(at(5), |state| state.write_error = None);
    let reports = world.run(fail_on_failure(), at(20));
    let failed = Outcome::Failed(FailCause::Field(error(FieldErrorKind::Exception(4))));
    assert_eq!(
        [&reports[0].outcome, &reports[1].outcome],
        [&failed, &failed]
    );
}

#[test]
fn a_rejected_epoch_is_told_to_the_redundancy_layer_even_with_fail() {
    let world = World::new();
    let kind = FieldErrorKind::RejectedEpoch { seen: Epoch(8) };
    world.lock().write_error = Some(kind);
    let reports = world.run(fail_on_failure(), at(10));
    assert_eq!(reports[0].outcome, Outcome::WriteFailed(error(kind)));
    assert_eq!(world.lock().epochs_seen, [Epoch(8)]);
    assert!(
        world.lock().fit.is_empty(),
        "the device is well, another node writes"
    );
}

#[test]
fn a_state_that_cannot_be_loaded_stops_the_node_rather_than_start_cold() {
    let whole = published(1, 9, 9.0);
    let mut versioned = whole.clone();
    versioned[0] = 200;
    // Two outputs instead of one; the rest is a state that the application would load.
    let mut counted = whole.clone();
    counted[3] = 2;
    counted.extend(9f64.to_be_bytes());
    for broken in [
        whole[..whole.len() - 1].to_vec(),
        versioned,
        counted,
        Vec::new(),
    ] {
        let world = World::new();
        world.lock().received = Some(broken);
        let reports = world.run(settings(), at(30));
        for report in reports {
            assert!(matches!(
                report.outcome,
                Outcome::Failed(FailCause::State(_))
            ));
        }
        assert!(world.lock().writes.is_empty());
        assert_eq!(world.lock().fit, [false]);
    }
}

#[test]
fn a_backup_says_when_it_cannot_reach_a_device() {
    let world = World::new();
    world.lock().role = Role::Backup;
    world.lock().input = Err(FieldErrorKind::Exception(4));
    world.schedule(at(5), |state| state.input = Ok(0.0));
    let reports = world.run(settings(), at(20));
    assert_eq!(
        reports[0].outcome,
        Outcome::Cold(error(FieldErrorKind::Exception(4)))
    );
    assert_eq!(reports[1].outcome, Outcome::Warm);
    assert_eq!(world.lock().fit, [false, true]);
}

#[test]
fn each_cause_is_counted_under_its_name() {
    let world = World::new();
    world.lock().execution = ms(12);
    world.lock().input = Ok(0.0);
    world.schedule(at(15), |state| {
        state.write_error = Some(FieldErrorKind::Exception(4))
    });
    world.schedule(at(35), |state| {
        state.write_error = Some(FieldErrorKind::RejectedEpoch { seen: Epoch(2) });
    });
    world.schedule(at(55), |state| state.input = Err(FieldErrorKind::Timeout));
    let mut last = Counters::default();
    let ports = Ports {
        field: Box::new(world.clone()),
        replication: world.clone(),
        gate: world.clone(),
        clock: world.clone(),
    };
    let application = Box::new(world::accumulator(&world));
    let mut executor = Executor::new(settings(), application, ports, |_, counters| {
        last = counters.clone();
    });
    while world.lock().now < at(56) {
        executor.step();
    }
    drop(executor);
    let figures = [
        (Counter::CyclesExecuted, 3),
        (Counter::CyclesOverrun, 3),
        (Counter::OutputsWritten, 1),
        (Counter::OutputsHeld, 1),
        (Counter::OutputsRejected, 1),
        (Counter::FieldFailures, 2),
    ];
    for (counter, expected) in figures {
        assert_eq!(last.get(counter), expected, "{}", counter.name());
    }
}

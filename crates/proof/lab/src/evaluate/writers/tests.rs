use crate::evaluate::tests::{broken, only, start_of, write_after};
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{Event, EventKind, OutputOutcome, PhaseKind};

#[test]
fn two_writers_in_one_epoch_are_found() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Loss);
    let write = write_after(&mut run, at);
    write.writer = 1 - write.writer;
    assert_eq!(broken(&run), only(&["one-writer"]));
}

#[test]
fn a_write_of_an_older_epoch_is_found_when_accepted_and_only_then() {
    let mut run = synthetic::run();
    let at = run.phase(PhaseKind::Return).unwrap().from_ns;
    let mut late = run.writes[0].clone();
    (late.time_ns, late.cycle, late.accepted) = (at + 1, u64::MAX, false);
    run.writes.push(late);
    run.sort();
    assert_eq!(broken(&run), only(&[]));
    for write in &mut run.writes {
        if !write.accepted {
            (write.accepted, write.cycle) = (true, 0);
        }
    }
    assert_eq!(broken(&run), only(&["epochs", "no-bump"]));
}

#[test]
fn an_output_older_than_the_last_one_is_found() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Kill) + 100 * MS;
    write_after(&mut run, at).cycle -= 5;
    assert_eq!(broken(&run), only(&["no-bump"]));
}

#[test]
fn what_a_device_rejected_is_no_broken_promise() {
    let mut run = synthetic::run();
    let kind = EventKind::Output {
        epoch: 1,
        cycle: 3,
        outcome: OutputOutcome::Rejected,
    };
    run.events.push(Event {
        time_ns: run.phases[4].from_ns,
        node: "left".into(),
        kind,
    });
    run.sort();
    assert_eq!(broken(&run), only(&[]));
}

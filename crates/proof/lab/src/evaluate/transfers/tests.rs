use crate::evaluate::tests::{broken, judge, only, start_of};
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{Event, EventKind, PhaseKind, Run, Stall, TransferOutcome};

fn transfer_after(run: &mut Run, at: u64) -> &mut EventKind {
    let is_transfer =
        |event: &&mut Event| event.time_ns > at && matches!(event.kind, EventKind::Transfer { .. });
    &mut run.events.iter_mut().find(is_transfer).unwrap().kind
}

#[test]
fn one_failed_and_one_late_transfer_are_found() {
    for kind in [
        PhaseKind::Normal,
        PhaseKind::Loss,
        PhaseKind::Bursts,
        PhaseKind::CutOne,
    ] {
        let id = format!("transfers/{}", kind.id());
        let mut run = synthetic::run();
        let at = start_of(&run, kind);
        if let EventKind::Transfer { outcome, cause, .. } = transfer_after(&mut run, at) {
            (*outcome, *cause) = (TransferOutcome::Failed, Some("deadline".into()));
        }
        assert_eq!(broken(&run), only(&[&id]));

        let mut run = synthetic::run();
        if let EventKind::Transfer { took_us, .. } = transfer_after(&mut run, at) {
            *took_us = 9_001.0;
        }
        assert_eq!(broken(&run), only(&[&id]));
    }
}

#[test]
fn transfers_that_take_longer_with_one_network_cut_are_found() {
    let mut run = synthetic::run();
    let (from, to) = run.phase(PhaseKind::CutOne).unwrap().faulty();
    for event in run
        .events
        .iter_mut()
        .filter(|e| (from..to).contains(&e.time_ns))
    {
        if let EventKind::Transfer { took_us, .. } = &mut event.kind {
            *took_us += 500.0;
        }
    }
    assert_eq!(broken(&run), only(&["added-time/cut-a"]));
}

#[test]
fn a_missed_transfer_is_excused_only_by_a_stall_at_that_moment() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Loss) + 100 * MS;
    let index = run
        .events
        .iter()
        .position(|event| event.time_ns > at && matches!(event.kind, EventKind::Transfer { .. }));
    let event = &mut run.events[index.unwrap()];
    let (outcome, cause) = (TransferOutcome::Failed, Some("no way".into()));
    event.kind = EventKind::Transfer {
        cycle: 0,
        outcome,
        took_us: 0.0,
        cause,
    };
    let ended = event.time_ns;
    let stall = |time_ns| Stall {
        time_ns,
        length_ns: 3 * MS,
        seen_by: "meter".into(),
    };
    for elsewhere in [ended + 4 * MS, ended - 20 * MS] {
        run.stalls = vec![stall(elsewhere)];
        assert_eq!(broken(&run), only(&["transfers/loss"]));
    }
    run.stalls = vec![stall(ended - MS)];
    assert_eq!(broken(&run), only(&[]));
    let promises = judge(&run);
    let seen = &promises
        .iter()
        .find(|promise| promise.id == "transfers/loss")
        .unwrap()
        .seen;
    assert!(
        seen.contains("1 failed") && seen.contains("stalled during 1"),
        "{seen}"
    );
}

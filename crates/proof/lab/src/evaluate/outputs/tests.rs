use crate::evaluate::tests::{broken, judge, only, start_of};
use crate::evaluate::{longest_gap, ms};
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{Event, EventKind, PhaseKind, Run, Stall};

#[test]
fn a_gap_in_the_outputs_is_found_and_a_stall_excuses_only_its_length() {
    for (kind, id, limit) in [
        (PhaseKind::Normal, "gap/normal", 30),
        (PhaseKind::Kill, "gap/kill", 40),
        (PhaseKind::Switchover, "gap/switchover", 30),
    ] {
        let mut run = synthetic::run();
        let from = start_of(&run, kind) + 500 * MS;
        let to = from + (limit + 15) * MS;
        run.writes
            .retain(|write| !(from..to).contains(&write.time_ns));
        assert_eq!(broken(&run), only(&[id]));
        let stall = |length_ns| Stall {
            time_ns: to,
            length_ns,
            seen_by: "meter".into(),
        };
        run.stalls = vec![stall(4 * MS)];
        assert_eq!(broken(&run), only(&[id]));
        run.stalls = vec![stall(40 * MS)];
        assert_eq!(broken(&run), only(&[]));
        let seen = judge(&run)
            .into_iter()
            .find(|promise| promise.id == id)
            .unwrap()
            .seen;
        assert!(seen.contains("the machine stalled"), "{seen}");
    }
}

#[test]
fn the_longest_gap_is_told_even_where_a_stall_excuses_it() {
    let mut run = synthetic::run();
    let from = start_of(&run, PhaseKind::Normal) + 500 * MS;
    run.writes
        .retain(|write| !(from..from + 50 * MS).contains(&write.time_ns));
    let (time_ns, length_ns) = (from + 50 * MS, 49 * MS);
    run.stalls = vec![Stall {
        time_ns,
        length_ns,
        seen_by: "meter".into(),
    }];
    assert_eq!(broken(&run), only(&[]));
    let promises = judge(&run);
    let seen = &promises
        .iter()
        .find(|promise| promise.id == "gap/normal")
        .unwrap()
        .seen;
    let longest = longest_gap(&run, from, from + MS).unwrap().length_ns();
    assert!(
        longest >= 50 * MS && seen.starts_with(&format!("at most {}", ms(longest))),
        "{seen}"
    );
}

#[test]
fn outputs_that_end_early_are_a_gap() {
    let mut run = synthetic::run();
    let end = run.phases.last().unwrap().to_ns;
    run.writes.retain(|write| write.time_ns < end - 100 * MS);
    assert_eq!(broken(&run), only(&["gap/change-kill"]));
}

#[test]
fn a_program_stopped_at_its_limit_excuses_the_gap_only_while_the_machine_stalled() {
    let mut run = synthetic::run();
    let from = start_of(&run, PhaseKind::Normal) + 500 * MS;
    let to = from + 250 * MS;
    run.writes
        .retain(|write| !(from..to).contains(&write.time_ns));
    let fault = |kind: &str| Event {
        time_ns: from + 10 * MS,
        node: "left".into(),
        kind: EventKind::ProgramFault {
            cause: format!("cycle 7: {kind}: it had not answered"),
        },
    };
    let seen = |run: &Run| {
        let promises = judge(run).into_iter();
        let mut gaps = promises.filter(|promise| promise.id == "gap/normal");
        gaps.next().unwrap().seen
    };
    run.events.push(fault("overrun"));
    run.sort();
    assert_eq!(broken(&run), only(&["gap/normal"]));
    assert!(seen(&run).contains("the program failed in it: cycle 7"));
    run.stalls = vec![Stall {
        time_ns: from + 12 * MS,
        length_ns: 5 * MS,
        seen_by: "meter".into(),
    }];
    assert_eq!(broken(&run), only(&[]));
    let told = seen(&run);
    assert!(told.contains("1 more of up to 2"), "{told}");
    // So is one that had no processor.
    let mut starved = run.clone();
    starved
        .events
        .retain(|event| !matches!(event.kind, EventKind::ProgramFault { .. }));
    starved.events.push(fault("starved"));
    starved.sort();
    assert_eq!(broken(&starved), only(&[]));
    // It has a second to start again, and no more.
    let mut longer = run.clone();
    let until = from + 1_060 * MS;
    longer
        .writes
        .retain(|write| !(from..until).contains(&write.time_ns));
    assert_eq!(broken(&longer), only(&["gap/normal"]));
    // A crash is no matter of time.
    for event in &mut run.events {
        if let EventKind::ProgramFault { cause } = &mut event.kind {
            *cause = "cycle 7: crash: signal 11".into();
        }
    }
    assert_eq!(broken(&run), only(&["gap/normal"]));
}

use crate::evaluate::tests::{broken, judge, only, start_of};
use crate::evaluate::{longest_gap, ms};
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{PhaseKind, Stall};

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

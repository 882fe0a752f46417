use crate::evaluate::tests::{broken, only, start_of};
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{EventKind, PhaseKind, Run, Stall};

fn says_at_the_end(run: &mut Run, kind: PhaseKind, node: &str, says: &EventKind) {
    let phase = run.phase(kind).unwrap().clone();
    let mut of_node = run.events.iter_mut().filter(|event| {
        let is_answer = matches!(event.kind, EventKind::InForce { .. });
        phase.contains(event.time_ns) && event.node == node && is_answer
    });
    of_node.next_back().unwrap().kind = says.clone();
}

#[test]
fn a_change_that_ends_differently_on_the_two_nodes_is_found() {
    for (kind, id) in [
        (PhaseKind::Change, "change/change"),
        (PhaseKind::ChangeKill, "change/change-kill"),
    ] {
        let of = |fingerprint: &str, change: Option<&str>| EventKind::InForce {
            fingerprint: fingerprint.into(),
            change: change.map(str::to_owned),
        };
        let mut run = synthetic::run();
        says_at_the_end(&mut run, kind, "right", &of("another", None));
        assert_eq!(broken(&run), only(&[id]));
        // Nor is it over while one of them says that it is not.
        let mut run = synthetic::run();
        for node in ["left", "right"] {
            says_at_the_end(&mut run, kind, node, &of("fourth", Some("being made")));
        }
        assert_eq!(broken(&run), only(&[id]));
    }
}

#[test]
fn a_change_may_end_as_it_began_only_where_a_node_was_killed_in_it() {
    let as_before = |kind, fingerprint: &str| {
        let mut run = synthetic::run();
        for node in ["left", "right"] {
            let says = EventKind::InForce {
                fingerprint: fingerprint.into(),
                change: None,
            };
            says_at_the_end(&mut run, kind, node, &says);
        }
        broken(&run)
    };
    assert_eq!(as_before(PhaseKind::ChangeKill, "second"), only(&[]));
    assert_eq!(
        as_before(PhaseKind::Change, "first"),
        only(&["change/change"])
    );
}

#[test]
fn what_lies_prepared_on_one_node_alone_is_no_change() {
    let at_the_end = |kind, changes: [Option<&str>; 2]| {
        let mut run = synthetic::run();
        for (node, change) in ["left", "right"].into_iter().zip(changes) {
            let says = EventKind::InForce {
                fingerprint: "second".into(),
                change: change.map(str::to_owned),
            };
            says_at_the_end(&mut run, kind, node, &says);
        }
        broken(&run)
    };
    let waits = Some("prepared here; waits");
    let found = only(&["change/change-kill"]);
    assert_eq!(at_the_end(PhaseKind::ChangeKill, [waits, None]), only(&[]));
    assert_eq!(at_the_end(PhaseKind::ChangeKill, [waits, waits]), found);
    assert_eq!(
        at_the_end(PhaseKind::Change, [waits, None]),
        only(&["change/change"])
    );
}

#[test]
fn a_cycle_without_output_in_a_change_is_found_unless_a_stall_excuses_it() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Change);
    let position = run
        .writes
        .iter()
        .position(|write| write.time_ns > at)
        .unwrap();
    let missed = run.writes.remove(position);
    assert_eq!(broken(&run), only(&["cycles/change"]));
    run.stalls.push(Stall {
        time_ns: missed.time_ns,
        length_ns: 3 * MS,
        seen_by: "meter".into(),
    });
    assert_eq!(broken(&run), only(&[]));
}

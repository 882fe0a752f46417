use crate::evaluate::tests::{broken, judge, only, start_of};
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{Event, EventKind, PhaseKind, RedundancyState, Run, Stall};

fn role(node: &str, time_ns: u64, from: &str, to: &str) -> Event {
    let (from, to, cause) = (from.into(), to.into(), "test".into());
    Event {
        time_ns,
        node: node.into(),
        kind: EventKind::Role {
            from,
            to,
            epoch: 99,
            cause,
        },
    }
}

/// The role goes back to where it was, so many milliseconds before the end of the phase.
fn goes_back(run: &mut Run, kind: PhaseKind) -> u64 {
    let phase = run.phase(kind).unwrap().clone();
    let at = phase.to_ns - 20 * MS;
    let role = |node: &str, from: &str, to: &str| Event {
        time_ns: at,
        node: node.into(),
        kind: EventKind::Role {
            from: from.into(),
            to: to.into(),
            epoch: 9,
            cause: "the partner was silent".into(),
        },
    };
    let (first, second) = (phase.primary_before, 1 - phase.primary_before);
    let (first, second) = (run.nodes[first].clone(), run.nodes[second].clone());
    run.events.push(role(&second, "primary", "backup"));
    run.events.push(role(&first, "backup", "primary"));
    run.sort();
    at
}

#[test]
fn a_failover_that_a_stall_excuses_as_it_can_end_a_lease_is_still_told() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Bursts) + 100 * MS;
    run.events.push(role("left", at, "primary", "backup"));
    run.events.push(role("right", at + MS, "backup", "primary"));
    let back = at + 500 * MS;
    run.events.push(role("right", back, "primary", "backup"));
    run.events
        .push(role("left", back + MS, "backup", "primary"));
    run.sort();
    let stall = |time_ns, length_ns| Stall {
        time_ns,
        length_ns,
        seen_by: "meter".into(),
    };
    run.stalls = vec![stall(at - MS, 12 * MS), stall(back - MS, 3 * MS)];
    assert_eq!(broken(&run), only(&["roles/bursts"]));
    run.stalls = vec![stall(at - MS, 12 * MS), stall(back - MS, 6 * MS)];
    assert_eq!(broken(&run), only(&[]));
    let promises = judge(&run);
    let seen = &promises
        .iter()
        .find(|promise| promise.id == "roles/bursts")
        .unwrap()
        .seen;
    assert!(seen.contains("left went from primary to backup"), "{seen}");
    assert!(seen.contains("had stalled 12.0 ms"), "{seen}");
}

#[test]
fn a_role_that_changes_where_it_should_not_is_found() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Bursts) + 10 * MS;
    run.events.push(role("left", at, "primary", "backup"));
    run.events.push(role("left", at + MS, "backup", "primary"));
    run.sort();
    assert_eq!(broken(&run), only(&["roles/bursts"]));
}

#[test]
fn a_takeover_a_return_and_a_switchover_that_do_not_happen_are_found() {
    for kind in [PhaseKind::Kill, PhaseKind::Return, PhaseKind::Switchover] {
        let mut run = synthetic::run();
        let phase = run.phase(kind).unwrap().clone();
        run.events.retain(|event| {
            !(phase.contains(event.time_ns) && matches!(event.kind, EventKind::Role { .. }))
        });
        let id = format!("roles/{}", kind.id());
        assert!(broken(&run).contains(&id), "{:?}", broken(&run));
    }
}

#[test]
fn redundancy_that_is_lost_silently_late_or_without_cause_is_found() {
    for (kind, state) in [
        (PhaseKind::CutOne, RedundancyState::Degraded),
        (PhaseKind::Kill, RedundancyState::Lost),
        (PhaseKind::CutBoth, RedundancyState::Lost),
    ] {
        let id = format!("reported/{}", kind.id());
        let report = |run: &mut Run, change: &dyn Fn(&mut Event)| {
            let phase = run.phase(kind).unwrap().clone();
            for event in run.events.iter_mut().filter(|e| phase.contains(e.time_ns)) {
                if matches!(event.kind, EventKind::Redundancy { state: s, .. } if s == state) {
                    change(event);
                }
            }
            run.sort();
        };
        let mut silent = synthetic::run();
        report(&mut silent, &|event| event.kind = EventKind::Other);
        assert_eq!(broken(&silent), only(&[&id]));
        let mut late = synthetic::run();
        report(&mut late, &|event| event.time_ns += 300 * MS);
        assert_eq!(broken(&late), only(&[&id]));
        let mut without_cause = synthetic::run();
        report(&mut without_cause, &|event| {
            event.kind = EventKind::Redundancy {
                state,
                cause: String::new(),
            };
        });
        assert_eq!(broken(&without_cause), only(&[&id]));
    }
}

#[test]
fn a_pair_that_heals_late_or_not_for_good_is_found() {
    for kind in [PhaseKind::CutOne, PhaseKind::Return, PhaseKind::Healing] {
        let id = format!("heals/{}", kind.id());
        let end = synthetic::run().phase(kind).unwrap().to_ns;
        let mut run = synthetic::run();
        let since = match kind {
            PhaseKind::CutOne => run.phase(kind).unwrap().faulty().1,
            _ => start_of(&run, kind),
        };
        run.events.retain(|event| {
            let heals = matches!(
                event.kind,
                EventKind::Redundancy {
                    state: RedundancyState::Ok,
                    ..
                }
            );
            !(heals && (since..end).contains(&event.time_ns))
        });
        assert!(broken(&run).contains(&id), "{:?}", broken(&run));
    }
}

#[test]
fn redundancy_lost_for_a_moment_is_excused_by_a_stall_only() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Healing) + 1_500 * MS;
    for (after, state) in [(0, RedundancyState::Lost), (5 * MS, RedundancyState::Ok)] {
        let kind = EventKind::Redundancy {
            state,
            cause: "blip".into(),
        };
        run.events.push(Event {
            time_ns: at + after,
            node: "left".into(),
            kind,
        });
    }
    run.sort();
    assert_eq!(broken(&run), only(&["heals/healing"]));
    run.stalls = vec![Stall {
        time_ns: at - MS,
        length_ns: 9 * MS,
        seen_by: "meter".into(),
    }];
    assert_eq!(broken(&run), only(&[]));
}

#[test]
fn a_role_that_goes_back_is_excused_by_a_stall_and_by_nothing_else() {
    for (kind, id) in [
        (PhaseKind::Switchover, "roles/switchover"),
        (PhaseKind::ChangeKill, "roles/change-kill"),
    ] {
        let mut run = synthetic::run();
        let at = goes_back(&mut run, kind);
        assert!(broken(&run).contains(id));
        run.stalls.push(Stall {
            time_ns: at - MS,
            length_ns: 20 * MS,
            seen_by: "meter".into(),
        });
        assert!(!broken(&run).contains(id), "{:?}", broken(&run));
    }
}

#[test]
fn a_hand_over_of_a_program_that_a_stall_kept_from_answering_is_the_machines_doing() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::CutOne) + 900 * MS;
    let role = |from: &str, to: &str| EventKind::Role {
        from: from.into(),
        to: to.into(),
        epoch: 9,
        cause: "handed over to the partner".into(),
    };
    let event = |after: u64, kind| Event {
        time_ns: at + after * MS,
        node: "left".into(),
        kind,
    };
    run.events.push(event(300, role("primary", "backup")));
    run.events.push(event(400, role("backup", "primary")));
    run.sort();
    assert!(broken(&run).contains(&"roles/cut-a".to_owned()));
    let fault = |kind: &str| EventKind::ProgramFault {
        cause: format!("cycle 9: {kind}: it had not answered"),
    };
    run.events.push(event(10, fault("overrun")));
    run.sort();
    assert!(broken(&run).contains(&"roles/cut-a".to_owned()), "no stall");
    run.stalls.push(Stall {
        time_ns: at + 11 * MS,
        length_ns: 4 * MS,
        seen_by: "meter".into(),
    });
    assert!(!broken(&run).contains(&"roles/cut-a".to_owned()));
}

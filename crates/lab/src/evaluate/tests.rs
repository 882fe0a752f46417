//! A handmade run in which every promise holds, and for each promise a way to break it alone.

use std::collections::BTreeSet;

use super::*;
use crate::runlog::synthetic::{self, MS};
use crate::runlog::{Event, OutputOutcome, RedundancyState, Stall, TransferOutcome, Write};

fn judge(run: &Run) -> Vec<Promise> {
    evaluate(run, &Limits::default())
}

fn broken(run: &Run) -> BTreeSet<String> {
    judge(run)
        .into_iter()
        .filter(|promise| !promise.held)
        .map(|promise| promise.id)
        .collect()
}

fn only(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn start_of(run: &Run, kind: PhaseKind) -> u64 {
    run.phase(kind).unwrap().faulty().0
}

fn write_after(run: &mut Run, time_ns: u64) -> &mut Write {
    run.writes
        .iter_mut()
        .find(|write| write.time_ns > time_ns)
        .unwrap()
}

#[test]
fn a_run_as_it_should_be_keeps_every_promise_and_each_has_its_own_name() {
    let promises = judge(&synthetic::run());
    let wrong: Vec<_> = promises.iter().filter(|promise| !promise.held).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let names: BTreeSet<_> = promises.iter().map(|promise| &promise.id).collect();
    assert_eq!(names.len(), promises.len());
    assert!(promises.len() > 35, "{}", promises.len());
}

#[test]
fn an_empty_record_breaks_every_promise() {
    let mut run = synthetic::run();
    (run.writes, run.events, run.samples) = Default::default();
    assert!(judge(&run).iter().all(|promise| !promise.held));
}

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
fn a_gap_in_the_outputs_is_found_and_a_stall_excuses_no_more_than_its_length() {
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
fn a_transfer_that_misses_is_excused_by_a_stall_at_that_moment_and_no_other() {
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

#[test]
fn a_failover_is_excused_by_a_stall_that_can_end_a_lease_and_then_is_still_told() {
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
fn redundancy_that_a_stall_takes_away_for_a_moment_was_kept_and_any_other_loss_was_not() {
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
fn a_level_that_leaves_the_computed_run_is_found_and_the_noise_of_normal_running_is_not() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Kill) + 300 * MS;
    run.samples
        .iter_mut()
        .find(|sample| sample.time_ns > at)
        .unwrap()
        .levels[2] += 0.03;
    assert_eq!(broken(&run), only(&[]));
    run.samples
        .iter_mut()
        .find(|sample| sample.time_ns > at)
        .unwrap()
        .levels[2] += 0.07;
    assert_eq!(broken(&run), only(&["process/kill"]));
}

#[test]
fn logs_with_holes_prove_nothing() {
    for lost in [None, Some(1)] {
        let run = Run {
            plant_lines_lost: lost,
            ..synthetic::run()
        };
        assert_eq!(broken(&run), only(&["record"]));
    }
    let mut run = synthetic::run();
    let kind = EventKind::EventsLost { count: 1 };
    run.events.push(Event {
        time_ns: 0,
        node: "left".into(),
        kind,
    });
    assert_eq!(broken(&run), only(&["record"]));
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
fn a_cycle_without_outputs_in_a_change_is_found_unless_the_machine_stalled() {
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

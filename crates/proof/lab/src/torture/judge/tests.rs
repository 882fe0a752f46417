use serde_json::json;

use super::*;
use crate::runlog::{Stall, Write};

const MS: u64 = 1_000_000;
const FAULT: Fault = Fault {
    from_ns: 1_000 * MS,
    to_ns: 1_030 * MS,
};

/// Outputs every 10 ms, but for a gap from 1,000 ms on.
fn evidence(gap_ms: u64) -> Evidence {
    let before = (900..=1_000).step_by(10);
    let after = (1_000 + gap_ms..2_000).step_by(10);
    let write = |(cycle, at): (usize, u64)| Write {
        time_ns: at * MS,
        writer: 0,
        epoch: 2,
        cycle: cycle as u64,
        outputs: vec![0.0; 2],
        accepted: true,
    };
    Evidence {
        run: Run {
            writes: before.chain(after).enumerate().map(write).collect(),
            ..Run::default()
        },
        count: Count {
            accepted: 90,
            ..Count::default()
        },
        events: Vec::new(),
        strange: 0,
        healed_ns: Some(1_400 * MS),
        until_ns: 1_990 * MS,
    }
}

fn event(line: serde_json::Value) -> NodeEvent {
    NodeEvent {
        node: 0,
        time_ns: 1_010 * MS,
        line,
    }
}

fn limits() -> Limits {
    Limits::gap(30 * MS + TWO_PERIODS_NS)
}

fn outcome(trial: &Trial, id: &str) -> Outcome {
    trial
        .wants
        .iter()
        .find(|want| want.id == id)
        .unwrap()
        .outcome
}

#[test]
fn a_trial_that_keeps_its_promises_is_held() {
    let trial = trial(&evidence(50), &FAULT, &limits());
    assert_eq!(trial.outcome(), Outcome::Held, "{:?}", trial.wants);
    assert_eq!(
        (trial.gap_ms, trial.fault_ms, trial.healed_ms),
        (Some(50.0), 30.0, Some(370.0))
    );
}

#[test]
fn a_gap_beyond_its_limit_is_broken_unless_the_meter_saw_as_much() {
    let mut late = evidence(67);
    assert_eq!(
        outcome(&trial(&late, &FAULT, &limits()), "gap"),
        Outcome::Broken
    );
    let mut stall = |from_ms: u64, length_ms: u64| {
        late.run.stalls = vec![Stall {
            time_ns: (from_ms + length_ms) * MS,
            length_ns: length_ms * MS,
            seen_by: "meter".into(),
        }];
        outcome(&trial(&late, &FAULT, &limits()), "gap")
    };
    assert_eq!(
        stall(1_005, 8),
        Outcome::Explained,
        "with the cycle that it hits"
    );
    assert_eq!(stall(1_005, 6), Outcome::Broken, "too short a stall");
    assert_eq!(stall(1_100, 8), Outcome::Broken, "a stall at another time");
}

#[test]
fn outputs_that_never_come_back_are_a_gap_to_the_end() {
    let mut dead = evidence(50);
    dead.run.writes.retain(|write| write.time_ns <= 1_000 * MS);
    let trial = trial(&dead, &FAULT, &limits());
    assert_eq!(outcome(&trial, "gap"), Outcome::Broken);
    assert_eq!(trial.gap_ms, Some(990.0));
}

#[test]
fn a_state_lost_is_explained_by_a_stall_shortly_before_each_loss_and_by_nothing_else() {
    let mut run = Run {
        stalls: vec![Stall {
            time_ns: 1_000 * MS,
            length_ns: 5 * MS,
            seen_by: "meter".into(),
        }],
        ..Run::default()
    };
    let at = |ms: u64| (ms * MS, "a transfer failed".to_owned());
    let judged = |run: &Run, seen: &[(u64, String)]| only_in_stalls("x", "y", run, seen).outcome;
    assert_eq!(judged(&run, &[]), Outcome::Held);
    assert_eq!(judged(&run, &[at(1_012)]), Outcome::Explained);
    assert_eq!(
        judged(&run, &[at(990)]),
        Outcome::Broken,
        "before the stall"
    );
    assert_eq!(judged(&run, &[at(1_031)]), Outcome::Broken, "long after it");
    assert_eq!(
        judged(&run, &[at(1_012), at(1_500)]),
        Outcome::Broken,
        "a stall explains what is near it, not another"
    );
    run.stalls.clear();
    assert_eq!(judged(&run, &[at(1_012)]), Outcome::Broken);
}

#[test]
fn no_stall_excuses_a_reset_or_a_second_writer() {
    let stalled = |evidence: &mut Evidence| {
        evidence.run.stalls = vec![Stall {
            time_ns: 1_900 * MS,
            length_ns: 900 * MS,
            seen_by: "meter".into(),
        }];
    };
    for spoil in [
        |count: &mut Count| count.resets = 1,
        |count: &mut Count| count.dual_writers = 1,
        |count: &mut Count| count.older_epochs = 1,
        |count: &mut Count| count.accepted = 0,
    ] {
        let mut bad = evidence(50);
        stalled(&mut bad);
        spoil(&mut bad.count);
        assert_eq!(
            trial(&bad, &FAULT, &limits()).outcome(),
            Outcome::Broken,
            "{:?}",
            bad.count
        );
    }
    let mut initial = evidence(50);
    stalled(&mut initial);
    let cause = "starts from the initial state";
    let resumed = json!({"event": "resumed", "application": "tank", "cause": cause});
    initial.events.push(event(resumed));
    assert_eq!(
        outcome(&trial(&initial, &FAULT, &limits()), "no-reset"),
        Outcome::Broken
    );
}

#[test]
fn a_pair_that_lost_all_memory_begins_anew_once_and_not_twice() {
    let resumed = || {
        let cause = "starts from the initial state";
        event(json!({"event": "resumed", "application": "tank", "cause": cause}))
    };
    let limits = Limits {
        memory_lost: true,
        ..limits()
    };
    let mut dark = evidence(50);
    assert_eq!(
        outcome(&trial(&dark, &FAULT, &limits), "one-cold-start"),
        Outcome::Broken
    );
    (dark.count.resets, dark.events) = (1, vec![resumed()]);
    assert_eq!(
        outcome(&trial(&dark, &FAULT, &limits), "one-cold-start"),
        Outcome::Held
    );
    dark.events.push(resumed());
    assert_eq!(
        outcome(&trial(&dark, &FAULT, &limits), "one-cold-start"),
        Outcome::Broken
    );
}

#[test]
fn a_pair_that_is_not_whole_again_in_time_is_broken() {
    let mut slow = evidence(50);
    slow.healed_ns = Some(2_031 * MS);
    assert_eq!(
        outcome(&trial(&slow, &FAULT, &limits()), "heals"),
        Outcome::Broken
    );
    slow.healed_ns = None;
    assert_eq!(
        outcome(&trial(&slow, &FAULT, &limits()), "heals"),
        Outcome::Broken
    );
}

#[test]
fn a_log_with_a_hole_proves_nothing() {
    let mut lost = evidence(50);
    lost.events
        .push(event(json!({"event": "events_lost", "count": 3})));
    assert_eq!(
        outcome(&trial(&lost, &FAULT, &limits()), "record"),
        Outcome::Broken
    );
    let mut strange = evidence(50);
    strange.strange = 1;
    assert_eq!(
        outcome(&trial(&strange, &FAULT, &limits()), "record"),
        Outcome::Broken
    );
}

#[test]
fn starts_are_counted_for_the_application_that_had_most() {
    let resumed = |application: &str, cause: &str| {
        event(json!({"event": "resumed", "application": application, "cause": cause}))
    };
    let initial = "starts from the initial state";
    let events = [
        resumed("tank", initial),
        resumed("ballast", initial),
        resumed("tank", initial),
        resumed("tank", "goes on from its own cycle 7"),
    ];
    assert_eq!(initial_starts(&events), 2);
}

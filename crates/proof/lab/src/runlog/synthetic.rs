//! A made-up run in which everything goes as it should, for tests.

use super::*;
use bumpless_base::Random;

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const START: u64 = 100 * S;

/// A whole demonstration: left is killed, right takes over, left comes back, takes over on order.
pub fn run() -> Run {
    let mut run = Run {
        nodes: vec!["left".into(), "right".into()],
        period_ns: 10 * MS,
        deadline_ns: 9 * MS,
        lease_ns: 10 * MS,
        plant_lines_lost: Some(0),
        injected: 2_345,
        ..Run::default()
    };
    phases(&mut run);
    let end = run.phases.last().expect("phases").to_ns;
    let fault = |kind| run.phase(kind).expect("phase").faulty();
    let times = Times {
        kill: fault(PhaseKind::Kill).0,
        back: fault(PhaseKind::Return).0,
        order: fault(PhaseKind::Switchover).0,
        second_kill: fault(PhaseKind::ChangeKill).0,
        second_back: fault(PhaseKind::ChangeKill).1,
        end,
    };
    writes(&mut run, &times);
    transfers(&mut run, &times);
    roles(&mut run, &times);
    redundancy(&mut run, &times);
    configurations(&mut run, &times);
    levels(&mut run, end);
    run.sort();
    run
}

/// When what happened.
struct Times {
    kill: u64,
    back: u64,
    order: u64,
    second_kill: u64,
    second_back: u64,
    end: u64,
}

fn phases(run: &mut Run) {
    use PhaseKind::*;
    let mut at = START;
    for (kind, seconds, fault, primary_before) in [
        (Normal, 6, None, 0),
        (Loss, 5, Some((300, 4_500)), 0),
        (Bursts, 5, Some((300, 4_500)), 0),
        (CutOne, 4, Some((500, 2_500)), 0),
        (Kill, 4, Some((500, 500)), 0),
        (Return, 4, Some((500, 500)), 1),
        (Switchover, 4, Some((500, 500)), 1),
        (CutBoth, 4, Some((500, 4_000)), 0),
        (Healing, 3, Some((0, 0)), 0),
        (Change, 3, Some((300, 2_000)), 0),
        (ChangeKill, 4, Some((300, 800)), 0),
    ] {
        let fault = fault.map(|(from, to)| (at + from * MS, at + to * MS));
        let to_ns = at + seconds * S;
        run.phases.push(Phase {
            kind,
            from_ns: at,
            to_ns,
            fault,
            primary_before,
        });
        at = to_ns;
    }
}

fn writes(run: &mut Run, times: &Times) {
    let (kill, order, end) = (times.kill, times.order, times.end);
    let mut random = Random::new(3);
    let (mut time, mut cycle) = (START - S, 1);
    while time < end {
        let (writer, epoch) = match time {
            t if t <= kill => (0, 2),
            t if t <= order => (1, 3),
            t if t <= times.second_kill => (0, 4),
            _ => (1, 5),
        };
        let phase = time as f64 / 4e9;
        let outputs = vec![3.0 + 0.4 * phase.sin(), 3.0 + 0.3 * phase.cos()];
        let time_ns = time + random.below(MS);
        run.writes.push(Write {
            time_ns,
            writer,
            epoch,
            cycle,
            outputs,
            accepted: true,
        });
        time += match time {
            t if t <= kill && t + 10 * MS > kill => 24 * MS,
            t if t <= times.second_kill && t + 10 * MS > times.second_kill => 24 * MS,
            _ => 10 * MS,
        };
        cycle += 1;
    }
}

fn event(run: &mut Run, time_ns: u64, node: usize, kind: EventKind) {
    run.events.push(Event {
        time_ns,
        node: run.nodes[node].clone(),
        kind,
    });
}

fn transfers(run: &mut Run, times: &Times) {
    let (kill, order, end) = (times.kill, times.order, times.end);
    let alone = [kill..times.back, times.second_kill..times.second_back];
    let mut random = Random::new(5);
    let mut time = START - S;
    for cycle in 1.. {
        time += 10 * MS;
        if time > end {
            return;
        }
        let is_in =
            |alone: &std::ops::Range<u64>| (alone.start..alone.end + 800 * MS).contains(&time);
        if alone.iter().any(is_in) {
            continue;
        }
        let second = (kill..order).contains(&time) || time > times.second_kill;
        let node = usize::from(second);
        let lossy = run
            .phases
            .iter()
            .any(|p| p.contains(time) && matches!(p.kind, PhaseKind::Loss | PhaseKind::Bursts));
        let slow = if lossy && random.chance(0.03) {
            1_200.0
        } else {
            0.0
        };
        let took_us = 90.0 + slow + random.below(60) as f64;
        let outcome = TransferOutcome::Safe;
        event(
            run,
            time,
            node,
            EventKind::Transfer {
                cycle,
                outcome,
                took_us,
                cause: None,
            },
        );
    }
}

fn roles(run: &mut Run, times: &Times) {
    let (kill, back, order) = (times.kill, times.back, times.order);
    let role = |from: &str, to: &str, epoch| EventKind::Role {
        from: from.into(),
        to: to.into(),
        epoch,
        cause: "as it should".into(),
    };
    event(run, START - 3 * S, 0, EventKind::Started {});
    event(run, START - 3 * S, 1, EventKind::Started {});
    event(run, START - 2 * S, 0, role("starting", "primary", 2));
    event(run, START - 2 * S, 1, role("starting", "backup", 2));
    event(run, kill, 0, EventKind::Gone {});
    event(run, kill + 12 * MS, 1, role("backup", "primary", 3));
    event(run, back + 50 * MS, 0, EventKind::Started {});
    event(run, back + 500 * MS, 0, role("starting", "backup", 3));
    event(run, order + 4 * MS, 1, role("primary", "backup", 3));
    event(run, order + 5 * MS, 0, role("backup", "primary", 4));
    let (kill, back) = (times.second_kill, times.second_back);
    event(run, kill, 0, EventKind::Gone {});
    event(run, kill + 12 * MS, 1, role("backup", "primary", 5));
    event(run, back + 50 * MS, 0, EventKind::Started {});
    event(run, back + 500 * MS, 0, role("starting", "backup", 5));
}

fn redundancy(run: &mut Run, times: &Times) {
    let (kill, back) = (times.kill, times.back);
    use RedundancyState::{Degraded, Lost, Ok};
    let says = |state, cause: &str| EventKind::Redundancy {
        state,
        cause: cause.into(),
    };
    let fault = |kind| run.phase(kind).expect("phase").faulty();
    let (one, both) = (fault(PhaseKind::CutOne), fault(PhaseKind::CutBoth));
    let order = fault(PhaseKind::Switchover).0;
    let healed = fault(PhaseKind::Healing).0;
    event(run, START - S, 0, says(Ok, "both networks up"));
    event(run, one.0 + 8 * MS, 0, says(Degraded, "network A silent"));
    event(run, one.1 + 20 * MS, 0, says(Ok, "both networks up"));
    event(
        run,
        kill + 12 * MS,
        1,
        says(Lost, "left is silent on every network"),
    );
    event(run, back + 800 * MS, 1, says(Ok, "both networks up"));
    event(run, order + 30 * MS, 0, says(Ok, "both networks up"));
    event(
        run,
        both.0 + 8 * MS,
        0,
        says(Lost, "right is silent on every network"),
    );
    event(run, healed + 60 * MS, 0, says(Ok, "both networks up"));
    let (kill, back) = (times.second_kill, times.second_back);
    let silent = says(Lost, "left is silent on every network");
    event(run, kill + 12 * MS, 1, silent);
    event(run, back + 800 * MS, 1, says(Ok, "both networks up"));
}

fn configurations(run: &mut Run, times: &Times) {
    let in_force = |fingerprint: &str| EventKind::InForce {
        fingerprint: fingerprint.into(),
        change: None,
    };
    let change = run.phase(PhaseKind::Change).expect("change").clone();
    for node in [0, 1] {
        event(run, change.from_ns + MS, node, in_force("first"));
        event(run, change.to_ns - MS, node, in_force("second"));
        event(run, times.second_kill - MS, node, in_force("second"));
        event(run, times.end - MS, node, in_force("third"));
    }
}

fn levels(run: &mut Run, end: u64) {
    let mut random = Random::new(9);
    let mut time_ns = START - S;
    while time_ns <= end {
        let wanted = if time_ns % (16 * S) < 8 * S {
            [12.4, 12.7]
        } else {
            [13.4, 12.2]
        };
        let last = run
            .baseline
            .last()
            .map_or([12.4, 12.7, 1.8, 1.4], |sample| sample.levels);
        let levels = [
            last[0] + (wanted[0] - last[0]) * 0.02,
            last[1] + (wanted[1] - last[1]) * 0.02,
            last[2] + (wanted[1] - 10.9 - last[2]) * 0.02,
            last[3] + (wanted[0] - 11.0 - last[3]) * 0.02,
        ];
        run.baseline.push(Sample {
            time_ns,
            levels,
            set_points: wanted,
        });
        let noisy = levels.map(|level| level + random.below(100) as f64 * 1e-4 - 0.005);
        run.samples.push(Sample {
            time_ns,
            levels: noisy,
            set_points: wanted,
        });
        time_ns += 20 * MS;
    }
}

//! The demonstration's course: what is done when.

use std::time::Duration;

use super::DemoError;
use super::configuration::{NETWORKS, NODES};
use super::laboratory::{Laboratory, now_ns};
use crate::fault::{Cut, LinkFaults};
use crate::runlog::{Phase, PhaseKind};

const MS: u64 = 1_000_000;
/// Phases begin this long after the plant, unless the pair needs longer.
const LEAD_MS: u64 = 4_000;
/// How long the pair may take to become redundant after the start.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// How long it may take when a node comes back.
const RETURN_TIMEOUT: Duration = Duration::from_secs(6);
/// Share of packets lost at random.
const LOSS: f64 = 0.05;
/// Share of packets with which a burst begins.
const BURST: f64 = 0.003;
const BURST_LENGTH: u32 = 10;

/// What happens in each phase, with its length and where in it the fault begins and ends, in
/// milliseconds.
const COURSE: [(PhaseKind, u64, u64, u64); 11] = [
    (PhaseKind::Normal, 6_000, 0, 0),
    (PhaseKind::Loss, 5_000, 300, 4_500),
    (PhaseKind::Bursts, 5_000, 300, 4_500),
    (PhaseKind::CutOne, 4_000, 500, 2_500),
    (PhaseKind::Kill, 4_000, 500, 500),
    (PhaseKind::Return, 4_000, 300, 300),
    (PhaseKind::Switchover, 4_000, 500, 500),
    (PhaseKind::CutBoth, 4_000, 500, 4_000),
    (PhaseKind::Healing, 3_500, 0, 0),
    (PhaseKind::Change, 2_500, 300, 2_000),
    (PhaseKind::ChangeKill, 3_500, 300, 800),
];

/// Changes of the set points: seconds after the plant's start, and centimetres from the operating
/// point. One lies in normal running, so that its noise contains a change; most others come with a
/// fault, so that the controllers have work to do when it happens.
pub const SET_POINT_STEPS: [(f64, [f64; 2]); 9] = [
    (5.5, [1.0, 0.0]),
    (12.0, [1.0, 0.8]),
    (17.0, [0.0, 0.8]),
    (23.6, [1.0, 0.0]),
    (28.5, [1.0, 1.0]),
    (32.0, [0.0, 1.0]),
    (37.5, [0.5, 0.0]),
    (43.7, [1.0, 0.5]),
    (46.2, [0.0, 0.5]),
];

/// How long the whole course takes.
pub fn planned() -> Duration {
    let phases: u64 = COURSE.iter().map(|(_, length, ..)| length).sum();
    Duration::from_millis(LEAD_MS + phases + 1_500)
}

/// Runs the course and says what was done when.
///
/// # Errors
/// If the pair does not become redundant at the start, a process fails, or the user ends it. What
/// goes wrong later is for the evaluation to find.
pub fn run(laboratory: &mut Laboratory) -> Result<Vec<Phase>, DemoError> {
    laboratory
        .waiter
        .progress
        .now("starting plant, witnesses and controllers");
    laboratory.wait_redundant(START_TIMEOUT)?;
    laboratory.wait_time(laboratory.started_ns + LEAD_MS * MS)?;
    let mut phases: Vec<Phase> = Vec::new();
    let mut primary = laboratory.primary().unwrap_or(0);
    for (kind, length, from, to) in COURSE {
        laboratory.waiter.progress.now(kind.title());
        let from_ns = phases.last().map_or_else(now_ns, |phase| phase.to_ns);
        let primary_before = laboratory.primary().unwrap_or(primary);
        primary = primary_before;
        let fault = act(
            laboratory,
            kind,
            (from_ns + from * MS, from_ns + to * MS),
            primary,
        )?;
        if matches!(kind, PhaseKind::Return | PhaseKind::ChangeKill) {
            laboratory.wait_until(RETURN_TIMEOUT, Laboratory::is_redundant)?;
        }
        if matches!(kind, PhaseKind::Change | PhaseKind::ChangeKill) {
            laboratory.wait_alike(RETURN_TIMEOUT)?;
        }
        laboratory.wait_time(from_ns + length * MS)?;
        phases.push(Phase {
            kind,
            from_ns,
            to_ns: now_ns(),
            fault,
            primary_before,
        });
    }
    laboratory.set_faults(&[], &LinkFaults::default())?;
    Ok(phases)
}

/// Does what the phase is about between `from_ns` and `to_ns`, and says from when to when it was.
fn act(
    laboratory: &mut Laboratory,
    kind: PhaseKind,
    (from_ns, to_ns): (u64, u64),
    primary: usize,
) -> Result<Option<(u64, u64)>, DemoError> {
    let event = |at: u64| Ok(Some((at, at)));
    match kind {
        PhaseKind::Normal => return Ok(None),
        // The cut before is healed at once.
        PhaseKind::Healing => {
            let at = now_ns();
            laboratory.set_faults(&[], &LinkFaults::default())?;
            return event(at);
        }
        _ => laboratory.wait_time(from_ns)?,
    }
    match kind {
        PhaseKind::Kill => return event(laboratory.kill_node(primary)),
        PhaseKind::Return => {
            let at = now_ns();
            // Whoever is not primary is the one that was killed.
            laboratory.start_node((primary + 1) % NODES.len())?;
            return event(at);
        }
        PhaseKind::Switchover => return event(laboratory.switch_over(primary)?),
        PhaseKind::ChangeKill => {
            laboratory.change(1)?;
            let killed = laboratory.kill_node(primary);
            laboratory.wait_time(to_ns)?;
            let back = now_ns();
            laboratory.start_node(primary)?;
            return Ok(Some((killed, back)));
        }
        _ => {}
    }
    let (networks, faults): (&[&str], _) = match kind {
        PhaseKind::Loss | PhaseKind::Change => (&NETWORKS, LinkFaults::loss(LOSS)),
        PhaseKind::Bursts => (&NETWORKS, LinkFaults::bursts(BURST, BURST_LENGTH)),
        PhaseKind::CutOne => (&NETWORKS[..1], LinkFaults::cut(Cut::All)),
        _ => (&NETWORKS, LinkFaults::cut(Cut::Partners)),
    };
    let begun = now_ns();
    laboratory.set_faults(networks, &faults)?;
    if kind == PhaseKind::Change {
        laboratory.change(0)?;
    }
    laboratory.wait_time(to_ns)?;
    if kind == PhaseKind::CutBoth {
        return Ok(Some((begun, now_ns())));
    }
    let ended = laboratory.set_faults(&[], &LinkFaults::default())?;
    Ok(Some((begun, ended)))
}

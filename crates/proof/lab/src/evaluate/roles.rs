//! Who had which role, and whether lost redundancy was reported with its cause and regained.

use super::own_faults::kept_from_computing;
use super::{Limits, Promise, ms};
use crate::runlog::{Event, EventKind, Phase, PhaseKind, RedundancyState, Run};

const PRIMARY: &str = "primary";
const BACKUP: &str = "backup";
/// Within so many leases after a stall a change of roles can be its consequence: the lease runs
/// out, and the other node takes over.
const STALL_REACH_LEASES: u64 = 4;
/// Within so much after a program was given up its role is handed over: for so long its next start is waited for.
const HAND_OVER_REACH_NS: u64 = 1_500_000_000;

/// Role of `node` just before `time_ns`; empty if it has not said one since its last start.
pub fn role_at<'a>(run: &'a Run, node: &str, time_ns: u64) -> &'a str {
    let mut role = "";
    for event in run
        .events
        .iter()
        .filter(|e| e.node == node && e.time_ns < time_ns)
    {
        match &event.kind {
            EventKind::Role { to, .. } => role = to,
            EventKind::Started {} | EventKind::Stopping {} | EventKind::Gone {} => role = "",
            _ => {}
        }
    }
    role
}

fn role_changes<'a>(run: &'a Run, phase: &'a Phase) -> impl Iterator<Item = &'a Event> + Clone {
    run.events
        .iter()
        .filter(|e| phase.contains(e.time_ns) && matches!(e.kind, EventKind::Role { .. }))
}

fn describe(event: &Event) -> String {
    match &event.kind {
        EventKind::Role {
            from, to, cause, ..
        } => {
            format!("{} went from {from} to {to} ({cause})", event.node)
        }
        _ => String::new(),
    }
}

/// Roles change only where the phase changes them, and end as the phase wants.
pub fn as_expected(run: &Run, phase: &Phase) -> Promise {
    use PhaseKind::{ChangeKill, Kill, Return, Switchover};
    let before = run.node_name(phase.primary_before);
    let other = run.node_name(1 - phase.primary_before.min(1));
    let at_end = |node| role_at(run, node, phase.to_ns);
    let first =
        role_changes(run, phase).find(|event| event.node == before && !is_excused(run, event));
    let mut ends = format!(
        "at the end {before} is {}, {other} is {}",
        or_silent(at_end(before)),
        or_silent(at_end(other))
    );
    let (promised, held) = match phase.kind {
        Kill => (format!("{other} takes over"), at_end(other) == PRIMARY),
        ChangeKill => (
            format!("{other} takes over, {before} comes back as backup"),
            at_end(other) == PRIMARY && at_end(before) == BACKUP,
        ),
        Return => (
            format!("{other} comes back as backup, {before} stays primary"),
            at_end(before) == PRIMARY && at_end(other) == BACKUP && first.is_none(),
        ),
        Switchover => (
            format!("{other} becomes primary, {before} becomes backup"),
            at_end(other) == PRIMARY && at_end(before) == BACKUP,
        ),
        _ => return unchanged(run, phase, before, other),
    };
    if let Some(event) = first.filter(|_| phase.kind == Return) {
        ends += &format!("; {}", describe(event));
    }
    let moved = moved_by_a_stall(run, phase).filter(|_| !held);
    if let Some(event) = moved {
        ends += &format!("; {}; {}", describe(event), excuse(run, event));
    }
    let mut roles = [at_end(before), at_end(other)];
    roles.sort_unstable();
    let unexpected = phase.kind == Return && first.is_some();
    let in_order = roles == [BACKUP, PRIMARY] && !unexpected;
    let held = held || (moved.is_some() && in_order);
    Promise::in_phase("roles", phase, promised, held, ends)
}

/// Where a stall may have moved the role once more, either order of two nodes at the end is right.
fn moved_by_a_stall<'a>(run: &'a Run, phase: &'a Phase) -> Option<&'a Event> {
    let mut moved = role_changes(run, phase).filter(|event| concerns_primary(event));
    moved.find(|event| phase.kind != PhaseKind::Kill && is_excused(run, event))
}

/// The roles stay as they are. A stall of half a lease or more can end a lease by itself: a change
/// that follows one is the machine's doing, and is said but not held against the pair.
fn unchanged(run: &Run, phase: &Phase, before: &str, other: &str) -> Promise {
    let promised = format!(
        "{before} stays primary, {other} stays backup, unless the machine stalls for half a lease"
    );
    let mut of_primary = role_changes(run, phase).filter(|event| concerns_primary(event));
    let inexcusable = of_primary.clone().find(|event| !is_excused(run, event));
    let excused = of_primary.find(|event| is_excused(run, event));
    let roles = [before, other].map(|node| role_at(run, node, phase.to_ns));
    let in_order = match excused {
        None => roles == [PRIMARY, BACKUP],
        Some(_) => roles == [PRIMARY, BACKUP] || roles == [BACKUP, PRIMARY],
    };
    let what = match (inexcusable, excused) {
        (Some(event), _) => describe(event),
        (None, Some(event)) => {
            format!("{}; {}", describe(event), excuse(run, event))
        }
        (None, None) => "nobody took over".into(),
    };
    let [before_is, other_is] = roles.map(or_silent);
    let seen = format!("{what}; at the end {before} is {before_is}, {other} is {other_is}");
    Promise::in_phase(
        "roles",
        phase,
        promised,
        inexcusable.is_none() && in_order,
        seen,
    )
}

/// Whether the event makes a primary or ends one.
fn concerns_primary(event: &Event) -> bool {
    match &event.kind {
        EventKind::Role { from, to, .. } => from == PRIMARY || to == PRIMARY,
        _ => false,
    }
}

fn or_silent(role: &str) -> &str {
    if role.is_empty() { "gone" } else { role }
}

/// First report of `wanted` redundancy at or after `from_ns` by a node other than `except`.
fn first_report<'a>(
    run: &'a Run,
    from_ns: u64,
    to_ns: u64,
    except: Option<&str>,
    wanted: &[RedundancyState],
) -> Option<(&'a Event, &'a str)> {
    run.events
        .iter()
        .filter(|e| (from_ns..to_ns).contains(&e.time_ns) && Some(e.node.as_str()) != except)
        .find_map(|event| match &event.kind {
            EventKind::Redundancy { state, cause } if wanted.contains(state) => {
                Some((event, cause.as_str()))
            }
            _ => None,
        })
}

/// Promises about reports of redundancy in phases that take it away or give it back.
pub fn redundancy_reported(run: &Run, phase: &Phase, limits: &Limits) -> Vec<Promise> {
    use RedundancyState::{Degraded, Lost, Ok};
    let (fault_from, fault_to) = phase.faulty();
    let kills = matches!(phase.kind, PhaseKind::Kill | PhaseKind::ChangeKill);
    let victim = kills.then(|| run.node_name(phase.primary_before));
    let mut promises = Vec::new();
    let reported: &[RedundancyState] = match phase.kind {
        PhaseKind::CutOne => &[Degraded],
        PhaseKind::Kill | PhaseKind::ChangeKill | PhaseKind::CutBoth => &[Lost],
        _ => &[],
    };
    if !reported.is_empty() {
        promises.push(report_with_cause(
            run, phase, limits, fault_from, victim, reported,
        ));
    }
    let (subject, healed_from, limit) = match phase.kind {
        PhaseKind::CutOne => ("heals", fault_to, limits.heal_ns),
        PhaseKind::Healing | PhaseKind::Switchover => ("heals", fault_from, limits.heal_ns),
        PhaseKind::Return => ("heals", fault_from, limits.return_ns),
        PhaseKind::ChangeKill => ("heals", fault_to, limits.return_ns),
        _ => return promises,
    };
    let promised = format!("redundant again within {}", ms(limit));
    let end = phase.to_ns.max(healed_from);
    let (held, seen) = match healed(run, healed_from, end) {
        Some(0) => (true, "redundant throughout".into()),
        Some(after) => (after <= limit, format!("after {}", ms(after))),
        None => match first_report(run, healed_from, end, None, &[Ok]) {
            Some(_) => (false, "regained, but not kept".into()),
            None => (false, "not redundant by the end of the phase".into()),
        },
    };
    promises.push(Promise::in_phase(subject, phase, promised, held, seen));
    promises
}

fn report_with_cause(
    run: &Run,
    phase: &Phase,
    limits: &Limits,
    from_ns: u64,
    victim: Option<&str>,
    wanted: &[RedundancyState],
) -> Promise {
    let word = if wanted.contains(&RedundancyState::Lost) {
        "lost"
    } else {
        "degraded"
    };
    let promised = format!(
        "redundancy {word} is reported with its cause within {}",
        ms(limits.report_ns)
    );
    let end = phase.to_ns.max(from_ns);
    let (held, seen) = match first_report(run, from_ns, end, victim, wanted) {
        Some((event, cause)) => {
            let after = event.time_ns - from_ns;
            let allowed = limits.report_ns + run.stalled_ns(from_ns, event.time_ns);
            let seen = format!("{} after {}: \"{cause}\"", event.node, ms(after));
            (after <= allowed && !cause.is_empty(), seen)
        }
        None => (false, "not reported".into()),
    };
    Promise::in_phase("reported", phase, promised, held, seen)
}

/// How long after `from_ns` the primary said that redundancy is back for good; zero if it was there
/// all the time, `None` if it is not there at `to_ns`. What a stall takes away for a moment counts
/// as kept.
fn healed(run: &Run, from_ns: u64, to_ns: u64) -> Option<u64> {
    let primary = run
        .nodes
        .iter()
        .find(|node| role_at(run, node, to_ns) == PRIMARY)?;
    let (mut since, mut is_there) = (None, false);
    for event in run
        .events
        .iter()
        .filter(|e| e.node == *primary && e.time_ns < to_ns)
    {
        match event.kind {
            EventKind::Redundancy {
                state: RedundancyState::Ok,
                ..
            } => {
                since.get_or_insert(event.time_ns);
                is_there = true;
            }
            EventKind::Redundancy { .. } if event.time_ns >= from_ns && is_stalled(run, event) => {
                is_there = false;
            }
            EventKind::Redundancy { .. } | EventKind::Started {} => {
                (since, is_there) = (None, false)
            }
            _ => {}
        }
    }
    since
        .filter(|_| is_there)
        .map(|since| since.saturating_sub(from_ns))
}

/// Whether a stall that can end a lease came shortly before `event`.
fn is_excused(run: &Run, event: &Event) -> bool {
    stalled_before(run, event) >= (run.lease_ns / 2).max(1) || follows_a_stopped_program(run, event)
}

/// Whether a program that a stall had kept from answering was given up here shortly before: its role is handed over.
fn follows_a_stopped_program(run: &Run, event: &Event) -> bool {
    let since = event.time_ns.saturating_sub(HAND_OVER_REACH_NS);
    kept_from_computing(run, since, event.time_ns)
}

/// What the machine did that excuses `event`.
fn excuse(run: &Run, event: &Event) -> String {
    match stalled_before(run, event) {
        0 => "a stall had kept the program from answering, which was stopped".into(),
        length => format!("the machine had stalled {}", ms(length)),
    }
}

/// Whether the machine stalled shortly before `event`.
fn is_stalled(run: &Run, event: &Event) -> bool {
    stalled_before(run, event) > 0
}

/// How long the machine stalled in the leases before `event`.
fn stalled_before(run: &Run, event: &Event) -> u64 {
    let since = event
        .time_ns
        .saturating_sub(STALL_REACH_LEASES * run.lease_ns);
    run.stalled_ns(since, event.time_ns)
}

#[cfg(test)]
mod tests;

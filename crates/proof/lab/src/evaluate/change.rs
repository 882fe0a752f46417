//! Whether a change of the configuration was made on both nodes alike, and cost no cycle.

use std::collections::BTreeMap;

use super::Promise;
use crate::runlog::{EventKind, Phase, PhaseKind, Run};

/// What a node said of its configuration.
type InForce<'a> = (&'a str, Option<&'a str>);

/// The first and the last answer of each node in `phase`.
fn answers<'a>(run: &'a Run, phase: &Phase) -> [BTreeMap<&'a str, InForce<'a>>; 2] {
    let (mut first, mut last) = (BTreeMap::new(), BTreeMap::new());
    for event in run.events.iter().filter(|e| phase.contains(e.time_ns)) {
        if let EventKind::InForce {
            fingerprint,
            change,
        } = &event.kind
        {
            let answer = (fingerprint.as_str(), change.as_deref());
            first.entry(event.node.as_str()).or_insert(answer);
            last.insert(event.node.as_str(), answer);
        }
    }
    [first, last]
}

/// What all nodes have in force, if they have the same and nobody is about to change.
fn alike<'a>(run: &Run, answers: &BTreeMap<&str, InForce<'a>>) -> Option<&'a str> {
    let mut all = run.nodes.iter().map(|node| answers.get(node.as_str()));
    let first = all.next()??;
    let alike = first.1.is_none() && all.all(|answer| answer == Some(first));
    alike.then_some(first.0)
}

/// Whether every node has the configuration `fingerprint` in force, whatever it has prepared, and not all have.
fn all_have(run: &Run, answers: &BTreeMap<&str, InForce<'_>>, fingerprint: &str) -> bool {
    let each = || run.nodes.iter().map(|node| answers.get(node.as_str()));
    let in_force = |answer: Option<&InForce<'_>>| answer.is_some_and(|it| it.0 == fingerprint);
    let idle = |answer: Option<&InForce<'_>>| answer.is_some_and(|it| it.1.is_none());
    each().all(in_force) && each().any(idle)
}

fn describe(answers: &BTreeMap<&str, InForce<'_>>) -> String {
    let told = answers.iter().map(|(node, (fingerprint, change))| {
        let change = change.unwrap_or("no change under way");
        format!("{node} has {fingerprint} in force ({change})")
    });
    match told.collect::<Vec<_>>().join(", ") {
        nobody if nobody.is_empty() => "no node said what it has in force".into(),
        told => told,
    }
}

/// The change is made on both nodes; where a node is killed in the middle of it, on both or on neither.
/// `None` for phases without one.
pub fn made_alike(run: &Run, phase: &Phase) -> Option<Promise> {
    let promised = match phase.kind {
        PhaseKind::Change => "the change is made on both nodes",
        PhaseKind::ChangeKill => "the change is made on both nodes, or on neither",
        _ => return None,
    };
    let [before, after] = answers(run, phase);
    let (held, seen) = match (alike(run, &before), alike(run, &after)) {
        (Some(before), Some(after)) if before == after => (
            phase.kind == PhaseKind::ChangeKill,
            format!("both have {before} in force, as before"),
        ),
        (Some(before), Some(after)) => {
            (true, format!("both have {after} in force, {before} before"))
        }
        // What lies prepared on one node alone changes nothing: the other one refused it, or never heard of it.
        (Some(before), None)
            if phase.kind == PhaseKind::ChangeKill && all_have(run, &after, before) =>
        {
            (true, format!("as before: {}", describe(&after)))
        }
        (None, _) => (false, format!("before: {}", describe(&before))),
        (_, None) => (false, format!("at the end: {}", describe(&after))),
    };
    Some(Promise::in_phase("change", phase, promised, held, seen))
}

/// The tank's control misses no cycle where applications change. `None` for other phases; where the
/// primary dies, cycles that were under way may be executed by both.
pub fn no_cycle_missed(run: &Run, phase: &Phase) -> Option<Promise> {
    if phase.kind != PhaseKind::Change {
        return None;
    }
    let writes: Vec<_> = run
        .writes
        .iter()
        .filter(|write| write.accepted && phase.contains(write.time_ns))
        .collect();
    let missed: Vec<_> = writes
        .windows(2)
        .filter(|pair| pair[1].cycle != pair[0].cycle + 1)
        .collect();
    let excused = missed
        .iter()
        .filter(|pair| run.stalled_ns(pair[0].time_ns, pair[1].time_ns) > 0)
        .count();
    let mut seen = match (writes.first(), writes.last()) {
        (Some(first), Some(last)) => format!(
            "cycles {} to {}, {} of them without their outputs",
            first.cycle,
            last.cycle,
            missed.len()
        ),
        _ => "no accepted output".into(),
    };
    if excused > 0 {
        seen += &format!("; the machine stalled at {excused} of these");
    }
    let held = writes.len() > 1 && missed.len() == excused;
    let whose = match run.program {
        None => "the tank's control",
        Some(_) => "the program",
    };
    let promised = format!("{whose} misses no cycle, except while the machine stalls");
    Some(Promise::in_phase("cycles", phase, promised, held, seen))
}

#[cfg(test)]
mod tests;

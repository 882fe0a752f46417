//! Whether a trial kept its promises: a function of what was logged.

use super::ledger::Count;
use super::pair::NodeEvent;
use super::result::{Outcome, Trial, Want};
use crate::demo::configuration::PERIOD_MS;
use crate::evaluate::gaps_in;
use crate::runlog::Run;

/// What an application says when it begins from the initial state (spec/events.md, `resumed`).
const INITIAL: &str = "initial state";
/// How long plant time is allowed to run without an output beyond the outage itself.
pub const TWO_PERIODS_NS: u64 = 2 * PERIOD_MS * 1_000_000;

/// When something was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When it began (nanoseconds of CLOCK_BOOTTIME).
    pub from_ns: u64,
    /// When it was over.
    pub to_ns: u64,
}

impl Fault {
    /// How long it was.
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// What a trial is measured with.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest time between two accepted outputs; `None`: not judged.
    pub gap_ns: Option<u64>,
    /// Within this after the fault the pair is redundant again.
    pub heal_ns: u64,
    /// How long is waited after the fault before redundancy is believed.
    pub settle_ns: u64,
    /// Whether no memory of the process is left anywhere, so that it begins anew by plan.
    pub memory_lost: bool,
}

impl Limits {
    /// Gap of `gap_ns`, redundant again after a second.
    pub fn gap(gap_ns: u64) -> Self {
        Self {
            gap_ns: Some(gap_ns),
            heal_ns: 1_000_000_000,
            settle_ns: 300_000_000,
            memory_lost: false,
        }
    }
}

/// What a trial left behind.
pub struct Evidence {
    /// Writes, from the last accepted one before the trial, and stalls.
    pub run: Run,
    /// The writes counted.
    pub count: Count,
    /// What the nodes logged.
    pub events: Vec<NodeEvent>,
    /// Lines of the logs that could not be understood.
    pub strange: u64,
    /// When the pair was seen redundant again.
    pub healed_ns: Option<u64>,
    /// Until when the logs are known to be whole.
    pub until_ns: u64,
}

impl Evidence {
    /// Starts from the initial state, of the application that had most.
    pub fn initial_starts(&self) -> u64 {
        initial_starts(&self.events)
    }

    fn takeovers(&self) -> u64 {
        let to_primary = |e: &&NodeEvent| e.text("event") == "role" && e.text("to") == "primary";
        self.events.iter().filter(to_primary).count() as u64
    }
}

/// Starts from the initial state among `events`, of the application that had most.
pub fn initial_starts(events: &[NodeEvent]) -> u64 {
    let mut by_application = std::collections::BTreeMap::new();
    for event in events {
        if event.text("event") == "resumed" && event.text("cause").contains(INITIAL) {
            *by_application.entry(event.text("application")).or_insert(0) += 1;
        }
    }
    by_application.into_values().max().unwrap_or(0)
}

fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

/// The record of a trial with the promises that all cases share.
pub fn trial(evidence: &Evidence, fault: &Fault, limits: &Limits) -> Trial {
    let (gap, gap_want) = gap(evidence, fault, limits);
    let mut wants = vec![no_reset(evidence, limits), one_writer(&evidence.count)];
    wants.extend(gap_want);
    let record = record(events_lost(&evidence.events), evidence.strange);
    wants.extend([heals(evidence, fault, limits), record]);
    let to_ms = |ns: u64| ns as f64 / 1e6;
    Trial {
        number: 0,
        what: String::new(),
        primary: String::new(),
        fault_ms: to_ms(fault.length_ns()),
        gap_ms: gap.map(|(length, _)| to_ms(length)),
        stalled_ms: gap.map_or(0.0, |(_, stalled)| to_ms(stalled)),
        healed_ms: evidence
            .healed_ns
            .map(|at| to_ms(at.saturating_sub(fault.to_ns))),
        writes: evidence.count,
        initial_starts: evidence.initial_starts(),
        planned_cold_starts: limits.memory_lost.into(),
        takeovers: evidence.takeovers(),
        wants,
        said: Vec::new(),
        said_more: 0,
        events: Vec::new(),
    }
}

fn no_reset(evidence: &Evidence, limits: &Limits) -> Want {
    let (backward, initial) = (evidence.count.resets, evidence.initial_starts());
    let seen =
        format!("{backward} accepted outputs went back, {initial} starts from the initial state");
    match limits.memory_lost {
        false => Want::strict(
            "no-reset",
            "the process goes on from its newest state",
            backward == 0 && initial == 0,
            seen,
        ),
        true => Want::strict(
            "one-cold-start",
            "no state is left anywhere: one start from the initial state, no other step back",
            initial == 1 && backward <= 1,
            seen,
        ),
    }
}

/// Two writers in an epoch, or an older epoch accepted: nothing excuses that.
pub fn one_writer(count: &Count) -> Want {
    Want::strict(
        "one-writer",
        "one writer in an epoch, no older epoch accepted",
        count.dual_writers == 0 && count.older_epochs == 0 && count.accepted > 0,
        format!(
            "{} by a second writer, {} of an older epoch, of {} accepted outputs",
            count.dual_writers, count.older_epochs, count.accepted
        ),
    )
}

/// How much longer a gap may be for the stalls in it: a cycle that a stall hits misses its deadline, so a
/// whole period goes with it.
pub fn excused_ns(stalled_ns: u64) -> u64 {
    match stalled_ns {
        0 => 0,
        stalled => stalled + PERIOD_MS * 1_000_000,
    }
}

/// How long after a stall its effect on a state is seen: the transfer that it hits fails a deadline later, and until
/// the next state is through, a period later, the backup has no fresh one, as a heartbeat says another period later.
pub const STALL_REACH_NS: u64 = 3 * PERIOD_MS * 1_000_000;

/// The promise that a state is lost only to the machine: of what was `seen` (when, what) each must have a stall shortly
/// before it.
pub fn only_in_stalls(id: &str, promised: &str, run: &Run, seen: &[(u64, String)]) -> Want {
    let is_stalled = |at_ns: u64| run.stalled_ns(at_ns.saturating_sub(STALL_REACH_NS), at_ns) > 0;
    let unexplained = seen.iter().find(|(at_ns, _)| !is_stalled(*at_ns));
    let text = match (unexplained, seen.first()) {
        (Some((_, text)), _) => format!("{} times, without a stall: {text}", seen.len()),
        (None, Some((_, text))) => format!("{} times, each just after a stall: {text}", seen.len()),
        (None, None) => "never seen".into(),
    };
    let mut want = Want::strict(id, promised, unexplained.is_none(), text);
    if want.outcome == Outcome::Held && !seen.is_empty() {
        want.outcome = Outcome::Explained;
    }
    want
}

/// The longest gap with the stalls in it, and the promise about the one that is closest to its limit.
fn gap(evidence: &Evidence, fault: &Fault, limits: &Limits) -> (Option<(u64, u64)>, Option<Want>) {
    let run = &evidence.run;
    let gaps: Vec<(u64, u64)> = gaps_in(run, fault.from_ns, evidence.until_ns)
        .into_iter()
        .map(|gap| (gap.length_ns(), run.stalled_ns(gap.from_ns, gap.to_ns)))
        .collect();
    let longest = gaps.iter().copied().max();
    let want = limits.gap_ns.map(|limit| {
        let worst = gaps
            .iter()
            .copied()
            .max_by_key(|&(length, stalled)| length.saturating_sub(excused_ns(stalled)));
        let promised = format!("outputs go on within {}", ms(limit));
        let Some((length, stalled)) = worst else {
            return Want::strict("gap", promised, false, "no accepted output");
        };
        let longest = longest.map_or(0, |(length, _)| length);
        let mut seen = ms(longest);
        if stalled > 0 || length < longest {
            seen += &format!(
                "; nearest to the limit {}, of which the machine stood still {}",
                ms(length),
                ms(stalled)
            );
        }
        let held = length <= limit + excused_ns(stalled);
        let mut want = Want::strict("gap", promised, held, seen);
        if want.outcome == Outcome::Held && longest > limit {
            want.outcome = Outcome::Explained;
        }
        want
    });
    (longest, want)
}

/// Events that the nodes say they could not log.
pub fn events_lost(events: &[NodeEvent]) -> u64 {
    let lost = events
        .iter()
        .filter(|event| event.text("event") == "events_lost");
    lost.map(|event| event.line["count"].as_u64().unwrap_or(1))
        .sum()
}

/// A log with holes could hide a broken promise.
pub fn record(lost: u64, strange: u64) -> Want {
    Want::strict(
        "record",
        "the logs that this judgement rests on have no hole",
        lost == 0 && strange == 0,
        format!("{lost} events lost, {strange} lines not understood or missing"),
    )
}

fn heals(evidence: &Evidence, fault: &Fault, limits: &Limits) -> Want {
    let promised = format!(
        "redundant again within {} of the fault's end",
        ms(limits.heal_ns)
    );
    let Some(healed_ns) = evidence.healed_ns else {
        return Want::strict("heals", promised, false, "never by itself");
    };
    let took = healed_ns.saturating_sub(fault.to_ns);
    let stalled = evidence.run.stalled_ns(fault.to_ns, healed_ns);
    let mut want = Want::strict(
        "heals",
        promised,
        took - stalled.min(took) <= limits.heal_ns,
        ms(took),
    );
    if want.outcome == Outcome::Held && took > limits.heal_ns {
        want.outcome = Outcome::Explained;
        want.seen += &format!(", of which the machine stood still {}", ms(stalled));
    }
    want
}

#[cfg(test)]
mod tests;

//! What was promised against what was seen: a pure function from the merged logs of a run.
//!
//! Each promise can fail, and one whose evidence is missing counts as broken: silence proves
//! nothing. The clauses are numbered in `spec/demo.md`.

mod alone;
mod change;
mod outputs;
mod own_faults;
mod process;
mod roles;
pub mod statistics;
#[cfg(test)]
mod tests;
mod transfers;
mod writers;

use serde::Serialize;

use crate::runlog::{EventKind, Phase, PhaseKind, Run};

pub use outputs::{Gap, gaps_in, longest_gap};
pub use process::deviations;

/// Limits against which a run is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest time without an accepted output while the primary stays.
    pub gap_running_ns: u64,
    /// Longest time without an accepted output when the primary is killed.
    pub gap_failover_ns: u64,
    /// Longest time without an accepted output when the roles change on order.
    pub gap_switchover_ns: u64,
    /// Within this a lost or regained redundancy is reported.
    pub report_ns: u64,
    /// Within this the pair is redundant again after the last fault has gone.
    pub heal_ns: u64,
    /// Within this a node that was started again is a synchronised backup.
    pub return_ns: u64,
    /// Differences of levels below this are never called a deviation, in millimetres.
    pub level_floor_mm: f64,
    /// Differences of transfer times below this are never called a delay, in microseconds.
    pub transfer_floor_us: f64,
}

impl Limits {
    /// For a program with this period: a failover may cost what it costs with 10 ms, and as many cycles.
    pub fn for_period(period_ns: u64) -> Self {
        let tanks = Self::default();
        let beyond = period_ns.saturating_sub(10_000_000) * 2;
        Self {
            gap_running_ns: tanks.gap_running_ns + beyond,
            gap_failover_ns: tanks.gap_failover_ns + beyond,
            gap_switchover_ns: tanks.gap_switchover_ns + beyond,
            ..tanks
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            gap_running_ns: 30_000_000,
            gap_failover_ns: 40_000_000,
            gap_switchover_ns: 30_000_000,
            report_ns: 200_000_000,
            heal_ns: 1_000_000_000,
            return_ns: 3_000_000_000,
            level_floor_mm: 0.5,
            transfer_floor_us: 200.0,
        }
    }
}

/// One promise and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// Stable name, `subject/phase` or `subject`.
    pub id: String,
    /// Phase that it is about; `None`: the whole run.
    pub phase: Option<&'static str>,
    /// What was promised.
    pub promised: String,
    /// What was seen.
    pub seen: String,
    /// Whether it held.
    pub held: bool,
}

impl Promise {
    fn whole_run(id: &str, promised: impl Into<String>, held: bool, seen: String) -> Self {
        Self {
            id: id.into(),
            phase: None,
            promised: promised.into(),
            seen,
            held,
        }
    }

    fn in_phase(
        subject: &str,
        phase: &Phase,
        promised: impl Into<String>,
        held: bool,
        seen: String,
    ) -> Self {
        Self {
            id: format!("{subject}/{}", phase.kind.id()),
            phase: Some(phase.kind.id()),
            promised: promised.into(),
            seen,
            held,
        }
    }
}

/// What is promised of the tank and cannot be judged of this run, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotJudged {
    /// The name that the promise would have.
    pub id: String,
    /// Phase that it is about.
    pub phase: &'static str,
    /// What would be promised.
    pub promised: &'static str,
    /// Why nobody can tell.
    pub why: &'static str,
}

/// What of the demonstration's promises `run` cannot show.
pub fn not_judged(run: &Run) -> Vec<NotJudged> {
    let Some(program) = &run.program else {
        return Vec::new();
    };
    let idle = alone::says_nothing(run, program);
    let phases = run.phases.iter().flat_map(|phase| {
        let id = phase.kind.id();
        let process = (phase.kind != PhaseKind::Normal).then(|| NotJudged {
            id: format!("process/{id}"),
            phase: id,
            promised: "levels as without the fault",
            why: "what this program controls is unknown here, so no process runs without faults beside it",
        });
        let outputs = idle.map(|why| NotJudged {
            id: format!("outputs/{id}"),
            phase: id,
            promised: alone::PROMISED,
            why,
        });
        process.into_iter().chain(outputs)
    });
    phases.collect()
}

/// What must never happen, whatever is done to the pair.
pub fn safety(run: &Run) -> Vec<Promise> {
    vec![
        writers::one_writer_in_each_epoch(run),
        writers::epochs_only_grow(run),
        writers::no_output_is_older_than_the_last(run),
        record_is_whole(run),
    ]
}

/// Judges `run` by `limits`.
pub fn evaluate(run: &Run, limits: &Limits) -> Vec<Promise> {
    let mut promises = safety(run);
    for phase in &run.phases {
        promises.push(outputs::gap(run, phase, limits));
        if let Some(promise) = transfers::all_safe_in_time(run, phase) {
            promises.push(promise);
        }
        if phase.kind == PhaseKind::CutOne {
            promises.push(transfers::no_added_time(run, phase, limits));
        }
        promises.extend(change::made_alike(run, phase));
        promises.extend(change::no_cycle_missed(run, phase));
        promises.push(roles::as_expected(run, phase));
        promises.extend(roles::redundancy_reported(run, phase, limits));
        promises.extend(alone::outputs_as_alone(run, phase));
        if phase.kind != PhaseKind::Normal && run.program.is_none() {
            promises.push(process::level_unmoved(run, phase, limits));
        }
    }
    promises
}

/// A log with holes could hide a broken promise.
fn record_is_whole(run: &Run) -> Promise {
    let lost: u64 = run
        .events
        .iter()
        .map(|event| match event.kind {
            EventKind::EventsLost { count } => count,
            _ => 0,
        })
        .sum();
    let plant_lost = run.plant_lines_lost;
    let (shown, what) = match run.program {
        None => (run.samples.len(), "samples"),
        Some(_) => (run.reads.len(), "reads of inputs"),
    };
    let complete = !run.writes.is_empty() && !run.events.is_empty() && shown > 0;
    let seen = format!(
        "{} writes, {} events, {shown} {what}; lost: {lost} events, {} lines of the plant",
        run.writes.len(),
        run.events.len(),
        plant_lost.map_or("an unknown number of".into(), |n| n.to_string())
    );
    let held = lost == 0 && plant_lost == Some(0) && complete;
    Promise::whole_run(
        "record",
        "the logs that this judgement rests on have no hole",
        held,
        seen,
    )
}

/// Milliseconds for people.
fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

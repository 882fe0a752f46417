//! How long the process was without a new output.

use super::{Limits, Promise, ms};
use crate::runlog::{Phase, PhaseKind, Run};

/// A time between two accepted writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last accepted write before.
    pub from_ns: u64,
    /// The first accepted write after.
    pub to_ns: u64,
}

impl Gap {
    /// Its length.
    pub fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// Every gap between accepted writes that touches `from_ns..to_ns`, the end of the run included.
pub fn gaps_in(run: &Run, from_ns: u64, to_ns: u64) -> Vec<Gap> {
    let times: Vec<u64> = run
        .writes
        .iter()
        .filter(|write| write.accepted)
        .map(|write| write.time_ns)
        .collect();
    let first = times
        .partition_point(|&time| time < from_ns)
        .saturating_sub(1);
    let mut gaps = Vec::new();
    for pair in times[first.min(times.len())..].windows(2) {
        if pair[0] >= to_ns {
            break;
        }
        gaps.push(Gap {
            from_ns: pair[0],
            to_ns: pair[1],
        });
    }
    // Outputs that end before the time does are a gap that lasts to its end.
    if let Some(&last) = times.last()
        && last < to_ns
    {
        gaps.push(Gap {
            from_ns: last,
            to_ns: to_ns.max(last),
        });
    }
    gaps
}

/// The longest of [`gaps_in`].
pub fn longest_gap(run: &Run, from_ns: u64, to_ns: u64) -> Option<Gap> {
    gaps_in(run, from_ns, to_ns)
        .into_iter()
        .max_by_key(Gap::length_ns)
}

/// The longest time without an accepted output stays within its limit, to which stalls that the
/// meter saw in that time are added.
pub fn gap(run: &Run, phase: &Phase, limits: &Limits) -> Promise {
    let limit = match phase.kind {
        PhaseKind::Kill => limits.gap_failover_ns,
        PhaseKind::Switchover => limits.gap_switchover_ns,
        _ => limits.gap_running_ns,
    };
    let promised = format!("outputs go on: never more than {} between two", ms(limit));
    let Some((gap, stalled)) = worst(run, phase) else {
        return Promise::in_phase("gap", phase, promised, false, "no accepted output".into());
    };
    let length = gap.length_ns();
    let mut seen = format!("at most {}", ms(length));
    if stalled > 0 {
        seen += &format!(", of which the machine stalled {}", ms(stalled));
    }
    let held = length <= limit.saturating_add(stalled);
    Promise::in_phase("gap", phase, promised, held, seen)
}

/// The gap that is longest when the machine's stalls are taken off, and those stalls.
fn worst(run: &Run, phase: &Phase) -> Option<(Gap, u64)> {
    gaps_in(run, phase.from_ns, phase.to_ns)
        .into_iter()
        .map(|gap| (gap, run.stalled_ns(gap.from_ns, gap.to_ns)))
        .max_by_key(|(gap, stalled)| gap.length_ns().saturating_sub(*stalled))
}

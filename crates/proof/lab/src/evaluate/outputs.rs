//! How long the process was without a new output.

use super::own_faults::{RESTART_NS, faults, kept_from_computing};
use super::{Limits, Promise, ms};
use crate::runlog::{EventKind, Phase, PhaseKind, Run};

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
        PhaseKind::Kill | PhaseKind::ChangeKill => limits.gap_failover_ns,
        PhaseKind::Switchover => limits.gap_switchover_ns,
        _ => limits.gap_running_ns,
    };
    let promised = format!(
        "outputs go on: never more than {} between two, stalls added",
        ms(limit)
    );
    let (excused, gaps): (Vec<_>, Vec<_>) = judged(run, phase, limit, limits)
        .into_iter()
        .partition(|judged| {
            (1..=RESTART_NS).contains(&judged.excess_ns())
                && kept_from_computing(run, judged.gap.from_ns, judged.gap.to_ns)
        });
    let longest = gaps.iter().max_by_key(|judged| judged.gap.length_ns());
    let worst = gaps.iter().max_by_key(|judged| judged.excess_ns());
    let (Some(longest), Some(worst)) = (longest, worst) else {
        return Promise::in_phase("gap", phase, promised, false, "no accepted output".into());
    };
    let mut seen = format!("at most {}", longest.describe());
    if worst.gap != longest.gap {
        seen += &format!("; closest to its limit: {}", worst.describe());
    }
    if worst.limit_ns > limit {
        seen += "; with a failover in it";
    }
    if let Some(fault) = faults(run, worst.gap.from_ns, worst.gap.to_ns).next() {
        seen += &format!("; the program failed in it: {}", fault.1);
    }
    if let Some(longest) = excused.iter().max_by_key(|judged| judged.gap.length_ns()) {
        seen += &format!(
            "; {} more of up to {}, in which the machine stalled, so that the program was stopped at its limit and began \
             anew",
            excused.len(),
            ms(longest.gap.length_ns())
        );
    }
    Promise::in_phase("gap", phase, promised, worst.excess_ns() <= 0, seen)
}

/// A gap and what it is measured with.
struct Judged {
    gap: Gap,
    stalled_ns: u64,
    limit_ns: u64,
}

impl Judged {
    fn describe(&self) -> String {
        match self.stalled_ns {
            0 => ms(self.gap.length_ns()),
            ns => format!(
                "{}, of which the machine stalled {}",
                ms(self.gap.length_ns()),
                ms(ns)
            ),
        }
    }

    /// How far it is beyond its limit; negative within.
    fn excess_ns(&self) -> i128 {
        i128::from(self.gap.length_ns()) - i128::from(self.stalled_ns) - i128::from(self.limit_ns)
    }
}

/// Every gap of the phase with its limit. Where a node took over in one, the limit is a failover's;
/// whether it was right to take over is another promise.
fn judged(run: &Run, phase: &Phase, limit: u64, limits: &Limits) -> Vec<Judged> {
    let took_over = |gap: &Gap| {
        run.events.iter().any(|event| {
            (gap.from_ns..gap.to_ns).contains(&event.time_ns)
                && matches!(&event.kind, EventKind::Role { to, .. } if to == "primary")
        })
    };
    gaps_in(run, phase.from_ns, phase.to_ns)
        .into_iter()
        .map(|gap| Judged {
            stalled_ns: run.stalled_ns(gap.from_ns, gap.to_ns),
            limit_ns: match phase.kind {
                PhaseKind::Switchover => limit,
                _ if gap.length_ns() > limit && took_over(&gap) => {
                    limits.gap_failover_ns.max(limit)
                }
                _ => limit,
            },
            gap,
        })
        .collect()
}

#[cfg(test)]
mod tests;

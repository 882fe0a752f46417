//! Whether every state reached the backup in time.

use super::statistics::OrderStatistics;
use super::{Limits, Promise};
use crate::runlog::{EventKind, Phase, PhaseKind, Run, TransferOutcome};

/// Stalls shorter than this are not seen, so the moments that the meter gives are no finer.
const METER_RESOLUTION_NS: u64 = 2_000_000;

/// A transfer as the primary saw it end.
struct Transfer<'a> {
    ended_ns: u64,
    safe: bool,
    took_us: f64,
    cause: &'a str,
}

/// Transfers that ended in `from_ns..to_ns`.
fn in_time(run: &Run, from_ns: u64, to_ns: u64) -> Vec<Transfer<'_>> {
    let inside = run
        .events
        .iter()
        .filter(|event| (from_ns..to_ns).contains(&event.time_ns));
    inside
        .filter_map(|event| match &event.kind {
            EventKind::Transfer {
                outcome,
                took_us,
                cause,
                ..
            } => Some(Transfer {
                ended_ns: event.time_ns,
                safe: *outcome == TransferOutcome::Safe,
                took_us: *took_us,
                cause: cause.as_deref().unwrap_or("no cause given"),
            }),
            _ => None,
        })
        .collect()
}

impl Transfer<'_> {
    fn is_in_time(&self, run: &Run) -> bool {
        self.safe && self.took_us * 1e3 <= run.deadline_ns as f64
    }

    /// Whether the machine stalled while it went on. Of a failed transfer the log does not say when
    /// it began; it was no longer ago than the deadline and what the meter cannot resolve.
    fn stalled(&self, run: &Run) -> bool {
        let length_ns = run.deadline_ns.max((self.took_us * 1e3) as u64) + METER_RESOLUTION_NS;
        run.stalled_ns(self.ended_ns.saturating_sub(length_ns), self.ended_ns) > 0
    }
}

/// No transfer fails and none is late in the phases in which one network at least carries packets
/// and nobody dies, except while the machine stalls. `None` for the other phases, where there may
/// be no backup to transfer to.
pub fn all_safe_in_time(run: &Run, phase: &Phase) -> Option<Promise> {
    use PhaseKind::{Bursts, Change, CutOne, Loss, Normal};
    if !matches!(phase.kind, Normal | Loss | Bursts | CutOne | Change) {
        return None;
    }
    let deadline_ms = run.deadline_ns as f64 / 1e6;
    let transfers = in_time(run, phase.from_ns, phase.to_ns);
    let missed = || transfers.iter().filter(|t| !t.is_in_time(run));
    let excused = missed().filter(|t| t.stalled(run)).count();
    let times = OrderStatistics::new(transfers.iter().filter(|t| t.safe).map(|t| t.took_us));
    let mut seen = format!(
        "{} safe, {} failed, {} late; median {:.0} us, longest {:.0} us",
        times.len(),
        missed().filter(|t| !t.safe).count(),
        missed().filter(|t| t.safe).count(),
        times.median().unwrap_or(0.0),
        times.max().unwrap_or(0.0)
    );
    if excused > 0 {
        seen += &format!("; the machine stalled during {excused} of those that missed");
    }
    let inexcusable = missed().find(|t| !t.stalled(run));
    if let Some(first) = inexcusable {
        let cause = if first.safe {
            "it was late"
        } else {
            first.cause
        };
        seen += &format!("; without a stall: {cause}");
    }
    let held = !times.is_empty() && inexcusable.is_none();
    let promised = format!(
        "no transfer fails, none takes longer than {deadline_ms:.1} ms, except while the machine stalls"
    );
    Some(Promise::in_phase("transfers", phase, promised, held, seen))
}

/// With one network cut, transfers take no longer: the medians differ by no more than the
/// interquartile range of normal running or a floor, whichever is larger.
pub fn no_added_time(run: &Run, phase: &Phase, limits: &Limits) -> Promise {
    let safe_times = |from_ns, to_ns| {
        let transfers = in_time(run, from_ns, to_ns);
        OrderStatistics::new(transfers.into_iter().filter(|t| t.safe).map(|t| t.took_us))
    };
    let (from_ns, to_ns) = phase.faulty();
    let with = safe_times(from_ns, to_ns);
    let normal = run
        .phase(PhaseKind::Normal)
        .map(|normal| safe_times(normal.from_ns, normal.to_ns))
        .unwrap_or_default();
    let resolution = normal.interquartile_range().max(limits.transfer_floor_us);
    let promised = format!(
        "no measurable added transfer time: medians differ by at most {resolution:.0} us \
         (the larger of normal running's interquartile range and {:.0} us)",
        limits.transfer_floor_us
    );
    let (Some(with), Some(without)) = (with.median(), normal.median()) else {
        let seen = "too few transfers to compare".into();
        return Promise::in_phase("added-time", phase, promised, false, seen);
    };
    let seen = format!("median {with:.0} us with the cut, {without:.0} us in normal running");
    Promise::in_phase(
        "added-time",
        phase,
        promised,
        with - without <= resolution,
        seen,
    )
}

#[cfg(test)]
mod tests;

//! Whether every state reached the backup in time.

use super::statistics::Distribution;
use super::{Limits, Promise};
use crate::runlog::{EventKind, Phase, PhaseKind, Run, TransferOutcome};

/// A transfer as the primary saw it end.
struct Transfer<'a> {
    cycle: u64,
    safe: bool,
    took_us: f64,
    cause: &'a str,
}

/// Transfers that ended in `from_ns..to_ns`.
fn in_time(run: &Run, from_ns: u64, to_ns: u64) -> Vec<Transfer<'_>> {
    run.events
        .iter()
        .filter(|event| (from_ns..to_ns).contains(&event.time_ns))
        .filter_map(|event| match &event.kind {
            EventKind::Transfer {
                cycle,
                outcome,
                took_us,
                cause,
            } => Some(Transfer {
                cycle: *cycle,
                safe: *outcome == TransferOutcome::Safe,
                took_us: *took_us,
                cause: cause.as_deref().unwrap_or("no cause given"),
            }),
            _ => None,
        })
        .collect()
}

/// No transfer fails and none is late in the phases in which one network at least carries packets
/// and nobody dies. `None` for the others, where there may be no backup to transfer to.
pub fn all_safe_in_time(run: &Run, phase: &Phase) -> Option<Promise> {
    use PhaseKind::{Bursts, CutOne, Loss, Normal};
    if !matches!(phase.kind, Normal | Loss | Bursts | CutOne) {
        return None;
    }
    let deadline_us = run.deadline_ns as f64 / 1e3;
    let transfers = in_time(run, phase.from_ns, phase.to_ns);
    let failed: Vec<_> = transfers.iter().filter(|t| !t.safe).collect();
    let late: Vec<_> = transfers
        .iter()
        .filter(|t| t.safe && t.took_us > deadline_us)
        .collect();
    let times = Distribution::new(transfers.iter().filter(|t| t.safe).map(|t| t.took_us));
    let mut seen = format!(
        "{} safe, {} failed, {} late; median {:.0} us, longest {:.0} us",
        transfers.len() - failed.len(),
        failed.len(),
        late.len(),
        times.median().unwrap_or(0.0),
        times.max().unwrap_or(0.0)
    );
    if let Some(first) = failed.first() {
        seen += &format!("; cycle {}: {}", first.cycle, first.cause);
    }
    let held = !times.is_empty() && failed.is_empty() && late.is_empty();
    let promised = format!(
        "no transfer fails, none takes longer than {:.1} ms",
        deadline_us / 1e3
    );
    Some(Promise::in_phase("transfers", phase, promised, held, seen))
}

/// With one network cut, transfers take no longer: the medians differ by no more than the
/// interquartile range of normal running or a floor, whichever is larger.
pub fn no_added_time(run: &Run, phase: &Phase, limits: &Limits) -> Promise {
    let safe_times = |from_ns, to_ns| {
        let transfers = in_time(run, from_ns, to_ns);
        Distribution::new(transfers.into_iter().filter(|t| t.safe).map(|t| t.took_us))
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

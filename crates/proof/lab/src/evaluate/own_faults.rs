//! When a program of the user failed, and whether it was kept from computing.

use crate::runlog::{EventKind, Run};

/// Stalls shorter than this are not seen, so the moments that the meter gives are no finer.
const STALL_SEEN_NS: u64 = 2_000_000;

/// How long a program that was stopped may take to start again (F-29): what such a stop excuses of a gap.
pub const RESTART_NS: i128 = 1_000_000_000;

/// When and how it failed in `from_ns..to_ns`.
pub fn faults(run: &Run, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, &str)> {
    let events = run.events.iter();
    let events = events.filter(move |event| (from_ns..to_ns).contains(&event.time_ns));
    events.filter_map(|event| match &event.kind {
        EventKind::ProgramFault { cause } => Some((event.time_ns, cause.as_str())),
        _ => None,
    })
}

/// Whether it was stopped in `from_ns..to_ns` since it had not answered, while the machine stalled: a computer that does
/// not run a program cannot have it answer in time.
pub fn kept_from_computing(run: &Run, from_ns: u64, to_ns: u64) -> bool {
    faults(run, from_ns, to_ns).any(|(at_ns, cause)| {
        let began_ns = at_ns.saturating_sub(run.period_ns + STALL_SEEN_NS);
        let unanswered = [": overrun", ": starved"]
            .iter()
            .any(|it| cause.contains(it));
        unanswered && run.stalled_ns(began_ns, at_ns + STALL_SEEN_NS) > 0
    })
}

//! When this machine stood still, as a meter has seen it: what that explains is no network's doing and no program's.

use crate::runlog::Stall;

/// Spans in order, none of which overlaps another (nanoseconds of CLOCK_BOOTTIME).
#[derive(Clone, Debug, Default)]
pub struct Stalls(Vec<(u64, u64)>);

impl Stalls {
    /// Spans that overlap become one: several processors may have stood still together.
    pub fn of(stalls: Vec<Stall>) -> Self {
        let spans = stalls.into_iter();
        let spans = spans.map(|it| (it.time_ns.saturating_sub(it.length_ns), it.time_ns));
        let mut spans: Vec<_> = spans.collect();
        spans.sort_unstable();
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (from, until) in spans {
            match all.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => all.push((from, until)),
            }
        }
        Self(all)
    }

    /// For how long of a span the machine stood still, nanoseconds.
    pub fn within(&self, from: u64, until: u64) -> u64 {
        let inside = self.0.iter().map(|it| (it.0.max(from), it.1.min(until)));
        inside.map(|(from, until)| until.saturating_sub(from)).sum()
    }

    /// How often.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// For how long at the longest, milliseconds.
    pub fn longest_ms(&self) -> f64 {
        let longest = self.0.iter().map(|(from, until)| until - from).max();
        longest.unwrap_or(0) as f64 / 1e6
    }
}

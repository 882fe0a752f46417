//! Figure 5: a datagram is with its program when its first copy has come, but for the time that it takes to pass both hosts.

use serde_json::json;

use super::super::Summary;
use super::super::losses::{Measured, Sample};
use super::super::statistics::interval;
use super::Bar;
use crate::iprp::relay::Loss;
use crate::iprp::stalls::Stalls;

/// So much more than where networks delay evenly is still the way through both hosts: hours of one computer differ.
const TIMES: u64 = 2;
/// The share that may take longer, as far as a count of so many tells it.
const LONGER: f64 = 0.01;

/// By how much each datagram was later than its first copy, and from when to when it was on its way.
fn above(samples: impl IntoIterator<Item = Sample>) -> Vec<(u64, (u64, u64))> {
    let above = samples.into_iter().filter_map(|it| {
        let least = it.copies.iter().flatten().min()?;
        let delay = it.delay_ns?;
        Some((
            delay.saturating_sub(*least),
            (it.sent_ns, it.sent_ns + delay),
        ))
    });
    above.collect()
}

/// Judges the scenario of figure 5; `None` if nothing of it was measured.
pub fn judge(measured: &Measured, stalls: &Stalls) -> Option<Bar> {
    let own = above(measured.even.iter().copied());
    let own = Summary::of(own.iter().map(|it| it.0))?;
    let all = above(measured.samples.iter().flatten().copied());
    let seen = Summary::of(all.iter().map(|it| it.0))?;
    let [middle, most] = [own.p50, own.p99].map(|it| it * TIMES);
    let over = || all.iter().filter(|(above, _)| *above > most);
    let is_stalled = |(above, (from, until)): &&(u64, (u64, u64))| {
        above.saturating_sub(stalls.within(*from, *until)) <= most
    };
    let stalled = over().filter(is_stalled).count();
    let late = over().count() - stalled;
    let (_, may) = interval(all.len(), all.len(), LONGER, &[Loss::Independent(LONGER)]);
    let ms = |ns: u64| ns as f64 / 1e6;
    Some(Bar {
        id: "figure-5",
        promised: format!(
            "a program has a datagram when its first copy has come, to within the time through both hosts: at the median at most {TIMES} \
             times what that is where both networks delay evenly, and no more than {:.0} in 100 above {TIMES} times its p99, as far as a count tells it (99 %)",
            LONGER * 100.0
        ),
        seen: format!(
            "{:.3} ms above the first copy at the median, through both hosts {:.3}; {late} of {} above {:.3} ms, {may:.0} at most",
            ms(seen.p50),
            ms(own.p50),
            all.len(),
            ms(most)
        ),
        held: seen.p50 <= middle && late as f64 <= may,
        stalled,
        figures: json!({
            "above_first_copy_ns": seen,
            "through_both_hosts_ns": own,
            "at_most_ns": most,
            "above": late,
            "above_at_most": may,
            "of": all.len(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::scenario::ALL;
    use super::*;
    use crate::runlog::Stall;

    const MS: u64 = 1_000_000;

    /// Copies that take 5 and `other` ms, of a datagram that takes `above` microseconds more than the least of them.
    fn sample(at: u64, other: u64, above: u64) -> Sample {
        Sample {
            copies: [Some(5 * MS), Some(other * MS), None],
            left: 2,
            sent_ns: at * MS,
            delay_ns: Some(5 * MS.min(other * MS) + above * 1_000),
        }
    }

    fn measured(samples: Vec<Sample>) -> Measured {
        Measured {
            scenario: ALL[5],
            samples: vec![samples],
            even: (0..1_000).map(|at| sample(at, 5, 100 + at % 100)).collect(),
            doubled: 0,
            unseen: 0,
        }
    }

    fn held(samples: Vec<Sample>) -> bool {
        judge(&measured(samples), &Stalls::default()).unwrap().held
    }

    #[test]
    fn who_waits_for_the_second_copy_now_and_then_breaks_it_and_a_slow_hour_does_not() {
        let with = |late: u64, above: u64| {
            let above = |at: u64| if at % 100 < late { above } else { 150 };
            (0..1_000).map(|at| sample(at, 9, above(at))).collect()
        };
        assert!(held(with(0, 0)));
        assert!(held(with(100, 290)));
        assert!(held(with(1, 4_000)));
        // Every thirtieth or so waits for the copy that comes 4 ms later.
        assert!(!held(with(3, 4_000)));
        assert!(!held(with(100, 350)), "half of them take longer");
        assert!(judge(&measured(Vec::new()), &Stalls::default()).is_none());
    }

    #[test]
    fn what_the_machine_has_held_up_is_excused_and_counted_and_nothing_else_is() {
        let samples: Vec<_> = (0..1_000)
            .map(|at| sample(at, 9, if at < 50 { 30_000 } else { 150 }))
            .collect();
        let stall = |length: u64| {
            Stalls::of(vec![Stall {
                time_ns: 90 * MS,
                length_ns: length * MS,
                seen_by: String::new(),
            }])
        };
        let measured = measured(samples);
        let judged = |stalls: &Stalls| judge(&measured, stalls).unwrap();
        let bar = judged(&stall(90));
        assert!(bar.held && bar.stalled == 50, "{bar:?}");
        let bar = judged(&stall(3));
        assert!(!bar.held && bar.stalled == 0, "{bar:?}");
    }
}

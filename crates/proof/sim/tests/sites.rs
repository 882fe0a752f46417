//! A pair across sites: one hundred ends of a site over drawn distances, with times that the plan has given (`spec/plan.md`, P-90).

use bumpless_sim::sites::{Ending, Judged, Obeyed, judge};

/// Ends of a site.
const FAILURES: u64 = 100;

fn judged(seed: u64, obeyed: Obeyed) -> Judged {
    judge(seed, obeyed).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
}

#[test]
fn of_a_hundred_sites_that_end_none_leaves_two_writers_or_a_longer_gap_than_planned() {
    let (first, step) = bumpless_testing::slice();
    let mut broken = Vec::new();
    for seed in (first..FAILURES).step_by(step as usize) {
        let judged = judged(seed, Obeyed::Whole);
        if !judged.broken.is_empty() {
            broken.push(format!("{judged:?}"));
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {FAILURES}:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

/// Sets that come nearest to what is promised, by what makes it long: requests that come too early, a state that is waited for
/// twice, cycles that are passed over.
#[test]
fn sites_that_end_at_the_worst_moment_keep_to_the_plan() {
    for seed in NEAREST {
        let judged = judged(seed, Obeyed::Whole);
        let share = judged
            .gaps_ms
            .iter()
            .map(|(gap, promised)| gap / promised)
            .fold(0.0, f64::max);
        assert!(judged.broken.is_empty(), "{judged:?}");
        assert!(
            share > 0.9,
            "it comes no nearer than {share:.2}: {judged:?}"
        );
    }
}

const NEAREST: [u64; 6] = [471, 618, 41, 814, 695, 67];

#[test]
fn every_way_to_end_is_drawn_and_none_is_judged_without_outputs() {
    for (seed, ending) in (0..).zip(Ending::ALL) {
        let judged = judged(seed, Obeyed::Whole);
        assert_eq!(judged.ending, ending);
        assert!(
            judged
                .gaps_ms
                .iter()
                .all(|(gap, promised)| *gap >= judged.period_ms && promised >= gap)
        );
    }
}

#[test]
fn a_lease_shorter_than_the_plan_has_it_breaks_promises() {
    let breaks = |seed| !judged(seed, Obeyed::Lease(40)).broken.is_empty();
    assert!((0..40).any(breaks));
}

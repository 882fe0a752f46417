//! A pair across sites: one hundred ends of a site over drawn distances, with times that the plan has given (`spec/plan.md`, P-90).

use bumpless_sim::sites::{Ending, judge};

/// Ends of a site.
const FAILURES: u64 = 100;

#[test]
fn of_a_hundred_sites_that_end_none_leaves_two_writers_or_a_longer_gap_than_planned() {
    let (first, step) = bumpless_testing::slice();
    let mut broken = Vec::new();
    let mut longest = [0.0f64; 5];
    for seed in (first..FAILURES).step_by(step as usize) {
        let judged = judge(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let shares = judged.gaps_ms.iter().map(|(gap, promised)| gap / promised);
        let at = Ending::ALL
            .iter()
            .position(|it| *it == judged.ending)
            .unwrap();
        longest[at] = shares.fold(longest[at], f64::max);
        if !judged.broken.is_empty() {
            broken.push(format!("{judged:?}"));
        }
    }
    println!("longest gaps as shares of what was promised: {longest:.2?}");
    assert!(
        broken.is_empty(),
        "{} of {FAILURES}:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

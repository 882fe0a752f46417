//! Kept promise: what the plan says of drawn channel sets, judged by the shipped cores (`spec/plan.md`).

use bumpless_sim::promise::{Tally, Told, Verdict, judge};

fn tally(seeds: std::ops::Range<u64>, told: Told) -> (Tally, Vec<String>) {
    let mut tally = Tally::default();
    let mut broken = Vec::new();
    for seed in seeds {
        let judged = judge(seed, told);
        if let Verdict::Admitted {
            broken: Some(found),
            ..
        } = &judged.verdict
        {
            broken.push(format!("seed {}: {}", found.seed, found.what));
        }
        tally.add(&judged);
    }
    (tally, broken)
}

#[test]
fn a_yes_misses_no_deadline_and_for_most_refusals_a_miss_is_found() {
    let (tally, broken) = tally(0..200, Told::Truth);
    assert!(broken.is_empty(), "{broken:#?}");
    let all = tally.all();
    assert!(all.admitted >= 20, "{all:?}");
    assert!(all.found * 100 >= all.refused * 75, "{all:?}");
}

#[test]
fn a_seed_gives_the_same_set_and_the_same_verdict() {
    let verdicts = || {
        (0..20)
            .map(|seed| format!("{:?}", judge(seed, Told::Truth)))
            .collect::<Vec<_>>()
    };
    assert_eq!(verdicts(), verdicts());
}

#[test]
fn a_plan_that_forgets_the_budget_is_found_out() {
    assert!(!tally(0..60, Told::NoBudget).1.is_empty());
}

#[test]
fn a_plan_that_forgets_what_is_in_the_way_is_found_out() {
    assert!(!tally(0..60, Told::NoBlocking).1.is_empty());
}

#[test]
fn a_plan_that_forgets_the_headers_is_found_out() {
    assert!(!tally(0..200, Told::NoHeaders).1.is_empty());
}

//! Kept promise: what the plan says of drawn channel sets, judged by the shipped cores (`spec/plan.md`).

use bumpless_sim::promise::{Tally, Told, Verdict, judge};

fn tally(seeds: std::ops::Range<u64>, told: Told, search: bool) -> (Tally, Vec<String>) {
    let mut tally = Tally::default();
    let mut broken = Vec::new();
    for seed in seeds {
        let judged = judge(seed, told, search);
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
fn a_yes_misses_no_deadline() {
    let (tally, broken) = tally(0..200, Told::Truth, false);
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(tally.all().admitted >= 20, "{:?}", tally.all());
}

#[test]
fn for_most_of_what_is_refused_a_miss_is_found() {
    let (tally, _) = tally(0..30, Told::Truth, true);
    let all = tally.all();
    assert!(all.found * 4 >= all.searched * 3, "{all:?}");
}

#[test]
fn a_seed_gives_the_same_set_and_the_same_verdict() {
    let verdicts = || {
        (0..20)
            .map(|seed| format!("{:?}", judge(seed, Told::Truth, false)))
            .collect::<Vec<_>>()
    };
    assert_eq!(verdicts(), verdicts());
}

#[test]
fn a_plan_that_forgets_the_budget_is_found_out() {
    assert!(!tally(0..60, Told::NoBudget, false).1.is_empty());
}

#[test]
fn a_plan_that_forgets_what_is_in_the_way_is_found_out() {
    assert!(!tally(0..60, Told::NoBlocking, false).1.is_empty());
}

#[test]
fn a_plan_that_forgets_the_headers_is_found_out() {
    assert!(!tally(225..240, Told::NoHeaders, false).1.is_empty());
}

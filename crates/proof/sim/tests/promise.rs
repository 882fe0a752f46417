//! Kept promise: what the plan says of drawn channel sets, judged by the shipped cores (`spec/plan.md`).

use bumpless_sim::promise::{Judged, Tally, Told, Verdict, judge, judge_flooded};

fn tally(seeds: impl IntoIterator<Item = u64>, told: Told, search: bool) -> (Tally, Vec<String>) {
    tally_of(seeds.into_iter().map(|seed| judge(seed, told, search)))
}

/// The same under floods.
fn flooded(seeds: impl IntoIterator<Item = u64>, told: Told) -> (Tally, Vec<String>) {
    tally_of(seeds.into_iter().map(|seed| judge_flooded(seed, told)))
}

fn tally_of(all: impl Iterator<Item = Judged>) -> (Tally, Vec<String>) {
    let mut tally = Tally::default();
    let mut broken = Vec::new();
    for judged in all {
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

/// Under as much of a flood as a node bears by plan (S-18, V-101).
#[test]
fn a_yes_keeps_its_promise_under_a_flood_that_is_borne_by_plan() {
    let (tally, wrong) = flooded(0..60, Told::Truth);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(tally.states > 1000, "{tally:?}");
    // Where a node bears none, a promise says nothing of floods.
    assert_eq!(tally.flooded, tally.all().admitted, "{tally:?}");
}

/// Sets with states that come so near to their longest time that what a flood holds up is more.
#[test]
fn a_plan_that_forgets_floods_is_found_out() {
    let seeds = [770, 1695, 2121, 2803, 2918];
    let (tally, broken) = flooded(seeds, Told::NoFloods);
    assert_eq!(broken.len(), seeds.len(), "{broken:#?}");
    assert_eq!(tally.flooded, seeds.len() as u64);
    // It is the flood that they do not bear, and the plan that is told of it keeps its word.
    let (_, broken) = self::tally(seeds, Told::NoFloods, false);
    assert!(broken.is_empty(), "{broken:#?}");
    let (tally, broken) = flooded(seeds, Told::Truth);
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(tally.all().admitted > 0, "{tally:?}");
}

/// A ring that is full loses packets of the pair's own, beyond every budget.
#[test]
fn a_flood_of_more_than_a_node_bears_is_found_out() {
    let (tally, _) = flooded(0..60, Told::QuarterOfFloods);
    assert!(tally.all().broken > 0, "{tally:?}");
}

/// Whether the judge finds a missed deadline.
fn is_found_out(seeds: std::ops::Range<u64>, told: Told) -> bool {
    tally(seeds, told, false).0.all().broken > 0
}

#[test]
fn a_yes_misses_no_deadline_and_no_state_takes_longer_than_stated() {
    let (tally, broken) = tally(0..200, Told::Truth, false);
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(tally.all().admitted >= 20, "{:?}", tally.all());
}

/// Sets with states that come nearest to their longest time, by what makes it long: news that another channel's
/// packets ask for; two questions for one loss; heartbeats in a long queue; packets left on one of two networks; and a
/// network that is busy already.
#[test]
fn states_that_come_near_to_their_longest_time_keep_it() {
    let seeds = [
        5577, 61876, 9875, 48720, 110962, 140789, 17966, 26605, 126305, 11355, 52155, 123507,
        125466, 136091,
    ];
    let (tally, broken) = tally(seeds, Told::Truth, false);
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(tally.all().admitted > 0, "{:?}", tally.all());
}

#[test]
fn a_state_that_takes_longer_than_stated_breaks_the_promise() {
    let (tally, broken) = tally(0..60, Told::NoBlocking, false);
    let all = tally.all();
    assert!(all.over > all.broken, "{all:?}");
    assert!(broken.len() as u64 > all.broken, "{all:?}");
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
    assert!(is_found_out(0..60, Told::NoBudget));
}

#[test]
fn a_plan_that_forgets_blocking_is_found_out() {
    assert!(is_found_out(0..60, Told::NoBlocking));
}

#[test]
fn a_plan_that_forgets_the_headers_is_found_out() {
    assert!(is_found_out(225..240, Told::NoHeaders));
}

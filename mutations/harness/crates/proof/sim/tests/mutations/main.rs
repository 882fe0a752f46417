//! The checkers can fail: each mutation of the shipped code is found, by a checker that it concerns.
//! Builds only in the copy that `.ci/mutations.sh` makes.

mod mutation;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bumpless_base::mutation::switch_on;
use bumpless_config::Config;
use bumpless_sim::{Scenario, Settings, Size, Timed, run};

use mutation::{Mutation, root};
use record::{Found, compare_or_write};

/// Simulated seconds of each run.
const SECONDS: u64 = 20;
/// Runs that a mutation may take.
const SEEDS: u64 = 300;
const SECOND: u64 = 1_000_000_000;

/// A world's configuration, and the faults that are written by hand.
fn load(world: &str) -> (Arc<Config>, Vec<Timed>) {
    let parse = |text, name| Arc::new(Config::parse(text, name).expect("a sound configuration"));
    let config = match world {
        "small" => Size::Small.config(),
        "packets" => parse(include_str!("packets.toml"), "packets.toml"),
        "busy" => parse(include_str!("busy.toml"), "busy.toml"),
        script => {
            let folders = ["crates/proof/sim/tests/mutations", "scenarios"];
            let paths =
                folders.map(|folder| root().join(folder).join(script).with_extension("toml"));
            let [own, kept] = &paths;
            let path = if own.exists() { own } else { kept };
            let scenario = Scenario::load(path).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
            return (scenario.config, scenario.faults);
        }
    };
    (config, Vec::new())
}

/// Runs a world with seeds from 0 on until something is found, at most `seeds` times.
fn search(world: &str, seeds: u64) -> Option<Found> {
    let (config, script) = load(world);
    (0..seeds).find_map(|seed| {
        let report = run(&Settings {
            storm: script.is_empty(),
            script: script.clone(),
            ..Settings::new(Arc::clone(&config), seed, SECONDS * SECOND)
        });
        let report = report.expect("the configuration is sound");
        let violation = report.violations.into_iter().next()?;
        Some(Found {
            by: violation.invariant,
            what: violation.what,
            seeds: seed + 1,
            simulated: seed * SECONDS * SECOND + violation.at,
        })
    })
}

/// Does `work` for each of `items`, as many at once as there are processors; results in order.
fn each<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, T)> = std::thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            while let at = next.fetch_add(1, Ordering::Relaxed)
                && let Some(item) = items.get(at)
            {
                done.push((at, work(item)));
            }
            done
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let done = handles
            .into_iter()
            .map(|handle| handle.join().expect("a worker"));
        done.flatten().collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn every_mutation_is_found_by_a_checker_that_it_concerns() {
    let all = Mutation::all();
    let mutations = slice(&all);
    let found = each(&mutations, |mutation| {
        switch_on(Some(mutation.name.clone().leak()));
        let found = search(&mutation.world, SEEDS);
        switch_on(None);
        found
    });
    let mut missed = Vec::new();
    for (Mutation { name, found_by, .. }, found) in mutations.iter().zip(&found) {
        match found {
            None => missed.push(format!("{name} is not found by {SEEDS} seeds")),
            Some(found) if !found_by.iter().any(|by| by == found.by) => missed.push(format!(
                "{name} is found by {}, not by {found_by:?}: {}",
                found.by, found.what
            )),
            Some(_) => {}
        }
    }
    let mut took = also(&mutations, &mut missed);
    assert!(missed.is_empty(), "{missed:#?}");
    for (mutation, found) in mutations.iter().zip(&found) {
        let seeds = found.as_ref().map_or(0, |found| found.seeds);
        took.push((mutation.world.clone(), seeds));
    }
    assert_that_nothing_is_found_without_mutations(took);
    compare_or_write(&all, &mutations, &found);
}

/// Looks for mutations in the further worlds that they name. Returns which worlds those are, and how many seeds each took.
fn also(mutations: &[Mutation], missed: &mut Vec<String>) -> Vec<(String, u64)> {
    let further = mutations
        .iter()
        .flat_map(|it| it.also.iter().map(move |also| (it, also)));
    let further: Vec<_> = further.collect();
    let found = each(&further, |(mutation, (world, _))| {
        switch_on(Some(mutation.name.clone().leak()));
        let found = search(world, SEEDS);
        switch_on(None);
        found
    });
    let mut took = Vec::new();
    for ((Mutation { name, .. }, (world, by)), found) in further.into_iter().zip(found) {
        let found_by = found.as_ref().map(|found| found.by);
        if found_by != Some(by.as_str()) {
            missed.push(format!(
                "{name} in {world} is found by {found_by:?}, not by {by}"
            ));
        }
        let seeds = found.map_or(0, |found| found.seeds);
        println!("{name} in {world}: {by}, {seeds} seeds");
        took.push((world.clone(), seeds));
    }
    took
}

/// Of all mutations those that `BUMPLESS_SLICE=K/N` names: every Nth, from the Kth on. All without it.
fn slice(all: &[Mutation]) -> Vec<Mutation> {
    let (first, step) = bumpless_base::mutation::slice();
    let chosen: Vec<_> = all.iter().skip(first).step_by(step).cloned().collect();
    println!("{} of {} mutations of the pair", chosen.len(), all.len());
    chosen
}

/// What the same runs find with no mutation switched on would prove nothing about the checkers.
fn assert_that_nothing_is_found_without_mutations(worlds: Vec<(String, u64)>) {
    let mut runs: BTreeMap<String, u64> = BTreeMap::new();
    for (world, took) in worlds {
        let seeds = runs.entry(world).or_default();
        *seeds = took.max(*seeds);
    }
    let runs: Vec<_> = runs.into_iter().collect();
    let found = each(&runs, |(world, seeds)| {
        search(world, *seeds).map(|found| found.what)
    });
    for (run, found) in runs.iter().zip(found) {
        assert_eq!(found, None, "{run:?}");
    }
}

//! The checkers can fail: each deliberate fault in the shipped code (`bumpless_base::fault`) is found,
//! by a checker that it concerns. Needs a build with `--cfg bumpless_deliberate_faults`
//! (`.ci/deliberate_faults.sh`).
#![cfg(bumpless_deliberate_faults)]

mod expected;
mod record;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bumpless_base::fault::{Fault, switch_on};
use bumpless_config::Config;
use bumpless_sim::{Scenario, Settings, Size, Timed, Window, run};

use expected::{EXPECTED, Expected, World};
use record::{Found, compare_or_write};

/// Simulated seconds of each run.
const SECONDS: u64 = 20;
/// Runs that a fault may take.
const SEEDS: u64 = 300;
const SECOND: u64 = 1_000_000_000;

impl World {
    /// Its configuration, and the faults that are written by hand.
    fn load(self) -> (Arc<Config>, Vec<Timed>) {
        let parse =
            |text, name| Arc::new(Config::parse(text, name).expect("a sound configuration"));
        let config = match self {
            Self::Small => Size::Small.config(),
            Self::Packets => parse(include_str!("packets.toml"), "packets.toml"),
            Self::Busy => parse(include_str!("busy.toml"), "busy.toml"),
            Self::Scenario(name) => {
                let directory =
                    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deliberate_faults");
                let path = directory.join(name).with_extension("toml");
                let scenario = Scenario::load(&path).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
                return (scenario.config, scenario.faults);
            }
        };
        (config, Vec::new())
    }

    /// Runs this world with seeds from 0 on until something is found, at most `seeds` times.
    fn search(self, seeds: u64) -> Option<Found> {
        let (config, script) = self.load();
        (0..seeds).find_map(|seed| {
            let report = run(&Settings {
                config: Arc::clone(&config),
                seed,
                time: SECONDS * SECOND,
                storm: script.is_empty(),
                script: script.clone(),
                trace: None,
                changes: false,
                window: Window::default(),
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
fn every_deliberate_fault_is_found_by_a_checker_that_it_concerns() {
    let listed: Vec<Fault> = EXPECTED.iter().map(|expected| expected.fault).collect();
    assert_eq!(listed, Fault::ALL, "each fault has its entry, in order");
    let found = each(EXPECTED, |expected| {
        switch_on(Some(expected.fault));
        let found = expected.world.search(SEEDS);
        switch_on(None);
        found
    });
    let mut missed = Vec::new();
    for (Expected { fault, by, .. }, found) in EXPECTED.iter().zip(&found) {
        match found {
            None => missed.push(format!("{fault:?} is not found by {SEEDS} seeds")),
            Some(found) if !by.contains(&found.by) => missed.push(format!(
                "{fault:?} is found by {}, not by {by:?}: {}",
                found.by, found.what
            )),
            Some(_) => {}
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert_that_nothing_is_found_without_faults(&found);
    compare_or_write(EXPECTED, &found);
}

/// What the same runs find with no fault switched on would prove nothing about the checkers.
fn assert_that_nothing_is_found_without_faults(found: &[Option<Found>]) {
    let mut runs: BTreeMap<World, u64> = BTreeMap::new();
    for (expected, found) in EXPECTED.iter().zip(found) {
        let seeds = runs.entry(expected.world).or_default();
        let took = found.as_ref().map_or(0, |found| found.seeds);
        *seeds = took.max(*seeds);
    }
    let runs: Vec<_> = runs.into_iter().collect();
    let found = each(&runs, |(world, seeds)| {
        world.search(*seeds).map(|found| found.what)
    });
    for (run, found) in runs.iter().zip(found) {
        assert_eq!(found, None, "{run:?}");
    }
}

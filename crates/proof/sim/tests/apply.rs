//! Changing the configuration of a running pair (spec/apply.md): nothing that stays loses a cycle, and
//! whatever dies at whatever step, both nodes end alike and no invariant breaks.

use bumpless_base::Counter;
use bumpless_sim::{Fault, Report, Settings, Size, Timed, run};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn settings(seed: u64, seconds: u64, script: Vec<Timed>) -> Settings {
    Settings {
        script,
        ..Settings::new(Size::Small.config(), seed, seconds * SECOND)
    }
}

fn simulate(settings: &Settings) -> Report {
    run(settings).expect("the configuration is sound")
}

fn at(at: u64, fault: Fault) -> Timed {
    Timed {
        at,
        until: at,
        fault,
    }
}

/// Both nodes are asked for each number in turn, in either order.
fn changes(count: usize, from: u64) -> Vec<Timed> {
    let apply = |node, number, when| at(when, Fault::Apply { node, number });
    let both = |number: usize| {
        let when = from + number as u64 * 700 * MS;
        let first = number % 2;
        let later = when + (number as u64 % 4) * 9 * MS;
        [apply(first, number, when), apply(1 - first, number, later)]
    };
    (1..=count).flat_map(both).collect()
}

/// Ten changes, of which nobody notices anything.
fn lose_no_cycle(adapted: impl Fn(Settings) -> Settings) {
    for seed in 0..3 {
        let calm = simulate(&settings(seed, 12, Vec::new()));
        let changed = adapted(settings(seed, 12, changes(10, 2500 * MS)));
        let changed = simulate(&changed);
        assert_eq!(changed.violations, [], "seed {seed}");
        assert_eq!(changed.changes, 20, "both nodes make each change");
        for counter in [
            Counter::StatesFailed,
            Counter::StatesSuperseded,
            Counter::OutputsHeld,
            Counter::CyclesOverrun,
            Counter::StatesAbandoned,
        ] {
            let counted = changed.counters.get(counter);
            assert_eq!(
                counted,
                calm.counters.get(counter),
                "{} of seed {seed}",
                counter.name()
            );
        }
    }
}

#[test]
fn a_pair_under_load_changes_again_and_again_without_losing_a_cycle() {
    lose_no_cycle(|settings| settings);
}

///
#[test]
fn applications_that_change_together_lose_no_cycle() {
    lose_no_cycle(together);
}

/// A node dies at each of so many steps of a change of the pair that `of` makes.
fn die_at_each_step(count: u32, of: fn(Settings) -> Settings) {
    let mut changed = 0;
    for node in 0..2 {
        for steps in 0..count {
            let mut script = changes(3, 2500 * MS);
            script.push(Timed {
                at: 3100 * MS,
                until: 4500 * MS,
                fault: Fault::CrashInChange { node, steps },
            });
            let report = simulate(&of(settings(steps.into(), 12, script)));
            assert_eq!(report.violations, [], "node {node}, step {steps}");
            changed += report.changes;
        }
    }
    let least = u64::from(count) * 2 * 2;
    assert!(changed >= least, "each run makes the first: {changed}");
}

#[test]
fn a_node_that_dies_at_any_step_ends_with_what_its_partner_has() {
    die_at_each_step(14, |settings| settings);
}

/// The same pair, of which all applications that a change tunes change together.
fn together(settings: Settings) -> Settings {
    let mut config = bumpless_config::Config::clone(&settings.config);
    config.change.together = true;
    let config = config.into();
    Settings { config, ..settings }
}

#[test]
fn a_node_that_dies_while_they_change_together_ends_as_its_partner() {
    die_at_each_step(12, together);
}

#[test]
fn what_only_one_node_is_asked_for_is_never_made() {
    for node in 0..2 {
        let script = vec![at(3 * SECOND, Fault::Apply { node, number: 1 })];
        let report = simulate(&settings(7, 70, script));
        assert_eq!(report.violations, []);
        assert_eq!(report.changes, 0);
    }
}

#[test]
fn in_storms_invariants_hold_and_both_nodes_end_alike() {
    let mut changed = 0;
    for seed in 0..5 {
        let mut settings = settings(9_000 + seed, 20, Vec::new());
        (settings.storm, settings.changes) = (true, true);
        let report = simulate(&settings);
        assert_eq!(report.violations, [], "seed {}", settings.seed);
        changed += report.changes;
    }
    assert!(changed > 15, "{changed}");
}

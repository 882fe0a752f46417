//! A power failure of both computers: with states on disk control goes on from there while the process permits it, and
//! from nowhere else whatever a disk holds.

use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_config::Config;
use bumpless_sim::{Fault, Report, Settings, Size, Timed, Window, run};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const SETTLED: u64 = 3 * SECOND;
const APPLICATIONS: u64 = 2;
const SEEDS: u64 = 20;

/// The small pair, its states written to disk once in 50 ms.
fn kept() -> Arc<Config> {
    let mut config = Config::clone(&Size::Small.config());
    for application in &mut config.applications {
        application.persist = Some(Duration::from_millis(50));
    }
    Arc::new(config)
}

fn crash(node: usize, from: u64, until: u64) -> Timed {
    Timed {
        at: from,
        until,
        fault: Fault::Crash { node, reboot: true },
    }
}

fn simulate(config: Arc<Config>, seed: u64, script: Vec<Timed>) -> Report {
    let last = script.iter().map(|timed| timed.until).max();
    let until = last.unwrap_or(SETTLED) + 8 * SECOND;
    let settings = Settings {
        script,
        window: Window {
            from: SETTLED,
            until,
        },
        ..Settings::new(config, seed, until)
    };
    let report = run(&settings).expect("the configuration is sound");
    if let Some(violation) = report.violations.first() {
        panic!("seed {seed}: {}: {}", violation.invariant, violation.what);
    }
    report
}

/// Both lose their power within some milliseconds, the primary first or last, and come back so long after.
fn power_failure(seed: u64, lasts: [u64; 2]) -> Vec<Timed> {
    let at = SETTLED + seed * 1_370_001 % (20 * MS);
    let apart = seed % 5 * MS;
    let [left, right] = match seed.is_multiple_of(2) {
        true => [at, at + apart],
        false => [at + apart, at],
    };
    vec![
        crash(0, left, at + lasts[0]),
        crash(1, right, at + lasts[1]),
    ]
}

#[test]
fn after_a_power_failure_of_both_control_goes_on_from_the_disk() {
    for seed in 0..SEEDS {
        // Whichever comes back first, and by how much.
        let [sooner, later] = [800 * MS, (800 + seed * 40) * MS];
        let lasts = match seed % 3 {
            0 => [sooner, later],
            _ => [later, sooner],
        };
        let report = simulate(kept(), seed, power_failure(seed, lasts));
        let begun = (report.restored, report.cold_starts);
        assert_eq!(begun, (APPLICATIONS, 0), "seed {seed}");
    }
}

#[test]
fn one_that_comes_back_alone_goes_on_from_its_disk() {
    for seed in 0..SEEDS {
        let lasts = [800 * MS, 30 * SECOND];
        let lasts = [lasts[seed as usize % 2], lasts[1 - seed as usize % 2]];
        let report = simulate(kept(), seed, power_failure(seed, lasts));
        let begun = (report.restored, report.cold_starts);
        assert_eq!(begun, (APPLICATIONS, 0), "seed {seed}");
    }
}

#[test]
fn after_an_outage_longer_than_hot_restart_the_disk_is_not_used() {
    for seed in 0..SEEDS {
        let lasts = [6 * SECOND, 6 * SECOND + seed * MS];
        let report = simulate(kept(), seed, power_failure(seed, lasts));
        let begun = (report.restored, report.cold_starts);
        assert_eq!(begun, (0, APPLICATIONS), "seed {seed}");
    }
}

#[test]
fn a_state_that_grows_too_old_before_the_role_begins_is_not_gone_on_from() {
    for seed in 0..SEEDS {
        // Young enough at the start of the process, and not any more when it has waited for its partner.
        let [returns, stays_away] = [4_500 * MS, 30 * SECOND];
        let lasts = match seed.is_multiple_of(2) {
            true => [returns, stays_away],
            false => [stays_away, returns],
        };
        let report = simulate(kept(), seed, power_failure(seed, lasts));
        let begun = (report.restored, report.cold_starts);
        assert_eq!(begun, (0, APPLICATIONS), "seed {seed}");
    }
}

#[test]
fn without_a_disk_a_power_failure_of_both_is_a_cold_start() {
    let lasts = [800 * MS, 900 * MS];
    let report = simulate(Size::Small.config(), 1, power_failure(1, lasts));
    assert_eq!((report.restored, report.cold_starts), (0, APPLICATIONS));
}

#[test]
fn while_one_lives_what_lies_on_the_disk_of_the_other_changes_nothing() {
    for seed in 0..SEEDS {
        let at = SETTLED + seed * 1_370_001 % (20 * MS);
        let back = at + (5 + seed * 60) * MS;
        // Either node, then the other one when the first is backup again.
        let first = seed as usize % 2;
        let again = back + 6 * SECOND;
        let script = vec![
            crash(first, at, back),
            crash(1 - first, again, again + 500 * MS),
        ];
        let report = simulate(kept(), seed, script);
        let begun = (report.restored, report.cold_starts);
        assert_eq!(begun, (0, 0), "seed {seed}");
        assert_eq!(
            report
                .forgiven
                .get(bumpless_sim::check::Exemption::NobodyHolds),
            0,
            "seed {seed}"
        );
    }
}

//! What outages and a wrong configuration must not take from a process: as long as a computer that holds the newest
//! state lives, control goes on from it. Each case with 100 seeds, short, with the fault at another moment of the
//! cycle in each. With `BUMPLESS_SLICE`, as in CI, a part of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bumpless_base::Duration;
use bumpless_config::Config;
use bumpless_sim::{
    Class, End, Fault, Field, PathFault, Paths, Report, Settings, Size, Timed, Window, Wrong, run,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Seeds of each case.
const SEEDS: u64 = 100;
const PERIOD: u64 = 10 * MS;
const LEASE: u64 = 10 * MS;
/// The pair has settled by then.
const SETTLED: u64 = 3 * SECOND;
/// The node that is primary then.
const LEFT: usize = 0;
const RIGHT: usize = 1;
const EVERYWHERE: Paths = Paths {
    network: None,
    from: None,
    to: None,
    both: false,
};

/// At another moment of the cycle with each seed.
fn moment(seed: u64) -> u64 {
    SETTLED + seed * 1_370_001 % (2 * PERIOD)
}

fn fault(at: u64, lasts: u64, fault: Fault) -> Timed {
    Timed {
        at,
        until: at + lasts,
        fault,
    }
}

fn on(paths: Paths, fault: PathFault) -> Fault {
    Fault::Path { paths, fault }
}

/// Runs `script` until `after` the end of its last fault, and counts outputs from its first one on.
fn simulate(config: &Arc<Config>, seed: u64, script: Vec<Timed>, after: u64) -> Report {
    let from = script.iter().map(|timed| timed.at).min();
    let last = script.iter().map(|timed| timed.until).max();
    let from = from.unwrap_or(SETTLED);
    let until = last.unwrap_or(SETTLED) + after;
    let settings = Settings {
        script,
        window: Window { from, until },
        ..Settings::new(Arc::clone(config), seed, until)
    };
    run(&settings).expect("the configuration is sound")
}

/// What is wrong with a run in which no application may write nothing for longer than `gap`.
fn wrong(report: &Report, gap: u64) -> Option<String> {
    if let Some(violation) = report.violations.first() {
        return Some(format!("{}: {}", violation.invariant, violation.what));
    }
    if report.cold_starts > 0 {
        return Some(format!("{} cold starts", report.cold_starts));
    }
    let seen = report.outputs.iter().enumerate();
    let mut gaps = seen.filter(|(_, seen)| seen.longest_gap > gap);
    gaps.next().map(|(application, seen)| {
        format!(
            "gap: application {application} wrote nothing for {} us, {} are allowed",
            seen.longest_gap / 1000,
            gap / 1000
        )
    })
}

/// Has `case` say what is wrong with each seed, on as many threads as there are processors.
fn assert_with_every_seed(case: impl Fn(u64) -> Option<String> + Sync) {
    let (first, step) = bumpless_testing::slice();
    println!("every {step}th seed of {SEEDS}, from {first} on");
    let next = AtomicU64::new(first);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut found = Vec::new();
        while let seed = next.fetch_add(step, Ordering::Relaxed)
            && seed < SEEDS
        {
            found.extend(case(seed).map(|what| (seed, what)));
        }
        found
    };
    let mut found: Vec<(u64, String)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let found = handles
            .into_iter()
            .map(|handle| handle.join().expect("a worker"));
        found.flatten().collect()
    });
    found.sort();
    let lines: Vec<String> = found
        .iter()
        .map(|(seed, what)| format!("seed {seed}: {what}"))
        .collect();
    assert!(
        found.is_empty(),
        "{} of {SEEDS} seeds:\n{}",
        found.len(),
        lines.join("\n")
    );
}

/// The small pair with a lease of 30 ms.
fn longer_lease() -> Arc<Config> {
    let mut config = Config::clone(&Size::Small.config());
    config.timing.lease = Duration::from_millis(30);
    for application in &mut config.applications {
        let (period, deadline) = (application.period, application.deadline);
        application.expiry = config.timing.least_expiry(period, deadline);
    }
    Arc::new(config)
}

/// The small pair with states of several packets.
fn longer_states() -> Arc<Config> {
    let text = include_str!("../../../../scenarios/configurations/several-packets.toml");
    Arc::new(Config::parse(text, "several-packets.toml").expect("it is sound"))
}

fn outage(seed: u64) -> u64 {
    let lengths = [
        8_000, 8_500, 10_000, 12_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_000,
    ];
    lengths[seed as usize % lengths.len()] * 1000
}

#[test]
fn after_an_outage_of_every_path_the_newest_state_goes_on_at_once() {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let lasts = outage(seed);
        let cut = fault(moment(seed), lasts, on(EVERYWHERE, PathFault::Cut));
        let report = simulate(&config, seed, vec![cut], SECOND / 2);
        wrong(&report, lasts + 2 * PERIOD)
    });
}

#[test]
fn so_it_does_outage_after_outage_wherever_in_a_cycle_they_begin() {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let lasts = outage(seed);
        // Cycles begin anew after each outage, so that a fixed distance would meet them at the same moment.
        let begins = |nth: u64| moment(seed) + nth * (300 * MS + 530_000);
        let cut = |nth| fault(begins(nth), lasts, on(EVERYWHERE, PathFault::Cut));
        let report = simulate(&config, seed, (0..12).map(cut).collect(), 4 * SECOND);
        wrong(&report, lasts + 2 * PERIOD)
    });
}

#[test]
fn so_it_does_with_a_longer_lease() {
    let config = longer_lease();
    assert_with_every_seed(|seed| {
        let lasts = outage(seed);
        let cut = fault(moment(seed), lasts, on(EVERYWHERE, PathFault::Cut));
        let report = simulate(&config, seed, vec![cut], SECOND / 2);
        wrong(&report, lasts + 2 * PERIOD)
    });
}

#[test]
fn after_a_stall_of_both_computers_control_goes_on_from_the_newest_state() {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let lasts = (9 + seed % 21) * MS;
        let pause = |node| {
            let in_turn = seed.is_multiple_of(2);
            fault(moment(seed), lasts, Fault::Pause { node, in_turn })
        };
        let report = simulate(&config, seed, vec![pause(LEFT), pause(RIGHT)], SECOND / 2);
        wrong(&report, lasts + 2 * PERIOD)
    });
}

#[test]
fn while_both_networks_flap_half_of_the_cycles_with_one_up_write() {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let flap = on(EVERYWHERE, PathFault::Flap { period: 30 * MS });
        let lasts = 10 * SECOND;
        let report = simulate(&config, seed, vec![fault(moment(seed), lasts, flap)], 0);
        // Of three cycles in 30 ms, two have a path for 5 ms.
        let usable = lasts / PERIOD * 2 / 3;
        wrong(&report, SECOND).or_else(|| too_few(&report, usable / 2))
    });
}

#[test]
fn while_four_of_five_datagrams_are_lost_control_goes_on() {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let loss = PathFault::Loss {
            share: 0.8,
            class: Class::All,
        };
        let lasts = 10 * SECOND;
        let loss = fault(moment(seed), lasts, on(EVERYWHERE, loss));
        let report = simulate(&config, seed, vec![loss], 0);
        wrong(&report, SECOND).or_else(|| too_few(&report, lasts / PERIOD / 2))
    });
}

fn too_few(report: &Report, least: u64) -> Option<String> {
    let mut seen = report.outputs.iter().enumerate();
    let few = seen.find(|(_, seen)| seen.accepted < least)?;
    let (application, seen) = few;
    Some(format!(
        "outputs: application {application} wrote {}, of {least} at least",
        seen.accepted
    ))
}

/// The backup comes back with `what` wrong, and the primary writes every cycle.
fn newcomer(what: Wrong) {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        // Whatever begins is over by then, so that nothing but the newcomer can disturb the primary.
        let at = moment(seed) + 2 * SECOND;
        let comes = Fault::WrongConfiguration { node: RIGHT, what };
        let comes = fault(at, 3 * SECOND / 2, comes);
        let report = simulate(&config, seed, vec![comes], SECOND / 2);
        wrong(&report, PERIOD * 3 / 2)
    });
}

#[test]
fn a_newcomer_with_another_period_writes_and_disturbs_nothing() {
    newcomer(Wrong::Period);
}

#[test]
fn a_newcomer_with_one_application_more_writes_and_disturbs_nothing() {
    newcomer(Wrong::Application);
}

#[test]
fn a_newcomer_with_other_reference_points_writes_and_disturbs_nothing() {
    newcomer(Wrong::References);
}

#[test]
fn a_newcomer_with_another_field_address_writes_and_disturbs_nothing() {
    newcomer(Wrong::Field);
}

#[test]
fn a_primary_back_with_a_wrong_configuration_leaves_its_backup_primary() {
    let config = Size::Small.config();
    let wrong_in = [
        Wrong::Period,
        Wrong::Application,
        Wrong::References,
        Wrong::Field,
    ];
    assert_with_every_seed(|seed| {
        let what = wrong_in[seed as usize % wrong_in.len()];
        let comes = Fault::WrongConfiguration { node: LEFT, what };
        let comes = fault(moment(seed), 3 * SECOND / 2, comes);
        let report = simulate(&config, seed, vec![comes], SECOND / 2);
        wrong(&report, PERIOD * 5 / 2 + LEASE)
    });
}

#[test]
fn of_a_primary_that_hears_nothing_its_backup_takes_over_as_of_a_dead_one() {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let to_left = Paths {
            to: Some(End::Node(LEFT)),
            ..EVERYWHERE
        };
        let deaf = fault(moment(seed), 3 * SECOND / 2, on(to_left, PathFault::Cut));
        let report = simulate(&config, seed, vec![deaf], SECOND / 2);
        wrong(&report, PERIOD * 5 / 2 + LEASE)
    });
}

/// One bit of `field` turns over in one heartbeat, another one with each seed, where no checksum notices.
fn turned_bit(field: Field) {
    let config = Size::Small.config();
    assert_with_every_seed(|seed| {
        let from = seed as usize % 2;
        let paths = Paths {
            network: Some(seed as usize / 2 % 2),
            from: Some(End::Node(from)),
            to: Some(End::Node(1 - from)),
            both: false,
        };
        let turned = PathFault::Corrupt {
            share: 1.0,
            unnoticed: true,
            class: Class::Heartbeats,
            bit: Some((field, (seed % u64::from(field.bits())) as u8)),
        };
        let turned = fault(moment(seed), 2 * MS, on(paths, turned));
        let healed = bumpless_sim::heal_within(&config).as_nanos() + SECOND / 2;
        let report = simulate(&config, seed, vec![turned], healed);
        let leap = report.outputs.iter().find(|seen| seen.epoch.0 > 1000);
        let leap = leap.map(|seen| format!("epochs leapt to {}", seen.epoch));
        wrong(&report, PERIOD * 2).or(leap)
    });
}

#[test]
fn a_turned_bit_in_the_time_of_a_heartbeat_misleads_nobody() {
    turned_bit(Field::SentAt);
}

#[test]
fn a_turned_bit_in_an_epoch_misleads_nobody() {
    turned_bit(Field::Epoch);
}

#[test]
fn a_narrow_network_is_known_within_a_second_and_states_go_on() {
    let config = Size::Small.config();
    let directory = tempfile::tempdir().expect("a directory");
    assert_with_every_seed(|seed| {
        let network = |network| Paths {
            network: Some(network),
            ..EVERYWHERE
        };
        let (at, lasts) = (moment(seed), 50 * MS);
        let small = PathFault::Mtu { bytes: 300 };
        let trace = directory.path().join(format!("{seed}.pcap"));
        let settings = Settings {
            script: vec![
                fault(at, 3 * SECOND, on(network(0), small)),
                fault(at + 2 * SECOND, lasts, on(network(1), PathFault::Cut)),
            ],
            window: Window {
                from: at,
                until: at + 3 * SECOND,
            },
            trace: Some(trace.clone()),
            ..Settings::new(Arc::clone(&config), seed, at + 3 * SECOND)
        };
        let report = run(&settings).expect("the configuration is sound");
        let log = std::fs::read_to_string(trace.with_extension("jsonl")).expect("the log");
        std::fs::remove_file(&trace).expect("the capture is there");
        wrong(&report, lasts + 2 * PERIOD).or_else(|| never_degraded(&log, at))
    });
}

#[test]
fn states_go_on_in_short_pieces_over_networks_that_are_all_narrow() {
    let config = longer_states();
    assert_with_every_seed(|seed| {
        // What every path of IPv6 passes, less the headers of IP and UDP.
        let small = PathFault::Mtu { bytes: 1_232 };
        let (at, lasts) = (moment(seed), 3 * SECOND);
        let killed = Fault::Crash {
            node: LEFT,
            reboot: true,
        };
        let script = vec![
            fault(at, lasts, on(EVERYWHERE, small)),
            fault(at + 2 * SECOND, SECOND / 2, killed),
        ];
        let settings = Settings {
            script,
            window: Window {
                from: at + SECOND,
                until: at + lasts,
            },
            ..Settings::new(Arc::clone(&config), seed, at + lasts)
        };
        let report = run(&settings).expect("the configuration is sound");
        wrong(&report, 4 * PERIOD)
    });
}

/// T-55: each channel chooses for itself.
#[test]
fn on_a_narrow_network_those_who_have_no_other_one_send_in_short_pieces_and_the_rest_goes_elsewhere()
 {
    let text = include_str!("../../../../scenarios/configurations/networks-apart.toml");
    let config = Config::parse(text, "networks-apart.toml").expect("it is sound");
    let (config, period) = (Arc::new(config), 40 * MS);
    let first = Paths {
        network: Some(0),
        ..EVERYWHERE
    };
    assert_with_every_seed(|seed| {
        let small = PathFault::Mtu { bytes: 1_232 };
        let (at, lasts) = (moment(seed), 3 * SECOND);
        let settings = Settings {
            script: vec![fault(at, lasts, on(first, small))],
            window: Window {
                from: at + SECOND,
                until: at + lasts,
            },
            ..Settings::new(Arc::clone(&config), seed, at + lasts)
        };
        let report = run(&settings).expect("the configuration is sound");
        wrong(&report, 2 * period)
    });
}

/// that short packets are lost, too, for a while shows nothing of long ones.
#[test]
fn after_an_outage_of_narrow_networks_states_go_on_in_short_pieces_at_once() {
    let config = longer_states();
    assert_with_every_seed(|seed| {
        let small = PathFault::Mtu { bytes: 1_232 };
        let between = Paths {
            from: Some(End::Node(LEFT)),
            to: Some(End::Node(RIGHT)),
            both: true,
            network: None,
        };
        let (at, lasts) = (moment(seed), 5 * SECOND);
        let (cut, mended) = (at + 2 * SECOND, at + 4 * SECOND);
        let killed = Fault::Crash {
            node: LEFT,
            reboot: true,
        };
        let script = vec![
            fault(at, lasts, on(EVERYWHERE, small)),
            fault(cut, mended - cut, on(between, PathFault::Cut)),
            fault(mended + SECOND / 4, SECOND / 2, killed),
        ];
        let settings = Settings {
            script,
            window: Window {
                from: at + SECOND,
                until: at + lasts,
            },
            ..Settings::new(Arc::clone(&config), seed, at + lasts)
        };
        let report = run(&settings).expect("the configuration is sound");
        wrong(&report, 4 * PERIOD)
    });
}

/// What is wrong if the primary does not say within a second of `at` that redundancy is degraded.
fn never_degraded(log: &str, at: u64) -> Option<String> {
    let mut primary = None;
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON lines");
        let time = line["time_ns"].as_u64().unwrap_or_default();
        let node = line["node"].as_str().map(str::to_owned);
        let event = |name: &str| line["event"] == name;
        if event("role") && line["to"] == "primary" {
            primary = node;
        } else if event("redundancy")
            && line["state"] == "degraded"
            && (at..at + SECOND).contains(&time)
            && node == primary
        {
            return None;
        }
    }
    Some(format!(
        "the primary, {primary:?}, does not say that redundancy is degraded"
    ))
}

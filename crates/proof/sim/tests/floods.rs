//! Floods of packets: what a node bears by plan changes nothing (spec/simulation.md, S-18; spec/reception.md, V-75 and V-90).

use std::path::Path;
use std::sync::Arc;

use bumpless_base::Counter;
use bumpless_config::{Config, ReceptionGuard, ReferenceKind};
use bumpless_node::reception::budgets;
use bumpless_sim::{
    Aim, End, Fault, Junk, Report, Scenario, Settings, Size, Timed, as_scenario, run, shrink,
};

const SECOND: u64 = 1_000_000_000;
const AIMS: [Aim; 5] = [
    Aim::DataPort,
    Aim::ClosedPort,
    Aim::Fragments,
    Aim::Icmp,
    Aim::Resolution,
];

/// The small pair with the packet costs of the dissertation (5.5.2).
fn pair(changed: impl FnOnce(&mut Config)) -> Arc<Config> {
    let mut config = Config::clone(&Size::Small.config());
    config.reception.packet_ns = 12_100;
    config.reception.dropped_ns = 1_620;
    config.reception.other_per_s = 500;
    // Budgets take 77 % of such a processor if all of them are used up.
    config.reception.reserve_percent = 95;
    // Large enough that it is not a burst that ends what is borne.
    config.reception.ring = 4096;
    changed(&mut config);
    Arc::new(config)
}

fn borne(config: &Config) -> u64 {
    budgets::load(config, bumpless_base::NodeId(0)).flood_per_s
}

/// A second of a flood at the primary, when the start is over for longer than healing takes.
fn flooded(config: &Arc<Config>, aim: Aim, forged: bool, rate: u64, seed: u64) -> Report {
    let fault = Fault::Flood {
        network: 0,
        node: 0,
        aim,
        forged,
        rate,
        bytes: 18,
    };
    let timed = Timed {
        at: 4_500_000_000,
        until: 5_500_000_000,
        fault,
    };
    run(&Settings {
        script: vec![timed],
        ..Settings::new(Arc::clone(config), seed, 9 * SECOND)
    })
    .expect("a sound configuration")
}

#[test]
fn as_much_of_any_flood_as_a_node_bears_by_plan_moves_no_role_and_misses_nothing() {
    let config = pair(|_| ());
    let rate = borne(&config);
    assert!(
        rate > 100_000,
        "{:?}",
        budgets::load(&config, bumpless_base::NodeId(0))
    );
    for (aim, seed) in AIMS.into_iter().zip([1, 2, 3, 4, 5]) {
        let report = flooded(&config, aim, false, rate, seed);
        assert_eq!(report.violations, [], "{aim:?}");
        assert!(report.broken_assumptions.is_empty(), "{aim:?}");
        let counts = report.flood_counts;
        assert!(counts.came > rate * 9 / 10, "{aim:?}: {counts:?}");
        assert_eq!(counts.own_lost, 0, "{aim:?}: {counts:?}");
        let told = counts.ring + counts.capacity + counts.closed + counts.nobody + counts.handed_on;
        assert_eq!(told, counts.came, "each packet under one cause");
    }
}

/// V-90: what budgets let in comes in bursts, from every kind and on every network at once.
#[test]
fn bursts_of_all_budgets_at_once_fill_no_ring_at_the_rate_that_a_node_bears_by_plan() {
    let config = Size::Small.config();
    let load = budgets::load(&config, bumpless_base::NodeId(0));
    assert!(load.ring_ends_it, "{load:?}");
    let flood = |config: &Arc<Config>, rate: u64, seed| {
        let networks = config.networks.len();
        let each = rate / (AIMS.len() * networks) as u64;
        let one = |(network, aim)| Timed {
            at: 4_500_000_000,
            until: 4_750_000_000,
            fault: Fault::Flood {
                network,
                node: 0,
                aim,
                forged: false,
                rate: each,
                bytes: 18,
            },
        };
        let all = (0..networks).flat_map(|network| AIMS.map(|aim| (network, aim)));
        run(&Settings {
            script: all.map(one).collect(),
            ..Settings::new(Arc::clone(config), seed, 7 * SECOND)
        })
        .expect("a sound configuration")
    };
    for seed in 1..4 {
        let report = flood(&config, load.flood_per_s, seed);
        assert_eq!(report.violations, []);
        assert_eq!(report.flood_counts.own_lost, 0, "{:?}", report.flood_counts);
        assert!(report.flood_counts.came > load.flood_per_s / 5);
    }
    // The test can fail: as many as a processor bears that has no bursts.
    let mut large = Config::clone(&config);
    large.reception.ring = 65_536;
    let average = budgets::load(&large, bumpless_base::NodeId(0));
    assert!(!average.ring_ends_it);
    let report = flood(&config, average.flood_per_s, 1);
    assert!(report.flood_counts.ring > 0, "{:?}", report.flood_counts);
}

#[test]
fn the_same_flood_does_damage_where_nothing_is_guarded_and_that_is_declared() {
    let rate = borne(&pair(|_| ()));
    let config = pair(|config| config.reception.guard = ReceptionGuard::Off);
    for aim in AIMS {
        let report = flooded(&config, aim, false, rate, 1);
        let first = report.violations.first().expect("damage");
        assert_eq!(first.invariant, "bears floods", "{aim:?}: {first:?}");
        assert!(report.broken_assumptions[0].starts_with("V-73"));
    }
}

/// V-70: echo replies have a budget of their own, which no other ICMP uses up.
#[test]
fn a_flood_of_echo_replies_keeps_none_of_a_reference_point_from_a_node() {
    let config = pair(|config| {
        for reference in &mut config.references {
            if let ReferenceKind::Witness(address) = reference.kind {
                reference.kind = ReferenceKind::Ping(address.ip());
            }
        }
    });
    for seed in 1..4 {
        let report = flooded(&config, Aim::Icmp, false, borne(&config), seed);
        assert_eq!(report.violations, []);
        let counts = report.flood_counts;
        assert!(counts.capacity > counts.came / 2, "{counts:?}");
        assert_eq!(counts.own_lost, 0, "{counts:?}");
    }
}

#[test]
fn who_forges_a_partners_address_takes_its_budget_on_that_network_alone() {
    let config = pair(|_| ());
    let report = flooded(&config, Aim::DataPort, true, borne(&config), 1);
    assert_eq!(report.violations, []);
    assert!(
        report.flood_counts.own_lost > 0,
        "{:?}",
        report.flood_counts
    );
}

/// M-20 to M-22, N-8, V-90: nothing of the pair's own is refused when keys change, whatever else comes meanwhile.
#[test]
fn no_state_is_late_while_keys_roll_each_second_through_floods_and_forgeries() {
    let config = pair(|_| ());
    let rate = borne(&config) / 2;
    let begin = 3_500_000_000;
    let seconds = std::env::var("BUMPLESS_ROLLS").map_or(6, |text| text.parse().expect("a number"));
    let lasts = seconds * SECOND;
    let during = |fault| Timed {
        at: begin,
        until: begin + lasts,
        fault,
    };
    let flood = |node| {
        during(Fault::Flood {
            network: node,
            node,
            aim: Aim::DataPort,
            forged: false,
            rate,
            bytes: 1400,
        })
    };
    let junk = |network, node, kind| {
        during(Fault::Junk {
            network,
            to: End::Node(node),
            rate: 5_000,
            kind,
        })
    };
    let kinds = [Junk::Forged, Junk::Replay, Junk::Redirected, Junk::Stripped];
    let forged = kinds.map(|kind| [junk(0, 1, kind), junk(1, 0, kind)]);
    // Who has a partner's address takes its budget at the guard (V-51), so what is forged meets the nodes in a world without one.
    let worlds = [vec![flood(0), flood(1)], forged.concat()];
    for (seed, script) in (0..3).flat_map(|seed| worlds.iter().map(move |it| (seed, it))) {
        let is_flood = script[0] == flood(0);
        let script = [&[during(Fault::Keys { every: SECOND })], &script[..]].concat();
        let until = |time| {
            run(&Settings {
                script: script.clone(),
                ..Settings::new(Arc::clone(&config), seed, time)
            })
            .expect("a sound configuration")
        };
        let (before, after) = (until(begin), until(begin + lasts));
        assert_eq!(after.violations, [], "seed {seed}");
        assert!(after.broken_assumptions.is_empty());
        let failed = |report: &Report| report.counters.get(Counter::StatesFailed);
        assert_eq!(failed(&after), failed(&before), "seed {seed}");
        // Both ends, each time but perhaps the last one.
        let changes = after.key_changes;
        assert!(
            (2 * seconds - 2..=2 * seconds).contains(&changes),
            "{changes}"
        );
        match is_flood {
            true => assert!(after.flood_counts.came > rate * seconds),
            false => {
                let forged = after.counters.get(Counter::DiscardForged);
                assert!(forged > 500 * seconds, "{forged}");
            }
        }
    }
}

#[test]
fn floods_on_top_of_storms_break_no_invariant() {
    let seeds = std::env::var("BUMPLESS_SEEDS").map_or(6, |text| text.parse().expect("a number"));
    for seed in 0..seeds {
        let settings = Settings {
            storm: true,
            floods: true,
            ..Settings::new(Size::Small.config(), 900_000 + seed, 12 * SECOND)
        };
        let report = run(&settings).expect("a sound configuration");
        assert_eq!(report.violations, [], "seed {}", settings.seed);
        assert!(report.broken_assumptions.is_empty());
    }
}

#[test]
fn the_same_seed_gives_the_same_flood() {
    let config = pair(|_| ());
    let hash = |seed| flooded(&config, Aim::DataPort, false, 20_000, seed).trace_hash;
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn a_flood_that_breaks_something_is_shrunk_and_read_as_it_is_printed() {
    let settings = Settings {
        script: [(0, 900), (1, 150_000)]
            .map(|(at, rate)| Timed {
                at: (4 + at) * SECOND,
                until: (4 + at) * SECOND + SECOND / 2,
                fault: Fault::Flood {
                    network: 0,
                    node: 0,
                    aim: Aim::Fragments,
                    forged: false,
                    rate,
                    bytes: 1400,
                },
            })
            .into(),
        ..Settings::new(
            pair(|config| config.reception.guard = ReceptionGuard::Off),
            1,
            8 * SECOND,
        )
    };
    let (kept, report) = shrink(&settings).expect("a run").expect("damage");
    let [only] = kept.script[..] else {
        panic!("{:?}", kept.script);
    };
    let printed = as_scenario(&kept, &report, "size = \"small\"");
    let read = Scenario::parse(&printed, "own.toml", Path::new(".")).expect("a scenario");
    assert_eq!(read.faults, [only]);
}

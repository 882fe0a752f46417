//! Who has a network, or a witness with its keys, does what is drawn or written, and breaks nothing that the threat model promises
//! (spec/simulation.md, S-24; docs/threat-model.md).

use std::sync::Arc;

use bumpless_base::Counter;
use bumpless_config::{Config, Security};
use bumpless_sim::{
    End, Fault, Junk, Lie, PathFault, Paths, Report, Settings, Size, Timed, Window, heal_within,
    run,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The pair has settled by then, and left is primary.
const SETTLED: u64 = 3 * SECOND;
const EVERYWHERE: Paths = Paths {
    network: None,
    from: None,
    to: None,
    both: false,
};

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |given| given.parse().expect("a number"))
}

fn fault(at: u64, lasts: u64, fault: Fault) -> Timed {
    Timed {
        at,
        until: at + lasts,
        fault,
    }
}

fn on(network: Option<usize>, fault: PathFault) -> Fault {
    let paths = Paths {
        network,
        ..EVERYWHERE
    };
    Fault::Path { paths, fault }
}

fn simulate(script: Vec<Timed>, seed: u64, time: u64) -> Report {
    let settings = Settings {
        script,
        ..Settings::new(Size::Small.config(), seed, time)
    };
    run(&settings).expect("the configuration is sound")
}

fn assert_sound(report: &Report) {
    assert!(
        report.violations.is_empty(),
        "seed {}: {:?}",
        report.seed,
        report.violations
    );
}

/// All witnesses of the small pair say this.
fn liars(lie: Lie, (at, lasts): (u64, u64)) -> impl Iterator<Item = Timed> {
    let witnesses = 0..Size::Small.config().references.len();
    witnesses.map(move |reference| fault(at, lasts, Fault::Liar { reference, lie }))
}

/// How many packets came to nodes and were not believed.
fn refused(report: &Report) -> u64 {
    let causes = [
        Counter::DiscardForged,
        Counter::DiscardReplayed,
        Counter::DiscardUnprotected,
        Counter::DiscardMisdirected,
        Counter::DiscardUnknownKey,
    ];
    causes.map(|cause| report.counters.get(cause)).iter().sum()
}

#[test]
fn no_storm_with_an_attacker_in_it_breaks_an_invariant() {
    let first = number("BUMPLESS_FIRST_SEED", 0);
    let mut lied = 0;
    for seed in first..first + number("BUMPLESS_SEEDS", 12) {
        let settings = Settings {
            storm: true,
            attacks: true,
            ..Settings::new(Size::Small.config(), seed, 20 * SECOND)
        };
        let drawn = bumpless_sim::faults(&settings);
        let lies = |timed: &Timed| matches!(timed.fault, Fault::Liar { .. });
        lied += u64::from(drawn.iter().any(lies));
        let report = run(&settings).expect("the configuration is sound");
        assert_sound(&report);
        assert!(report.broken_assumptions.is_empty(), "{report:?}");
    }
    assert!(lied > 0);
}

#[test]
fn what_was_held_back_for_minutes_does_nothing_to_processes_that_began_since() {
    const MINUTES: u64 = 120 * SECOND;
    for seed in 0..2 {
        let crash = |at, node| {
            let reboot = seed == 1;
            fault(at, 500 * MS, Fault::Crash { node, reboot })
        };
        // One network is held back over restarts of both nodes, and then all of it comes at once.
        let script = vec![
            fault(SETTLED, MINUTES, on(Some(0), PathFault::Hold)),
            crash(20 * SECOND, 0),
            crash(50 * SECOND, 1),
            crash(80 * SECOND, 0),
        ];
        let report = simulate(script, seed, SETTLED + MINUTES + 8 * SECOND);
        assert_sound(&report);
        assert_eq!(report.cold_starts, 0);
        // It opens, and is of another process or session.
        let void = [Counter::DiscardWrongNode, Counter::DiscardWrongSession];
        let void = void.map(|cause| report.counters.get(cause));
        assert!(void.iter().sum::<u64>() > 5_000, "{void:?}");
    }
}

#[test]
fn a_network_that_is_held_back_and_let_go_again_and_again_stops_no_output() {
    for seed in 0..3 {
        let held = |at: u64| {
            fault(
                SETTLED + at * SECOND,
                700 * MS,
                on(Some(0), PathFault::Hold),
            )
        };
        let report = simulate((0..10).map(held).collect(), seed, 16 * SECOND);
        assert_sound(&report);
    }
}

#[test]
fn spliced_and_downgraded_messages_are_refused_as_long_as_they_come() {
    for (seed, kind) in [(0, Junk::Spliced), (1, Junk::Downgraded)] {
        let at = |network, to| Fault::Junk {
            network,
            to,
            rate: 5_000,
            kind,
        };
        let ends = [End::Node(0), End::Node(1)];
        let script = ends.iter().flat_map(|&to| [0, 1].map(|it| at(it, to)));
        let script = script.map(|it| fault(SETTLED, 5 * SECOND, it)).collect();
        let report = simulate(script, seed, 12 * SECOND);
        assert_sound(&report);
        let refused = refused(&report);
        assert!(refused > 10_000, "{kind:?}: {refused}");
    }
}

#[test]
fn whatever_witnesses_say_that_lie_nodes_that_hear_each_other_have_one_writer_and_lose_nothing() {
    for (seed, lie) in (0..).zip([Lie::Grants, Lie::Old, Lie::Fresh, Lie::Repeats]) {
        let mut script: Vec<_> = liars(lie, (SETTLED, 12 * SECOND)).collect();
        for at in [4, 7] {
            script.push(fault(at * SECOND, SECOND, on(Some(0), PathFault::Cut)));
        }
        let ordered = Fault::Switchover { node: 0, group: 0 };
        script.push(fault(10 * SECOND, 0, ordered));
        let report = simulate(script, seed, 20 * SECOND);
        assert_sound(&report);
        assert!(report.broken_assumptions.is_empty());
        assert_eq!(report.cold_starts, 0, "{lie:?}");
    }
}

#[test]
fn witnesses_that_grant_everything_to_nodes_that_hear_nothing_make_two_writers_and_it_is_told_whose_fault_that_is()
 {
    let between = |from, to| Fault::Path {
        paths: Paths {
            network: None,
            from: Some(End::Node(from)),
            to: Some(End::Node(to)),
            both: true,
        },
        fault: PathFault::Cut,
    };
    let mut script: Vec<_> = liars(Lie::Grants, (SETTLED, 5 * SECOND)).collect();
    script.push(fault(SETTLED + SECOND, SECOND, between(0, 1)));
    let report = simulate(script, 0, 12 * SECOND);
    assert_eq!(
        report.violations.first().map(|it| it.invariant),
        Some("one writer")
    );
    let told = report.broken_assumptions.join(", ");
    assert!(told.contains("lies"), "{told}");
}

/// The longest gap in outputs around the primary's end, for each application.
fn gap(config: &Arc<Config>, seed: u64) -> Vec<u64> {
    let at = SETTLED + seed * 1_370_001 % (20 * MS);
    let until = at + SECOND;
    let crash = Fault::Crash {
        node: 0,
        reboot: false,
    };
    let settings = Settings {
        script: vec![fault(at, heal_within(config).as_nanos(), crash)],
        window: Window { from: at, until },
        ..Settings::new(Arc::clone(config), seed, until)
    };
    let report = run(&settings).expect("the configuration is sound");
    assert_sound(&report);
    report.outputs.iter().map(|it| it.longest_gap).collect()
}

/// With `BUMPLESS_SEEDS=1000 -- --nocapture` the distribution that spec/security.md shows.
#[test]
fn a_failover_is_as_fast_with_all_protection_as_with_none() {
    let protected = Size::Small.config();
    assert_ne!(protected.security, Security::Open);
    let mut open = Config::clone(&protected);
    open.security = Security::Open;
    for network in &mut open.networks {
        network.protection = 0;
    }
    let open = Arc::new(open);
    // In one of four seeds both would be open (S-16).
    let seeds: Vec<_> = (0..)
        .filter(|seed| seed % 4 != 3)
        .take(number("BUMPLESS_SEEDS", 20) as usize)
        .collect();
    let sorted = |config: &Arc<Config>| {
        let mut gaps: Vec<_> = seeds.iter().flat_map(|&seed| gap(config, seed)).collect();
        gaps.sort_unstable();
        gaps
    };
    let [without, with] = [sorted(&open), sorted(&protected)];
    let mut line = String::new();
    for percent in [0, 50, 90, 99, 100] {
        let at = |gaps: &[u64]| gaps[(gaps.len() - 1) * percent / 100] as f64 / 1e6;
        let (without, with) = (at(&without), at(&with));
        line += &format!("{percent} %: {without:.3} ms open, {with:.3} ms protected\n");
        // What is longer by is the envelopes' bytes on the wire, and when packets pass each other by chance.
        assert!((with - without).abs() < 1.0, "{line}");
    }
    println!("{} failovers each\n{line}", seeds.len());
}

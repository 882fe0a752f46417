//! Scenario files: those that are kept do what they say, bad ones are refused by line, and what is
//! printed can be read back.

use std::path::{Path, PathBuf};

use bumpless_sim::{Fault, PathFault, Scenario, Settings, Size, as_scenario, faults, run};

fn kept() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(directory).expect("scenarios");
    let mut paths: Vec<_> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_scenario_that_is_kept_breaks_what_it_says_and_nothing_else() {
    for path in kept() {
        let scenario = Scenario::load(&path).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
        let report = run(&Settings {
            config: scenario.config,
            seed: scenario.seed,
            time: scenario.time,
            script: scenario.faults,
            storm: scenario.storm,
            trace: None,
            changes: false,
        })
        .expect("the configuration is sound");
        let broken = report.violations.first();
        assert_eq!(
            broken.map(|violation| violation.invariant),
            scenario.breaks.as_deref(),
            "{}: {broken:?}",
            path.display()
        );
        if scenario.breaks.is_some() {
            assert!(!report.broken_assumptions.is_empty(), "{}", path.display());
        }
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_line_and_reason() {
    let crash = "[[fault]]\nat_ms = 100\nfor_ms = 100\nkind = \"crash\"\nnode = \"left\"\n";
    let cases: &[(&str, usize, &str)] = &[
        ("seconds = -1", 1, "must be a number"),
        ("size = \"huge\"", 1, "\"small\" or \"large\""),
        ("sise = \"small\"", 1, "there is no field \"sise\""),
        ("name = 'x'\nfault = 3", 2, "[[fault]]"),
        ("name = [", 1, ""),
        ("[[fault]]\nat_ms = 1\nfor_ms = 1", 1, "needs a kind"),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"fire\"",
            4,
            "no fault is called \"fire\"",
        ),
        (
            "[[fault]]\nat_ms = -5\nfor_ms = 1\nkind = \"cut\"",
            2,
            "from 0",
        ),
        ("[[fault]]\nat_ms = 1\nkind = \"cut\"", 1, "needs for_ms"),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"cut\"\nnetwork = \"C\"",
            5,
            "no network is called \"C\"; there are A, B",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"cut\"\nfrom = \"left\"\nto = \"left\"",
            6,
            "the same",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"loss\"\nshare = 1.5",
            5,
            "from 0 to 1, not 1.5",
        ),
        (
            "seconds = 2\n[[fault]]\nat_ms = 1500\nfor_ms = 600\nkind = \"cut\"",
            4,
            "ends at 2100 ms, the scenario at 2000 ms",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 3\nkind = \"switchover\"\nnode = \"left\"\ngroup = \"pair\"",
            3,
            "one instant",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"clock\"\nof = \"left\"\nppm = 1\n\
             [[fault]]\nat_ms = 5\nfor_ms = 9\nkind = \"clock\"\nof = \"left\"\nppm = 2",
            7,
            "cannot have two rates (the other is on line 1)",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"cut\"\nfrom = \"witness-a\"\nto = \"witness-b\"",
            6,
            "no path leads there",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"cut\"\nnetwork = \"B\"\nto = \"witness-a\"",
            6,
            "no path leads there",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"junk\"\nnetwork = \"B\"\nto = \"witness-a\"\n\
             rate = 9\nwhat = \"noise\"",
            6,
            "not on this network",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"buffer\"\nnode = \"left\"\nbytes = 0.5",
            6,
            "whole number",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"bandwidth\"\nmbit = 5000",
            5,
            "anyway; give less",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"bandwidth\"\nmbit = 5\nfrom = \"left\"\n\
             [[fault]]\nat_ms = 5\nfor_ms = 9\nkind = \"bandwidth\"\nmbit = 7\nto = \"right\"",
            7,
            "cannot have two of these (the other is on line 1)",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"slow\"\nnode = \"left\"\nby_ms = 1\n\
             [[fault]]\nat_ms = 5\nfor_ms = 9\nkind = \"slow\"\nnode = \"left\"\nby_ms = 2",
            7,
            "slow in two ways",
        ),
    ];
    for (text, line, reason) in cases {
        assert_refused(text, *line, reason);
    }
    let paused = "[[fault]]\nat_ms = 150\nfor_ms = 10\nkind = \"pause\"\nnode = \"left\"\n";
    assert_refused(&format!("{crash}{paused}"), 6, "node left is down");
    assert_refused(&format!("{paused}{crash}"), 6, "node left is down");
    assert_refused(&format!("{crash}{crash}"), 6, "down already");
}

#[test]
fn a_fault_that_lasts_no_time_is_refused_unless_it_is_over_at_once() {
    let of = |kind: &str, span: &str| format!("[[fault]]\nat_ms = 3000\n{span}\nkind = {kind}\n");
    for kind in [
        "'buffer'\nnode = 'left'\nbytes = 0",
        "'unreachable'\nnode = 'left'\nnetwork = 'A'",
        "'clock'\nof = 'left'\nppm = 1",
        "'crash_in_change'\nnode = 'left'\nsteps = 1",
        "'pause'\nnode = 'left'",
        "'cut'",
    ] {
        for span in ["for_ms = 0", "for_ms = 0.0000004"] {
            assert_refused(&of(kind, span), 3, "must last for a while; give at least");
        }
        let drawn = format!("drawn = true\n{}", of(kind, "for_ms = 0"));
        assert_refused(&drawn, 4, "must last for a while");
    }
    for kind in [
        "'switchover'\nnode = 'left'\ngroup = 'pair'",
        "'apply'\nnode = 'left'\nnumber = 1",
        "'crash'\nnode = 'left'",
        "'old_configuration'\nnode = 'left'",
        "'witness'\nreference = 'witness-a'",
    ] {
        assert_accepted(&of(kind, "for_ms = 0"));
    }
    assert_accepted(&of("'cut'", "for_ms = 0.0000005"));
}

/// A scenario with these faults, each from 3000 ms, or the time that it says, for a second.
fn faults_of(wanted: &[&str]) -> String {
    let table = |fault: &&str| {
        let at = if fault.contains("at_ms") {
            ""
        } else {
            "at_ms = 3000\n"
        };
        let span = if fault.contains("for_ms") {
            ""
        } else {
            "for_ms = 1000\n"
        };
        format!("[[fault]]\n{at}{span}{}\n", fault.replace(", ", "\n"))
    };
    wanted.iter().map(table).collect()
}

#[test]
fn faults_of_different_paths_may_be_at_the_same_time() {
    for (one, other) in [
        ("kind='cut', from='left'", "kind='cut', to='left'"),
        ("kind='cut', network='B'", "kind='cut', to='witness-a'"),
        ("kind='cut', from='witness-a'", "kind='cut', to='witness-b'"),
        ("kind='cut', network='A'", "kind='cut', network='B'"),
    ] {
        assert_accepted(&faults_of(&[one, other]));
    }
    for (one, other) in [
        ("kind='cut', from='left'", "kind='cut', to='right'"),
        (
            "kind='cut', from='left', both_ways=true",
            "kind='cut', to='left'",
        ),
        ("kind='cut', network='A'", "kind='cut', to='witness-a'"),
        (
            "kind='cut', from='left', to='right', both_ways=true",
            "kind='cut', network='B', from='right'",
        ),
    ] {
        let text = faults_of(&[one, other]);
        let second = 1 + one.split(", ").count() + 3;
        assert_refused(&text, second, "a path cannot have two of these");
    }
}

#[test]
fn a_fault_may_end_with_the_scenario_to_the_nanosecond() {
    let cut = |seconds: &str, span: &str| {
        format!("seconds = {seconds}\n[[fault]]\nat_ms = 1\nfor_ms = {span}\nkind = 'cut'\n")
    };
    for (seconds, span) in [
        ("1.001", "1000"),
        ("2.3", "2299"),
        ("1.0000001", "999.0001"),
    ] {
        assert_accepted(&cut(seconds, span));
    }
    let reason = "the fault ends at 1001.000001 ms, the scenario at 1001 ms";
    assert_refused(&cut("1.001", "1000.000001"), 4, reason);
}

#[test]
fn a_computer_is_slow_also_while_its_process_does_not_run() {
    let crash = "at_ms=5000, for_ms=100, kind='crash', node='left'";
    assert_accepted(&faults_of(&[
        "for_ms=15000, kind='slow', node='left', by_ms=2",
        crash,
    ]));
}

#[test]
fn a_process_cannot_end_at_two_steps_of_one_change() {
    let at = |steps| format!("kind='crash_in_change', node='left', steps={steps}");
    let reason = "node left can end at one step of a change only (the other is on line 1)";
    assert_refused(&faults_of(&[&at(2), &at(5)]), 7, reason);
    let later = format!("at_ms=4000, {}", at(5));
    assert_accepted(&faults_of(&[&at(2), &later]));
}

#[test]
fn a_flapping_path_has_a_period_with_two_halves() {
    for period in ["0", "0.000001"] {
        let flap = format!("kind='flap', period_ms={period}");
        assert_refused(
            &faults_of(&[&flap]),
            5,
            "a period needs time for two halves; give at least",
        );
    }
    assert_accepted(&faults_of(&["kind='flap', period_ms=0.000002"]));
}

#[test]
fn rates_are_read_as_they_are_printed() {
    let read = |text: &str| Scenario::parse(text, "good.toml", Path::new(".")).expect("a scenario");
    for ppb in (-9_999..10_000).step_by(7) {
        let clock = format!("kind='clock', of='left', ppm={}", f64::from(ppb) / 1e3);
        let fault = read(&faults_of(&[&clock])).faults[0].fault;
        assert!(
            matches!(fault, Fault::Clock { ppb: read, .. } if read == i64::from(ppb)),
            "{ppb}: {fault:?}"
        );
    }
    for wanted in (1_000_000..2_000_000).step_by(997) {
        let slow = format!("kind='bandwidth', mbit={}", wanted as f64 / 1e6);
        let Fault::Path {
            fault: PathFault::Bandwidth { bits },
            ..
        } = read(&faults_of(&[&slow])).faults[0].fault
        else {
            panic!("{slow}");
        };
        assert_eq!(bits, wanted);
    }
}

#[test]
fn a_clock_that_is_off_by_too_much_is_told_with_its_rate_and_with_the_limit_of_one_clock() {
    let said = |ppm: &str| {
        let clock = format!("kind='clock', of='left', ppm={ppm}");
        let scenario = Scenario::parse(&faults_of(&[&clock]), "x.toml", Path::new("."));
        let settings = Settings {
            config: Size::Small.config(),
            seed: 1,
            time: 1_000_000,
            script: scenario.expect("a scenario").faults,
            storm: false,
            trace: None,
            changes: false,
        };
        run(&settings).expect("a run").broken_assumptions.join("\n")
    };
    assert_eq!(Size::Small.config().timing.clock_drift_ppm, 500);
    let reason = "left's clock is 250.001 ppm off; with clock_drift_ppm = 500 one clock may be off by 250, \
                  so that two differ by no more than 500";
    assert!(said("250.001").ends_with(reason), "{}", said("250.001"));
    assert_eq!(said("-250"), "");
}

#[test]
fn a_device_may_treat_the_requests_of_two_nodes_differently() {
    let of = |node: &str, late| format!("kind='device', application='swift'{node}, late={late}");
    let (left, right) = (of(", node='left'", true), of(", node='right'", false));
    assert_accepted(&faults_of(&[&left, &right]));
    for other in [of(", node='left'", false), of("", false)] {
        assert_refused(&faults_of(&[&left, &other]), 8, "cannot both do and not do");
    }
}

#[test]
fn no_storm_has_a_fault_that_lasts_no_time() {
    for (seed, time) in (0..400).zip([20_000_000_000, 60_000_000_000].into_iter().cycle()) {
        let drawn = faults(&Settings {
            config: Size::Small.config(),
            seed,
            time,
            script: Vec::new(),
            storm: true,
            trace: None,
            changes: seed % 3 == 0,
        });
        for timed in drawn {
            let ends = timed.until > timed.at || timed.fault.is_instant();
            assert!(ends || timed.fault.restarts(), "{seed}: {timed:?}");
        }
    }
}

fn assert_accepted(text: &str) {
    if let Err(complaints) = Scenario::parse(text, "good.toml", Path::new(".")) {
        panic!("{text}\n{complaints:#?}");
    }
}

fn assert_refused(text: &str, line: usize, reason: &str) {
    let complaints = Scenario::parse(text, "bad.toml", Path::new(".")).expect_err(text);
    let fits = |c: &bumpless_sim::Complaint| c.line == line && c.what.contains(reason);
    assert!(complaints.iter().any(fits), "{text}\n{complaints:#?}");
    assert!(complaints[0].to_string().starts_with("bad.toml:"));
}

#[test]
fn a_storm_printed_as_a_scenario_is_the_same_storm() {
    let settings = Settings {
        config: Size::Small.config(),
        seed: 17,
        time: 60_000_000_000,
        script: Vec::new(),
        storm: true,
        trace: None,
        changes: false,
    };
    let script = faults(&settings);
    let told = Settings {
        script: script.clone(),
        ..settings
    };
    let mut report = run(&Settings {
        time: 1_000_000,
        storm: false,
        ..told.clone()
    })
    .expect("a run");
    report.simulated = 60_000_000_000;
    let text = as_scenario(&told, &report, "size = \"small\"");
    // A storm's faults overlap as they come, and some concern paths that nothing takes.
    let read = Scenario::parse(&text, "storm.toml", Path::new(".")).expect("a scenario");
    assert_eq!(read.faults, script);
}

#[test]
fn a_printed_scenario_finds_its_configuration_whatever_the_path_and_has_the_largest_seed() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory
        .path()
        .join("a \u{200b}\u{301}\u{7f}\t\"q\" \\u pair");
    std::fs::create_dir(&place).expect("a directory");
    std::fs::write(place.join("pair.toml"), bumpless_config::sample()).expect("a file");
    let text = format!(
        "configuration = \"pair.toml\"\nseed = {}\nseconds = 1\n",
        Scenario::LARGEST_SEED
    );
    let read = Scenario::parse(&text, "own.toml", &place).expect("a scenario");
    let settings = Settings {
        config: read.config.clone(),
        seed: read.seed,
        time: 1_000_000,
        script: Vec::new(),
        storm: false,
        trace: None,
        changes: false,
    };
    let report = run(&settings).expect("a run");
    let printed = as_scenario(&settings, &report, &read.pair);
    let again = Scenario::parse(&printed, "printed.toml", Path::new("/elsewhere"));
    let again = again.unwrap_or_else(|wrong| panic!("{printed}\n{wrong:#?}"));
    assert_eq!((again.seed, again.pair), (read.seed, read.pair));
    let beyond = format!("seed = {}", Scenario::LARGEST_SEED + 1);
    assert_refused(
        &beyond,
        1,
        "seed must be a number from 0 to 9000000000000000",
    );
}

#[test]
fn a_file_without_end_is_refused_and_one_that_is_not_utf_8_by_the_line_of_its_first_bad_byte() {
    let refused = |path: &Path| {
        let complaints = Scenario::load(path).expect_err("no scenario");
        complaints
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let endless = Path::new("/dev/zero");
    assert_eq!(
        refused(endless),
        ["/dev/zero:0: is longer than 1048576 bytes"]
    );
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("latin.toml");
    let reason = |line| {
        let path = path.display();
        format!("{path}:{line}: the byte 0xfc is not UTF-8 here; write the file in UTF-8")
    };
    for (text, line) in [
        (&b"name = \"f\xfcr\"\n"[..], 1),
        (b"seconds = 3\n\n# \xc3\xbc and \xfc\n\xff\n", 3),
        (b"\n\n\xfc", 3),
    ] {
        std::fs::write(&path, text).expect("a file");
        assert_eq!(refused(&path), [reason(line)]);
    }
    let longest = [&b"seconds = 3\n#"[..], &vec![b'x'; (1 << 20) - 13]].concat();
    std::fs::write(&path, &longest).expect("a file");
    assert!(Scenario::load(&path).is_ok());
    std::fs::write(&path, [&longest[..], b"x"].concat()).expect("a file");
    assert!(refused(&path)[0].ends_with("is longer than 1048576 bytes"));
}

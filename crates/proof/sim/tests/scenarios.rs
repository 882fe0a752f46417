//! Scenario files: those that are kept do what they say, and what is printed can be read back.

use std::path::{Path, PathBuf};

use bumpless_sim::check::Exemption;
use bumpless_sim::{Fault, PathFault, Scenario, Settings, Size, as_scenario, faults, run};

fn kept() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
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
            script: scenario.faults,
            storm: scenario.storm,
            ..Settings::new(scenario.config, scenario.seed, scenario.time)
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
fn every_exemption_of_the_checkers_names_a_clause_that_is_there() {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../spec");
    let pages = std::fs::read_dir(specs).expect("the specs");
    let pages = pages.map(|page| page.expect("a page").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let pages: Vec<String> = pages
        .map(|path| std::fs::read_to_string(path).expect("text"))
        .collect();
    for exemption in Exemption::ALL {
        let begins = format!("**{}", exemption.clause());
        let stands = |page: &String| {
            let mut found = page.match_indices(&begins);
            let digit = |c: char| c.is_ascii_digit();
            found.any(|(at, _)| !page[at + begins.len()..].starts_with(digit))
        };
        let name = exemption.name();
        assert!(pages.iter().any(stands), "{name}: {}", exemption.clause());
    }
}

/// The scenario with this one fault.
fn with(fault: &str) -> Scenario {
    let text = format!("[[fault]]\nat_ms = 3000\nfor_ms = 1000\n{fault}\n");
    Scenario::parse(&text, "own.toml", Path::new(".")).expect("a scenario")
}

#[test]
fn rates_are_read_as_they_are_printed() {
    for ppb in (-9_999..10_000).step_by(7) {
        let clock = format!(
            "kind = 'clock'\nof = 'left'\nppm = {}",
            f64::from(ppb) / 1e3
        );
        let fault = with(&clock).faults[0].fault;
        assert!(
            matches!(fault, Fault::Clock { ppb: read, .. } if read == i64::from(ppb)),
            "{ppb}: {fault:?}"
        );
    }
    for wanted in (1_000_000..2_000_000).step_by(997) {
        let slow = format!("kind = 'bandwidth'\nmbit = {}", wanted as f64 / 1e6);
        let Fault::Path {
            fault: PathFault::Bandwidth { bits },
            ..
        } = with(&slow).faults[0].fault
        else {
            panic!("{slow}");
        };
        assert_eq!(bits, wanted);
    }
}

#[test]
fn a_clock_that_is_off_by_too_much_is_told_with_its_rate_and_limit() {
    let said = |ppm: &str| {
        let clock = format!("kind = 'clock'\nof = 'left'\nppm = {ppm}");
        let settings = Settings {
            script: with(&clock).faults,
            ..Settings::new(Size::Small.config(), 1, 3_500_000_000)
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
fn no_storm_has_a_fault_that_lasts_no_time() {
    for (seed, time) in (0..400).zip([20_000_000_000, 60_000_000_000].into_iter().cycle()) {
        let drawn = faults(&Settings {
            storm: true,
            changes: seed % 3 == 0,
            ..Settings::new(Size::Small.config(), seed, time)
        });
        for timed in drawn {
            let ends = timed.until > timed.at || timed.fault.is_instant();
            assert!(ends || timed.fault.restarts(), "{seed}: {timed:?}");
        }
    }
}

#[test]
fn a_storm_printed_as_a_scenario_is_the_same_storm() {
    let mut settings = Settings {
        storm: true,
        ..Settings::new(Size::Small.config(), 17, 60_000_000_000)
    };
    let mut script = faults(&settings);
    // Of several storms, so that every kind is among them.
    for seed in 18..24 {
        settings.seed = seed;
        script.extend(faults(&settings));
    }
    script.sort_by_key(|timed| (timed.at, timed.until));
    for kind in [
        "Mtu",
        "WrongConfiguration",
        "unnoticed: true",
        "Cut",
        "Flap",
    ] {
        assert!(format!("{script:?}").contains(kind), "{kind}");
    }
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
fn a_printed_scenario_finds_its_configuration_and_keeps_any_seed() {
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
    let settings = Settings::new(read.config.clone(), read.seed, 1_000_000);
    let report = run(&settings).expect("a run");
    let printed = as_scenario(&settings, &report, &read.pair);
    let again = Scenario::parse(&printed, "printed.toml", Path::new("/elsewhere"));
    let again = again.unwrap_or_else(|wrong| panic!("{printed}\n{wrong:#?}"));
    assert_eq!((again.seed, again.pair), (read.seed, read.pair));
}

#[test]
fn a_file_without_end_is_refused_and_bad_utf_8_by_its_line() {
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
        ["/dev/zero: is longer than 1048576 bytes, which no scenario is; name another file"]
    );
    assert_eq!(
        refused(Path::new("/dev/null")),
        ["/dev/null: says nothing; a scenario says at least its name"]
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
    assert!(refused(&path)[0].contains("is longer than 1048576 bytes"));
}

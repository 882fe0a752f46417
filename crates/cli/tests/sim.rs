//! `bumpless sim` as a user calls it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .arg("sim")
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn scenario(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    directory.join(name).display().to_string()
}

#[test]
fn the_same_seed_gives_the_same_result_however_many_jobs_there_are() {
    let result = |jobs| -> Value {
        let output = sim(&["--seeds", "3", "--time", "4", "--jobs", jobs, "--json"]);
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let (one, two) = (result("1"), result("2"));
    assert_eq!(one["schema"], "bumpless.sim/1");
    assert_eq!(
        (&one["ok"], &one["seeds"]),
        (&Value::Bool(true), &Value::from(3))
    );
    for field in ["trace_hash", "datagrams", "faults", "lost", "simulated_s"] {
        assert_eq!(one[field], two[field], "{field}");
    }
}

#[test]
fn a_broken_assumption_is_named_with_the_command_that_replays_it() {
    let file = scenario("clock-drift.toml");
    let output = sim(&["--scenario", &file]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "one writer: ",
        "assumption that does not hold: R-1, clock drift: left's clock is -100000 ppm off",
        &format!("replay: bumpless sim --seed 1 --scenario {file}"),
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let events = text.lines().filter(|line| line.starts_with('{')).count();
    assert!(events >= 30, "{events} last events");
}

#[test]
fn a_replay_command_names_a_scenario_whose_name_begins_like_an_option() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::copy(
        scenario("clock-drift.toml"),
        directory.path().join("-x y.toml"),
    )
    .expect("a copy");
    let in_there = |argument: &str| {
        Command::new(env!("CARGO_BIN_EXE_bumpless"))
            .args(["sim", "--json", argument])
            .current_dir(directory.path())
            .output()
            .expect("the command runs")
    };
    let output = in_there("--scenario=-x y.toml");
    let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let replay = &result["violations"][0]["replay"];
    assert_eq!(replay, "bumpless sim --seed 1 --scenario='-x y.toml'");
}

#[test]
fn a_series_that_fails_tells_the_same_however_many_jobs_there_are() {
    let file = scenario("clock-drift.toml");
    let result = |jobs| -> Value {
        let output = sim(&[
            "--scenario",
            &file,
            "--seeds",
            "5",
            "--jobs",
            jobs,
            "--json",
        ]);
        assert_eq!(output.status.code(), Some(1));
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let (one, two) = (result("1"), result("2"));
    assert_eq!(one["seeds"], 1, "the first seed fails");
    for field in ["seeds", "trace_hash", "datagrams", "violations"] {
        assert_eq!(one[field], two[field], "{field}");
    }
}

#[test]
fn what_checkers_forgive_is_told_in_text_and_json_and_adds_up() {
    let result = |seeds| -> Value {
        let output = sim(&["--calm", "--seeds", seeds, "--time", "4", "--json"]);
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let count = |result: &Value| {
        let exemptions = result["exemptions"].as_array().expect("a list");
        let name = "continues: nothing written";
        let entry = exemptions.iter().find(|entry| entry["name"] == name);
        let entry = entry.expect("every exemption");
        assert_eq!(entry["clause"], "S-13");
        entry["count"].as_u64().expect("a number")
    };
    // Each application begins once.
    let (one, three) = (result("1"), result("3"));
    assert_eq!((count(&one), count(&three)), (2, 6));
    assert_eq!(one["cold_starts"], 0);
    let gap = one["longest_gap_ms"]["swift"].as_f64();
    assert!(gap.is_some_and(|gap| (9.0..12.0).contains(&gap)), "{gap:?}");
    let output = sim(&["--calm", "--time", "4"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let line = "forgiven:          2  continues: nothing written (S-13)";
    assert!(said.lines().any(|it| it == line), "{said}");
    assert!(said.contains("begun anew 0 times"), "{said}");
}

#[test]
fn a_storm_without_room_says_how_long_it_takes() {
    let output = sim(&["--time", "3"]);
    assert!(output.status.success());
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(
        note.contains("no fault in 3 s") && note.contains("--time"),
        "{note}"
    );
    let told = note
        .rsplit(' ')
        .nth(1)
        .and_then(|least| least.parse::<u32>().ok());
    let least = told.expect("a number of seconds");
    let output = sim(&["--time", &(least + 2).to_string()]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_scenario_that_contradicts_itself_is_refused_with_line_and_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bad.toml");
    let text =
        "seconds = 5\n[[fault]]\nat_ms = 6000\nfor_ms = 1\nkind = \"cut\"\nnetwork = \"Z\"\n";
    std::fs::write(&path, text).expect("a file");
    let output = sim(&["--scenario", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("bad.toml:6: no network is called \"Z\"; there are A, B"),
        "{said}"
    );
    let missing = sim(&["--scenario", "no-such-file.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    let many = sim(&["--seeds", "2", "--trace", "x.pcap"]);
    assert_eq!(many.status.code(), Some(2));
}

#[test]
fn cycles_are_counted_as_those_of_the_fastest_application() {
    let result = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&sim(arguments).stdout).expect("one JSON object")
    };
    let cycles = result(&["--cycles", "300", "--json"]);
    assert_eq!(cycles["simulated_s"], 3.0);
    assert_eq!(cycles["interrupted"], false);
    assert_eq!(
        cycles["trace_hash"],
        result(&["--time", "3", "--json"])["trace_hash"]
    );
}

#[test]
fn what_would_spoil_a_result_is_refused() {
    for (arguments, words) in [
        (["--trace", "log.jsonl"].as_slice(), "give another ending"),
        (&["--cycles", "5", "--time", "1"], "cannot be used with"),
        (&["--until-failure", "--seeds", "5"], "cannot be used with"),
    ] {
        let output = sim(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
    assert!(!Path::new("log.jsonl").exists());
}

#[test]
fn a_trace_never_takes_the_place_of_what_the_run_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let pair = scenario("configurations/pinged.toml");
    std::fs::copy(pair, path("pair.jsonl")).expect("a copy");
    let text = "seconds = 0.1\nconfiguration = 'pair.jsonl'\n";
    std::fs::write(path("own.toml"), text).expect("a file");
    std::os::unix::fs::symlink(path("own.toml"), path("link.pcap")).expect("a link");
    std::fs::hard_link(path("own.toml"), path("other.jsonl")).expect("a link");
    let run = |trace: &str| {
        let own = path("own.toml").display().to_string();
        let trace = path(trace).display().to_string();
        sim(&["--scenario", &own, "--trace", &trace])
    };
    for trace in ["own.toml", "link.pcap", "other.pcap", "pair.pcap"] {
        let output = run(trace);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{trace}: {errors}");
        assert!(errors.contains("--trace would overwrite"), "{errors}");
        assert_eq!(std::fs::read_to_string(path("own.toml")).unwrap(), text);
    }
    assert!(run("trace.pcap").status.success());
    assert!(path("trace.pcap").exists() && path("trace.jsonl").exists());
}

#[test]
fn a_seed_that_no_scenario_could_say_is_refused() {
    let most = "9000000000000000";
    for (arguments, words) in [
        (["--seed", "10000000000000000000"].as_slice(), most),
        (&["--seed", "9000000000000001", "--shrink"], most),
        (&["--seed", most, "--seeds", "2"], "give fewer"),
        (&["--seeds", "18446744073709551615"], "give fewer"),
    ] {
        let output = sim(&[arguments, &["--time", "0.1"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {errors}");
        assert!(errors.contains(words), "{arguments:?} {errors}");
    }
    let largest = sim(&["--seed", most, "--time", "0.1"]);
    assert!(largest.status.success(), "{largest:?}");
}

#[test]
fn a_scenario_that_breaks_only_an_assumption_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a name with spaces.toml");
    let text = "name = \"drift\"\nseconds = 4\n[[fault]]\nat_ms = 3000\nfor_ms = 10\nkind = \"clock\"\n\
                of = \"left\"\nppm = -100000\n";
    std::fs::write(&path, text).expect("a file");
    let output = sim(&["--scenario", path.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("assumption that does not hold: R-1"),
        "{said}"
    );
    std::fs::write(
        &path,
        text.replace("seconds", "breaks = \"everything\"\nseconds"),
    )
    .expect("a file");
    let refused = sim(&["--scenario", path.to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_kept_promise_is_told_by_fullness_and_the_same_with_any_jobs() {
    let run = |jobs, form: &[&str]| {
        let mut arguments = vec![
            "--kept-promise",
            "--seeds",
            "40",
            "--no-search",
            "--jobs",
            jobs,
        ];
        arguments.extend(form);
        let output = sim(&arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        output.stdout
    };
    let result = |jobs| -> Value {
        serde_json::from_slice(&run(jobs, &["--json"])).expect("one JSON object")
    };
    let (one, two) = (result("1"), result("2"));
    assert_eq!(one["schema"], "bumpless.promise/1");
    assert_eq!(one["all"]["sets"], 40);
    let answered = |field: &str| one["all"][field].as_u64().expect("a number");
    assert_eq!(answered("admitted") + answered("refused"), 40);
    assert_eq!((answered("broken"), answered("searched")), (0, 0));
    assert_eq!(one["tally"], two["tally"]);
    let text = String::from_utf8(run("2", &[])).expect("words");
    assert!(text.contains("no promise is broken"), "{text}");
}

#[test]
fn sites_that_end_are_told_by_how_they_do_and_the_same_with_any_jobs() {
    let result = |jobs| -> Value {
        let output = sim(&["--site-failures", "--seeds", "10", "--jobs", jobs, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let (one, two) = (result("1"), result("2"));
    assert_eq!(one["schema"], "bumpless.site-failures/1");
    assert_eq!((&one["ok"], &one["replay"]), (&true.into(), &Value::Null));
    assert_eq!(one["failures"].as_array().map(Vec::len), Some(10));
    assert_eq!(one["failures"], two["failures"]);
    for ending in one["endings"].as_array().expect("a list") {
        assert_eq!(
            (&ending["count"], &ending["broken"]),
            (&2.into(), &0.into())
        );
    }
    let output = sim(&["--site-failures", "--seeds", "5"]);
    let text = String::from_utf8(output.stdout).expect("words");
    assert!(
        text.contains("primary-cut") && text.contains("no promise is broken"),
        "{text}"
    );
    let output = sim(&["--site-failures", "--time", "5"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_miss_is_found_for_what_the_plan_refuses() {
    let output = sim(&["--kept-promise", "--seed", "0", "--seeds", "3", "--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let all = &result["all"];
    assert_eq!(all["searched"], all["refused"]);
    assert!(all["found"].as_u64() > Some(0), "{all}");
}

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
fn a_broken_assumption_is_named_with_the_invariant_and_the_command_that_replays_it() {
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
fn a_kept_promise_is_told_by_fullness_and_the_same_however_many_jobs_there_are() {
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
fn a_miss_is_found_for_what_the_plan_refuses() {
    let output = sim(&["--kept-promise", "--seed", "0", "--seeds", "3", "--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let all = &result["all"];
    assert_eq!(all["searched"], all["refused"]);
    assert!(all["found"].as_u64() > Some(0), "{all}");
}

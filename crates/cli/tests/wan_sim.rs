//! `bumpless wan sim` as people and scripts meet it.

use std::process::{Command, Output};

use serde_json::Value;

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .args(["wan", "sim"])
        .args(arguments)
        .output()
        .unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = sim(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn refused(arguments: &[&str], status: i32, words: &str) {
    let output = sim(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(said.contains(words), "{words:?} is not in: {said}");
}

/// Three pairs in the ring.
const SMALL: [&str; 4] = [
    "--backbone-pairs",
    "3",
    "--sites",
    "right=s02-1-1,witness=s01,field=s01-1",
];

#[test]
fn outages_of_the_papers_network_are_told_by_kind_and_the_same_with_any_jobs() {
    let run = |jobs| json(&["--seeds", "8", "--jobs", jobs]);
    let (one, two) = (run("1"), run("2"));
    assert_eq!(one["schema"], "bumpless.wan-sim/1");
    assert_eq!((&one["ok"], &one["replay"]), (&true.into(), &Value::Null));
    assert_eq!(
        (&one["network"]["nodes"], &one["network"]["links"]),
        (&602.into(), &702.into())
    );
    assert_eq!(one["sites"]["left"], "centre-1");
    assert_eq!(
        (&one["runs"], &one["trace_hash"]),
        (&two["runs"], &two["trace_hash"])
    );
    let count = |outage: &Value| outage["count"].as_u64().unwrap();
    let outages = one["outages"].as_array().unwrap();
    assert_eq!(outages.iter().map(count).sum::<u64>(), 8);
    let range = json(&["--seeds", "6..8"]);
    assert_eq!(range["first_seed"], 6);
    assert_eq!(
        range["runs"].as_array().unwrap()[..],
        one["runs"].as_array().unwrap()[6..]
    );
}

#[test]
fn people_read_what_died_what_was_promised_and_what_was_lost() {
    let output = sim(&[&SMALL[..], &["--seeds", "4", "--routing", "ospf"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for word in [
        "centre-1 and s02-1-1, witness in s01",
        "link ",
        "router ",
        "loop ",
        "site ",
        "dead link",
        "nothing is broken",
    ] {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

#[test]
fn a_script_is_played_and_a_second_way_makes_it_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.json");
    let text = r#"{"schema": "bumpless.wan-script/1", "outages": [{"at_s": 0.1, "for_s": 1.2, "what": ["centre-1"]}]}"#;
    std::fs::write(&file, text).unwrap();
    let script = ["--script", file.to_str().unwrap()];
    for (more, promised) in [
        (&[][..], "primary-cut"),
        (&["--backup-us", "1800"], "unnoticed"),
    ] {
        let result = json(&[&SMALL[..], &script, more].concat());
        let run = &result["runs"][0];
        assert_eq!(
            (&run["outage"], &run["promised"]),
            (&Value::Null, &promised.into())
        );
        assert!(run["packets"]["dead_link"].as_u64() > Some(100), "{run}");
    }
    std::fs::write(&file, text.replace("centre-1", "nowhere")).unwrap();
    refused(&[&SMALL[..], &script].concat(), 2, "nowhere");
}

#[test]
fn what_cannot_be_is_refused() {
    refused(&["--sites", "left=b00a"], 2, "b00a is a router");
    refused(&["--sites", "left=s01,left=s02"], 2, "left is given twice");
    refused(&["--seeds", "8..8"], 2, "FIRST..END");
    refused(&["--seeds", "1..8", "--seed", "3"], 2, "leave --seed out");
    refused(&["--failure-ms", "500"], 2, "--routing ospf");
    refused(&["--pool", "10.0.0.0/8"], 2, "leave --pool out");
    refused(
        &["--backbone-us", "9000000", "--seeds", "1"],
        1,
        "the plan has no times",
    );
}

//! A pair across sites of a small network: sites end, one writer writes, and nothing is left behind.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use bumpless_testing::need_namespaces;
use serde_json::Value;
use support::wan::{Gone, name, no_file_is_left, said, until, wan};

/// Arguments over a small network of this test alone.
fn sites(test: &str, more: &[&str]) -> Command {
    let mut command = wan("sites", test);
    command
        .args([
            "--seed",
            "5",
            "--backbone-pairs",
            "3",
            "--loop-pairs",
            "1",
            "--chain-routers",
            "1",
        ])
        .args(more);
    command
}

fn a_site_that_ends_leaves_one_writer_and_the_newest_state() {
    need_namespaces();
    let _gone = Gone("end");
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let output = sites(
        "end",
        &[
            "--failures",
            "3",
            "--json",
            "--output",
            &kept.display().to_string(),
        ],
    )
    .args(["--endings", "primary-killed,primary-cut,ordered"])
    .output()
    .unwrap();
    let all = said(&output);
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {all}"));
    assert_eq!(result["schema"], "bumpless.wan-sites/1");
    assert_eq!(result["error"], Value::Null, "{all}");
    let failures = result["failures"].as_array().unwrap();
    let endings: Vec<_> = failures
        .iter()
        .map(|it| it["ending"].as_str().unwrap())
        .collect();
    assert_eq!(endings, ["primary-killed", "primary-cut", "ordered"]);
    for failure in failures {
        // How long a gap is hangs on the machine, and is the command's to judge; who writes what does not.
        for want in failure["wants"].as_array().unwrap() {
            let hangs = ["gap", "heals"].iter().any(|id| want["id"] == *id);
            assert!(hangs || want["outcome"] == "held", "{want} of {failure}");
        }
        assert!(
            failure["gap_ms"].as_f64().unwrap() > 0.0
                && failure["writes"]["accepted"].as_u64().unwrap() > 10
        );
    }
    // The plan's promise is that of the configuration: more than a lease, and less than a second.
    let planned = &result["planned"];
    let (lease, gap) = (
        planned["lease_ms"].as_f64().unwrap(),
        planned["unordered_ms"].as_f64().unwrap(),
    );
    assert!(
        lease >= planned["least_lease_ms"].as_f64().unwrap() && gap > lease && gap < 1_000.0,
        "{planned}"
    );
    no_file_is_left("end");
    let shown = sites(
        "end",
        &["--show", &kept.join("sites.json").display().to_string()],
    )
    .output()
    .unwrap();
    let text = said(&shown);
    assert_eq!(
        std::fs::read_to_string(kept.join("table.txt"))
            .unwrap()
            .trim(),
        text.trim()
    );
    for word in ["primary-killed", "promised", "3 of 3 sites have ended"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

fn a_killed_run_leaves_neither_network_nor_processes() {
    need_namespaces();
    let _gone = Gone("killed");
    let mut run = sites("killed", &["--failures", "50"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = format!("/run/bumpless-wan-{}.d/pair.toml", name("killed"));
    until("the pair's file", || Path::new(&folder).exists());
    run.kill().unwrap();
    run.wait().unwrap();
    wan("down", "killed").output().unwrap();
    no_file_is_left("killed");
}

fn what_cannot_be_is_refused_before_anything_is_made() {
    let refused = |more: &[&str], words: &[&str]| {
        let output = sites("wrong", more).output().unwrap();
        let all = said(&output);
        let of_plan = words[0].starts_with("the plan");
        let wanted = if of_plan { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(wanted), "{more:?}: {all}");
        for word in words {
            assert!(all.contains(word), "{word}: {all}");
        }
        no_file_is_left("wrong");
    };
    refused(
        &["--sites", "left=nowhere,right=b00a,witness=centre-1"],
        &["\"nowhere\"", "b00a is a router"],
    );
    refused(&["--sites", "right=centre-1"], &["centre-1 is named twice"]);
    refused(
        &["--sites", "left=centre-1,left=centre-2"],
        &["left is given twice"],
    );
    refused(&["--sites", "middle=centre-1"], &["witness=SITE"]);
    refused(&["--endings", "slowly"], &["primary-killed"]);
    refused(&["--centres", "1"], &["no two control centres"]);
    refused(&["--pool", "10.0.0.0/8"], &["leave --pool out"]);
    refused(&["--show", "/nowhere.json"], &["/nowhere.json"]);
    refused(&["--heartbeat-ms", "0"], &["from 1 to"]);
    // A way of 40 s there and back is longer than any lease.
    refused(
        &["--backbone-us", "10000000", "--sites", "right=s02"],
        &["the plan has no times for this distance"],
    );
}

bumpless_testing::tests!(
    a_site_that_ends_leaves_one_writer_and_the_newest_state,
    a_killed_run_leaves_neither_network_nor_processes,
    what_cannot_be_is_refused_before_anything_is_made,
);

//! `bumpless wan` as people and scripts meet it.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn wan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .arg("wan")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(arguments: &[&str], words: &[&str]) {
    let output = wan(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[test]
fn the_papers_network_is_told_without_an_option() {
    let said = text(&wan(&["topology"]).stdout);
    assert!(
        said.contains("340 routers, 260 substations, 2 control centres, 702 links, 280 of them"),
        "{said}"
    );
}

#[test]
fn the_papers_way_is_told_with_its_round_trip_of_both_profiles() {
    for (profile, round_trip) in [("nominal", 5_500), ("measured", 8_008)] {
        let output = wan(&[
            "path",
            "centre-2",
            "s10-1-1",
            "--profile",
            profile,
            "--json",
        ]);
        let path: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(path["schema"], "bumpless.wan-path/1");
        assert_eq!(path["links"], 23);
        assert_eq!(path["round_trip_us"], round_trip);
    }
}

#[test]
fn a_round_trip_is_that_of_the_way_there_and_of_the_way_back() {
    let router = |name: &str| json!({"name": name, "kind": {"router": "access"}});
    let link = |one: &str, other: &str, us: u32| json!({"ends": [one, other], "delay_us": us});
    let network = json!({
        "schema": "bumpless.wan-topology/1",
        "router_us": 0,
        "nodes": [
            {"name": "centre", "kind": "centre"}, {"name": "far", "kind": "substation"},
            router("r0"), router("r1"), router("r2"), router("r3"),
        ],
        // Two ways are as short: at r0 the first is the slow one, at r3 the quick one.
        "links": [
            link("centre", "r0", 0), link("r0", "r1", 1000), link("r3", "r2", 10),
            link("r0", "r2", 10), link("r3", "r1", 1000), link("r3", "far", 0),
        ],
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("network.json");
    fs::write(&file, network.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let output = wan(&["path", "centre", "far", "--file", file, "--json"]);
    let path: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&path["one_way_us"], &path["round_trip_us"]),
        (&json!(2_000), &json!(2_020))
    );
    let told = text(&wan(&["path", "centre", "far", "--file", file]).stdout);
    assert!(told.contains("2.020 ms there and back"), "{told}");
}

#[test]
fn delays_beyond_ten_seconds_are_refused_with_all_else_that_is_wrong() {
    let output = wan(&[
        "topology",
        "--backbone-us",
        "4294967295",
        "--access-us",
        "10000001",
    ]);
    assert!(!output.status.success());
    let told = text(&output.stderr);
    for option in ["--backbone-us", "--access-us"] {
        assert!(told.contains(option), "{told}");
    }
    let output = wan(&["topology", "--backbone-us", "10000000"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = text(&wan(&["topology", "--backbone-pairs", "3", "--json"]).stdout);
    let mut network: Value = serde_json::from_str(&written).unwrap();
    network["router_us"] = json!(10_000_001);
    network["links"][2]["delay_us"] = json!(4_000_000_000u32);
    network["links"][3]["ends"][0] = json!("nobody");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("network.json");
    fs::write(&file, network.to_string()).unwrap();
    let output = wan(&["topology", "--file", file.to_str().unwrap()]);
    let told = text(&output.stderr);
    for part in [
        "routers take 10000001 us",
        "link 3 takes 4000000000 us",
        "\"nobody\"",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_network_that_was_written_can_be_changed_and_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grid.json");
    let written = wan(&["topology", "--backbone-pairs", "4", "--json"]);
    fs::write(
        &file,
        text(&written.stdout).replace("\"centre-1\"", "\"dispatcher\""),
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let output = wan(&["path", "dispatcher", "s02", "--file", file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("dispatcher to s02: "));
}

#[test]
fn picture_and_export_are_written_and_a_full_directory_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (page, export) = (
        directory.path().join("wan.html"),
        directory.path().join("lab"),
    );
    let arguments = [
        "topology",
        "--html",
        page.to_str().unwrap(),
        "--containerlab",
        export.to_str().unwrap(),
    ];
    assert!(wan(&arguments).status.success());
    let loaded = bumpless_testing::page::loads(&fs::read_to_string(&page).unwrap());
    assert!(loaded.is_empty(), "{loaded:?}");
    assert!(export.join("wan.clab.yml").exists() && export.join("delays.sh").exists());
    let again = wan(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        text(&again.stderr).contains("not empty"),
        "{}",
        text(&again.stderr)
    );
}

#[test]
fn what_is_no_network_is_refused_with_cause_and_remedy() {
    refused(
        &["topology", "--backbone-pairs", "2", "--centres", "0"],
        &["--backbone-pairs", "--centres"],
    );
    refused(
        &["topology", "--pool", "10.0.0.0/24"],
        &["256 addresses", "1666", "at most 21 bits"],
    );
    refused(
        &["topology", "--pool", "10.0.0.1/24"],
        &["behind the prefix"],
    );
    refused(
        &["path", "centre-9", "s01"],
        &["centre-9", "wan topology --json"],
    );
    refused(&["topology", "--file", "/dev/zero"], &["16 MiB"]);
    refused(
        &["topology", "--file", "/proc/self/status"],
        &["no topology"],
    );
}

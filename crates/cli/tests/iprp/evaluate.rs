//! `bumpless iprp evaluate`: a slice of the paper's evaluation, a few seconds of each part.

use std::process::Command;

use bumpless_testing::{need_namespaces, page};
use serde_json::Value;

use crate::support::process::{BUMPLESS, outcome};

pub fn a_slice_of_the_evaluation_finds_the_losses_that_theory_says_and_keeps_its_raw_data() {
    need_namespaces();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let measure = || {
        let mut command = Command::new(BUMPLESS);
        command.args([
            "iprp",
            "evaluate",
            "--json",
            "--flows",
            "10",
            "--seconds",
            "2",
        ]);
        command.args(["--scenario", "5", "--cost-seconds", "1"]);
        command.args(["--cost-sessions", "0", "--traffic-seconds", "2"]);
        command.args(["--cuts", "8", "--output"]);
        outcome(&command.arg(&out).output().unwrap())
    };
    let (mut told, mut errors, mut status) = measure();
    // A machine that stands still for a second is told as such.
    if errors.contains("measure again") {
        (told, errors, status) = measure();
    }
    assert_eq!(status, Some(0), "{told}{errors}");
    let result: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(result["schema"], "bumpless.iprp.evaluate/1");
    let scenarios = result["scenarios"].as_array().unwrap();
    let numbers: Vec<_> = scenarios.iter().map(|it| it["scenario"].as_u64()).collect();
    assert_eq!(numbers, [Some(5)]);
    for it in scenarios {
        assert_eq!(it["lost_though_a_copy_came"], 0, "{it}");
        assert_eq!(it["doubled"], 0);
        assert!(it["sent"].as_u64().unwrap() >= 900, "{it}");
        for network in it["networks"].as_array().unwrap() {
            let loss = network["loss_percent"].as_f64().unwrap();
            assert!((2.5..8.0).contains(&loss), "{it}");
        }
    }
    // What the program waits is what the faster copy takes, and a way through both hosts that is shorter than that.
    let delays = &result["delays"];
    let median = |of: &Value| of["p50"].as_u64().unwrap();
    let (least, program) = (median(&delays["least_ns"]), median(&delays["program_ns"]));
    assert!((5_000_000..10_000_000).contains(&least), "{delays}");
    assert!(least <= program, "{delays}");
    for network in delays["networks_ns"].as_array().unwrap() {
        assert!(median(network) > least, "{delays}");
    }
    assert_eq!(result["cost"][0]["sessions"], 0);
    assert_eq!(result["cost"].as_array().unwrap().len(), 1);
    traffic(&result["traffic"]);
    bars(&result);
    // Everything is kept: each datagram, and a page that needs nothing else.
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let whole: Value = serde_json::from_str(&read("run.json")).unwrap();
    let flows = whole["raw"][0]["flows"].as_array().unwrap();
    let lost = flows
        .iter()
        .flat_map(|it| it["program"].as_array().unwrap());
    let lost = lost.filter(|it| **it == -1).count() as u64;
    assert_eq!(Some(lost), whole["scenarios"][0]["lost"].as_u64());
    assert!(whole["settings"]["host"]["kernel"].is_string());
    let tables = read("tables.txt");
    assert!(tables.contains("table III") && tables.contains("held   cut-stream: "));
    let report = read("report.html");
    assert_eq!(page::loads(&report), [""; 0]);
    assert!(report.contains("class=\"iprp\"") && report.contains("polyline"));
    assert!(report.contains("<tr id=\"standby\"><td class=\"held yes\">"));
}

/// Each promise beside losses has its verdict, and the figures that it is of.
fn bars(result: &Value) {
    let bars = result["bars"].as_array().unwrap();
    let ids: Vec<_> = bars.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["figure-5", "cut-stream", "cut-tcp", "standby"]);
    for bar in bars {
        assert_eq!(bar["held"], true, "{bar}");
        assert!(bar["stalled"].is_u64() && bar["seen"].is_string(), "{bar}");
    }
    let figures = |at: usize| &bars[at]["figures"];
    let count = |at: usize, name: &str| figures(at)[name].as_array().unwrap().len();
    let number = |it: &Value| it.as_u64().unwrap();
    let scenario = &result["scenarios"][0];
    let came = number(&scenario["sent"]) - number(&scenario["lost"]);
    assert_eq!(number(&figures(0)["of"]), came);
    assert_eq!(count(1, "longest_gap_after_a_cut_ms"), 8);
    assert_eq!(count(2, "longest_after_a_cut_ms"), 8);
    assert_eq!(count(3, "longest_gap_after_a_cut_ms"), 2);
    assert!(figures(1)["sent"].as_u64() > Some(3_000), "{bars:?}");
    assert!(figures(2)["sent"].as_u64() > Some(100), "{bars:?}");
    assert!(result["stalls"]["count"].is_u64());
}

/// What programs of others had, while each network lost one copy in twenty.
fn traffic(told: &Value) {
    let rows = told["rows"].as_array().unwrap();
    let row = |name: &str| {
        let found = rows
            .iter()
            .find(|it| it["program"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("{name} in: {told}"))
    };
    let names = [
        "C37.118",
        "first receiver",
        "second receiver",
        "joins in mid-stream",
        "Modbus TCP",
    ];
    for name in names {
        let it = row(name);
        assert_eq!(
            (&it["held"], &it["doubled"]),
            (&true.into(), &0.into()),
            "{it}"
        );
        let [lost, on_all] = ["lost", "packets_lost_on_all"].map(|what| it[what].as_u64().unwrap());
        assert!(lost <= on_all && it["sent"].as_u64() > Some(30), "{it}");
        for network in it["networks"].as_array().unwrap() {
            assert!(network["copies"].as_u64() > Some(50), "{it}");
        }
        // No copy takes less than 5 ms, and the faster of two is not waited for long.
        let median = it["delay_ns"]["p50"].as_u64().unwrap();
        assert!((5_000_000..40_000_000).contains(&median), "{it}");
    }
    let sent = |name: &str| row(name)["sent"].as_u64().unwrap();
    assert_eq!([sent("C37.118"), sent("first receiver")], [100, 100]);
    assert!(sent("joins in mid-stream") < 60);
    // What this computer does not have is said, with what to do.
    let absent = told["absent"].as_array().unwrap();
    for name in ["iperf3 over UDP", "iperf3 over TCP", "RTP of GStreamer"] {
        let is_it = |it: &&Value| it["program"].as_str().unwrap().contains(name);
        match absent.iter().find(is_it) {
            Some(it) => assert!(it["why"].as_str().unwrap().contains("install"), "{it}"),
            None => assert_eq!(row(name)["held"], true, "{told}"),
        }
    }
}

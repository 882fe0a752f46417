//! Wrong configurations, and surroundings that are not as configured: everything is said, nothing
//! unsafe is done, and what was held goes on by itself when the cause is gone.

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::addresses::{Addresses, absent};
use support::modbus::Refusing;
use support::plan::Plan;
use support::process::{bumpless, outcome};
use support::site::Site;
use support::wait_until;

fn run_command(arguments: &[&str]) -> (String, String, Option<i32>) {
    outcome(&bumpless(arguments))
}

/// A copy of the site's configuration with `from` replaced by `to`.
fn changed(site: &Site, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(site.config()).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    let path = site.path("changed.toml");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    path
}

fn path_str(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file with four mistakes of four kinds.
fn wrong_file() -> (Site, PathBuf) {
    let site = Site::new(Plan::pair(2).tank(50, "timeout_ms = 90"));
    let text = std::fs::read_to_string(site.config()).unwrap();
    let text = text
        .replace("lease_ms = 100", "leese_ms = 100")
        .replace("heartbeat_ms = 20", "heartbeat_ms = \"often\"")
        .replace(
            "references = [\"w0\", \"w1\"]",
            "references = [\"w0\", \"w7\"]",
        );
    let path = site.path("wrong.toml");
    std::fs::write(&path, text).unwrap();
    (site, path)
}

#[test]
fn every_mistake_is_reported_at_once_with_line_and_remedy() {
    let (_site, path) = wrong_file();
    let (stdout, stderr, status) = run_command(&["check", path_str(&path)]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stdout.is_empty(), "{stdout}");
    let text = std::fs::read_to_string(&path).unwrap();
    let told = ["leese_ms", "heartbeat_ms", "w7", "timeout_ms"];
    for mistake in told {
        let at = text
            .lines()
            .position(|line| line.contains(mistake))
            .unwrap()
            + 1;
        let place = format!("{}:{at}: ", path.display());
        let line = stderr
            .lines()
            .find(|line| line.contains(mistake) && line.starts_with(&place));
        assert!(
            line.is_some(),
            "nothing at {place} about {mistake} in {stderr}"
        );
    }
    assert!(
        stderr.contains("lease_ms?"),
        "no remedy for leese_ms: {stderr}"
    );
    assert!(
        stderr.contains("problems in the configuration; nothing was started"),
        "{stderr}"
    );
    // One line each, and the sum.
    assert_eq!(stderr.lines().count(), told.len() + 1, "{stderr}");
}

#[test]
fn the_same_mistakes_come_as_json() {
    let (_site, path) = wrong_file();
    let (stdout, stderr, status) = run_command(&["check", path_str(&path), "--json"]);
    assert_eq!((status, stderr.as_str()), (Some(2), ""));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&report["schema"], &report["ok"]),
        (&"bumpless.check/1".into(), &false.into())
    );
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 4, "{report}");
    for problem in problems {
        for field in ["file", "field", "wrong", "right"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{problem}"
            );
        }
        assert!(problem["line"].as_u64() > Some(0), "{problem}");
    }
}

#[test]
fn no_command_starts_anything_by_a_wrong_file() {
    let (site, path) = wrong_file();
    for arguments in [
        vec!["run", path_str(&path), "--node", "left"],
        vec!["status", path_str(&path), "--node", "left"],
        vec!["switchover", path_str(&path), "--node", "left"],
    ] {
        let (_, stderr, status) = run_command(&arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
        assert!(
            stderr.contains("nothing was started"),
            "{arguments:?}: {stderr}"
        );
    }
    assert!(!site.socket("left").exists());
}

#[test]
fn an_unknown_node_is_refused_with_the_names_that_there_are() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let config = site.config();
    for command in ["run", "status", "switchover"] {
        let arguments = [command, path_str(&config), "--node", "lfet"];
        let (_, stderr, status) = run_command(&arguments);
        assert_eq!(status, Some(2), "{command}: {stderr}");
        assert!(stderr.contains("'lfet'"), "{command}: {stderr}");
        assert!(stderr.contains("left, right"), "{command}: {stderr}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let (_, stderr, status) = run_command(&["run", "/nowhere/pair.toml", "--node", "left"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("/nowhere/pair.toml"), "{stderr}");
}

#[test]
fn a_node_none_of_whose_addresses_is_here_is_refused() {
    let mut plan = Plan::pair(2).tank(50, "");
    let addresses = [absent(11), absent(12)];
    for ((_, address), nowhere) in plan.nodes[0].addresses.iter_mut().zip(addresses) {
        *address = nowhere;
    }
    let site = Site::new(plan);
    let config = site.config();
    let (_, stderr, status) = run_command(&["run", path_str(&config), "--node", "left"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains(&addresses[0].ip().to_string()), "{stderr}");
    assert!(stderr.contains("the node that this machine is"), "{stderr}");
    assert!(!site.socket("left").exists());
}

#[test]
fn a_second_run_beside_the_first_is_refused_with_its_process() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site.start("left");
    let epoch = site.await_primary("left", "tank");
    let config = site.config();
    let (_, stderr, status) = run_command(&["run", path_str(&config), "--node", "left"]);
    assert_eq!(status, Some(1), "{stderr}");
    let pid = site.node("left").pid();
    assert!(stderr.contains(&format!("process {pid}")), "{stderr}");
    // The first one still answers and works.
    assert_eq!(site.status("left").unwrap()["pid"], pid);
    assert_eq!(site.await_primary("left", "tank"), epoch);
}

#[test]
fn a_second_run_by_another_control_path_is_refused_for_the_address() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site.start("left");
    let epoch = site.await_primary("left", "tank");
    let path = changed(&site, "left.sock", "other.sock");
    let (_, stderr, status) = run_command(&["run", path_str(&path), "--node", "left"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("in use"), "{stderr}");
    assert_eq!(site.await_primary("left", "tank"), epoch);
}

/// Both nodes run, see a conflict, and say `event`; whoever wrote before writes no more.
fn neither_writes(site: &Site, event: &str, cause: &str) {
    let mut said_at = 0;
    for node in ["left", "right"] {
        site.await_event(node, event, |_| true);
        let status = site.await_status("it does not write", node, |status| {
            let group = &status["groups"][0];
            group["writes_outputs"] == false && group["cause"].as_str().unwrap().contains(cause)
        });
        assert_ne!(status["groups"][0]["role"], "primary", "{status}");
        said_at = said_at.max(status["time_ns"].as_u64().unwrap());
    }
    // A write that was on its way comes a little later.
    let silent_from = said_at + 300_000_000;
    site.await_plant_at(silent_from + 500_000_000);
    let writes = site.writes().0;
    let late: Vec<_> = writes
        .iter()
        .filter(|write| write.at_ns > silent_from)
        .collect();
    assert!(late.is_empty(), "somebody writes: {late:?}");
}

#[test]
fn two_nodes_with_different_configurations_both_say_so_and_neither_writes() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    let other = changed(&site, "period_ms = 50", "period_ms = 60");
    site.start("left");
    site.start_with("right", &other);
    neither_writes(&site, "configuration_differs", "another configuration");
    // Put right, the pair works.
    site.interrupt("right");
    site.start("right");
    let (.., epoch) = site.await_redundant("tank");
    site.await_write_in(epoch);
}

#[test]
fn a_newcomer_with_another_configuration_yields_to_the_primary() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    let other = changed(&site, "period_ms = 50", "period_ms = 60");
    site.start("left");
    let epoch = site.await_primary("left", "tank");
    site.await_write_in(epoch);
    site.start_with("right", &other);
    for node in ["left", "right"] {
        site.await_event(node, "configuration_differs", |_| true);
    }
    site.await_status("the newcomer says why it does nothing", "right", |status| {
        let group = &status["groups"][0];
        let cause = group["cause"].as_str().unwrap();
        group["role"] != "primary" && cause.contains("another configuration")
    });
    site.await_writes(3);
    assert_eq!(site.await_primary("left", "tank"), epoch);
    site.writes().judge();
}

#[test]
fn a_pair_whose_plant_does_not_run_yet_says_so_and_begins_when_it_does() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_witnesses();
    site.start("left");
    site.start("right");
    let cold = site.await_event("left", "field_unreachable", |event| {
        event["cause"]
            .as_str()
            .is_some_and(|cause| cause.contains("not connected"))
    });
    let address = site.plan.plant.to_string();
    assert!(cold["cause"].as_str().unwrap().contains(&address), "{cold}");
    wait_until("failures are counted", || {
        site.counter("left", "field_failures") > 0
    });
    site.start_plant(&[]);
    let (.., epoch) = site.await_redundant("tank");
    site.await_write_in(epoch);
    site.writes().judge();
}

#[test]
fn with_hold_a_stopped_plant_is_reported_and_written_once_it_returns() {
    let mut site = Site::new(Plan::pair(2).tank(50, "on_failure = \"hold\""));
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let (primary, ..) = site.await_redundant("tank");
    site.await_writes(3);
    site.kill_plant();
    site.await_event(&primary, "output", |event| {
        event["outcome"] == "held" || event["outcome"] == "failed"
    });
    wait_until("failures are counted", || {
        site.counter(&primary, "field_failures") > 1
    });
    site.start_plant(&[]);
    site.await_redundant("tank");
    site.await_writes(3);
    site.writes().judge();
    // Trouble that lasts is told when it starts, not in every cycle.
    assert!(
        site.events_of(&primary, "output")
            .iter()
            .filter(|e| e["outcome"] != "written")
            .count()
            < 20
    );
}

#[test]
fn a_plant_that_answers_late_is_reported_and_recovers() {
    let mut site = Site::new(Plan::pair(2).tank(50, "on_failure = \"hold\""));
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let (primary, ..) = site.await_redundant("tank");
    site.await_writes(3);
    // It takes connections and requests and says nothing.
    site.plant().signal(libc::SIGSTOP);
    site.await_event(&primary, "output", |event| {
        event["cause"]
            .as_str()
            .is_some_and(|cause| cause.contains("no answer in time"))
    });
    site.plant().signal(libc::SIGCONT);
    site.await_redundant("tank");
    site.await_writes(3);
    site.writes().judge();
}

#[test]
fn with_fail_a_plant_dead_for_both_stops_the_application_until_a_restart() {
    let mut site = Site::new(Plan::pair(2).tank(50, "on_failure = \"fail\""));
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let (primary, ..) = site.await_redundant("tank");
    site.await_writes(3);
    site.kill_plant();
    let stopped = site.await_event(&primary, "output", |event| {
        event["cause"]
            .as_str()
            .is_some_and(|cause| cause.contains("on_failure = \"fail\""))
    });
    assert_eq!(stopped["outcome"], "held", "{stopped}");
    site.start_plant(&[]);
    // Perhaps the other one took over before it knew that it could not do better.
    site.interrupt_all();
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    site.await_writes(3);
    site.writes().judge_epochs();
}

#[test]
fn exceptions_of_the_plant_are_reported_in_words() {
    for on_failure in ["hold", "fail"] {
        let more = format!("on_failure = \"{on_failure}\"");
        let mut site = Site::new(Plan::pair(2).tank(50, &more));
        site.start_witnesses();
        let refusing = Refusing::start(site.plan.plant);
        site.start("left");
        let event = site.await_event("left", "field_unreachable", |event| {
            event["cause"]
                .as_str()
                .is_some_and(|cause| cause.contains("exception"))
        });
        assert!(
            event["cause"].as_str().unwrap().contains("device failure"),
            "{event}"
        );
        drop(refusing);
        // A plant that works is written to once a backup is there.
        site.start_plant(&[]);
        site.start("right");
        site.await_writes(3);
    }
}

#[test]
fn a_witness_on_an_address_in_use_says_who_to_look_for() {
    let address = Addresses::find().witness(0);
    let _held = std::net::UdpSocket::bind(address).unwrap();
    let listen = address.to_string();
    let (_, stderr, status) = run_command(&["witness", "--listen", &listen, "--open"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("in use"), "{stderr}");
}

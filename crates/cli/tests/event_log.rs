//! Event logs that cannot be written: told where people look, and written again as soon as that can be.

mod support;

use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::json_lines;
use support::plan::Plan;
use support::process::{BUMPLESS, Process, said};
use support::site::Site;

fn starts(site: &Site, log: &str, stdout: Stdio) -> Process {
    let config = site.config();
    let mut command = Command::new(BUMPLESS);
    command
        .args([
            "run",
            config.to_str().unwrap(),
            "--node",
            "left",
            "--log",
            log,
        ])
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null());
    Process::spawn(command, &site.path("left.said"))
}

fn alone() -> Site {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site
}

fn weakness<'a>(status: &'a Value, words: &str) -> Option<&'a str> {
    let weaknesses = status["weaknesses"].as_array().unwrap().iter();
    weaknesses
        .filter_map(Value::as_str)
        .find(|text| text.contains(words))
}

#[test]
fn a_log_in_a_missing_folder_is_refused_with_place_cause_and_remedy() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let config = site.config();
    let log = site.path("nowhere/left.jsonl");
    let log = log.to_str().unwrap();
    let run = [
        "run",
        config.to_str().unwrap(),
        "--node",
        "left",
        "--log",
        log,
    ];
    let (_, stderr, status) = said(&run);
    assert_eq!(status, Some(1), "{stderr}");
    for words in [log, "No such file", "make its folder"] {
        assert!(stderr.contains(words), "{words} is not in {stderr}");
    }
}

#[test]
fn a_log_without_room_is_told_by_status_its_json_and_the_other_log() {
    let site = alone();
    let out = site.path("left.out");
    let _node = starts(&site, "/dev/full", File::create(&out).unwrap().into());
    let cause = "No space left on device";
    let status = site.await_status("it tells of its log", "left", |status| {
        weakness(status, "/dev/full").is_some_and(|text| text.contains(cause))
    });
    let log = &status["log"];
    assert_eq!(log[0]["to"], "/dev/full", "{log}");
    assert!(log[0]["trouble"].as_str().unwrap().contains(cause), "{log}");
    assert_eq!(
        (&log[1]["to"], &log[1]["trouble"]),
        (&"standard output".into(), &Value::Null)
    );
    let config = site.config();
    let (words, ..) = said(&["status", config.to_str().unwrap(), "--node", "left"]);
    let weak = words
        .lines()
        .find(|line| line.contains("weakness: event log: /dev/full"));
    assert!(weak.is_some(), "{words}");
    site.await_primary("left", "tank");
    let told = std::fs::read_to_string(out).unwrap();
    assert!(
        told.contains("event log: /dev/full cannot be written"),
        "{told}"
    );
}

#[test]
fn a_standard_output_without_room_is_shown_by_status() {
    let site = alone();
    let log = site.path("left.jsonl");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let _node = starts(&site, log.to_str().unwrap(), full.into());
    site.await_status("it tells of standard output", "left", |status| {
        weakness(status, "standard output cannot be written").is_some()
    });
    let epoch = site.await_primary("left", "tank");
    site.await_write_in(epoch);
}

#[test]
fn a_removed_log_is_made_anew_and_without_its_folder_reported_missing() {
    let site = alone();
    let folder = site.path("log");
    std::fs::create_dir(&folder).unwrap();
    let log = folder.join("left.jsonl");
    let node = starts(&site, log.to_str().unwrap(), Stdio::null());
    site.await_primary("left", "tank");
    std::fs::remove_dir_all(&folder).unwrap();
    site.await_status("it misses its log", "left", |status| {
        weakness(status, "No such file").is_some()
    });
    std::fs::create_dir(&folder).unwrap();
    site.await_status("its log is back", "left", |status| {
        status["log"][0]["trouble"].is_null() && weakness(status, "event log").is_none()
    });
    node.interrupt();
    let events = json_lines(&log);
    assert!(
        events.iter().any(|event| event["event"] == "stopping"),
        "{events:?}"
    );
}

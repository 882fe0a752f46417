//! The demonstration as a user runs it: its verdict, its report, and Ctrl-C in the middle.
//!
//! What is asserted of the verdict are the promises that no stall of the machine excuses; the others
//! depend on how promptly this machine runs processes, and the demonstration itself judges them.

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use bumpless_testing::page::loads;
use serde_json::Value;

const SAFETY: [&str; 4] = ["one-writer", "epochs", "no-bump", "record"];

fn demo(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command
        .args(["demo", "--json", "--report"])
        .arg(directory.join("report.html"))
        .env("TMPDIR", directory)
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// Process ids of `parent`'s children.
fn children(parent: u32) -> BTreeSet<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn runs(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.windows(8).any(|window| window == b"bumpless")
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if reached() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("not within 30 s: {what}");
}

#[test]
fn the_demonstration_keeps_and_shows_the_promises_that_nothing_excuses() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["schema"], "bumpless.demo/1", "{result}");
    let promises = result["promises"].as_array().unwrap();
    let broken: Vec<_> = promises
        .iter()
        .filter(|promise| promise["held"] != true)
        .collect();
    println!("{} promises, broken here: {broken:#?}", promises.len());
    for id in SAFETY {
        let promise = promises.iter().find(|promise| promise["id"] == id).unwrap();
        assert_eq!(promise["held"], true, "{promise}");
    }
    assert_eq!(output.status.code(), Some(i32::from(!broken.is_empty())));
    let report = fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(report.contains("<svg") && report.contains("promises"));
    assert_eq!(loads(&report), [""; 0]);
    let left: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["report.html"], "nothing else is left behind");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_starts() {
    let directory = tempfile::tempdir().unwrap();
    for place in ["missing/report.html", "."] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.args(["demo", "--report", place]);
        command.env("TMPDIR", directory.path());
        let output = command.current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for words in [place, "--report", "nothing was started"] {
            assert!(said.contains(words), "{words} is not in {said}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

fn interrupt(child: &Child) {
    assert!(signal(child.id(), libc::SIGINT));
}

/// Says whether the process is there.
fn signal(pid: u32, signal: libc::c_int) -> bool {
    let pid = i32::try_from(pid).unwrap();
    // SAFETY: kill takes two integers; the process is this test's own child or grandchild, and its parent,
    // which is not waited for yet, waits for it only at its end.
    unsafe { libc::kill(pid, signal) == 0 }
}

#[test]
fn an_order_refused_while_a_controller_stands_still_is_given_again() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .args(["demo", "--json", "--repeat", "3", "--fault", "switchover"])
        .arg("--keep")
        .arg(&kept)
        .env("TMPDIR", directory.path())
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_right = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command
            .split(|byte| *byte == 0)
            .any(|word| word == b"right")
    };
    // Each order comes a tenth of a second after its line and a redundant pair.
    for line in BufReader::new(demo.stderr.take().unwrap()).lines() {
        if !line.unwrap().contains(" of 3") {
            continue;
        }
        let right = children(demo.id()).into_iter().find(is_right).unwrap();
        assert!(signal(right, libc::SIGSTOP));
        thread::sleep(Duration::from_millis(300));
        assert!(signal(right, libc::SIGCONT));
    }
    let output = demo.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["schema"], "bumpless.demo-repeat/1", "{result}");
    let promises = result["promises"].as_array().unwrap();
    for id in SAFETY {
        let promise = promises.iter().find(|promise| promise["id"] == id).unwrap();
        assert_eq!(promise["held"], true, "{promise}");
    }
    let told = |node: &str| {
        let log = fs::read_to_string(kept.join(format!("{node}.1.jsonl"))).unwrap();
        let event = |line| serde_json::from_str::<Value>(line).unwrap()["event"].clone();
        log.lines().map(event).collect::<Vec<_>>()
    };
    let (left, right) = (told("left"), told("right"));
    let begun = |events: &[Value]| events.iter().filter(|e| *e == "hand_over_begun").count();
    // A primary that is ended begins one more.
    let taken = begun(&left) + begun(&right);
    assert!(taken >= 3, "of three orders {taken} were taken");
    // It hands over first, to a partner that stood still when the order came.
    let silent = left.iter().position(|e| e == "partner_silent").unwrap();
    let first = left.iter().position(|e| e == "hand_over_begun").unwrap();
    assert!(silent < first, "{left:?}");
}

#[test]
fn ctrl_c_ends_everything_that_the_demonstration_started() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("plant, two witnesses and two nodes run", || {
        children(demo.id()).len() == 5
    });
    let started = children(demo.id());
    interrupt(&demo);
    let mut status = None;
    wait_until("the demonstration has ended", || {
        status = demo.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(1));
    assert!(started.iter().all(|&pid| !runs(pid)), "{started:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

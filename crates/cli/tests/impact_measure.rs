//! `bumpless impact measure` and `raise`: a real task and a flow that matters under a flood, in namespaces of their own.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use bumpless_testing::{need_namespaces, skip};
use serde_json::Value;
use support::process::BUMPLESS;
use support::wait_until;

bumpless_testing::tests![
    what_a_guard_drops_neither_fills_the_tasks_socket_nor_is_let_in,
    a_flow_keeps_every_packet_behind_the_guard_at_several_times_the_flood_that_ends_it_without,
    ctrl_c_ends_it_and_what_was_measured_is_told,
    what_cannot_be_measured_is_told_before_anything_is_made,
];

/// Packets of the flood a second: in a period more come than the task's socket holds.
const FLOOD: u64 = 80_000;
const JOBS: u64 = 100;
const MS: u64 = 1_000_000;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(BUMPLESS);
    command.args(["impact", "measure"]).args(arguments);
    command.stdin(Stdio::null());
    command
}

/// Skips the test where this computer cannot measure.
fn skip_if_it_cannot(said: &str) {
    if said.contains("CAP_BPF") || said.contains("one processor") {
        skip(said.trim());
    }
}

fn number(step: &Value, name: &str) -> u64 {
    step[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {step}"))
}

/// Runs it, where this computer can.
fn measured(page: &Path) -> Value {
    need_namespaces();
    let flood = format!("0,{FLOOD}");
    // A task with little to do, so that even one that shares its processor ends its jobs in a minute.
    let arguments = [
        "--rates",
        &flood,
        "--seconds",
        "1",
        "--work",
        "20",
        "--json",
    ];
    let mut command = command(&arguments);
    let output = command.arg("--report").arg(page).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    skip_if_it_cannot(&said);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Packets that came as far as the task's socket.
fn reached(step: &Value) -> u64 {
    ["had", "let_in", "overflowed"]
        .map(|it| number(step, it))
        .iter()
        .sum()
}

/// What a guard lets in of strangers: ten in 100 ms, and ten at the beginning.
fn let_in_most(step: &Value) -> u64 {
    10 * (number(step, "lasted_ns") / (100 * MS) + 2)
}

fn what_a_guard_drops_neither_fills_the_tasks_socket_nor_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let told = measured(&page);
    assert_eq!(told["schema"], "bumpless.impact-measured/1");
    assert_eq!(told["interrupted"], false);
    let steps = told["steps"].as_array().unwrap();
    let guarded: Vec<_> = steps.iter().map(|step| step["guarded"] == true).collect();
    assert_eq!(guarded, [false, true, false, true]);
    for step in steps {
        assert_eq!(number(step, "jobs"), JOBS, "{step}");
        assert!(number(step, "had") <= number(step, "wanted"), "{step}");
        assert!(number(step, "late") <= JOBS, "{step}");
    }
    let [_, _, without, with] = &steps[..] else {
        panic!("{told}")
    };
    for step in [without, with] {
        let came = number(step, "sent") + number(step, "wanted");
        // Neighbour discovery besides.
        assert!(number(step, "worked_off") <= came + 100, "{step}");
        assert!(number(step, "worked_ns") > 0, "{step}");
        assert!(reached(step) <= came, "{step}");
    }
    // Whatever this computer did meanwhile: by counts alone.
    assert!(
        number(without, "worked_off") <= reached(without) + 100,
        "the task had it, or its socket was full: {without}"
    );
    assert!(number(without, "let_in") > 0, "{without}");
    assert!(
        number(with, "let_in") <= let_in_most(with),
        "{} at most: {with}",
        let_in_most(with)
    );
    // All that may be let in until the task reads again is less than its socket holds.
    if number(with, "worst_ns") < 100 * MS {
        assert_eq!(number(with, "overflowed"), 0, "{with}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["without, measured", "with a guard, model", "80000"] {
        assert!(page.contains(part), "{part}");
    }
}

/// V-107 by counts alone: what was lost behind the interface's ring, whatever this computer did meanwhile.
fn a_flow_keeps_every_packet_behind_the_guard_at_several_times_the_flood_that_ends_it_without() {
    need_namespaces();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = Command::new(BUMPLESS);
    command.args([
        "impact",
        "raise",
        "--seconds",
        "1",
        "--work",
        "20",
        "--json",
    ]);
    command.arg("--report").arg(&page).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    skip_if_it_cannot(&said);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(told["schema"], "bumpless.impact-raised/1");
    let steps = told["steps"].as_array().unwrap();
    let (with, without): (Vec<_>, Vec<_>) = steps.iter().partition(|it| it["guarded"] == true);
    let had = |step: &Value| step["had_percent"].as_f64().unwrap();
    assert!(
        without.iter().any(|it| had(it) < 99.0),
        "nothing ends the flow: {told}"
    );
    assert!(told["ended_at_per_s"].as_f64() > Some(0.0), "{told}");
    assert!(told["times_reached"].as_f64() > Some(1.0), "{told}");
    for step in with {
        let count = |flow: &str, name: &str| step[flow][name].as_u64().unwrap();
        let lost = |flow| count(flow, "sent") - count(flow, "had");
        // A task that was kept from reading for as long as its socket holds packets is not the guard's loss.
        if number(step, "longest_stall_ns") < 100 * MS {
            let sent = count("cyclic", "sent") + count("prompt", "sent");
            let before = sent.checked_sub(number(step, "decided"));
            let before = before.unwrap_or_else(|| panic!("{step}"));
            assert!(before <= number(step, "ring_full"), "{step}");
            assert_eq!(lost("cyclic") + lost("prompt"), before, "{step}");
        }
        assert!(count("prompt", "sent") > 500, "{step}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("5.18 in the model"));
}

/// Whether a process handles SIGINT.
fn is_handled(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 2 != 0)
}

fn ctrl_c_ends_it_and_what_was_measured_is_told() {
    need_namespaces();
    let arguments = [
        "--rates",
        "100,100,100",
        "--seconds",
        "10",
        "--work",
        "1",
        "--json",
    ];
    let mut command = command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("it handles signals", || is_handled(child.id()));
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: it takes two integers, and the process is this test's own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    skip_if_it_cannot(&said);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["interrupted"], true, "{told}");
    assert!(told["steps"].as_array().unwrap().len() < 6, "{told}");
}

fn what_cannot_be_measured_is_told_before_anything_is_made() {
    let many = ["1"; 21].join(",");
    for (arguments, status, words) in [
        (&["--rates", "500001"][..], 2, "500000"),
        (&["--rates", &many], 2, "20 at most"),
        (&["--work", "95"], 2, "1..=90"),
        (&["--seconds", "0"], 2, "1..=10"),
        (&["--report", "/nowhere/page.html"], 1, "may be written to"),
        (&["--report", "/"], 1, "it is a directory"),
    ] {
        let output = command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(words), "{words}: {said}");
    }
}

//! A slice of the real programs across the wide-area network: a loop and the primary centre die, and nothing is left behind.
//!
//! `BUMPLESS_PROGRAMS_PYTHON` names an interpreter that has c104 and pymodbus; without it their rows are said as not run.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use bumpless_testing::need_namespaces;
use serde_json::Value;
use support::process::BUMPLESS;
use support::wan::{
    Gone, is_gone, no_file_is_left, running, said, send, signal, sockets, until, wan,
};

/// The port of phasors at each centre.
const PHASORS: u16 = 4713;

/// An interpreter that there is not: streams of phasors are spoken alone.
const NONE: &str = "/no/such/python";

/// The interpreter, if one was named.
fn python() -> Option<String> {
    std::env::var("BUMPLESS_PROGRAMS_PYTHON").ok()
}

/// The command of a test alone, over a small network.
fn programs(test: &str, more: &[&str]) -> Command {
    with(test, &python().unwrap_or_else(|| NONE.to_owned()), more)
}

/// The same with this interpreter.
fn with(test: &str, python: &str, more: &[&str]) -> Command {
    let mut command = wan("programs", test);
    command
        .args(["--json", "--backbone-pairs", "3", "--substations", "6"])
        .args(["--every-ms", "200", "--seed", "5", "--python", python])
        .args(more);
    command
}

/// The row of a pass, an outage and a protocol: what the centre saw of the substations that the outage reached, or of others.
fn row<'a>(told: &'a Value, wanted: [&str; 4], reached: bool) -> &'a Value {
    let mut rows = told["rows"].as_array().unwrap().iter();
    let is_it = |row: &&Value| {
        let keys = ["pass", "outage", "protocol", "centre"].iter();
        keys.zip(wanted).all(|(key, value)| row[key] == value) && row["reached"] == reached
    };
    rows.find(is_it)
        .unwrap_or_else(|| panic!("no row {wanted:?}: {told}"))
}

fn what_dies_is_felt_without_iprp_and_not_with_it() {
    need_namespaces();
    let _gone = Gone("whole");
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("kept");
    let arguments = ["--seconds", "1", "--backup", "ethernet", "--output"];
    let output = output.to_str().unwrap();
    let done = programs("whole", &arguments).arg(output).output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&done)));
    assert_eq!(told["schema"], "bumpless.wan-programs/1");
    assert_eq!(told["complete"], true);
    assert_eq!(told["centres"], serde_json::json!(["centre-1", "centre-2"]));
    for protocol in told["software"].as_array().unwrap() {
        let is_ours = protocol["protocol"] == "phasors";
        let ran = is_ours || python().is_some();
        assert_eq!(protocol["program"].is_string(), ran, "{protocol}");
        let why = protocol["not_run"].as_str().unwrap_or_default();
        assert_eq!(why.contains("pip install"), !ran, "{protocol}");
    }
    let lost = |pass, outage, centre, reached| {
        let row = row(&told, [pass, outage, "phasors", centre], reached);
        (row["lost"].as_u64().unwrap(), row["sent"].as_u64().unwrap())
    };
    for centre in ["centre-1", "centre-2"] {
        let (felt, sent) = lost("plain", "loop", centre, true);
        assert!(sent > 0 && felt == sent, "{felt} of {sent}: {told}");
        for reached in [true, false] {
            let (felt, sent) = lost("protected", "loop", centre, reached);
            assert!(sent > 0 && felt == 0, "{felt} of {sent}: {told}");
            let wanted = ["protected", "loop", "phasors", centre];
            assert_eq!(row(&told, wanted, reached)["lost_after"], 0, "{told}");
        }
    }
    for pass in ["plain", "protected"] {
        let (felt, sent) = lost(pass, "centre", "centre-1", true);
        assert!(
            sent > 0 && felt == sent,
            "a centre that is dead hears nobody, {pass}: {felt} of {sent}"
        );
        let (felt, sent) = lost(pass, "centre", "centre-2", false);
        assert!(sent > 0 && felt == 0, "{felt} of {sent}: {told}");
    }
    if python().is_some() {
        for protocol in ["iec104", "modbus"] {
            // What is sent over a dead way is answered when that has healed, a second later; over the second way it is at once.
            let median = |pass| {
                let row = row(&told, [pass, "loop", protocol, "centre-1"], true);
                row["p50_us"].as_u64().unwrap_or(u64::MAX)
            };
            let medians = ["plain", "protected"].map(median);
            assert!(medians[0] > 400_000, "{protocol}: {medians:?} us");
            assert!(medians[1] < 400_000, "{protocol}: {medians:?} us");
        }
    }
    let promises = told["promises"].as_array().unwrap();
    assert!(promises.len() >= 4, "{told}");
    let held = promises.iter().all(|it| it["held"] == true);
    assert_eq!(
        done.status.code(),
        Some(i32::from(!held)),
        "{}",
        said(&done)
    );
    let shown = Command::new(BUMPLESS)
        .args(["wan", "programs", "--show"])
        .arg(Path::new(output).join("programs.json"))
        .output()
        .unwrap();
    assert!(
        said(&shown).contains("a whole loop dies"),
        "{}",
        said(&shown)
    );
    assert_eq!(shown.status.code(), done.status.code());
    assert!(Path::new(output).join("report.html").exists());
    no_file_is_left("whole");
    assert_eq!(running("whole"), None, "the network is gone");
}

/// Starts it, and waits until the daemons of iPRP are there, one at each of eight hosts, and with them everything else.
fn started(test: &str) -> (Child, Vec<u64>) {
    let mut command = programs(test, &["--seconds", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = child.spawn().unwrap();
    let pids = || -> Vec<u64> {
        let all = running(test).unwrap_or_default();
        let own = u64::from(child.id());
        all.into_iter().filter(|pid| *pid != own).collect()
    };
    // Of two protocols a server at each of six substations and what started them, and a caller at each of two centres with what
    // supervises it.
    let all = if python().is_some() {
        8 + 2 * (6 + 1 + 2 * 2)
    } else {
        8
    };
    until("daemons and programs", || pids().len() == all);
    let pids = pids();
    (child, pids)
}

fn what_is_stopped_or_killed_leaves_nothing() {
    need_namespaces();
    let _gone = [Gone("killed"), Gone("stopped")];
    let (killed, pids) = started("killed");
    signal(&killed, "-KILL");
    assert!(!killed.wait_with_output().unwrap().status.success());
    until("processes are gone", || {
        pids.iter().all(|&pid| is_gone(pid))
    });
    until("the network is gone", || running("killed").is_none());
    no_file_is_left("killed");

    let (stopped, pids) = started("stopped");
    signal(&stopped, "-INT");
    let output = stopped.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert_eq!(told["complete"], false);
    let held = told["promises"].as_array().unwrap();
    let held = held.iter().all(|it| it["held"] == true);
    let status = if held { 130 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{}", said(&output));
    until("processes are gone", || {
        pids.iter().all(|&pid| is_gone(pid))
    });
    no_file_is_left("stopped");
    assert_eq!(running("stopped"), None);
}

fn a_daemon_that_ends_ends_the_run_with_the_reason() {
    need_namespaces();
    let _gone = Gone("fallen");
    let mut command = with("fallen", NONE, &["--seconds", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    until("daemons listen", || sockets("fallen") == 8);
    let is_daemon = |pid: &u64| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.windows(9).any(|it| it == b"iprp\0run\0")
    };
    let daemons = running("fallen").unwrap().into_iter().filter(is_daemon);
    let daemons: Vec<u64> = daemons.collect();
    // Streams of phasors begin last: everything that can keep the network from going is there.
    let hears_phasors = |pid: &u64| {
        let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap_or_default();
        sockets.contains(&format!(":{PHASORS:04X} "))
    };
    until("phasors", || daemons.iter().any(hears_phasors));
    send(daemons[0], "-KILL");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let words = said(&output);
    assert!(words.contains("the daemon of iPRP at"), "{words}");
    assert!(words.contains("has ended (signal 9)"), "{words}");
    no_file_is_left("fallen");
}

fn what_cannot_be_is_refused_before_anything_is_made() {
    for (wrong, words) in [
        (["--pool", "10.0.0.0/16"], "--pool"),
        (["--frames", "7"], "25"),
        (["--backup", "5g"], "ethernet or lte"),
        (["--substations", "400"], "--substations 180"),
        (["--backbone-pairs", "1"], "--backbone-pairs"),
        (["--centres", "1"], "--centres 2"),
        (["--show", "/no/such"], "cannot read /no/such"),
    ] {
        let output = wan("programs", "refused").args(wrong).output().unwrap();
        assert!(!output.status.success(), "{wrong:?}");
        let said = said(&output);
        assert!(said.contains(words), "{wrong:?}: {said}");
    }
    no_file_is_left("refused");
}

bumpless_testing::tests!(
    what_dies_is_felt_without_iprp_and_not_with_it,
    what_is_stopped_or_killed_leaves_nothing,
    a_daemon_that_ends_ends_the_run_with_the_reason,
    what_cannot_be_is_refused_before_anything_is_made,
);

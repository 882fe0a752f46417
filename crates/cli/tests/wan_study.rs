//! A slice of the study of failovers: an outage of TCP, of TCP under iPRP in both modes and of a transfer of states, and nothing is
//! left behind.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bumpless_testing::need_namespaces;
use serde_json::Value;
use support::process::BUMPLESS;
use support::wan::{
    Gone, is_gone, no_file_is_left, running, said, send, signal, sockets, status, until, wan,
};

/// Arguments of a study of this test alone, over a small network.
fn study(test: &str, more: &[&str]) -> Command {
    let mut command = wan("study", test);
    command
        .args(["--backbone-pairs", "3"])
        .args([
            "--backups",
            "ethernet",
            "--transports",
            "tcp,redundant-tcp,standby-tcp,state",
        ])
        .args(["--side-by-side", "4", "--runs", "1", "--seed", "5"])
        .args(["--background", "500"])
        .args(more);
    command
}

/// The run of a transport with an outage, beside so many messages of others.
fn run<'a>(study: &'a Value, transport: &str, background: u64) -> &'a Value {
    let mut runs = study["runs"].as_array().unwrap().iter();
    let is_it = |run: &&Value| {
        run["transport"] == transport && !run["cut_ns"].is_null() && run["background"] == background
    };
    let found = runs.find(is_it);
    found.unwrap_or_else(|| panic!("no outage of {transport}: {study}"))
}

/// Round trips of the messages that left while the way was dead, in order of their length; none is missing.
fn through(run: &Value) -> Vec<u64> {
    let us = |key: &str| run[key].as_u64().unwrap() / 1000;
    let trips = run["rtt_us"].as_array().unwrap().iter().enumerate();
    let dead = us("cut_ns")..us("healed_ns");
    let mut through: Vec<u64> = trips
        .filter(|(number, _)| dead.contains(&(*number as u64 * 50_000)))
        .map(|(number, trip)| {
            let answered = trip.as_u64();
            answered.unwrap_or_else(|| panic!("message {number} has no answer: {run}"))
        })
        .collect();
    // Forty, if the kernel cuts at once; it has other networks to take apart meanwhile.
    assert!(through.len() >= 5, "{} messages: {run}", through.len());
    through.sort_unstable();
    through
}

/// Background traffic went from all substations, came, and took what its ways take.
fn carried(told: &Value) {
    let [traffic] = &told["background"].as_array().unwrap()[..] else {
        panic!("{told}");
    };
    assert_eq!(traffic["each_second"], 500);
    assert_eq!(traffic["substations"], 39);
    let number = |of: &str, key: &str| traffic[of][key].as_u64().unwrap();
    let (sent, came) = (number("clear", "sent"), number("clear", "received"));
    // How many a busy machine sends is not the test's business.
    let asked = 500.0 * traffic["seconds"].as_f64().unwrap();
    let all = sent + number("behind", "sent");
    assert!(sent > 100 && all as f64 <= asked + 1.0, "{traffic}");
    assert!(came <= sent && came * 10 >= sent * 9, "{traffic}");
    // An outage loses what is sent behind it, and nothing else does as much.
    assert!(
        number("behind", "received") < number("behind", "sent"),
        "{traffic}"
    );
    let course = traffic["course"].as_array().unwrap();
    let of = |place: usize| {
        course
            .iter()
            .map(|it| it[place].as_u64().unwrap())
            .sum::<u64>()
    };
    // Each second has what was sent over whichever ways.
    let all_came = came + number("behind", "received");
    assert_eq!((of(0), of(1)), (all, all_came), "{traffic}");
    assert_eq!(traffic["reckoned"], false, "{traffic}");
    if told["network"]["delays"] != "lacking" {
        assert!(traffic["p50_us"].as_u64().unwrap() > 300, "{traffic}");
    }
}

/// Who makes networks makes them alone: one that the kernel takes apart holds up what is asked of another one for a second.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tcp_fails_over_by_its_timeout_and_ours_feel_nothing() {
    need_namespaces();
    let _alone = alone();
    let _gone = Gone("whole");
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("kept");
    let arguments = ["--seconds", "4", "--json", "--output"];
    let output = output.to_str().unwrap();
    let done = study("whole", &arguments).arg(output).output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", said(&done));
    });
    assert_eq!(told["schema"], "bumpless.wan-study/1");
    assert_eq!(told["complete"], true);
    let runs = told["runs"].as_array().unwrap();
    assert_eq!(
        runs.len(),
        12,
        "both ways alone and four outages, without and with background traffic"
    );
    assert!(runs.iter().all(|run| run["error"].is_null()), "{told}");
    // The network's way and the backup are as they should be, at least.
    for run in runs.iter().filter(|run| run["cut_ns"].is_null()) {
        let least = run["rtt_us"].as_array().unwrap().iter();
        let least = least.filter_map(Value::as_u64).min().unwrap();
        let way = match run["over"].as_str() {
            Some("backup") => 3_600,
            _ => run["path_us"].as_u64().unwrap(),
        };
        // A quicker machine than those that were measured may be a little below.
        assert!(
            (way * 9 / 10..way + 3_000).contains(&least),
            "{least}: {run}"
        );
    }
    for background in [0, 500] {
        let tcp = run(&told, "tcp", background);
        let slowest = *through(tcp).last().unwrap();
        assert!(slowest >= 45_000, "no outage was felt: {tcp}");
        assert!(tcp["switched_ns"].is_u64(), "{tcp}");
        for transport in ["redundant-tcp", "standby-tcp", "state"] {
            let ours = run(&told, transport, background);
            let all = ours["rtt_us"].as_array().unwrap();
            assert!(!all.iter().any(Value::is_null), "it lost some: {ours}");
            let trips = through(ours);
            assert!(trips[trips.len() / 2] < 10_000, "{transport}: {trips:?}");
            assert!(ours["switched_ns"].is_null(), "{ours}");
        }
    }
    carried(&told);
    let promises = told["promises"].as_array().unwrap();
    let count = |it: &Value| it["count"].as_u64().unwrap();
    assert!(
        promises.len() == 6 && promises.iter().all(|it| count(it) >= 1),
        "{told}"
    );
    // Whether this machine was quick enough is not the test's business; that it is told is.
    let broken = promises.iter().any(|it| it["held"] == false);
    assert_eq!(done.status.code(), Some(i32::from(broken)));
    let shown = Command::new(BUMPLESS)
        .args(["wan", "study", "--show"])
        .arg(Path::new(output).join("study.json"))
        .output()
        .unwrap();
    assert!(said(&shown).contains("RQ3"), "{}", said(&shown));
    assert_eq!(shown.status.code(), done.status.code());
    assert!(Path::new(output).join("report.html").exists());
    no_file_is_left("whole");
    assert_eq!(status("whole"), None, "the network is gone");
}

/// Starts a study, and waits until its network is up and both ends of it have daemons.
fn started(test: &str) -> (Child, Vec<u64>) {
    let mut study = study(test, &["--seconds", "60", "--json"]);
    let study = study.stdout(Stdio::piped()).stderr(Stdio::null());
    let study = study.spawn().unwrap();
    let own = u64::from(study.id());
    let pids = || -> Vec<u64> {
        let all = running(test).unwrap_or_default();
        all.into_iter().filter(|pid| *pid != own).collect()
    };
    until("five daemons", || pids().len() == 5);
    let pids = pids();
    (study, pids)
}

fn a_study_that_is_stopped_or_killed_leaves_nothing() {
    need_namespaces();
    let _alone = alone();
    let _gone = [Gone("killed"), Gone("stopped")];
    let (killed, daemons) = started("killed");
    signal(&killed, "-KILL");
    assert!(!killed.wait_with_output().unwrap().status.success());
    until("daemons are gone", || {
        daemons.iter().all(|&pid| is_gone(pid))
    });
    until("the network is gone", || status("killed").is_none());
    no_file_is_left("killed");

    let (stopped, daemons) = started("stopped");
    signal(&stopped, "-INT");
    let output = stopped.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["complete"], false);
    assert!(daemons.iter().all(|&pid| is_gone(pid)));
    no_file_is_left("stopped");
    assert_eq!(status("stopped"), None);
}

fn a_daemon_that_ends_ends_the_study_with_what_was_measured_until_then() {
    need_namespaces();
    let _alone = alone();
    let _gone = Gone("fallen");
    let mut study = study("fallen", &["--seconds", "4", "--json"]);
    let study = study.stdout(Stdio::piped()).stderr(Stdio::null());
    let study = study.spawn().unwrap();
    until("daemons listen", || sockets("fallen") == 5);
    let daemon = running("fallen").unwrap();
    let daemon = daemon.into_iter().find(|pid| *pid != u64::from(study.id()));
    send(daemon.unwrap(), "-KILL");
    let output = study.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["complete"], false);
    let why = told["broke_off"].as_str().unwrap_or_default();
    assert!(why.contains("the daemon of iPRP at"), "{why}");
    assert!(why.contains("has ended (signal 9)"), "{why}");
    // Of the twelve that there would be, at most as many as go on side by side.
    assert!(told["runs"].as_array().unwrap().len() <= 4, "{told}");
    no_file_is_left("fallen");
}

fn what_cannot_be_is_refused_before_anything_is_made() {
    for (wrong, words) in [
        (["--transports", "dccp"], "redundant-tcp"),
        (["--backups", "5g"], "ethernet or lte"),
        (["--pool", "10.0.0.0/16"], "--pool"),
        (["--chain-routers", "0"], "--chain-routers"),
        (["--show", "/no/such"], "cannot read /no/such"),
    ] {
        let mut command = Command::new(BUMPLESS);
        let output = command.args(["wan", "study"]).args(wrong).output().unwrap();
        assert!(!output.status.success(), "{wrong:?}");
        assert!(
            said(&output).contains(words),
            "{wrong:?}: {}",
            said(&output)
        );
    }
}

bumpless_testing::tests!(
    tcp_fails_over_by_its_timeout_and_ours_feel_nothing,
    a_study_that_is_stopped_or_killed_leaves_nothing,
    a_daemon_that_ends_ends_the_study_with_what_was_measured_until_then,
    what_cannot_be_is_refused_before_anything_is_made,
);

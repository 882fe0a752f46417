//! `bumpless torture` from outside: what it says without rights, a short run that sees what it should, and
//! nothing left of runs that are stopped or killed.

mod support;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use bumpless_testing::{need_namespaces, skip};
use serde_json::Value;
use support::process::BUMPLESS;
use support::wait_until;

fn torture(arguments: &[&str]) -> Command {
    let mut command = Command::new(BUMPLESS);
    command.arg("torture").args(arguments);
    command
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// Skips the test unless a run can take place here.
fn need_hosts() {
    need_namespaces();
    if !Path::new("/dev/net/tun").exists() {
        skip("needs /dev/net/tun");
    }
}

/// A run that ends its children with it, even if this test is killed.
fn start(arguments: &[&str]) -> Child {
    let mut command = torture(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command.spawn().unwrap()
}

/// Processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn runs(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // One that nobody has waited for has ended all the same.
    state
        .rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

fn directory_of(pid: u32) -> PathBuf {
    std::env::temp_dir().join(format!("bumpless-torture-{pid}"))
}

/// Starts a run and waits until plant, witnesses and nodes are there.
fn start_whole() -> (Child, Vec<u32>) {
    let run = start(&["--cases", "quiet", "--repetitions", "100"]);
    let mut processes = Vec::new();
    wait_until("two nodes, two witnesses and a plant", || {
        processes = children(run.id());
        processes.len() == 5
    });
    assert!(directory_of(run.id()).exists());
    (run, processes)
}

fn without_root_it_says_what_it_needs_and_ends_as_wrong_usage() {
    let mut command = torture(&["--cases", "quiet", "--json"]);
    // SAFETY: geteuid() has no arguments and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        // An unprivileged user of no importance.
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    let Ok(output) = command.output() else {
        skip("another user may not run the program where it lies");
    };
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["schema"], "bumpless.error/1");
    let error = error["error"].as_str().unwrap();
    assert!(
        error.contains("needs root") && error.contains("sudo"),
        "{error}"
    );
}

fn a_case_that_does_not_exist_is_named_with_those_that_do() {
    let output = torture(&["--cases", "outtage"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("'outtage'") && said(&output).contains("outage-8.5ms"));
}

fn a_short_run_judges_by_the_plant_keeps_its_result_and_shows_it_again() {
    need_hosts();
    let place = tempfile::tempdir().unwrap();
    let keep = place.path().join("run");
    let arguments = [
        "--cases",
        "quiet,switchover",
        "--repetitions",
        "2",
        "--seed",
        "7",
        "--json",
    ];
    let mut command = torture(&arguments);
    let output = command.arg("--keep").arg(&keep).output().unwrap();
    // Whether limits of time are kept is the machine's affair; what is judged is the product's.
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        said(&output)
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&result["schema"], &result["seed"]),
        (&"bumpless.torture/1".into(), &7.into())
    );
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for trial in cases
        .iter()
        .flat_map(|case| case["trials"].as_array().unwrap())
    {
        assert!(trial["writes"]["accepted"].as_u64() > Some(20), "{trial}");
        for id in ["no-reset", "one-writer"] {
            let mut wants = trial["wants"].as_array().unwrap().iter();
            let want = wants.find(|want| want["id"] == id).unwrap();
            assert_eq!(want["outcome"], "held", "{trial}");
        }
        assert!(!trial["said"].as_array().unwrap().is_empty(), "{trial}");
    }
    let switched = cases[1]["trials"].as_array().unwrap().iter();
    assert!(
        switched.clone().all(|trial| trial["takeovers"] == 1),
        "{cases:?}"
    );

    for file in [
        "result.json",
        "table.txt",
        "report.html",
        "logs/quiet/plant.1.jsonl",
    ] {
        assert!(keep.join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let kept = keep.join("result.json");
    let again = torture(&["--show", kept.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(again.status.code(), output.status.code());
    let table = std::fs::read_to_string(keep.join("table.txt")).unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout).trim(), table.trim());
}

fn nothing_is_left_of_a_run_that_is_interrupted() {
    need_hosts();
    let (mut run, processes) = start_whole();
    // SAFETY: kill() takes integers; the child has not been waited for.
    unsafe { libc::kill(run.id() as libc::pid_t, libc::SIGINT) };
    run.wait().unwrap();
    assert!(processes.iter().all(|&pid| !runs(pid)));
    assert!(!directory_of(run.id()).exists());
}

fn a_killed_run_leaves_no_process_and_the_next_removes_its_directory_only() {
    need_hosts();
    let (mut neighbour, _) = start_whole();
    let (mut run, processes) = start_whole();
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the processes end", || {
        processes.iter().all(|&pid| !runs(pid))
    });
    assert!(directory_of(run.id()).exists(), "nobody could remove it");
    let (mut next, _) = start_whole();
    assert!(!directory_of(run.id()).exists());
    assert!(directory_of(neighbour.id()).exists() && runs(neighbour.id()));
    for run in [&mut neighbour, &mut next] {
        // SAFETY: kill() takes integers; the child has not been waited for.
        unsafe { libc::kill(run.id() as libc::pid_t, libc::SIGINT) };
        run.wait().unwrap();
        assert!(!directory_of(run.id()).exists());
    }
}

bumpless_testing::tests![
    without_root_it_says_what_it_needs_and_ends_as_wrong_usage,
    a_case_that_does_not_exist_is_named_with_those_that_do,
    a_short_run_judges_by_the_plant_keeps_its_result_and_shows_it_again,
    nothing_is_left_of_a_run_that_is_interrupted,
    a_killed_run_leaves_no_process_and_the_next_removes_its_directory_only,
];

//! `bumpless bench` from outside: a small answer over loopback, losses in its own networks, and nothing
//! left when it is stopped.

mod support;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use bumpless_testing::need_namespaces;
use serde_json::Value;
use support::wait_until;

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.arg("bench").args(arguments);
    command
}

/// The result of a run that must come to its end.
fn result(arguments: &[&str]) -> Value {
    let output = bench(arguments).arg("--json").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{said}");
    serde_json::from_str(&text).unwrap()
}

fn cells(run: &Value) -> &Vec<Value> {
    run["transfers"].as_array().unwrap()
}

/// Every field that spec/bench.md promises for a cell is there, and its figures come from transfers that were made.
fn check_cell(cell: &Value) {
    for field in [
        "peer",
        "connection",
        "network",
        "size",
        "loss",
        "packets",
        "to_drop",
        "dropped",
        "begun",
        "failed",
        "error",
        "all",
        "undisturbed",
        "jitter",
        "cpu_ns",
        "peak_bytes",
        "samples_ns",
        "disturbed",
    ] {
        assert!(cell.get(field).is_some(), "{field} in {cell}");
    }
    for field in ["count", "min", "avg", "p50", "p99", "max"] {
        assert!(cell["all"][field].is_u64(), "{field} in {cell}");
    }
    assert!(cell["jitter"]["stalls"].is_array(), "{cell}");
    let samples = samples(cell);
    let ended = cell["begun"].as_u64().unwrap() - cell["failed"].as_u64().unwrap();
    assert_eq!(samples.len() as u64, ended, "{cell}");
    // No state and its answer pass between two processes within a microsecond.
    assert!(samples.iter().all(|&ns| ns > 1_000), "{cell}");
    for (field, of) in [("min", samples.iter().min()), ("max", samples.iter().max())] {
        assert_eq!(cell["all"][field].as_u64().as_ref(), of, "{cell}");
    }
    let memory = cell["peak_bytes"].as_array().unwrap();
    assert!(
        memory.iter().all(|bytes| bytes.as_u64() > Some(0)),
        "{cell}"
    );
}

fn samples(cell: &Value) -> Vec<u64> {
    let samples = cell["samples_ns"].as_array().unwrap();
    samples.iter().map(|ns| ns.as_u64().unwrap()).collect()
}

fn a_quick_run_measures_ours_and_the_kernel_s_over_loopback() {
    let run = result(&["--quick", "--sizes", "128,10KB", "--iterations", "3"]);
    assert_eq!(
        (&run["schema"], &run["complete"]),
        (&"bumpless.bench/1".into(), &true.into())
    );
    for field in [
        "began_unix_s",
        "took_s",
        "command",
        "version",
        "commit",
        "host",
        "place",
        "applications",
        "cuts",
        "costs",
    ] {
        assert!(run.get(field).is_some(), "{field}");
    }
    for peer in ["transfer", "tcp", "tcp-tuned"] {
        let of_peer: Vec<_> = cells(&run)
            .iter()
            .filter(|cell| cell["peer"] == peer)
            .collect();
        let sizes: Vec<_> = of_peer.iter().map(|cell| &cell["size"]).collect();
        assert_eq!(sizes, [128, 10 << 10], "{peer}: {run}");
        for cell in of_peer {
            check_cell(cell);
            // Those that a stall touched are made up for, by as many again.
            let begun = cell["begun"].as_u64().unwrap();
            let disturbed = cell["disturbed"].as_array().unwrap().len() as u64;
            assert!(begun == 3 + disturbed || begun == 6, "{cell}");
            assert_eq!(cell["failed"], 0, "{cell}");
        }
    }
    let transferring: u64 = cells(&run).iter().flat_map(samples).sum();
    let took_s = run["took_s"].as_f64().unwrap();
    assert!(transferring as f64 / 1e9 < took_s, "{run}");
    // A kernel without multipath TCP says so; none is left out silently.
    let names: Vec<_> = run["peers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|peer| &peer["name"])
        .collect();
    assert_eq!(names, ["transfer", "tcp", "tcp-tuned", "mptcp"]);
}

fn a_peer_that_cannot_run_is_told_and_the_others_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("broken");
    std::fs::write(&program, "#!/bin/sh\necho no library >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let directory = directory.path().to_str().unwrap();
    let run = result(&[
        "--quick",
        "--peers-dir",
        directory,
        "--peers",
        "broken,tcp",
        "--sizes",
        "128",
        "--iterations",
        "2",
    ]);
    let broken = run["peers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|peer| peer["name"] == "broken")
        .unwrap();
    assert!(
        broken["error"].as_str().unwrap().contains("no library"),
        "{broken}"
    );
    assert_eq!(cells(&run).len(), 1);
    let unknown = bench(&["--quick", "--peers", "nobody"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}

fn losses_are_made_as_told_and_ours_survives_them() {
    need_namespaces();
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("run");
    let run = result(&[
        "--cases",
        "transfers",
        "--peers",
        "transfer,tcp",
        "--sizes",
        "10KB",
        "--losses",
        "none,first,middle-1,random-1-percent",
        "--iterations",
        "3",
        "--output",
        kept.to_str().unwrap(),
    ]);
    // Ours once for each loss; TCP with one connection and with many.
    assert_eq!(cells(&run).len(), 12);
    let mut fewest = u64::MAX;
    for cell in cells(&run) {
        check_cell(cell);
        assert_eq!(cell["failed"], 0, "{cell}");
        assert_eq!(cell["to_drop"], cell["dropped"], "{cell}");
        let lossless = cell["loss"] == "none";
        let by_chance = cell["loss"] == "random-1-percent";
        assert!(by_chance || (cell["dropped"] == 0) == lossless, "{cell}");
        // 10,240 bytes in packets of an Ethernet, and what a machine that stands still makes a peer repeat;
        // without loss they may travel in one piece.
        let packets = cell["packets"].as_u64().unwrap();
        assert!(lossless || (8..12).contains(&packets), "{cell}");
        fewest = fewest.min(if lossless { u64::MAX } else { packets });
    }
    assert_eq!(fewest, 8, "{run}");
    for file in ["run.json", "tables.txt", "report.html", "1gbit-none.svg"] {
        assert!(kept.join(file).exists(), "{file}");
    }
    let shown = bench(&["--show", kept.join("run.json").to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && text.contains("10 KB"), "{text}");
}

/// Processes whose parent is `parent`, and what they were started as.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status
            .lines()
            .any(|line| line == format!("PPid:\t{parent}"))
    })
    .collect()
}

fn runs(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// A run that ends with its test, however that ends.
struct LongRun(Option<Child>);

impl LongRun {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for LongRun {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a long run and waits until it measures.
fn long_run(arguments: &[&str]) -> (LongRun, Vec<u32>) {
    let mut command = bench(arguments);
    command.args(["--iterations", "100000", "--json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let id = child.id();
    let run = LongRun(Some(child));
    let mut peers = Vec::new();
    wait_until("two processes measure", || {
        peers = children(id);
        peers.len() == 2
    });
    (run, peers)
}

fn signal(run: &mut LongRun, signal: i32) {
    // SAFETY: kill() takes integers only; the process is our child and has not been waited for.
    assert_eq!(unsafe { libc::kill(run.child().id() as i32, signal) }, 0);
}

fn an_interrupted_run_gives_what_it_has_and_leaves_nothing() {
    let (mut run, _) = long_run(&[
        "--quick",
        "--peers",
        "transfer,tcp",
        "--sizes",
        "128",
        "--limit",
        "3",
    ]);
    let is_tcp = |id: &u32| {
        let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        command.split(|&byte| byte == 0).any(|word| word == b"tcp")
    };
    let mut peers = Vec::new();
    wait_until("the first peer is done with", || {
        peers = children(run.child().id());
        peers.iter().any(is_tcp)
    });
    signal(&mut run, libc::SIGINT);
    let output = run.output();
    assert_eq!(output.status.code(), Some(1));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["complete"], false);
    let measured: Vec<_> = cells(&run).iter().map(|cell| &cell["peer"]).collect();
    assert_eq!(measured, ["transfer"], "{run}");
    check_cell(&cells(&run)[0]);
    wait_until("its processes have ended", || {
        !peers.iter().any(|&id| runs(id))
    });
}

fn a_killed_run_leaves_neither_process_nor_namespace() {
    need_namespaces();
    let (mut run, mut peers) = long_run(&[
        "--cases",
        "transfers",
        "--peers",
        "tcp",
        "--sizes",
        "1MB",
        "--losses",
        "none",
        "--limit",
        "120",
    ]);
    let namespace = |id: u32| std::fs::read_link(format!("/proc/{id}/ns/net")).unwrap_or_default();
    let own = namespace(std::process::id());
    // Those of the first look may have ended: each peer is tried before it is measured.
    wait_until("the processes are in namespaces of their own", || {
        peers = children(run.child().id());
        let two = peers.len() == 2;
        two && peers
            .iter()
            .all(|&id| namespace(id) != own && namespace(id).to_string_lossy().starts_with("net:"))
    });
    let made: BTreeSet<_> = peers.iter().map(|&id| namespace(id)).collect();
    assert_eq!(made.len(), 2, "{made:?}");
    signal(&mut run, libc::SIGKILL);
    run.child().wait().unwrap();
    wait_until("its processes have ended", || {
        !peers.iter().any(|&id| runs(id))
    });
    wait_until("nothing holds its namespaces", || {
        !made.iter().any(|namespace| is_held(namespace))
    });
}

/// Whether a mount, or a process or one of its descriptors, holds this namespace, which lives as long.
fn is_held(namespace: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let entries = |of: &Path| std::fs::read_dir(of).into_iter().flatten().flatten();
    mounts.contains(namespace.to_str().unwrap())
        || entries(Path::new("/proc")).any(|process| {
            let mut links = ["ns", "fd"].map(|of| process.path().join(of)).into_iter();
            links.any(|of| {
                entries(&of).any(|link| {
                    std::fs::read_link(link.path()).is_ok_and(|target| target == namespace)
                })
            })
        })
}

bumpless_testing::tests![
    a_quick_run_measures_ours_and_the_kernel_s_over_loopback,
    a_peer_that_cannot_run_is_told_and_the_others_are_measured,
    losses_are_made_as_told_and_ours_survives_them,
    an_interrupted_run_gives_what_it_has_and_leaves_nothing,
    a_killed_run_leaves_neither_process_nor_namespace,
];

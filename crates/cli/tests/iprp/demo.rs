//! `bumpless iprp demo`: what it shows, without rights too, and that nothing is left of it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bumpless_testing::{need_namespaces, need_root, page, skip};
use serde_json::Value;

use crate::support::process::{BUMPLESS, Process, outcome};
use crate::support::wait_until;

/// A user without any rights.
const NOBODY: u32 = 65_534;

fn judge(output: &Output, report: &Path) {
    let (told, errors, status) = outcome(output);
    assert_eq!(status, Some(0), "{told}{errors}");
    let result: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(result["schema"], "bumpless.iprp.demo/1");
    assert_eq!(result["held"], true, "{result}");
    assert_eq!(
        (&result["lost"], &result["doubled"]),
        (&0.into(), &0.into())
    );
    let networks = result["networks"].as_array().unwrap();
    let sent = result["sent"].as_u64().unwrap();
    for it in networks {
        assert_eq!(it["copies"], sent, "{result}");
    }
    // A third of the stream found network A cut, and came over B.
    let (lost, over_b) = (&networks[0]["lost"], &networks[1]["first"]);
    assert!(lost.as_u64().unwrap() >= sent / 4, "{result}");
    assert!(over_b.as_u64().unwrap() >= lost.as_u64().unwrap());
    let text = std::fs::read_to_string(report).unwrap();
    assert_eq!(page::loads(&text), [""; 0], "it needs nothing else");
    assert!(text.contains("The stream survived the cut"));
    assert!(text.matches("class=\"lost\"").count() >= 2 && text.contains("class=\"b second\""));
}

pub fn the_demo_shows_a_stream_that_survives_a_cut_in_a_picture_of_its_own() {
    need_namespaces();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("picture.html");
    let output = Command::new(BUMPLESS)
        .args(["iprp", "demo", "--seconds", "1", "--json", "--report"])
        .arg(&report)
        .output()
        .unwrap();
    judge(&output, &report);
    // A report that cannot be written is told before anything starts.
    let nowhere = folder.path().join("missing/picture.html");
    let mut command = Command::new(BUMPLESS);
    command.args(["iprp", "demo", "--report"]).arg(&nowhere);
    let (_, errors, status) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(1));
    assert!(errors.contains("--report"), "{errors}");
}

pub fn the_demo_takes_no_rights_where_user_namespaces_are_permitted() {
    need_root();
    need_namespaces();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bumpless");
    // By another process: one that a test beside this one starts just then would inherit the file, open for writing.
    let copied = Command::new("cp").arg(BUMPLESS).arg(&program).status();
    assert!(copied.unwrap().success());
    for path in [folder.path(), &program] {
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(path, open).unwrap();
    }
    let mut trial = Command::new("unshare");
    trial.args(["--user", "--map-root-user", "--net", "true"]);
    let trial = trial.uid(NOBODY).gid(NOBODY).output();
    if !trial.is_ok_and(|output| output.status.success()) {
        skip("needs user namespaces for everybody");
    }
    let report = folder.path().join("picture.html");
    let mut command = Command::new(&program);
    command
        .args(["iprp", "demo", "--seconds", "1", "--json", "--report"])
        .arg(&report)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir(folder.path());
    judge(&command.output().unwrap(), &report);
}

/// Processes of this program that run a daemon below `folder`.
fn daemons(folder: &Path) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let folder = folder.to_str().unwrap().to_owned();
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(&folder))
        .count()
}

pub fn a_demo_that_is_stopped_or_killed_leaves_nothing() {
    need_namespaces();
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("picture.html");
        let inside = folder.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let mut command = Command::new(BUMPLESS);
        command
            .args(["iprp", "demo", "--seconds", "60", "--report"])
            .arg(&report)
            .env("TMPDIR", &inside)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::spawn(command, &folder.path().join("said"));
        wait_until("both daemons run", || daemons(&inside) == 2);
        process.signal(signal);
        let status = process.wait();
        assert!(!status.success());
        wait_until("its daemons have ended", || daemons(&inside) == 0);
        assert!(!report.exists());
        if signal == libc::SIGINT {
            assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 0);
        }
    }
}

//! Networks that do not come up or go as they should.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Grid;
use crate::impaired::topology;
use crate::support::wan::{is_gone, name, said, send, until};

pub fn a_network_whose_process_is_stopped_goes_all_the_same() {
    let grid = Grid::new("stopped");
    let pid = grid.up(&[])["pid"].as_u64().unwrap();
    send(pid, "-STOP");
    assert!(grid.done("down", &[]).contains("is gone"));
    until("its process is gone", || is_gone(pid));
    grid.nothing_is_left();
}

pub fn who_looks_for_a_moment_keeps_no_network_from_coming_up() {
    let grid = Grid::new("looked-at");
    let look = File::create(format!("/run/bumpless-wan-{}.lock", name(grid.0))).unwrap();
    look.lock().unwrap();
    let order = json!({"pool": "10.64.0.0/16", "routing": "fixed", "topology": topology()});
    let mut keeper = grid.command("keep", &[]);
    let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut keeper = keeper.spawn().unwrap();
    let mut input = keeper.stdin.take().unwrap();
    writeln!(input, "{order}").unwrap();
    // Long enough for it to find the name taken; it waits longer.
    thread::sleep(Duration::from_millis(200));
    drop(look);
    let mut answer = String::new();
    let output = keeper.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut answer).unwrap();
    assert_eq!(answer, "up\n");
    grid.done("down", &[]);
    assert!(!keeper.wait().unwrap().success());
    grid.nothing_is_left();
}

pub fn packets_that_find_no_room_to_be_held_are_counted() {
    let grid = Grid::new("full");
    let up = grid.up(&[]);
    let overflowed = || -> Value {
        let status: Value = serde_json::from_str(&grid.done("status", &["--json"])).unwrap();
        status["overflowed"].clone()
    };
    if up["delays"]["by"] == "held" {
        assert_eq!(overflowed(), 0);
        // Nobody reads them, and the kernel keeps what it has room for.
        let (far, pid) = (grid.address("s02-1-1"), up["pid"].as_u64().unwrap());
        send(pid, "-STOP");
        let flood = ["ping", "-q", "-c", "40000", "-l", "40000", "-W", "1", &far];
        grid.wan("exec", &[&["centre-1", "--"], &flood[..]].concat());
        let lost = overflowed();
        send(pid, "-CONT");
        assert!(lost.as_u64().unwrap() > 0, "{lost}");
        assert!(
            grid.done("status", &[])
                .contains("packets were lost for want of room")
        );
    } else {
        assert_eq!(overflowed(), Value::Null);
    }
    grid.done("down", &[]);
    grid.nothing_is_left();
}

pub fn a_routing_daemon_that_does_not_start_is_told_with_its_own_words() {
    let grid = Grid::new("ospf-fails");
    let folder = tempfile::tempdir().unwrap();
    let up = |version: &str| {
        let program = folder.path().join("bird");
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo 'BIRD version {version}' >&2 && exit 0\necho 'no such option: bfd' >&2\necho >&2\nexit 3\n"
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let first = [folder.path().to_owned()].into_iter();
        let all = std::env::join_paths(first.chain(std::env::split_paths(&path)));
        let arguments = ["--backbone-pairs", "3", "--routing", "ospf"];
        let mut command = grid.command("up", &arguments);
        let refused = command.env("PATH", all.unwrap()).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        grid.nothing_is_left();
        said(&refused)
    };
    let old = up("1.6.8");
    assert!(
        old.contains("nothing was made") && old.contains("1.6.8"),
        "{old}"
    );
    let failed = up("2.0.12");
    assert!(failed.contains("no such option: bfd"), "{failed}");
}

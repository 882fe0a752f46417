//! What the tests of `bumpless wan` share: networks of their own, which leave nothing behind.

use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::BUMPLESS;

/// How long it takes at most until what must happen has.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of a network of a test alone.
pub fn name(test: &str) -> String {
    format!("t{}-{test}", std::process::id())
}

/// A command of `bumpless wan` on the network of this test.
pub fn wan(action: &str, test: &str) -> Command {
    let mut command = Command::new(BUMPLESS);
    command.args(["wan", action, "--name", &name(test)]);
    command
}

/// Ends the network of a test that has failed; otherwise it is gone already.
pub struct Gone(pub &'static str);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = wan("down", self.0).output();
    }
}

/// What a command said on both of its outputs.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// What is said of the network of a test, while it is up.
pub fn status(test: &str) -> Option<Value> {
    let told = wan("status", test).arg("--json").output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).ok()?;
    (told["schema"] == "bumpless.wan-status/1").then_some(told)
}

/// The processes that run in the network of a test, while it is up.
pub fn running(test: &str) -> Option<Vec<u64>> {
    let told = status(test)?;
    let programs = told["programs"].as_array()?.iter();
    Some(programs.filter_map(|it| it["pid"].as_u64()).collect())
}

/// How many daemons listen that have their files in the folder of a network.
pub fn sockets(test: &str) -> usize {
    let folder = std::fs::read_dir(format!("/run/bumpless-wan-{}.d", name(test)));
    let files = folder.into_iter().flatten().flatten();
    let is_socket = |it: &std::fs::DirEntry| it.path().extension().is_some_and(|it| it == "sock");
    files.filter(is_socket).count()
}

/// Fails if a file of the network of a test is left.
pub fn no_file_is_left(test: &str) {
    for ending in ["d", "json", "lock", "part"] {
        let file = format!("/run/bumpless-wan-{}.{ending}", name(test));
        assert!(!Path::new(&file).exists(), "{file}");
    }
}

/// Waits until `condition` holds.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited in vain for: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether no process has this number.
pub fn is_gone(pid: u64) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Sends a signal, such as `-INT`, to a process of the test.
pub fn signal(process: &Child, name: &str) {
    send(process.id().into(), name);
}

/// The same to a process that one of the test's has started.
pub fn send(pid: u64, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

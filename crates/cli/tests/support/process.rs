//! A process under test. It ends with its handle, and at the latest with the test's thread.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use super::{addresses, wait_for};

/// The program under test.
pub const BUMPLESS: &str = env!("CARGO_BIN_EXE_bumpless");

/// A running process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    said: PathBuf,
}

impl Process {
    /// Starts `bumpless` with `arguments`; what it says goes to the file `said`.
    pub fn start<S: AsRef<std::ffi::OsStr>>(arguments: &[S], said: &Path) -> Self {
        let out = File::options()
            .create(true)
            .append(true)
            .open(said)
            .unwrap();
        let mut command = Command::new(BUMPLESS);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out);
        // SAFETY: between fork and exec only signal() is called, which is async-signal-safe and takes integers.
        unsafe {
            command.pre_exec(|| {
                // Tests that are run under nohup have them ignored, and so would the program have.
                for signal in [libc::SIGHUP, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        Self::spawn(command, said)
    }

    /// Starts what `command` says.
    pub fn spawn(mut command: Command, said: &Path) -> Self {
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe and takes
        // integers.
        unsafe {
            command.pre_exec(|| {
                // Even a test that is killed leaves no process behind.
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        Self {
            child: addresses::spawn(&mut command).unwrap(),
            said: said.to_owned(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it has said on standard output and standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill() takes integers; the child has not been waited for, so its number is its own.
        let sent = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(sent, 0, "{}", io::Error::last_os_error());
    }

    /// Waits for its end.
    pub fn wait(mut self) -> ExitStatus {
        wait_for("the end of a process", || self.child.try_wait().unwrap())
    }

    /// SIGINT, then its end, which must be an orderly one.
    pub fn interrupt(self) {
        self.signal(libc::SIGINT);
        let said = self.said.clone();
        let status = self.wait();
        let said = std::fs::read_to_string(said).unwrap_or_default();
        assert!(
            status.success(),
            "{status:?}, signal {:?}: {said}",
            status.signal()
        );
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kilobytes = line
            .and_then(|line| line.split_whitespace().nth(1))
            .unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `bumpless` with `arguments` to its end.
pub fn bumpless<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    let mut command = Command::new(BUMPLESS);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = addresses::spawn(&mut command).unwrap();
    child.wait_with_output().unwrap()
}

/// What a command that ended said, as text: standard output, standard error, exit status.
pub fn outcome(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

/// What a command printed, on both ways, and its exit status.
pub fn said(arguments: &[&str]) -> (String, String, Option<i32>) {
    outcome(&bumpless(arguments))
}

/// The JSON that a command printed, of the given schema.
pub fn json(arguments: &[&str], schema: &str) -> (Value, Option<i32>) {
    let (stdout, stderr, status) = said(arguments);
    assert_eq!(stdout.lines().count(), 1, "one line: {stdout}{stderr}");
    let value: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(value["schema"], schema, "{value}");
    (value, status)
}

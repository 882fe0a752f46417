//! Network namespaces without names: they are held by descriptors, so the kernel removes them, with
//! everything in them, when the last process that holds or uses one is gone, however it ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// A namespace of its own, with loopback up.
    ///
    /// # Errors
    /// The process lacks the right (root has it), or `ip` (iproute2) is missing.
    pub fn new() -> Result<Self, String> {
        // On a thread of its own: this one stays where it is.
        let descriptor = thread::spawn(|| {
            // SAFETY: unshare() takes integers only and concerns this thread's network namespace.
            match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
                0 => File::open("/proc/thread-self/ns/net"),
                _ => Err(io::Error::last_os_error()),
            }
        })
        .join()
        .map_err(|_| "a thread ended by a panic".to_owned())?
        .map_err(|error| format!("cannot make a network namespace: {error}; run as root"))?;
        let namespace = Self(descriptor.into());
        namespace.tool("ip", "link set lo up")?;
        Ok(namespace)
    }

    /// The descriptor's path, for programs that take one.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Makes `command` run in here, and end with the thread that starts it.
    pub fn put_into(&self, command: &mut Command) {
        let descriptor = self.0.as_raw_fd();
        // SAFETY: between fork and exec only system calls are made; the descriptor is inherited, and is
        // open for as long as `self`, which outlives every process that it starts.
        unsafe { command.pre_exec(move || enter(descriptor)) };
    }

    /// Runs `work` on a thread in here.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        let descriptor = self.0.as_raw_fd();
        let outcome = thread::scope(|scope| {
            scope
                .spawn(move || enter(descriptor).map(|()| work()))
                .join()
        });
        outcome
            .map_err(|_| "a thread ended by a panic".to_owned())?
            .map_err(|error| format!("cannot enter a network namespace: {error}"))
    }

    /// Runs a tool of the system in here.
    ///
    /// # Errors
    /// What it says.
    pub fn tool(&self, program: &str, arguments: &str) -> Result<(), String> {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace());
        self.put_into(&mut command);
        let output = command
            .output()
            .map_err(|error| format!("cannot run '{program}': {error}; install iproute2"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "'{program} {arguments}' was refused: {}",
            said.trim()
        ))
    }
}

fn enter(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: setns() takes integers only; the descriptor is open.
    match unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

//! Network namespaces without names: they are held by descriptors, so the kernel removes them, with
//! everything in them, when the last process that holds or uses one is gone, however it ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

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
            // SAFETY: it concerns this thread's network namespace alone, not its descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open("/proc/thread-self/ns/net")
        })
        .join()
        .map_err(|_| "a thread ended by a panic".to_owned())?
        .map_err(|error| format!("cannot make a network namespace: {error}; run as root"))?;
        let namespace = Self(descriptor.into());
        namespace.tool("ip", "link set lo up")?;
        Ok(namespace)
    }

    /// The one that this descriptor stands for.
    pub fn of(descriptor: OwnedFd) -> Self {
        Self(descriptor)
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
        unsafe { command.pre_exec(move || enter(BorrowedFd::borrow_raw(descriptor))) };
    }

    /// Runs `work` on a thread in here.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        let outcome = thread::scope(|scope| {
            scope
                .spawn(|| enter(self.0.as_fd()).map(|()| work()))
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

fn enter(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(
        descriptor,
        Some(LinkNameSpaceType::Network),
    )?)
}

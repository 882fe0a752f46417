//! Programs that run in a network: they are found by their namespace, and ended with it.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::place::Running;
use crate::topology::NodeId;

/// A program in a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Where it runs.
    pub node: NodeId,
    /// Its name, as the kernel has it.
    pub name: String,
}

/// The namespaces of a network, by what their files are known by.
struct Namespaces(HashMap<(u64, u64), NodeId>);

impl Namespaces {
    fn of(running: &Running) -> Self {
        let known = (0..running.namespaces.len()).filter_map(|node| {
            let file = fs::metadata(running.namespace(node)).ok()?;
            Some(((file.dev(), file.ino()), NodeId(node as u32)))
        });
        Self(known.collect())
    }

    fn node(&self, pid: u32) -> Option<NodeId> {
        let file = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?;
        self.0.get(&(file.dev(), file.ino())).copied()
    }
}

/// Programs that run in a network, but for the process that holds it and routing daemons, which are its own.
pub fn processes(running: &Running) -> Vec<Process> {
    listed(running, &Namespaces::of(running))
}

fn listed(running: &Running, namespaces: &Namespaces) -> Vec<Process> {
    let mut all = all(running, namespaces);
    all.retain(|process| parent(process.pid) != Some(running.pid));
    all
}

/// The routing daemons of a network, held: their numbers may go to others.
pub fn daemons(running: &Running) -> Vec<OwnedFd> {
    let namespaces = Namespaces::of(running);
    let own = |process: &Process| parent(process.pid) == Some(running.pid);
    let daemons = all(running, &namespaces).into_iter().filter(own);
    let held = daemons.filter_map(|process| {
        let pid = Pid::from_raw(process.pid as i32)?;
        let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        (parent(process.pid) == Some(running.pid)).then_some(held)
    });
    held.collect()
}

/// All of them, routing daemons included.
fn all(running: &Running, namespaces: &Namespaces) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| pid != running.pid)
        .filter_map(|pid| {
            let node = namespaces.node(pid)?;
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            Some(Process {
                pid,
                node,
                name: name.trim().to_owned(),
            })
        })
        .collect()
}

/// Who started a process.
fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// Ends all of them: those that go on after `grace`, at once. Gives who they were.
pub fn end(running: &Running, grace: Duration) -> Vec<Process> {
    let namespaces = Namespaces::of(running);
    let all = listed(running, &namespaces);
    let held: Vec<OwnedFd> = all
        .iter()
        .filter_map(|process| {
            let pid = Pid::from_raw(process.pid as i32)?;
            let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // The number may have gone to another process before it was held.
            namespaces.node(process.pid)?;
            let _ = pidfd_send_signal(&held, Signal::TERM);
            Some(held)
        })
        .collect();
    let until = Instant::now() + grace;
    for process in &held {
        if !gone(process, until.saturating_duration_since(Instant::now())) {
            let _ = pidfd_send_signal(process, Signal::KILL);
            gone(process, grace);
        }
    }
    all
}

/// Waits for the end of a process; whether it has come.
pub fn gone(process: &OwnedFd, patience: Duration) -> bool {
    let mut ends = [PollFd::new(process, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    poll(&mut ends, Some(&patience)).is_ok_and(|ready| ready > 0)
}

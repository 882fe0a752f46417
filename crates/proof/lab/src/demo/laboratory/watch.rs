//! What the pair shows, and waiting for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_node::control::{self, Request};

use super::{Laboratory, Node, now_ns};
use crate::demo::DemoError;
use crate::demo::configuration::NODES;
use crate::demo::processes::{Process, describe};
use crate::demo::progress::Progress;
use crate::runlog::{Event, EventKind, RedundancyState, read_events};

/// Interval at which conditions are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which the nodes are asked for their configuration, in nanoseconds.
const ALIKE_LOOK_NS: u64 = 50_000_000;

/// Failures of a program that an error repeats at most.
const FAULTS_TOLD: usize = 4;

/// Waiting that a Ctrl-C ends.
pub struct Waiter {
    stop: Arc<AtomicBool>,
    /// What people see.
    pub progress: Progress,
}

impl Waiter {
    /// Waits that `stop` ends.
    pub fn new(stop: Arc<AtomicBool>, progress: Progress) -> Self {
        Self { stop, progress }
    }

    fn look(&mut self) -> Result<(), DemoError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(DemoError::Interrupted);
        }
        self.progress.tick();
        thread::sleep(LOOK);
        Ok(())
    }
}

impl Laboratory {
    /// Notes which configuration each node that answers has in force; says whether both have the same,
    /// with no change under way.
    pub fn note_configurations(&mut self) -> bool {
        let mut found = Vec::new();
        for node in self.nodes.iter().filter(|node| node.process.is_some()) {
            let Ok(mut status) = control::request(&node.control, &Request::Status) else {
                continue;
            };
            let words = |value: serde_json::Value| value.as_str().map(str::to_owned);
            let configuration = &mut status["configuration"];
            let fingerprint = words(configuration["fingerprint"].take()).unwrap_or_default();
            let change = words(configuration["change"].take());
            found.push((fingerprint.clone(), change.is_none()));
            self.events.push(Event {
                time_ns: now_ns(),
                node: node.name.to_owned(),
                kind: EventKind::InForce {
                    fingerprint,
                    change,
                },
            });
        }
        found.len() == NODES.len() && found[0] == found[1] && found[0].1
    }

    /// Waits until both nodes have the same configuration in force, at most for `timeout`.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_alike(&mut self, timeout: Duration) -> Result<(), DemoError> {
        let until = now_ns() + u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        while !self.note_configurations() && now_ns() < until {
            self.wait_time(now_ns() + ALIKE_LOOK_NS)?;
        }
        Ok(())
    }

    /// The primary, if exactly one node says that it is.
    pub fn primary(&self) -> Option<usize> {
        let is_primary = |node: &&Node| node.follower.role == "primary";
        let mut primaries = self.nodes.iter().filter(is_primary);
        match (primaries.next(), primaries.next()) {
            (Some(one), None) => self.nodes.iter().position(|node| node.name == one.name),
            _ => None,
        }
    }

    /// Whether one node is primary, the other backup, and the primary says that it is redundant.
    pub fn is_redundant(&self) -> bool {
        self.primary().is_some_and(|primary| {
            self.nodes[primary].follower.redundancy == Some(RedundancyState::Ok)
                && self.nodes[1 - primary].follower.role == "backup"
        })
    }

    /// Waits until `condition` holds, at most for `timeout`; says whether it does.
    ///
    /// # Errors
    /// If the user ends the demonstration, or a process ends by itself.
    pub fn wait_until(
        &mut self,
        timeout: Duration,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<bool, DemoError> {
        let since = Instant::now();
        loop {
            self.nodes.iter_mut().for_each(|node| node.follower.poll());
            if condition(self) {
                return Ok(true);
            }
            if since.elapsed() >= timeout {
                return Ok(false);
            }
            self.waiter.look()?;
            self.look_after_processes()?;
        }
    }

    /// Waits until the pair is redundant.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until), or if it is not in time.
    pub fn wait_redundant(&mut self, timeout: Duration) -> Result<(), DemoError> {
        match self.wait_until(timeout, Self::is_redundant)? {
            true => Ok(()),
            false => Err(DemoError::NotRedundant(self.describe_nodes())),
        }
    }

    /// Waits until the clock shows `until_ns`.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_time(&mut self, until_ns: u64) -> Result<(), DemoError> {
        let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
        self.wait_until(left, |_| now_ns() >= until_ns).map(|_| ())
    }

    fn look_after_processes(&mut self) -> Result<(), DemoError> {
        let nodes = self
            .nodes
            .iter_mut()
            .filter_map(|node| node.process.as_mut());
        for process in nodes.chain(&mut self.witnesses).chain(&mut self.plant) {
            if let Some(status) = process.ended() {
                return Err(DemoError::Ended {
                    process: process.name.clone(),
                    how: describe(status),
                    words: process.last_words(),
                });
            }
        }
        Ok(())
    }

    /// `error` with what the user's program did before, if that failed.
    pub fn explained(&mut self, error: DemoError) -> DemoError {
        if matches!(error, DemoError::Interrupted) {
            return error;
        }
        // The logs are whole when their processes have ended.
        self.end();
        let logs = self.node_logs();
        let events = logs
            .iter()
            .filter_map(|log| read_events(log).ok())
            .flatten();
        let mut faults: Vec<_> = events
            .filter_map(|event| match event.kind {
                EventKind::ProgramFault { cause } => Some((event.time_ns, event.node, cause)),
                _ => None,
            })
            .collect();
        faults.sort();
        if faults.is_empty() {
            return error;
        }
        let told = faults.into_iter().take(FAULTS_TOLD);
        DemoError::Failed {
            faults: told
                .map(|(_, node, cause)| format!("{node}: {cause}"))
                .collect(),
            then: Box::new(error),
        }
    }

    fn describe_nodes(&self) -> String {
        let describe = |node: &Node| {
            let role = Some(node.follower.role.as_str()).filter(|role| !role.is_empty());
            let words = node
                .process
                .as_ref()
                .map(Process::last_words)
                .unwrap_or_default();
            let role = role.unwrap_or("silent");
            format!(
                "{} is {role}, redundancy {:?}\n{words}",
                node.name, node.follower.redundancy
            )
        };
        self.nodes
            .iter()
            .map(describe)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

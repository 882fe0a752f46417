//! Slack mitigation: interrupts are paid from the slack of the job that they interrupt.

use bumpless_base::{Duration, Instant};

use super::policy::{Gates, Mitigation};
use crate::metric::{Earliness, Fill};

/// What a [`Slack`] policy must know of the critical task and of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlackSettings {
    /// What a job may take from its release to its end.
    pub target: Duration,
    /// What a job takes of the processor at most (its worst-case execution time).
    pub work: Duration,
    /// What an interrupt with its packet takes at most.
    pub interrupt: Duration,
}

/// While a job of the critical task runs, as many packets may interrupt it as fit between its work and its target; between jobs any
/// number. A full queue silences the network until there is room.
///
/// A job is late only if it takes more than its declared work: one that begins is interrupted at most `slack / interrupt` times, the
/// interrupt that was under way at its release included. Nothing is spent on a packet that finds no room, unlike in the queue
/// mitigation, and the network listens again with the first free place, not with the last.
///
/// A job that overruns its target gets the same number in each further target's length: a task that hangs does not take
/// the network with it.
#[derive(Clone, Debug)]
pub struct Slack {
    /// Interrupts that a job bears.
    bears: u64,
    target: Duration,
    job: Option<Job>,
    full: bool,
}

/// A job under way.
#[derive(Clone, Copy, Debug)]
struct Job {
    left: u64,
    renewal: Instant,
}

impl Slack {
    /// A policy for this task. One whose work leaves no room for an interrupt is not interrupted.
    pub fn new(settings: SlackSettings) -> Self {
        let slack = (settings.target - settings.work).as_nanos();
        let whole = slack / settings.interrupt.as_nanos().max(1);
        Self {
            // One may be under way at the release.
            bears: whole.saturating_sub(1),
            target: settings.target,
            job: None,
            full: false,
        }
    }

    /// Interrupts that a job bears.
    pub fn bears(&self) -> u64 {
        self.bears
    }
}

impl Mitigation for Slack {
    fn handle_packet(&mut self, _now: Instant, fill: Fill) {
        self.full = fill.waiting.saturating_add(1) >= fill.capacity;
        if let Some(job) = &mut self.job {
            job.left = job.left.saturating_sub(1);
        }
    }

    fn handle_driver(&mut self, _now: Instant, fill: Fill) {
        self.full = fill.is_full();
    }

    fn handle_release(&mut self, now: Instant) {
        self.job = Some(Job {
            left: self.bears,
            renewal: now + self.target,
        });
    }

    fn handle_completion(&mut self, _now: Instant, _earliness: Earliness) {
        self.job = None;
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.job.is_some_and(|job| now >= job.renewal) {
            self.handle_release(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.job.map(|job| job.renewal)
    }

    fn gates(&self) -> Gates {
        let spent = self.job.is_some_and(|job| job.left == 0);
        Gates {
            interrupts: !self.full && !spent,
            driver: true,
        }
    }
}

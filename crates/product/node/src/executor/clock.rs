//! The clock of an executor that has a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Instant};
use bumpless_controller::{Clock, Wake};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit};

use super::environment::now;

/// What an executor must look at when it changes: role, order to pause, right to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    primary: bool,
    paused: bool,
    permitted: bool,
}

impl Situation {
    /// The situation at this moment.
    pub fn of(gate: &PublishedPermit, mailbox: &ApplicationMailbox) -> Self {
        Self {
            primary: gate.is_primary(),
            paused: mailbox.paused(),
            permitted: gate.permit().is_some(),
        }
    }
}

/// Whether nothing is on its way to the backup of what the application has published as primary.
pub fn is_settled(gate: &PublishedPermit, mailbox: &ApplicationMailbox) -> bool {
    !gate.is_primary() || !gate.backup_expected() || mailbox.newest_is_settled()
}

/// The executor's clock: parks the thread; a change of situation ends a wait and is never lost, nor is a call that can be
/// answered.
#[derive(Debug)]
pub struct ThreadClock {
    gate: Arc<PublishedPermit>,
    mailbox: Arc<ApplicationMailbox>,
    stop: Arc<AtomicBool>,
    seen: Situation,
}

impl ThreadClock {
    /// A clock that wakes for changes of `gate`, for a pause at `mailbox`, and for `stop`.
    pub fn new(
        gate: Arc<PublishedPermit>,
        mailbox: Arc<ApplicationMailbox>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            gate,
            mailbox,
            stop,
            seen: Situation::default(),
        }
    }
}

impl Clock for ThreadClock {
    fn now(&self) -> Instant {
        now()
    }

    fn wait_until(&mut self, until: Instant) -> Wake {
        loop {
            let situation = Situation::of(&self.gate, &self.mailbox);
            let called = self.mailbox.is_called() && is_settled(&self.gate, &self.mailbox);
            if situation != self.seen || called || self.stop.load(Ordering::Acquire) {
                self.seen = situation;
                return Wake::Woken;
            }
            let left = until.since(now());
            if left == Duration::ZERO {
                return Wake::Reached;
            }
            thread::park_timeout(left.to_std());
        }
    }
}

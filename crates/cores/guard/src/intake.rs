//! The server over all frames, and its change to polling (5.4.5).

use bumpless_base::Instant;

use crate::flow::Rate;
use crate::server::DeferrableServer;

/// How frames come to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each by an interrupt.
    Interrupts,
    /// In a batch at the beginning of each period, as many as the budget allows; the network does not interrupt.
    Polling,
}

/// The overall budget, if there is one.
#[derive(Clone, Debug)]
pub struct Intake {
    server: Option<DeferrableServer>,
    mode: Mode,
}

impl Intake {
    pub fn new(rate: Option<Rate>, now: Instant) -> Self {
        Self {
            server: rate.map(|rate| DeferrableServer::new(rate, now)),
            mode: Mode::Interrupts,
        }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Takes one frame's budget. The last one of a period changes to polling.
    pub fn take(&mut self, now: Instant) -> bool {
        let Some(server) = &mut self.server else {
            return true;
        };
        let taken = server.take(now);
        if server.left(now) == 0 {
            self.mode = Mode::Polling;
        }
        taken
    }

    /// How many frames may be taken from the ring now; `None`: as many as there are.
    pub fn allowance(&mut self, now: Instant) -> Option<u32> {
        self.server.as_mut().map(|server| server.left(now))
    }

    /// The ring is empty. If that is so before the period's budget is spent, the network may interrupt again.
    pub fn handle_ring_empty(&mut self, now: Instant) {
        if self.allowance(now) != Some(0) {
            self.mode = Mode::Interrupts;
        }
    }

    /// When to poll.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match (self.mode, &self.server) {
            (Mode::Polling, Some(server)) => Some(server.renewal()),
            _ => None,
        }
    }
}

//! What this thread tells: the data plane, and whoever reads the log.

use bumpless_net_linux::Clock;
use rtrb::PushError;
use serde_json::json;

use super::ControlPlane;
use super::troubles::Of;
use crate::exchange::ToData;

/// What waits for room at the data plane; its thread stands still when it is more.
const WAITING_MAX: usize = 256;

impl ControlPlane {
    /// Tells the data plane. What this host decides waits for room there; messages of other hosts, which say them again, are lost then, and counted.
    pub(super) fn tell(&mut self, it: ToData) {
        self.tell_backlog();
        let backlog = &mut self.state.backlog;
        let is_message = matches!(it, ToData::Message { .. });
        let it = match backlog.is_empty() {
            true => match self.outbox.push(it) {
                Ok(()) => return self.data.wake(),
                Err(PushError::Full(it)) => it,
            },
            // It would overtake what waits.
            false => it,
        };
        match is_message || backlog.len() >= WAITING_MAX {
            true => self.state.untold += 1,
            false => backlog.push_back(it),
        }
    }

    /// Tells what waits.
    pub(super) fn tell_backlog(&mut self) {
        while let Some(it) = self.state.backlog.pop_front() {
            if let Err(PushError::Full(it)) = self.outbox.push(it) {
                self.state.backlog.push_front(it);
                return;
            }
            self.data.wake();
        }
    }

    /// Says what is wrong, once for as long as it is.
    pub(super) fn trouble(&mut self, of: Of, about: &str, words: &str) {
        if self.state.troubles.say(Clock.now(), of, about, words) {
            self.log.say("trouble", json!({"about": about}), words);
        }
    }

    /// It is not so any more.
    pub(super) fn no_trouble(&mut self, about: &str) {
        self.state.troubles.end(about);
    }
}

//! The right to write outputs, as an executor asks for it.

use std::sync::Arc;
use std::thread;

use bumpless_base::{Duration, Epoch, Instant, ProgramStanding, ResumeFrom};
use bumpless_controller::{OutputGate, Permit, Role};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit};

use super::environment::Environment;

/// The role and the right to write, as the data plane last published them.
#[derive(Debug)]
pub struct GroupOutputGate<E> {
    /// The group's gate.
    pub gate: Arc<PublishedPermit>,
    /// Where the device's epoch is told.
    pub mailbox: Arc<ApplicationMailbox>,
    /// Time, and the way to the data plane.
    pub environment: E,
}

impl<E: Environment> GroupOutputGate<E> {
    /// Asks the data plane for the certainty that nobody takes over with an older state.
    pub fn ask_simplex(&self) {
        self.mailbox.ask_simplex();
        self.environment.wake_data_plane();
    }

    /// Whether outputs may be written: nobody takes over with an older state, or the newest one
    /// has become safe after all.
    pub fn simplex_or_safe(&mut self) -> bool {
        if self.gate.simplex() {
            return true;
        }
        let safe = self.mailbox.newest_is_safe();
        if safe {
            self.in_step();
        }
        safe
    }
}

impl<E: Environment> OutputGate for GroupOutputGate<E> {
    fn permit(&mut self) -> Option<Permit> {
        if !self.mailbox.enter_cycle(self.environment.now()) {
            self.environment.wake_data_plane();
            return None;
        }
        self.gate.permit()
    }

    fn role(&self) -> Role {
        self.gate.role()
    }

    fn backup_expected(&self) -> bool {
        self.gate.backup_expected()
    }

    fn role_since(&self) -> Instant {
        self.gate.role_since()
    }

    fn paused(&self) -> bool {
        self.mailbox.paused()
    }

    fn began_cold(&self) -> bool {
        self.gate.cold()
    }

    fn go_simplex(&mut self, until: Instant) -> bool {
        self.ask_simplex();
        while !self.simplex_or_safe() {
            let left = until.since(self.environment.now());
            // A node that ends takes the right back, however long it was given for.
            if left == Duration::ZERO || self.gate.permit().is_none() {
                return false;
            }
            // Whatever ends this wait, the data plane wakes this thread for: that certainty, a state that is safe, a
            // right that ends.
            thread::park_timeout(left.to_std());
        }
        true
    }

    fn in_step(&mut self) {
        self.mailbox.in_step();
    }

    fn epoch_seen(&mut self, epoch: Epoch) {
        if self.mailbox.note_epoch_seen(epoch) {
            self.environment.wake_data_plane();
        }
    }

    fn epoch_spent(&mut self, epoch: Epoch) {
        if self.mailbox.note_epoch_spent(epoch) {
            self.environment.wake_data_plane();
        }
    }

    fn note_compared(&mut self, outdated: Option<Instant>, began: Instant) {
        if self.mailbox.note_compared(outdated, began) {
            self.environment.wake_data_plane();
        }
    }

    fn note_decided(&mut self, since: Instant) {
        self.mailbox.note_decided(since);
    }

    fn fit_changed(&mut self, fit: bool) {
        self.mailbox.set_fit(fit);
        self.environment.wake_data_plane();
    }

    fn program_changed(&mut self, standing: ProgramStanding) {
        self.mailbox.set_program(standing);
        self.environment.wake_data_plane();
    }

    fn resume_ordered(&mut self) -> Option<ResumeFrom> {
        self.mailbox.resume_order().take()
    }
}

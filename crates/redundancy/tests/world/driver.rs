//! The application on each node and its data plane: cycles, states on their way to the partner,
//! and outputs, which leave when their state is safe there or the node is certain to be alone.

use super::{End, GROUP, MS, PERIOD, What, World};
use bumpless_base::{Duration, Epoch, PeerId};
use bumpless_redundancy::{Event, RoleCause};
use bumpless_wire::Role;

/// For how long a state may take to become safe before the output leaves without it.
const DEADLINE: u64 = PERIOD / 2;

/// What the application of one node knows.
#[derive(Clone, Debug, Default)]
pub struct Application {
    /// Cycle of the state from which the next cycle is computed.
    cycle: u64,
    /// Computed, sent, and not written yet.
    pending: bool,
    /// The pending output need not wait for its state any longer.
    overdue: bool,
    /// Cycle of the newest state that the partner's present incarnation has.
    safe: u64,
    tag: Option<u32>,
    /// Newest state received: when it was sent, and its cycle.
    received: Option<(u64, u64)>,
    /// The role began without a state, and nothing has been written in it.
    cold: bool,
    pub draining: bool,
}

impl World {
    /// Follows the core's events that concern the application.
    pub(super) fn application_hears(&mut self, node: End, event: &Event) {
        match event {
            Event::HandOverBegun { .. } => self.nodes[node].application.draining = true,
            Event::HandOverAborted { .. } => self.nodes[node].application.draining = false,
            Event::RoleChanged { to, cause, .. } => self.change_role(node, *to, *cause),
            _ => {}
        }
    }

    fn change_role(&mut self, node: End, to: Role, cause: RoleCause) {
        let cold = self.core(node).is_cold(GROUP);
        let application = &mut self.nodes[node].application;
        (application.draining, application.pending) = (false, false);
        if to != Role::Primary {
            return;
        }
        let received = application.received.map_or(0, |(_, cycle)| cycle);
        (application.cold, application.safe) = (cold, 0);
        application.cycle = match cold {
            true => application.cycle.max(received),
            false => received,
        };
        self.warm_starts += u64::from(!cold && cause != RoleCause::HandedOver);
    }

    /// The tag of state transfer, with what was said under another one forgotten.
    fn tag(&mut self, node: End) -> Option<u32> {
        let tag = self.nodes[node].core.as_ref()?.transfer_tag(PeerId(0));
        let application = &mut self.nodes[node].application;
        if application.tag != tag {
            (application.tag, application.safe) = (tag, 0);
            application.received = None;
        }
        tag
    }

    /// The application's period begins.
    pub(super) fn cycle(&mut self, node: End) {
        let jitter = self.random.below(MS / 5);
        self.push(PERIOD + jitter, node, What::Cycle);
        if self.nodes[node].core.is_none() || self.nodes[node].paused {
            return;
        }
        if self.writes(node).is_none() {
            return;
        }
        self.tag(node);
        let application = &mut self.nodes[node].application;
        if !application.pending {
            let settled = application.safe >= application.cycle && application.cycle > 0;
            if !(application.draining && settled) {
                application.cycle += 1;
                (application.pending, application.overdue) = (true, false);
            }
        }
        self.replicate(node);
        let number = self.nodes[node].application.cycle;
        self.push(DEADLINE, node, What::Deadline { number });
        self.proceed(node);
    }

    /// Sends the newest state. It arrives whole, late or not at all.
    fn replicate(&mut self, node: End) {
        let Some(tag) = self.tag(node) else { return };
        let number = self.nodes[node].application.cycle;
        let link = (0..self.plan.links).find(|&l| !self.cuts.contains(&(node, 1 - node, l)));
        let lost = self
            .random
            .chance(self.transfer_loss.max(self.loss * self.loss));
        if let (Some(_), false) = (link, lost) {
            let (sent, delay) = (self.serial, self.random_delay());
            self.push(delay, 1 - node, What::State { tag, sent, number });
        }
    }

    pub(super) fn take_state(&mut self, node: End, tag: u32, sent: u64, number: u64) {
        let backup = self.core(node).role(GROUP) == Some(Role::Backup);
        let ours = self.tag(node) == Some(tag);
        let newest = self.nodes[node].application.received;
        if !ours || !backup || newest.is_some_and(|(newest, _)| newest >= sent) {
            return;
        }
        self.nodes[node].application.received = Some((sent, number));
        let now = self.local(node);
        let until = now + Duration::from_nanos(self.plan.expiry);
        self.core(node).set_synced_until(GROUP, Some(until), now);
        let link = (0..self.plan.links).find(|&l| !self.cuts.contains(&(node, 1 - node, l)));
        if link.is_some() && !self.random.chance(self.loss * self.loss) {
            let delay = self.random_delay();
            self.push(delay, 1 - node, What::Safe { tag, number });
        }
    }

    pub(super) fn take_acknowledgement(&mut self, node: End, tag: u32, number: u64) {
        if self.tag(node) != Some(tag) || self.core(node).role(GROUP) != Some(Role::Primary) {
            return;
        }
        let application = &mut self.nodes[node].application;
        application.safe = application.safe.max(number);
        if application.safe >= application.cycle {
            self.say_alone(node, false);
        }
    }

    /// The pending output has waited long enough for its state.
    pub(super) fn take_deadline(&mut self, node: End, number: u64) {
        let application = &mut self.nodes[node].application;
        if !application.pending || application.cycle != number {
            return;
        }
        application.overdue = true;
        self.say_alone(node, true);
    }

    fn say_alone(&mut self, node: End, wanted: bool) {
        let now = self.local(node);
        // Without the rule nobody is ever told.
        let wanted = wanted && self.plan.says_alone;
        self.core(node).set_alone(GROUP, wanted, now);
    }

    /// Writes the pending output if it may leave, and hands over if that is ordered and possible.
    /// Called after everything that may allow it.
    pub(super) fn proceed(&mut self, node: End) {
        let Some(epoch) = self.writes(node) else {
            return;
        };
        let alone = match self.plan.says_alone {
            true => self.core(node).is_alone(GROUP),
            false => self.nodes[node].application.overdue,
        };
        let application = &mut self.nodes[node].application;
        let safe = application.safe >= application.cycle;
        if application.pending && (safe || alone) {
            application.pending = false;
            let number = application.cycle;
            self.write(node, epoch, number);
        }
        let application = &mut self.nodes[node].application;
        let settled = !application.pending && safe && application.cycle > 0;
        if application.draining && settled {
            application.draining = false;
            let now = self.local(node);
            self.core(node).hand_over_ready(GROUP, now);
        }
    }

    /// The field device takes an output.
    fn write(&mut self, node: End, epoch: Epoch, number: u64) {
        if self.plan.field_checks_epoch && epoch < self.written {
            if !self.was_forgotten(node) {
                self.violate(format!(
                    "epochs_grow: node {node} had to be told of {}",
                    self.written
                ));
            }
            let (now, seen) = (self.local(node), self.written);
            self.core(node).observe_epoch(GROUP, seen, now);
            return;
        }
        if self.last_write != 0 {
            self.longest_gap = self.longest_gap.max(self.now - self.last_write);
        }
        self.last_write = self.now;
        self.check_epoch(node, epoch);
        self.check_bump(node, number);
    }

    fn check_epoch(&mut self, node: End, epoch: Epoch) {
        if epoch > self.written {
            self.restarted = false;
            self.written_at = self.now;
        }
        if epoch < self.written && self.was_forgotten(node) {
            self.written = epoch;
        }
        if epoch < self.written {
            self.violate(format!(
                "epochs_grow: node {node} writes in {epoch} after {}",
                self.written
            ));
        }
        self.written = self.written.max(epoch);
        let owner = *self.writers.entry(epoch.0).or_insert(node);
        if owner != node {
            self.violate(format!("one_writer: both nodes wrote in epoch {epoch}"));
        }
    }

    /// The outputs' cycles grow, except when a node starts without a state.
    fn check_bump(&mut self, node: End, number: u64) {
        let cold = std::mem::take(&mut self.nodes[node].application.cold);
        self.outputs += 1;
        if !cold && number <= self.last_number {
            self.violate(format!(
                "no_bump: node {node} writes cycle {number} after {}",
                self.last_number
            ));
        }
        self.last_number = number;
    }

    /// Who starts without any memory may not know what is remembered nowhere it can look.
    fn was_forgotten(&self, node: End) -> bool {
        let cause = self.status(node).cause;
        let fresh = matches!(cause, Some(RoleCause::Start | RoleCause::LoneStart));
        self.restarted && fresh && self.nodes[node].primary_since > self.written_at
    }
}

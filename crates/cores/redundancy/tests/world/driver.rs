//! The application on each node and its data plane: cycles, states on their way to the partner,
//! and outputs, which leave when their state is safe there or the node is certain to be in simplex.

use super::{End, GROUP, MS, PERIOD, What, World};
use bumpless_base::{Duration, Epoch, PeerId};
use bumpless_redundancy::{Event, Holding, RoleCause};
use bumpless_wire::Role;

/// For how long a state may take to become safe before the output leaves without it.
const DEADLINE: u64 = PERIOD / 2;

/// A state: each start without one begins a line, in which the cycles grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cycle {
    line: u64,
    number: u64,
}

/// What the application of one node knows.
#[derive(Clone, Debug, Default)]
pub struct Application {
    /// The state from which the next cycle is computed.
    cycle: Cycle,
    /// Computed, sent, and not written yet.
    pending: bool,
    /// The pending output need not wait for its state any longer.
    overdue: bool,
    /// The newest state that the partner's present incarnation has.
    safe: Option<Cycle>,
    tag: Option<u32>,
    /// Newest state received, and when it was sent.
    received: Option<(u64, Cycle)>,
    /// Newest state computed by this process.
    computed: Option<Cycle>,
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
            return self.say_what_it_holds(node);
        }
        self.serial += 1;
        let anew = Cycle {
            line: self.serial,
            number: 0,
        };
        application.safe = None;
        let received = application.received.map(|(_, cycle)| cycle);
        let newest = received.max(application.computed);
        application.cycle = newest.filter(|_| !cold).unwrap_or(anew);
        self.warm_starts += u64::from(!cold && cause != RoleCause::HandedOver);
    }

    /// What a node has computed or received it may go on from for a while.
    fn say_what_it_holds(&mut self, node: End) {
        let application = &self.nodes[node].application;
        let holds = application.received.is_some() || application.computed.is_some();
        let now = self.local(node);
        let until = holds.then(|| now + Duration::from_nanos(self.plan.expiry));
        self.core(node)
            .set_holding(GROUP, Holding::until(until), now);
    }

    /// The tag of state transfer; what is safe at an earlier incarnation of the partner is not.
    fn tag(&mut self, node: End) -> Option<u32> {
        let tag = self.nodes[node].core.as_ref()?.transfer_tag(PeerId(0));
        let application = &mut self.nodes[node].application;
        if application.tag != tag {
            (application.tag, application.safe) = (tag, None);
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
            let settled = application.safe == Some(application.cycle);
            if !(application.draining && settled) {
                application.cycle.number += 1;
                application.computed = Some(application.cycle);
                (application.pending, application.overdue) = (true, false);
            }
        }
        self.replicate(node);
        let cycle = self.nodes[node].application.cycle;
        self.push(DEADLINE, node, What::Deadline { cycle });
        self.proceed(node);
    }

    /// Sends the newest state. It arrives whole, late or not at all.
    fn replicate(&mut self, node: End) {
        let Some(tag) = self.tag(node) else { return };
        let cycle = self.nodes[node].application.cycle;
        let link = (0..self.plan.links).find(|&l| !self.cuts.contains(&(node, 1 - node, l)));
        let lost = self
            .random
            .chance(self.transfer_loss.max(self.loss * self.loss));
        if let (Some(_), false) = (link, lost) {
            let (sent, delay) = (self.serial, self.random_delay());
            self.push(delay, 1 - node, What::State { tag, sent, cycle });
        }
    }

    pub(super) fn take_state(&mut self, node: End, tag: u32, sent: u64, cycle: Cycle) {
        let backup = self.core(node).role(GROUP) == Some(Role::Backup);
        let ours = self.tag(node) == Some(tag);
        let newest = self.nodes[node].application.received;
        if !ours || !backup || newest.is_some_and(|(newest, _)| newest >= sent) {
            return;
        }
        self.nodes[node].application.received = Some((sent, cycle));
        self.say_what_it_holds(node);
        let link = (0..self.plan.links).find(|&l| !self.cuts.contains(&(node, 1 - node, l)));
        if link.is_some() && !self.random.chance(self.loss * self.loss) {
            let delay = self.random_delay();
            self.push(delay, 1 - node, What::Safe { tag, cycle });
        }
    }

    pub(super) fn take_acknowledgement(&mut self, node: End, tag: u32, cycle: Cycle) {
        if self.tag(node) != Some(tag) || self.core(node).role(GROUP) != Some(Role::Primary) {
            return;
        }
        let application = &mut self.nodes[node].application;
        application.safe = application.safe.max(Some(cycle));
        if application.safe == Some(application.cycle) {
            self.say_simplex(node, false);
        }
    }

    /// The pending output has waited long enough for its state.
    pub(super) fn take_deadline(&mut self, node: End, cycle: Cycle) {
        let application = &mut self.nodes[node].application;
        if !application.pending || application.cycle != cycle {
            return;
        }
        application.overdue = true;
        self.say_simplex(node, true);
    }

    fn say_simplex(&mut self, node: End, wanted: bool) {
        let now = self.local(node);
        // Without the rule nobody is ever told.
        let wanted = wanted && self.plan.says_simplex;
        self.core(node).set_simplex(GROUP, wanted, now);
    }

    /// Writes the pending output if it may leave, and hands over if that is ordered and possible.
    /// Called after everything that may allow it.
    pub(super) fn proceed(&mut self, node: End) {
        let Some(epoch) = self.writes(node) else {
            return;
        };
        let simplex = match self.plan.says_simplex {
            true => self.core(node).is_simplex(GROUP),
            false => self.nodes[node].application.overdue,
        };
        let application = &mut self.nodes[node].application;
        let safe = application.safe == Some(application.cycle);
        if application.pending && (safe || simplex) {
            application.pending = false;
            let cycle = application.cycle;
            self.write(node, epoch, cycle);
        }
        let application = &mut self.nodes[node].application;
        let settled = !application.pending && safe;
        if application.draining && settled {
            application.draining = false;
            let now = self.local(node);
            self.core(node).hand_over_ready(GROUP, now);
        }
    }

    /// The field device takes an output.
    fn write(&mut self, node: End, epoch: Epoch, cycle: Cycle) {
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
        self.check_bump(node, cycle);
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

    /// Outputs never go back: not within a line, nor to an earlier one.
    fn check_bump(&mut self, node: End, cycle: Cycle) {
        self.outputs += 1;
        if cycle <= self.last_cycle {
            self.violate(format!(
                "no_bump: node {node} writes {cycle:?} after {:?}",
                self.last_cycle
            ));
        }
        self.last_cycle = cycle;
    }

    /// Who starts without any memory may not know what is remembered nowhere it can look.
    fn was_forgotten(&self, node: End) -> bool {
        let cause = self.status(node).cause;
        let fresh = matches!(cause, Some(RoleCause::Start | RoleCause::LoneStart));
        self.restarted && fresh && self.nodes[node].primary_since > self.written_at
    }
}

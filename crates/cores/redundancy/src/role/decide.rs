//! When a group's role changes. Everything here follows from what the machine knows and `now`.

use crate::event::{Outbox, RoleCause};
use crate::role::state::{Retreat, RoleState, Simplex, Tenure};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::Timing;
use bumpless_base::{Epoch, Instant};
use bumpless_wire::{GroupFlags, Role};

impl RoleMachine {
    /// Draws the consequences of what is known. Idempotent.
    pub(crate) fn decide(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.notice_lapse(s, out);
        let barred = self.barred(s);
        if self.role() == Role::Stopped {
            self.state.set_granting(s.reachable && barred.is_none());
            return;
        }
        if let Some(cause) = barred {
            if self.role() != Role::Starting {
                self.resign(Retreat::Starting, cause, s, out);
            }
            self.state.set_granting(false);
            self.drop_attempt();
            return;
        }
        // Who has just left the role promises nothing before its driver has said what it holds.
        match self.state {
            RoleState::Primary(_) => self.decide_as_primary(s, out),
            _ => self.decide_as_secondary(s, out),
        }
    }

    /// Leaves the primary role (or any other) and renounces every right.
    pub(crate) fn resign(
        &mut self,
        to: Retreat,
        cause: RoleCause,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        if let Some(tenure) = self.state.tenure() {
            let mask = self.agreement.mask();
            let lapse = tenure.lapse.as_ref();
            let lapsed = lapse.map(|lapse| (lapse.incarnation, lapse.mask.union(mask)));
            let (incarnation, mask) = lapsed.unwrap_or((tenure.incarnation, mask));
            self.newest.end_role(incarnation, mask, tenure.cold);
            self.lasting.left_ahead = tenure.simplex.has_written();
            self.lasting.resigned_at = s.now;
        }
        self.lasting.promised_right_until = Instant::ZERO;
        self.lasting.rights_since = s.now;
        self.agreement.end();
        self.lasting.candidate = None;
        self.transit(|state| state.resigned(to), cause, out);
    }

    /// The primary role begins.
    #[cold]
    pub(super) fn begin(
        &mut self,
        epoch: Epoch,
        cause: RoleCause,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        let tenure = Tenure {
            cold: self.claim(s.now).is_none(),
            incarnation: s.session,
            lapse: None,
            simplex: Simplex::at_beginning(s.now),
            draining: None,
        };
        self.use_epoch(epoch);
        self.transit(|_| RoleState::Primary(tenure), cause, out);
        self.declare(true, s.timing, s.now);
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            self.agreement.lease_mut(reference).next_request = s.now;
        }
    }

    /// When [`decide`](Self::decide) may have something to do without hearing anything;
    /// `unreachable_since` is the partner's.
    pub(crate) fn next_decision(
        &self,
        timing: &Timing,
        unreachable_since: Instant,
        now: Instant,
    ) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        let mut consider = |at: Instant| {
            if at > now {
                next = next.min(at);
            }
        };
        consider(self.lasting.promised_until);
        consider(self.terms.quiet_until);
        consider(self.terms.started + timing.start_wait);
        consider(self.counterpart.since + timing.start_wait);
        consider(self.alone_since(unreachable_since) + timing.start_wait);
        consider(self.lone_start_at(unreachable_since, timing, now));
        let holding = &self.newest.holding;
        let ends = [
            holding.fresh_until,
            holding.usable_until,
            holding.some_usable_until,
        ];
        ends.into_iter().flatten().for_each(&mut consider);
        if let Some(until) = self.newest.comparison_awaited_until(timing) {
            consider(until);
        }
        if let Some(deadline) = self.switchover_deadline(timing) {
            consider(deadline);
        }
        let partner = self.counterpart.entry;
        if partner.is_some_and(|partner| partner.flags.contains(GroupFlags::LAPSED)) {
            consider(self.counterpart.heard + timing.lease);
        }
        match &self.state {
            RoleState::Primary(tenure) => match &tenure.lapse {
                Some(lapse) => {
                    consider(lapse.since + timing.start_wait);
                    consider(lapse.since + timing.promise());
                    consider(lapse.since + timing.promise() * 4);
                    consider(lapse.ended + self.terms.hot_restart);
                }
                None => consider(self.right_until()),
            },
            other => {
                if let Some(attempt) = other.attempt() {
                    consider(attempt.since + timing.promise());
                }
            }
        }
        next
    }
}

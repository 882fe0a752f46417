//! What a node decides that is not primary: whom it follows, and when it takes the role.

use crate::event::{Event, Outbox, RoleCause, WaitCause};
use crate::id::ReferenceSet;
use crate::role::state::{Attempt, Retreat, RoleState};
use crate::role::{RoleMachine, Surroundings};
use bumpless_base::{Duration, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, NO_REFERENCE, Role};

impl RoleMachine {
    pub(super) fn decide_as_secondary(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let granted_before = self.state.is_granting();
        match self
            .counterpart
            .entry
            .filter(|_| s.reachable && !self.is_deaf(s))
        {
            Some(partner) => {
                if let Some(candidacy) = self.state.candidacy_mut() {
                    (candidacy.attempt, candidacy.waiting) = (None, None);
                }
                if partner.role == Role::Primary {
                    self.follow(s, out);
                } else {
                    self.decide_together(partner, s, out);
                }
            }
            None => {
                self.state.set_granting(false);
                self.decide_alone(s, out);
            }
        }
        self.check_request(s);
        self.urgent |= granted_before != self.state.is_granting();
    }

    /// Whether the partner is a primary without a right that has not heard this node for a lease: no promise will
    /// bring its right back, and this node could go on.
    fn is_deaf(&self, s: &Surroundings<'_>) -> bool {
        let lapsed = self
            .counterpart
            .entry
            .is_some_and(|p| p.flags.contains(GroupFlags::LAPSED));
        let claims = self.claim(s.now).is_some();
        lapsed && claims && s.now >= self.counterpart.heard + s.timing.lease
    }

    fn follow(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.fall_behind();
        self.state.set_granting(s.now >= self.terms.quiet_until);
        if self.role() == Role::Starting {
            self.transit(RoleState::following, RoleCause::PartnerIsPrimary, out);
        }
    }

    /// Both are here and neither is primary: the one with fresher state, else the preferred one,
    /// takes the role on the other's promise.
    fn decide_together(&mut self, partner: GroupEntry, s: &Surroundings<'_>, out: &mut Outbox) {
        self.check_released(s);
        let judged = self.is_state_judged(s);
        let quiet_over = s.now >= self.terms.quiet_until;
        let better = self.is_better(&partner, s.now);
        self.state.set_granting(!better && quiet_over);
        let bound = s.now < self.lasting.promised_until || !quiet_over;
        if !better || bound || !judged || !self.is_consulted(s) || !self.is_compared(s) {
            return;
        }
        let offered = partner.flags.contains(GroupFlags::HANDING_OVER);
        if offered {
            self.take_offer(partner.token);
        }
        if self.stops_for_age(s, out) {
            return;
        }
        let Some(candidate) = self.next_epoch() else {
            return self.resign(Retreat::Stopped, RoleCause::EpochsExhausted, s, out);
        };
        if self.partner_recorded(candidate, s.now) {
            let view = (partner.reference != NO_REFERENCE).then_some((
                crate::id::ReferenceId(partner.reference),
                partner.reference_version,
            ));
            self.agreement.begin_by_promise(view, s.timing, s.now);
            let cause = if offered {
                RoleCause::HandedOver
            } else {
                RoleCause::Start
            };
            self.begin(candidate, cause, s, out);
        }
    }

    /// In doubt, what a node holds may be older than what its field devices show; it has to have looked.
    fn is_compared(&self, s: &Surroundings<'_>) -> bool {
        let in_doubt = self.claim(s.now).is_none() && self.newest.holds_some(s.now);
        let until = self.newest.comparison_awaited_until(s.timing);
        let awaited = until.is_some_and(|until| s.now < until);
        !(in_doubt && awaited)
    }

    /// A node without state asks the witnesses for the highest epoch before it starts; one that
    /// does not answer is waited for no longer than for a partner.
    fn is_consulted(&self, s: &Surroundings<'_>) -> bool {
        self.claim(s.now).is_some()
            || self.agreement.all_consulted()
            || s.now >= self.terms.started + s.timing.start_wait
    }

    /// Where the configuration says so, a node goes no further than a state that is too old to go on from.
    fn stops_for_age(&mut self, s: &Surroundings<'_>, out: &mut Outbox) -> bool {
        let stops = self.terms.stop_when_old && self.is_past_hot_restart(s.now);
        if stops {
            self.resign(Retreat::Stopped, RoleCause::StateTooOld, s, out);
        }
        stops
    }

    /// The partner is silent: failover with the newest state, else the rule of the lone start.
    fn decide_alone(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let failover = self.claim(s.now).is_some();
        if let Some(candidacy) = self.state.candidacy_mut() {
            candidacy
                .attempt
                .take_if(|attempt| attempt.lone == failover);
        }
        if !failover && s.now < self.lone_start_at(s.unreachable_since, s.timing, s.now) {
            self.drop_attempt();
            if self.role() == Role::Backup {
                self.wait(WaitCause::NotSynced, out);
            }
            return;
        }
        if !failover && self.stops_for_age(s, out) {
            return;
        }
        if let (false, Some(reference)) = (failover, self.lately_held(s)) {
            self.drop_attempt();
            return self.wait(WaitCause::ReferenceRefuses(reference), out);
        }
        if self.state.attempt().is_none() {
            self.begin_attempt(!failover, s);
        }
        let Some(candidate) = self.next_epoch() else {
            return self.resign(Retreat::Stopped, RoleCause::EpochsExhausted, s, out);
        };
        let set = self.agreement.needed();
        let granted = s.now < self.agreement.lease_until(set);
        if !granted || !self.agreement.on_record(set, candidate) {
            return self.report_wait(set, s, out);
        }
        if s.now >= self.lasting.promised_until && s.now >= self.terms.quiet_until {
            self.agreement.begin_by_lease(set, s.timing, s.now);
            let cause = if failover {
                RoleCause::PartnerSilent
            } else {
                RoleCause::LoneStart
            };
            self.begin(candidate, cause, s, out);
        }
    }

    pub(super) fn drop_attempt(&mut self) {
        if let Some(candidacy) = self.state.candidacy_mut() {
            candidacy.attempt = None;
        }
    }

    /// Begins to ask for the role. Whatever was granted before says nothing about the present partition.
    fn begin_attempt(&mut self, lone: bool, s: &Surroundings<'_>) {
        if let Some(candidacy) = self.state.candidacy_mut() {
            let since = s.now;
            candidacy.attempt = Some(Attempt { since, lone });
            candidacy.switchover = None;
        }
        // Who has asked without a claim to a fresh state makes none later.
        if lone {
            self.newest.doubt();
        }
        self.lasting.promised_right_until = Instant::ZERO;
        self.lasting.rights_since = s.now.before(Duration::from_nanos(1));
        self.agreement.renounce();
        for reference in self.agreement.needed().iter() {
            self.agreement.lease_mut(reference).next_request = s.now;
        }
    }

    fn report_wait(&mut self, set: ReferenceSet, s: &Surroundings<'_>, out: &mut Outbox) {
        let attempt = self.state.attempt();
        let waited = attempt.is_some_and(|attempt| s.now >= attempt.since + s.timing.promise());
        let missing = set.iter().find(|&r| s.now >= self.agreement.lease(r).until);
        if let (true, Some(reference)) = (waited, missing) {
            let cause = if !self.agreement.answers(reference, s.timing, s.now) {
                WaitCause::ReferenceSilent(reference)
            } else if self.agreement.lease(reference).refused {
                WaitCause::LeaseRefused(reference)
            } else if self.agreement.lease(reference).granted {
                WaitCause::ReferenceLate(reference)
            } else {
                WaitCause::ReferenceRefuses(reference)
            };
            self.wait(cause, out);
        }
    }

    fn wait(&mut self, cause: WaitCause, out: &mut Outbox) {
        let waiting = self
            .state
            .candidacy_mut()
            .map(|candidacy| &mut candidacy.waiting);
        if waiting.is_some_and(|waiting| waiting.replace(cause) != Some(cause)) {
            out.event(Event::CannotTakeOver {
                group: self.terms.id,
                cause,
            });
        }
    }
}

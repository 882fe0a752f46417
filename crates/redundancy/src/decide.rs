//! When a group's role changes. Everything here follows from what the machine knows and `now`.

use crate::event::{Event, Outbox, RoleCause, WaitCause};
use crate::id::ReferenceSet;
use crate::role::{Lapse, RoleMachine, Surroundings};
use crate::setup::{MAX_REFERENCES, ReferenceKind, Timing};
use bumpless_base::fault::{Fault, deliberate};
use bumpless_base::{Counter, Duration, Epoch, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, NO_REFERENCE, Role};

impl RoleMachine {
    /// Draws the consequences of what is known. Idempotent.
    pub(crate) fn decide(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.notice_lapse(s, out);
        let barred = self.barred(s);
        if self.role == Role::Stopped {
            self.granting = s.reachable && barred.is_none();
            return;
        }
        if let Some(cause) = barred {
            if self.role != Role::Starting {
                self.resign(Role::Starting, cause, s, out);
            }
            (self.granting, self.attempt) = (false, None);
            return;
        }
        // Who has just left the role promises nothing before its driver has said what it holds.
        match self.role {
            Role::Primary => self.decide_as_primary(s, out),
            _ => self.decide_as_secondary(s, out),
        }
    }

    /// Marks the moment at which the right ran out, before anything that is heard later counts.
    pub(crate) fn notice_lapse(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        if self.role == Role::Primary && self.lapse.is_none() && s.now >= self.right_until() {
            self.lapse(s, out);
        }
    }

    #[cold]
    fn lapse(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let mut witnesses = [0; MAX_REFERENCES];
        for (reference, _) in self.agreement.members() {
            let lease = self.agreement.lease(*reference);
            // One that never had our epoch on record cannot vouch for it later.
            if lease.epoch == self.epoch {
                witnesses[usize::from(reference.0) % MAX_REFERENCES] = lease.session;
            }
        }
        self.lapse = Some(Lapse {
            since: s.now,
            ended: self.right_until(),
            said: false,
            ally: self.ally,
            mask: self.agreement.mask(),
            witnesses,
        });
        self.candidate = None;
        self.declare(self.alone.is_ahead(), s.timing, s.now);
        out.count(Counter::LeaseLapses);
        out.event(Event::LeaseLapsed { group: self.id });
    }

    fn decide_as_primary(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.granting = false;
        let rival = |p: GroupEntry| p.role == Role::Primary && p.used > self.epoch;
        if self.partner.is_some_and(rival) {
            return self.resign(Role::Starting, RoleCause::HigherEpoch, s, out);
        }
        match self.lapse {
            Some(lapse) => self.decide_lapsed(lapse, s, out),
            None => self.raise_epoch(s, out),
        }
        if self.role != Role::Primary {
            return;
        }
        if let (true, Some(partner)) = (s.reachable, self.partner) {
            let reaches =
                partner.flags.contains(GroupFlags::ELIGIBLE) || partner.role != Role::Backup;
            self.urgent |= self.agreement.propose(reaches, s.timing, s.now).is_some();
        }
        self.check_hand_over(s, out);
    }

    /// A right that ran out comes back only if nobody can have written in between.
    #[cold]
    fn decide_lapsed(&mut self, lapse: Lapse, s: &Surroundings<'_>, out: &mut Outbox) {
        let ally = self
            .partner
            .filter(|_| s.session == lapse.ally && lapse.ally != 0);
        if ally.is_some_and(|ally| ally.used > self.epoch) {
            return self.resign(Role::Starting, RoleCause::HigherEpoch, s, out);
        }
        // Nobody may go on after so long, not even who wrote last.
        if s.now >= lapse.ended + self.hot_restart {
            return self.resign(Role::Starting, RoleCause::LapsedTooLong, s, out);
        }
        let mask = lapse.mask.union(self.agreement.mask());
        let same_witnesses = mask.iter().all(|r| {
            let ping = self.agreement.kind(r) == Some(ReferenceKind::Ping);
            ping || lapse.is_known(r, self.agreement.lease(r).session)
        });
        let by_promise = ally.is_some() && s.now < self.right;
        let by_lease = same_witnesses
            && s.now < self.agreement.lease_until(mask)
            && self.agreement.on_record(mask, self.epoch);
        if by_promise || by_lease {
            // What came without proof of continuity does not count later either.
            if !by_promise {
                self.right = Instant::ZERO;
            } else if !by_lease {
                self.agreement.renounce();
            }
            self.lapse = None;
            self.declare(self.alone.is_ahead(), s.timing, s.now);
            out.event(Event::LeaseRegained { group: self.id });
        } else if let Some(cause) = self.hopeless(lapse, s) {
            self.resign(Role::Starting, cause, s, out);
        }
    }

    /// Why a right that has run out is not waited for any longer. What this node holds stays the newest state
    /// that there is, unless it hears otherwise.
    fn hopeless(&self, lapse: Lapse, s: &Surroundings<'_>) -> Option<RoleCause> {
        let waited = |span| s.now >= lapse.since + span;
        let mask = lapse.mask.union(self.agreement.mask());
        let forgotten = |r| {
            let witness = self.agreement.lease(r).witness;
            self.agreement.answers(r, s.timing, s.now) && !lapse.is_known(r, witness)
        };
        let other_partner = s.session != lapse.ally && self.partner.is_some();
        // Somebody has asked for the role. Who lives says soon whether he has had it.
        let surpassed = self.observed > self.epoch && waited(s.timing.promise() * 4);
        match s.reachable {
            false if surpassed => Some(RoleCause::HigherEpoch),
            false => (waited(s.timing.start_wait) && mask.iter().any(forgotten))
                .then_some(RoleCause::LapsedTooLong),
            true => (waited(s.timing.start_wait) || other_partner && waited(s.timing.promise()))
                .then_some(RoleCause::LapsedTooLong),
        }
    }

    /// The partner put an epoch on record while this node's right never lapsed: it did not use
    /// it. Going above keeps epochs growing whoever takes over later.
    fn raise_epoch(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        if self.observed <= self.epoch {
            return;
        }
        let Some(candidate) = self.next_epoch() else {
            return self.resign(Role::Stopped, RoleCause::EpochsExhausted, s, out);
        };
        let mask = self.agreement.mask();
        let leased = s.now < self.agreement.lease_until(mask);
        let recorded = leased && self.agreement.on_record(mask, candidate);
        if recorded || self.partner_recorded(candidate, s.now) {
            self.use_epoch(candidate);
            out.event(Event::EpochRaised {
                group: self.id,
                epoch: candidate,
            });
        }
    }

    fn use_epoch(&mut self, epoch: Epoch) {
        self.candidate = None;
        self.epoch = epoch;
        self.newest.make(epoch);
        self.observed = self.observed.max(epoch);
        self.urgent = true;
    }

    /// Whether the partner's promise is running and the partner knows `epoch`.
    fn partner_recorded(&self, epoch: Epoch, now: Instant) -> bool {
        let knows = |p: GroupEntry| p.flags.contains(GroupFlags::GRANTING) && p.epoch >= epoch;
        now < self.right && self.partner.is_some_and(knows)
    }

    /// Leaves the primary role (or any other) and renounces every right.
    pub(crate) fn resign(
        &mut self,
        to: Role,
        cause: RoleCause,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        if self.role == Role::Primary {
            let mask = self.agreement.mask();
            let lapsed = self.lapse.map(|lapse| (lapse.ally, lapse.mask.union(mask)));
            let (ally, mask) = lapsed.unwrap_or((self.ally, mask));
            self.newest.end_role(ally, mask);
            self.resigned_at = s.now;
        }
        self.right = Instant::ZERO;
        self.rights_since = s.now;
        self.agreement.end();
        (self.lapse, self.candidate, self.attempt) = (None, None, None);
        self.granting = false;
        self.hand_over.clear();
        self.set_role(to, cause, out);
    }

    fn decide_as_secondary(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let granted_before = self.granting;
        match self.partner.filter(|_| s.reachable && !self.is_deaf(s)) {
            Some(partner) => {
                (self.attempt, self.waiting) = (None, None);
                if partner.role == Role::Primary {
                    self.follow(s, out);
                } else {
                    self.decide_together(partner, s, out);
                }
            }
            None => {
                self.granting = false;
                self.decide_alone(s, out);
            }
        }
        self.check_request(s);
        self.urgent |= granted_before != self.granting;
    }

    /// A primary without a right that has not heard this node for a lease: it will not come back by a promise,
    /// and this node could go on.
    fn is_deaf(&self, s: &Surroundings<'_>) -> bool {
        let lapsed = self
            .partner
            .is_some_and(|p| p.flags.contains(GroupFlags::LAPSED));
        let claims = self.claim(s.now).is_some();
        lapsed && claims && s.now >= self.partner_heard + s.timing.lease
    }

    fn follow(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.fall_behind();
        self.granting = s.now >= self.quiet_until();
        if self.role == Role::Starting {
            self.set_role(Role::Backup, RoleCause::PartnerIsPrimary, out);
        }
    }

    /// Both are here and neither is primary: the one with fresher state, else the preferred one,
    /// takes the role on the other's promise.
    fn decide_together(&mut self, partner: GroupEntry, s: &Surroundings<'_>, out: &mut Outbox) {
        self.check_released(s);
        let judged = self.is_state_judged(s);
        let quiet_over = s.now >= self.quiet_until();
        let better = self.is_better(&partner, s.now);
        self.granting = !better && quiet_over;
        let bound = s.now < self.promised_until || !quiet_over;
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
            return self.resign(Role::Stopped, RoleCause::EpochsExhausted, s, out);
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
        !(in_doubt && awaited) || deliberate(Fault::HeldNotCompared)
    }

    /// A node without state asks the witnesses for the highest epoch before it starts; one that
    /// does not answer is waited for no longer than for a partner.
    fn is_consulted(&self, s: &Surroundings<'_>) -> bool {
        self.claim(s.now).is_some()
            || self.agreement.all_consulted()
            || s.now >= self.started + s.timing.start_wait
    }

    /// Where the configuration says so, a node goes no further than a state that is too old to go on from.
    fn stops_for_age(&mut self, s: &Surroundings<'_>, out: &mut Outbox) -> bool {
        let stops = self.stop_when_old && self.is_past_hot_restart(s.now);
        if stops {
            self.resign(Role::Stopped, RoleCause::StateTooOld, s, out);
        }
        stops
    }

    /// The partner is silent: failover with the newest state, else the rule of the lone start.
    fn decide_alone(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let failover = self.claim(s.now).is_some();
        if self.attempt_lone == failover {
            self.attempt = None;
        }
        if !failover && s.now < self.lone_start_at(s.unreachable_since, s.timing) {
            self.attempt = None;
            if self.role == Role::Backup {
                self.wait(WaitCause::NotSynced, out);
            }
            return;
        }
        if !failover && self.stops_for_age(s, out) {
            return;
        }
        if let (false, Some(reference)) = (failover, self.lately_held(s)) {
            self.attempt = None;
            return self.wait(WaitCause::ReferenceRefuses(reference), out);
        }
        if self.attempt.is_none() {
            self.begin_attempt(!failover, s);
        }
        let Some(candidate) = self.next_epoch() else {
            return self.resign(Role::Stopped, RoleCause::EpochsExhausted, s, out);
        };
        let set = self.attempt_set(failover, s);
        let granted = s.now < self.agreement.lease_until(set);
        if !granted || !self.agreement.on_record(set, candidate) {
            return self.report_wait(set, s, out);
        }
        if s.now >= self.promised_until && s.now >= self.quiet_until() {
            self.agreement.begin_by_lease(set, s.timing, s.now);
            let cause = if failover {
                RoleCause::PartnerSilent
            } else {
                RoleCause::LoneStart
            };
            self.begin(candidate, cause, s, out);
        }
    }

    /// Whatever was granted before this moment says nothing about this partition.
    fn begin_attempt(&mut self, lone: bool, s: &Surroundings<'_>) {
        self.attempt = Some(s.now);
        self.attempt_lone = lone;
        // Who has asked without a claim to a fresh state makes none later.
        if lone {
            self.newest.doubt();
        }
        self.hand_over.clear();
        self.right = Instant::ZERO;
        self.rights_since = s.now.before(Duration::from_nanos(1));
        self.agreement.renounce();
        for reference in self.agreement.needed().iter() {
            self.agreement.lease_mut(reference).next_request = s.now;
        }
    }

    fn attempt_set(&self, failover: bool, s: &Surroundings<'_>) -> ReferenceSet {
        let needed = self.agreement.needed();
        if failover || !s.lone_start_without {
            return needed;
        }
        needed
            .iter()
            .filter(|&r| self.agreement.answers(r, s.timing, s.now))
            .collect()
    }

    fn report_wait(&mut self, set: ReferenceSet, s: &Surroundings<'_>, out: &mut Outbox) {
        let waited = self
            .attempt
            .is_some_and(|since| s.now >= since + s.timing.promise());
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
        if self.waiting.replace(cause) != Some(cause) {
            out.event(Event::CannotTakeOver {
                group: self.id,
                cause,
            });
        }
    }

    /// The primary role begins.
    #[cold]
    fn begin(&mut self, epoch: Epoch, cause: RoleCause, s: &Surroundings<'_>, out: &mut Outbox) {
        self.cold = self.claim(s.now).is_none();
        self.use_epoch(match deliberate(Fault::EpochNotRaised) {
            false => epoch,
            true => self.observed.max(Epoch(1)),
        });
        (self.lapse, self.attempt, self.waiting) = (None, None, None);
        self.granting = false;
        self.alone.begin();
        self.declare(true, s.timing, s.now);
        self.ally = s.session;
        self.hand_over.clear();
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            self.agreement.lease_mut(reference).next_request = s.now;
        }
        self.set_role(Role::Primary, cause, out);
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
        consider(self.promised_until);
        let comparison = self.newest.comparison_awaited_until(timing);
        comparison.into_iter().for_each(&mut consider);
        consider(self.quiet_until());
        consider(self.started + timing.start_wait);
        consider(self.partner_since + timing.start_wait);
        consider(self.alone_since(unreachable_since) + timing.start_wait);
        consider(self.lone_start_at(unreachable_since, timing));
        let holding = &self.newest.holding;
        let ends = [
            holding.fresh_until,
            holding.usable_until,
            holding.some_usable_until,
        ];
        ends.into_iter().flatten().for_each(&mut consider);
        if self
            .partner
            .is_some_and(|p| p.flags.contains(GroupFlags::LAPSED))
        {
            consider(self.partner_heard + timing.lease);
        }
        self.hand_over
            .deadline(timing)
            .into_iter()
            .for_each(&mut consider);
        match self.lapse {
            Some(lapse) => {
                consider(lapse.since + timing.start_wait);
                consider(lapse.since + timing.promise());
                consider(lapse.since + timing.promise() * 4);
                consider(lapse.ended + self.hot_restart);
            }
            None if self.role == Role::Primary => consider(self.right_until()),
            None => {}
        }
        if let Some(since) = self.attempt {
            consider(since + timing.promise());
        }
        next
    }
}

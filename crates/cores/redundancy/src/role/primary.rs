//! What a primary decides: whether it still has the right, and when its role ends.

use crate::event::{Event, Outbox, RoleCause};
use crate::role::state::{Lapse, Retreat};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::{MAX_REFERENCES, ReferenceKind};
use bumpless_base::{Counter, Epoch, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, Role};

impl RoleMachine {
    /// Marks the moment at which the right ran out, before anything that is heard later counts.
    pub(crate) fn notice_lapse(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        if self.state.in_force().is_some() && s.now >= self.right_until() {
            self.lapse(s, out);
        }
    }

    #[cold]
    fn lapse(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let mut witnesses = [0; MAX_REFERENCES];
        for (reference, _) in self.agreement.members() {
            let lease = self.agreement.lease(*reference);
            // One that never had our epoch on record cannot confirm it later.
            if lease.epoch == self.lasting.stamped {
                witnesses[usize::from(reference.0) % MAX_REFERENCES] = lease.session;
            }
        }
        let (ended, mask) = (self.right_until(), self.agreement.mask());
        let Some(tenure) = self.state.tenure_mut() else {
            return;
        };
        tenure.lapse = Some(Lapse {
            since: s.now,
            ended,
            said: false,
            incarnation: tenure.incarnation,
            mask,
            witnesses,
        });
        self.lasting.candidate = None;
        self.declare_again(s);
        out.count(Counter::LeaseLapses);
        out.event(Event::LeaseLapsed {
            group: self.terms.id,
        });
    }

    pub(super) fn decide_as_primary(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        let rival = |p: GroupEntry| p.role == Role::Primary && p.used > self.lasting.stamped;
        if self.counterpart.entry.is_some_and(rival) {
            return self.resign(Retreat::Starting, RoleCause::HigherEpoch, s, out);
        }
        match self.state.lapse().copied() {
            Some(lapse) => self.decide_lapsed(lapse, s, out),
            None => self.raise_epoch(s, out),
        }
        if self.role() != Role::Primary {
            return;
        }
        if let (true, Some(partner)) = (s.reachable, self.counterpart.entry) {
            let reaches =
                partner.flags.contains(GroupFlags::ELIGIBLE) || partner.role != Role::Backup;
            self.urgent |= self.agreement.propose(reaches, s.timing, s.now).is_some();
        }
        self.check_hand_over(s, out);
    }

    /// A right that ran out comes back only if nobody can have written in between.
    #[cold]
    fn decide_lapsed(&mut self, lapse: Lapse, s: &Surroundings<'_>, out: &mut Outbox) {
        let same_partner = self
            .counterpart
            .entry
            .filter(|_| s.session == lapse.incarnation && lapse.incarnation != 0);
        if same_partner.is_some_and(|partner| partner.used > self.lasting.stamped) {
            return self.resign(Retreat::Starting, RoleCause::HigherEpoch, s, out);
        }
        // Nobody may go on after so long, not even who wrote last.
        if s.now >= lapse.ended + self.terms.hot_restart {
            return self.resign(Retreat::Starting, RoleCause::LapsedTooLong, s, out);
        }
        let mask = lapse.mask.union(self.agreement.mask());
        let same_witnesses = mask.iter().all(|r| {
            let ping = self.agreement.kind(r) == Some(ReferenceKind::Ping);
            ping || lapse.is_known(r, self.agreement.lease(r).session)
        });
        let by_promise = same_partner.is_some() && s.now < self.lasting.promised_right_until;
        let by_lease = same_witnesses
            && s.now < self.agreement.lease_until(mask)
            && self.agreement.on_record(mask, self.lasting.stamped);
        if by_promise || by_lease {
            // What came without proof of continuity does not count later either.
            if !by_promise {
                self.lasting.promised_right_until = Instant::ZERO;
            } else if !by_lease {
                self.agreement.renounce();
            }
            if let Some(tenure) = self.state.tenure_mut() {
                tenure.lapse = None;
            }
            self.declare_again(s);
            out.event(Event::LeaseRegained {
                group: self.terms.id,
            });
        } else if let Some(cause) = self.hopeless(lapse, s) {
            self.resign(Retreat::Starting, cause, s, out);
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
        let other_partner = s.session != lapse.incarnation && self.counterpart.entry.is_some();
        // Somebody has asked for the role. Who lives says soon whether he has had it.
        let surpassed =
            self.lasting.observed > self.lasting.stamped && waited(s.timing.promise() * 4);
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
        if self.lasting.observed <= self.lasting.stamped {
            return;
        }
        let Some(candidate) = self.next_epoch() else {
            return self.resign(Retreat::Stopped, RoleCause::EpochsExhausted, s, out);
        };
        let mask = self.agreement.mask();
        let leased = s.now < self.agreement.lease_until(mask);
        let recorded = leased && self.agreement.on_record(mask, candidate);
        if recorded || self.partner_recorded(candidate, s.now) {
            self.use_epoch(candidate);
            out.event(Event::EpochRaised {
                group: self.terms.id,
                epoch: candidate,
            });
        }
    }

    pub(super) fn use_epoch(&mut self, epoch: Epoch) {
        self.lasting.candidate = None;
        self.lasting.stamped = epoch;
        self.newest.make(epoch);
        self.lasting.observed = self.lasting.observed.max(epoch);
        self.urgent = true;
    }

    /// Whether the partner's promise is running and the partner knows `epoch`.
    pub(super) fn partner_recorded(&self, epoch: Epoch, now: Instant) -> bool {
        let knows = |p: GroupEntry| p.flags.contains(GroupFlags::GRANTING) && p.epoch >= epoch;
        now < self.lasting.promised_right_until && self.counterpart.entry.is_some_and(knows)
    }
}

//! What a node asks of its reference points, and how often.

use crate::id::ReferenceId;
use crate::role::agreement::Lease;
use crate::role::state::{RoleState, Tenure};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::Timing;
use bumpless_base::{Duration, Epoch, Instant};
use bumpless_wire::{Role, WitnessKind};

/// In steady state a witness's answer suffices for so many heartbeats at most.
const STEADY_HEARTBEATS: u64 = 4;

/// A lease is renewed while so many rounds are left before it ends.
const ROUNDS_LEFT: u64 = 2;

impl RoleMachine {
    /// Whether this node wants the lease of `reference`.
    pub(crate) fn wants(&self, reference: ReferenceId) -> bool {
        let attempts = self.state.attempt().is_some();
        self.role() == Role::Primary || (attempts && self.agreement.needed().contains(reference))
    }

    /// What to ask of a witness at `now`, and which epoch to put on record.
    pub(crate) fn request(
        &self,
        reference: ReferenceId,
        timing: &Timing,
        now: Instant,
    ) -> (WitnessKind, Epoch) {
        // A node that does not hear the witness must not keep the lease from one that does.
        let deaf = !self.agreement.answers(reference, timing, now);
        if let Some(tenure) = self.state.tenure() {
            let valid = tenure.lapse.is_none() && now < self.right_until();
            let lapsed = self.lapsed_request(tenure, reference, deaf);
            if let Some(kind) = lapsed.filter(|_| !valid) {
                return (kind, self.lasting.observed);
            }
            // Only who holds a right may renew: a witness that has lost its memory believes it. One
            // whose right has lapsed neither sets nor clears the mark.
            let kind = match (valid, tenure.simplex.is_ahead()) {
                (true, true) => WitnessKind::RenewSimplex,
                (true, false) => WitnessKind::Renew,
                (false, _) => WitnessKind::Acquire,
            };
            return (kind, self.lasting.candidate.unwrap_or(self.lasting.stamped));
        }
        let attempt = self.state.attempt();
        let acquire = match attempt.is_some_and(|attempt| attempt.lone) {
            true => WitnessKind::AcquireLone,
            false => WitnessKind::Acquire,
        };
        match self.lasting.candidate {
            Some(candidate) if self.wants(reference) && !deaf => (acquire, candidate),
            _ if self.offered().is_some() => (WitnessKind::Release, self.lasting.observed),
            _ => (WitnessKind::Observe, self.lasting.observed),
        }
    }

    /// What a primary without a right sends to a witness that it does not hear: a Yield if the partner has all that
    /// was written, so that nobody need wait for this node; else an Observe, which asks for nothing.
    fn lapsed_request(
        &self,
        tenure: &Tenure,
        reference: ReferenceId,
        deaf: bool,
    ) -> Option<WitnessKind> {
        let lapse = tenure.lapse.as_ref()?;
        let unheard = self.agreement.lease(reference).answered_request() < lapse.since;
        match tenure.simplex.has_written() || !lapse.said {
            true => deaf.then_some(WitnessKind::Observe),
            false => (deaf || unheard).then_some(WitnessKind::Yield),
        }
    }

    /// A regular round leaves at `s.now`: the witnesses whose answers do not suffice until the next
    /// one are asked with it.
    pub(crate) fn ask_at_round(&mut self, s: &Surroundings<'_>) {
        let suffices = self.suffices(s);
        self.agreement.ask_at_round(s.now, s.timing, suffices);
    }

    /// When a request that leaves at `s.now` is repeated if no round does it before.
    pub(crate) fn repeated_at(&self, reference: ReferenceId, s: &Surroundings<'_>) -> Instant {
        let lease = self.agreement.lease(reference);
        s.now + self.suffices(s)(lease).max(s.timing.heartbeat)
    }

    /// For how long from its request a witness's answer suffices. In steady state, at a primary until two
    /// rounds are left for requests that are lost before its lease ends, and at a backup, which only asks
    /// whether the witness answers, for a lease; but no more than a few heartbeats: a witness that has
    /// restarted is told soon what it has forgotten. Else each round asks.
    fn suffices(&self, s: &Surroundings<'_>) -> impl Fn(&Lease) -> Duration + use<> {
        let heartbeat = s.timing.heartbeat;
        let primary_in = (self.role() == Role::Primary).then_some(self.lasting.stamped);
        let needed = match primary_in {
            Some(_) => s.timing.lease.saturating_sub(heartbeat * ROUNDS_LEFT),
            None => s.timing.lease,
        };
        // Rounds do not come on the dot.
        let steady_pace = needed.min(heartbeat * STEADY_HEARTBEATS) + heartbeat / 2;
        let steady = self.is_steady(s);
        move |lease| {
            let held = |epoch| lease.granted && lease.epoch == epoch;
            match steady && primary_in.is_none_or(held) {
                true => steady_pace,
                false => Duration::ZERO,
            }
        }
    }

    /// One of the two is primary on the other's promise and both are content: what the
    /// witnesses grant and answer is only held ready for when that ends.
    fn is_steady(&self, s: &Surroundings<'_>) -> bool {
        let partner = self
            .counterpart
            .entry
            .filter(|_| s.reachable)
            .map(|p| p.role);
        match (&self.state, partner) {
            (RoleState::Primary(tenure), Some(Role::Backup)) => {
                let promised = tenure.lapse.is_none() && s.now < self.lasting.promised_right_until;
                promised && self.lasting.candidate.is_none() && !tenure.simplex.is_ahead()
            }
            (RoleState::Backup(candidacy), Some(Role::Primary)) => {
                candidacy.attempt.is_none() && self.offered().is_none()
            }
            _ => false,
        }
    }
}

//! Going on in simplex: what the partner holds is old, and who knows that.
//!
//! An output whose state is not safe at the partner may leave only when the partner cannot take
//! over with what it holds. Two independent ways make that certain: the witnesses refuse it the
//! role, or the partner itself has heard that its state is old.

use crate::event::Outbox;
use crate::role::state::{Simplex, Tenure};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::{ReferenceKind, Timing};
use bumpless_base::Instant;
use bumpless_wire::{GroupEntry, Role, WitnessKind, WitnessReply};

impl RoleMachine {
    /// What the driver wished last, or the role began with.
    pub(crate) fn wants_simplex(&self) -> bool {
        self.state
            .tenure()
            .is_some_and(|tenure| tenure.simplex.ahead)
    }

    /// The driver's wish; see [`Redundancy::set_simplex`](crate::Redundancy::set_simplex).
    pub(crate) fn set_simplex(&mut self, wanted: bool, s: &Surroundings<'_>, out: &mut Outbox) {
        self.notice_lapse(s, out);
        let ahead = self.state.tenure().map(|tenure| tenure.simplex.ahead);
        if ahead.is_some_and(|ahead| ahead != wanted) {
            self.declare(wanted, s.timing, s.now);
        }
    }

    /// States anew whether the partner's state is old; nobody has heard it yet.
    pub(crate) fn declare(&mut self, ahead: bool, timing: &Timing, now: Instant) {
        let Some(tenure) = self.state.tenure_mut() else {
            return;
        };
        tenure.simplex = Simplex {
            ahead,
            written: tenure.simplex.written && ahead,
            ..Simplex::at_beginning(now)
        };
        self.urgent = true;
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            let lease = self.agreement.lease_mut(reference);
            lease.marked = false;
            let soon = now.max(lease.requested_at + timing.rate_limit());
            lease.next_request = lease.next_request.min(soon);
        }
        self.note_written();
    }

    /// States anew what it stated.
    pub(crate) fn declare_again(&mut self, s: &Surroundings<'_>) {
        if let Some(tenure) = self.state.tenure() {
            self.declare(tenure.simplex.ahead, s.timing, s.now);
        }
    }

    /// Once this node follows a later primary, it no longer matters what of its own outputs the partner lacked.
    pub(crate) fn fall_behind(&mut self) {
        let later = |p: GroupEntry| p.role == Role::Primary && p.used > self.lasting.stamped;
        if self.counterpart.entry.is_some_and(later) {
            self.lasting.left_ahead = false;
        }
    }

    /// Whether heartbeats say SIMPLEX: with a right, if the driver wishes it; without one, if an output may have left
    /// whose state is not safe.
    pub(crate) fn says_simplex(&self) -> bool {
        match self.state.tenure() {
            Some(tenure) if tenure.lapse.is_none() => tenure.simplex.ahead,
            Some(tenure) => tenure.simplex.written,
            None => self.lasting.left_ahead,
        }
    }

    /// Notes, as soon as outputs may leave whose state is not safe at the partner, that some may have left.
    pub(crate) fn note_written(&mut self) {
        let simplex = self.is_simplex();
        if let Some(tenure) = self.state.tenure_mut() {
            tenure.simplex.written |= simplex;
        }
    }

    /// Whether the partner can no longer take over with what it holds.
    pub(crate) fn is_simplex(&self) -> bool {
        let Some(Tenure { simplex, .. }) = self.state.in_force() else {
            return false;
        };
        let mask = self.agreement.mask();
        let witness = |r| self.agreement.kind(r) == Some(ReferenceKind::Witness);
        let mut witnesses = mask.iter().filter(|&r| witness(r));
        let marked = witnesses.all(|r| self.agreement.lease(r).marked);
        simplex.ahead && (marked || simplex.heard)
    }

    /// Notes when the first round of heartbeats that says SIMPLEX is sent, if that is the one at `now`.
    pub(crate) fn note_said(&mut self, now: Instant) {
        let tenure = self.state.tenure_mut();
        if let Some(tenure) = tenure.filter(|t| t.simplex.ahead && t.lapse.is_none()) {
            let now = now.max(Instant::from_nanos(1));
            tenure.simplex.said_at.get_or_insert(now);
        }
    }

    /// Takes from a heartbeat whether the partner has received one that says SIMPLEX. `asked`: send time of this
    /// node's latest heartbeat that it has received.
    pub(crate) fn note_simplex_heard(&mut self, asked: Instant, s: &Surroundings<'_>) {
        let Some(Tenure { simplex, .. }) = self.state.tenure_mut() else {
            return;
        };
        let said = simplex.said_at.is_some_and(|said| said <= asked);
        simplex.heard |= simplex.ahead && said && asked <= s.now;
        self.note_written();
    }

    /// Takes what a witness's answer says of its mark, and so of old states.
    pub(crate) fn hear_mark(
        &mut self,
        reference: crate::id::ReferenceId,
        reply: &WitnessReply,
        s: &Surroundings<'_>,
    ) {
        let sent = Instant::from_nanos(reply.echo_sent_at);
        if let Some(Tenure { simplex, .. }) = self.state.tenure() {
            let asked_since = simplex.ahead && sent >= simplex.since;
            if reply.kind == WitnessKind::RenewSimplex && asked_since {
                self.agreement.lease_mut(reference).marked = reply.granted && reply.old;
                self.note_written();
            }
            return;
        }
        // While the partner is heard, its own word is newer than that of a witness.
        let attempt = self.state.attempt();
        let asked = attempt.is_some_and(|attempt| sent >= attempt.since);
        let needed = self.agreement.needed().contains(reference);
        if reply.old && asked && needed && !s.reachable {
            self.newest.doubt();
        }
    }
}

//! Going on alone: what the partner holds is old, and who knows that.
//!
//! An output whose state is not safe at the partner may leave only when the partner cannot take
//! over with what it holds. Two independent ways make that certain: the witnesses refuse it the
//! role, or the partner itself has heard that its state is old.

use crate::event::Outbox;
use crate::role::{RoleMachine, Surroundings};
use crate::setup::{ReferenceKind, Timing};
use bumpless_base::Instant;
use bumpless_base::fault::{Fault, deliberate};
use bumpless_wire::{GroupEntry, GroupFlags, Role, WitnessKind, WitnessReply};

/// What a node that is, or was last, primary says of its partner's state, and who has heard it.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Alone {
    /// The partner's state may be older than the last output.
    ahead: bool,
    /// Since when that is said without a break; what was granted before does not count.
    since: Instant,
    /// Send time of the first heartbeats that said so.
    said_at: Option<Instant>,
    /// The partner has heard it.
    heard: bool,
}

impl Alone {
    pub(crate) const fn is_ahead(&self) -> bool {
        self.ahead
    }
}

impl RoleMachine {
    /// The driver's wish; see [`Redundancy::set_alone`](crate::Redundancy::set_alone).
    pub(crate) fn set_alone(&mut self, wanted: bool, s: &Surroundings<'_>, out: &mut Outbox) {
        self.notice_lapse(s, out);
        if self.role == Role::Primary && self.alone.ahead != wanted {
            self.declare(wanted, s.timing, s.now);
        }
    }

    /// States anew whether the partner's state is old; nobody has heard it yet.
    pub(crate) fn declare(&mut self, ahead: bool, timing: &Timing, now: Instant) {
        self.alone = Alone {
            ahead,
            since: now,
            said_at: None,
            heard: false,
        };
        self.urgent = true;
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            let lease = self.agreement.lease_mut(reference);
            lease.marked = false;
            let soon = now.max(lease.requested_at + timing.rate_limit());
            lease.next_request = lease.next_request.min(soon);
        }
    }

    /// This node follows a later primary: what it was ahead with is history.
    pub(crate) fn fall_behind(&mut self) {
        let later = |p: GroupEntry| p.role == Role::Primary && p.epoch > self.epoch;
        if self.partner.is_some_and(later) {
            self.alone.ahead = false;
        }
    }

    /// Whether the partner can no longer take over with what it holds.
    pub(crate) fn is_alone(&self) -> bool {
        let primary = self.role == Role::Primary && self.lapse.is_none();
        let mask = self.agreement.mask();
        let witness = |r| self.agreement.kind(r) == Some(ReferenceKind::Witness);
        let mut witnesses = mask.iter().filter(|&r| witness(r));
        let marked = witnesses.all(|r| self.agreement.lease(r).marked);
        primary
            && self.alone.ahead
            && (marked || self.alone.heard || deliberate(Fault::AloneUnasked))
    }

    /// The round of heartbeats that is sent at `now` says that this node is ahead.
    pub(crate) fn note_said(&mut self, now: Instant) {
        if self.alone.ahead {
            self.alone
                .said_at
                .get_or_insert(now.max(Instant::from_nanos(1)));
        }
    }

    /// Takes what a heartbeat of the partner says about old states: `asked` is the latest of our
    /// send times that the partner has heard.
    pub(crate) fn hear_alone(&mut self, entry: &GroupEntry, asked: Instant, s: &Surroundings<'_>) {
        let said = self.alone.said_at.is_some_and(|said| said <= asked);
        self.alone.heard |= self.alone.ahead && said && asked <= s.now;
        let old = entry.flags.contains(GroupFlags::ALONE);
        match (self.role, entry.role) {
            (Role::Primary, _) => {}
            (_, Role::Primary) => {
                self.stale = old;
                self.vouched = s.session;
            }
            _ => self.stale |= old,
        }
    }

    /// Takes what a witness's answer says about old states.
    pub(crate) fn hear_mark(
        &mut self,
        reference: crate::id::ReferenceId,
        reply: &WitnessReply,
        s: &Surroundings<'_>,
    ) {
        let sent = Instant::from_nanos(reply.echo_sent_at);
        if self.role == Role::Primary {
            if reply.kind == WitnessKind::RenewAlone && sent >= self.alone.since {
                self.agreement.lease_mut(reference).marked = reply.granted && reply.alone;
            }
            return;
        }
        // While the partner is heard, its own word is newer than that of a witness.
        let asked = self.attempt.is_some_and(|since| sent >= since);
        let needed = self.agreement.needed().contains(reference);
        if reply.alone && asked && needed && !s.reachable {
            self.stale = true;
        }
    }

    /// Both are here and neither is primary: whether it is known that this node's state is not old.
    /// The partner's present incarnation says so itself; for an earlier one the witnesses do. If
    /// one of them says that it is old, this node does not count as synced any more.
    pub(crate) fn is_state_judged(&mut self, s: &Surroundings<'_>) -> bool {
        if !self.synced(s.now) || self.vouched == s.session {
            return true;
        }
        let mut judged = true;
        for reference in self.agreement.needed().iter() {
            if self.agreement.kind(reference) != Some(ReferenceKind::Witness) {
                continue;
            }
            let lease = self.agreement.lease(reference);
            let asked_since = lease.answered_request() >= self.partner_since;
            judged &= asked_since;
            self.stale |= asked_since && lease.alone;
        }
        if judged {
            self.vouched = s.session;
        }
        judged || self.stale
    }
}

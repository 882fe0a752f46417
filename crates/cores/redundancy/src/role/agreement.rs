//! The reference points of one group: leases, and which one the pair has agreed on.
//!
//! Of two nodes that cannot hear each other, one at most may find what it needs at the reference
//! points. The backup needs the one that it has accepted (its *view*; all of them while it has
//! accepted none). The primary needs every one that may be the backup's view (its *mask*). View
//! and mask always have a member in common, and that one leases to one node at a time.

use crate::id::{ReferenceId, ReferenceSet};
use crate::setup::{MAX_REFERENCES, ReferenceKind, Timing};
use alloc::vec::Vec;
use bumpless_base::{Duration, Epoch, Instant};
use bumpless_wire::{NO_REFERENCE, WitnessReply};

mod lease;

pub(crate) use lease::{Lease, waits};

/// A group's reference points.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Agreement {
    members: Vec<(ReferenceId, ReferenceKind)>,
    leases: [Lease; MAX_REFERENCES],
    /// The primary's latest choice, or the one that this node has accepted last.
    current: Option<ReferenceId>,
    /// Number of that choice.
    version: u16,
    /// Not primary: `current` has been accepted and is all that a takeover needs.
    has_view: bool,
    /// Primary: every reference point that may be the backup's view.
    mask: ReferenceSet,
    /// Before this instant a primary proposes no other choice.
    next_proposal: Instant,
}

impl Agreement {
    pub(crate) fn new(members: Vec<(ReferenceId, ReferenceKind)>, now: Instant) -> Self {
        let lease = Lease {
            next_request: now,
            ..Lease::default()
        };
        Self {
            members,
            leases: [lease; MAX_REFERENCES],
            current: None,
            version: 0,
            has_view: false,
            mask: ReferenceSet::EMPTY,
            next_proposal: now,
        }
    }

    pub(crate) fn members(&self) -> &[(ReferenceId, ReferenceKind)] {
        &self.members
    }
    pub(crate) fn kind(&self, reference: ReferenceId) -> Option<ReferenceKind> {
        self.members
            .iter()
            .find(|(r, _)| *r == reference)
            .map(|(_, kind)| *kind)
    }
    pub(crate) const fn current(&self) -> Option<ReferenceId> {
        self.current
    }
    pub(crate) const fn mask(&self) -> ReferenceSet {
        self.mask
    }
    pub(crate) fn lease(&self, reference: ReferenceId) -> &Lease {
        &self.leases[usize::from(reference.0) % MAX_REFERENCES]
    }
    pub(crate) fn lease_mut(&mut self, reference: ReferenceId) -> &mut Lease {
        &mut self.leases[usize::from(reference.0) % MAX_REFERENCES]
    }

    /// Has witnesses asked at `now`, or as soon as the rate limit permits. One is left out if its latest answer
    /// still suffices at the next round, a heartbeat later; `suffices` says for how long an answer does, counted
    /// from its request. A request that is not answered is thus repeated with each round.
    pub(crate) fn ask_at_round(
        &mut self,
        now: Instant,
        timing: &Timing,
        suffices: impl Fn(&Lease) -> Duration,
    ) {
        for at in 0..self.members.len() {
            let lease = self.lease_mut(self.members[at].0);
            if lease.answered_request() + suffices(lease) >= now + timing.heartbeat {
                continue;
            }
            let soon = now.max(lease.requested_at + timing.rate_limit());
            lease.next_request = lease.next_request.min(soon);
        }
    }

    /// All that a node without a view needs: every witness; where there is none, every address.
    fn all(&self) -> ReferenceSet {
        let witness = |k: ReferenceKind| k == ReferenceKind::Witness;
        let leased = self.members.iter().any(|&(_, kind)| witness(kind));
        let needed = self
            .members
            .iter()
            .filter(|&&(_, kind)| !leased || witness(kind));
        needed.map(|(r, _)| *r).collect()
    }

    /// What a node that is not primary needs to become it alone.
    pub(crate) fn needed(&self) -> ReferenceSet {
        match self.current {
            Some(current) if self.has_view => ReferenceSet::only(current),
            _ => self.all(),
        }
    }

    /// Until when the leases of all of `set` allow output. No reference point at all: for ever.
    pub(crate) fn lease_until(&self, set: ReferenceSet) -> Instant {
        let ends = set.iter().map(|r| self.lease(r).until);
        ends.min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Whether every witness in `set` has exactly `epoch` on record with its lease.
    pub(crate) fn on_record(&self, set: ReferenceSet, epoch: Epoch) -> bool {
        set.iter()
            .all(|r| self.kind(r) == Some(ReferenceKind::Ping) || self.lease(r).epoch == epoch)
    }

    /// Whether the reference point answered lately.
    pub(crate) fn answers(&self, reference: ReferenceId, timing: &Timing, now: Instant) -> bool {
        let window = match self.kind(reference) {
            Some(ReferenceKind::Witness) => timing.peer_timeout + timing.lease,
            Some(ReferenceKind::Ping) => timing.ping_window(),
            None => return false,
        };
        self.lease(reference)
            .answered_at
            .is_some_and(|at| now <= at + window)
    }

    /// Whether the reference point answers and could grant what is asked of it.
    pub(crate) fn serves(&self, reference: ReferenceId, timing: &Timing, now: Instant) -> bool {
        self.answers(reference, timing, now) && now >= self.lease(reference).quiet_until
    }

    /// The first witness at which somebody held the role less than `span` ago.
    pub(crate) fn lately_leased(
        &self,
        set: ReferenceSet,
        span: Duration,
        now: Instant,
    ) -> Option<ReferenceId> {
        let lately = |at: Instant| now < at + span;
        set.iter()
            .find(|&r| self.lease(r).last_renewal.is_some_and(lately))
    }

    /// Whether every witness has answered once.
    pub(crate) fn all_consulted(&self) -> bool {
        let mut witnesses = self
            .members
            .iter()
            .filter(|(_, k)| *k == ReferenceKind::Witness);
        witnesses.all(|(r, _)| self.lease(*r).answered_at.is_some())
    }

    /// Takes a witness's answer, which is to a request for a lease if `leased`, unless a later one was taken. What
    /// was asked for at or before `since` has been renounced and grants nothing. Returns whether it was taken.
    pub(crate) fn take_reply(
        &mut self,
        reference: ReferenceId,
        reply: &WitnessReply,
        leased: bool,
        since: Instant,
        timing: &Timing,
        now: Instant,
    ) -> bool {
        let sent = Instant::from_nanos(reply.echo_sent_at);
        let lease = self.lease_mut(reference);
        if sent > now || reply.echo_sent_at <= lease.answered {
            return false;
        }
        lease.answered = reply.echo_sent_at;
        lease.answered_at = Some(now);
        (lease.witness, lease.simplex) = (reply.witness_session, reply.old);
        lease.granted = leased && reply.granted;
        lease.refused = leased && !reply.granted && !waits(reply);
        if !leased {
            lease.quiet_until = now + Duration::from_micros(reply.retry_after_us.into());
        }
        if !lease.granted {
            let silent = Duration::from_micros(reply.holder_silent_us.into());
            lease.last_renewal = (reply.epoch != Epoch(0)).then(|| now.before(silent));
        }
        if lease.granted && sent > since.max(lease.yielded_at) {
            lease.until = lease.until.max(sent + timing.lease);
            lease.epoch = reply.epoch;
            lease.session = reply.witness_session;
        }
        true
    }

    /// Takes an echo reply to a request sent at `sent`.
    pub(crate) fn take_echo(
        &mut self,
        reference: ReferenceId,
        sent: Instant,
        since: Instant,
        timing: &Timing,
        now: Instant,
    ) {
        let lease = self.lease_mut(reference);
        lease.answered_at = Some(now);
        lease.granted = true;
        if sent > since {
            lease.until = lease.until.max(sent + timing.ping_window());
        }
    }

    /// Gives up all leases.
    pub(crate) fn renounce(&mut self) {
        for lease in &mut self.leases {
            lease.until = Instant::ZERO;
            lease.granted = false;
            lease.refused = false;
        }
    }

    /// The primary role begins with the partner's promise; `view` is what the partner accepted.
    pub(crate) fn begin_by_promise(
        &mut self,
        view: Option<(ReferenceId, u16)>,
        timing: &Timing,
        now: Instant,
    ) {
        match view.filter(|(r, _)| self.kind(*r).is_some()) {
            Some((reference, version)) => (self.current, self.version) = (Some(reference), version),
            None if self.has_view => {}
            None => self.choose(timing, now),
        }
        self.mask = self.current.map(ReferenceSet::only).unwrap_or_default();
        self.begin(now);
    }

    /// The primary role begins with the leases of `set`.
    pub(crate) fn begin_by_lease(&mut self, set: ReferenceSet, timing: &Timing, now: Instant) {
        if !self.has_view {
            self.choose(timing, now);
        }
        self.mask = set;
        self.begin(now);
    }

    fn begin(&mut self, now: Instant) {
        self.has_view = false;
        self.next_proposal = now;
    }

    /// The primary role ends. On which reference point the next primary will agree is unknown.
    pub(crate) fn end(&mut self) {
        self.renounce();
        self.has_view = false;
        self.mask = ReferenceSet::EMPTY;
    }

    fn choose(&mut self, timing: &Timing, now: Instant) {
        // A partner without a view needs all witnesses, so an address will not do beside one.
        let all = self.all();
        let live = all.iter().find(|&r| self.answers(r, timing, now));
        self.current = live.or(all.iter().next());
        self.version = self.version.wrapping_add(1);
    }

    /// The first witness that answers, else the first address that does.
    fn best(&self, timing: &Timing, now: Instant) -> Option<ReferenceId> {
        let live = |kind| {
            let of_kind = self.members.iter().filter(move |(_, k)| *k == kind);
            of_kind
                .map(|(r, _)| *r)
                .find(|&r| self.answers(r, timing, now))
        };
        live(ReferenceKind::Witness).or_else(|| live(ReferenceKind::Ping))
    }

    /// Primary: the backup said what it has accepted. Returns whether that settled the choice.
    pub(crate) fn hear_view(&mut self, view: Option<(ReferenceId, u16)>) -> bool {
        let Some(current) = self.current else {
            return false;
        };
        let only = ReferenceSet::only(current);
        if view != Some((current, self.version)) || self.mask == only {
            return false;
        }
        self.mask = only;
        true
    }

    /// Primary: whether the backup's acceptance of the latest choice is outstanding.
    pub(crate) fn is_settled(&self) -> bool {
        self.current
            .is_none_or(|c| self.mask == ReferenceSet::only(c))
    }

    /// Primary with a backup that listens: proposes another reference point if the agreed one
    /// serves one of the two badly, or a better kind answers. Returns the proposal.
    pub(crate) fn propose(
        &mut self,
        backup_reaches: bool,
        timing: &Timing,
        now: Instant,
    ) -> Option<ReferenceId> {
        let current = self.current?;
        let best = self.best(timing, now)?;
        let weaker = self.kind(current) == Some(ReferenceKind::Ping)
            && self.kind(best) == Some(ReferenceKind::Witness);
        let serves = self.answers(current, timing, now) && backup_reaches;
        if (serves && !weaker) || now < self.next_proposal {
            return None;
        }
        let next = self.next_after(current, timing, now)?;
        self.current = Some(next);
        self.version = self.version.wrapping_add(1);
        self.mask = self.mask.union(ReferenceSet::only(next));
        self.next_proposal = now + timing.start_wait;
        Some(next)
    }

    /// The next reference point that answers, in a circle so that each gets its turn.
    fn next_after(
        &self,
        current: ReferenceId,
        timing: &Timing,
        now: Instant,
    ) -> Option<ReferenceId> {
        let at = self.members.iter().position(|(r, _)| *r == current)?;
        let (before, after) = self.members.split_at(at);
        let circle = after.iter().skip(1).chain(before).map(|(r, _)| *r);
        let live = circle.filter(|&r| self.answers(r, timing, now));
        let witness = |r: &ReferenceId| self.kind(*r) == Some(ReferenceKind::Witness);
        live.clone().find(witness).or_else(|| live.clone().next())
    }

    /// Not primary: the primary stated its choice. It is accepted if this node can reach it.
    /// Returns whether the view changed.
    pub(crate) fn hear_choice(
        &mut self,
        choice: Option<(ReferenceId, u16)>,
        timing: &Timing,
        now: Instant,
    ) -> bool {
        let Some((reference, version)) = choice else {
            return false;
        };
        let same = self.has_view && (self.current, self.version) == (Some(reference), version);
        if same || !self.answers(reference, timing, now) {
            return false;
        }
        (self.current, self.version) = (Some(reference), version);
        self.has_view = true;
        true
    }

    /// What heartbeats say: as primary the choice, else the accepted view.
    pub(crate) fn stated(&self, primary: bool) -> (u8, u16) {
        match self.current {
            Some(current) if primary || self.has_view => (current.0, self.version),
            _ => (NO_REFERENCE, 0),
        }
    }
}

#[cfg(test)]
mod tests;

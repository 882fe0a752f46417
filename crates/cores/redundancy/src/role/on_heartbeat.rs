//! What a group learns from its partner and its reference points.

use crate::event::{Event, Outbox};
use crate::id::ReferenceId;
use crate::role::agreement::waits;
use crate::role::{RoleMachine, Surroundings};
use bumpless_base::{Counter, Duration, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, NO_REFERENCE, Role, WitnessKind, WitnessReply};

impl RoleMachine {
    /// Takes what the partner says; `lease_echo`: the send time of ours from which its promise counts.
    pub(crate) fn hear_partner(
        &mut self,
        entry: GroupEntry,
        lease_echo: u64,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        self.notice_lapse(s, out);
        let before = self.counterpart.entry.replace(entry);
        let asked = Instant::from_nanos(lease_echo);
        let promised = entry.flags.contains(GroupFlags::GRANTING);
        if promised && asked <= s.now && asked > self.lasting.rights_since {
            let until = asked + s.timing.lease;
            self.lasting.promised_right_until = self.lasting.promised_right_until.max(until);
        }
        self.counterpart.heard = asked;
        self.observe(entry.epoch);
        self.hear_lapse(before, &entry);
        self.note_simplex_heard(asked, s);
        self.hear_newest(&entry, s);
        let view = (entry.reference != NO_REFERENCE)
            .then_some((ReferenceId(entry.reference), entry.reference_version));
        let changed = match (self.role(), entry.role) {
            (Role::Primary, Role::Primary) => false,
            (Role::Primary, _) => self.agreement.hear_view(view),
            (_, Role::Primary) => self.agreement.hear_choice(view, s.timing, s.now),
            _ => false,
        };
        if let (true, Some(reference)) = (changed, self.agreement.current()) {
            self.urgent = true;
            out.event(Event::ReferenceChanged {
                group: self.terms.id,
                reference,
            });
        }
        self.hear_hand_over(&entry, s, out);
        self.urgent |= before.is_none_or(|b| b.role != entry.role || b.flags != entry.flags);
        self.decide(s, out);
        let tenure = self.state.tenure_mut();
        if let Some(tenure) = tenure.filter(|tenure| tenure.lapse.is_none()) {
            tenure.incarnation = s.session;
        }
    }

    /// A partner that says LAPSED for the first time has given up every promise that names an earlier heartbeat of it
    /// . So far this node has promised it nothing else.
    fn hear_lapse(&mut self, before: Option<GroupEntry>, entry: &GroupEntry) {
        let lapsed = |entry: GroupEntry| entry.flags.contains(GroupFlags::LAPSED);
        if lapsed(*entry) && before.is_some_and(|before| !lapsed(before)) {
            self.lasting.promised_until = Instant::ZERO;
        }
    }

    /// The partner restarted: what its earlier incarnation said is void, what we promised is not.
    #[cold]
    pub(crate) fn forget_partner(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.notice_lapse(s, out);
        self.counterpart.entry = None;
        self.counterpart.since = s.now;
        self.lasting.grant_from = self.lasting.promised_until;
        self.counterpart.served = None;
        self.declare_again(s);
    }

    /// Takes a witness's answer. Returns whether it is the first one to its request or a later one.
    pub(crate) fn hear_witness(
        &mut self,
        reference: ReferenceId,
        reply: &WitnessReply,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) -> bool {
        self.notice_lapse(s, out);
        let leased = reply.kind.is_lease();
        let since = self.lasting.rights_since;
        if !self
            .agreement
            .take_reply(reference, reply, leased, since, s.timing, s.now)
        {
            out.count(Counter::DiscardDuplicate);
            return false;
        }
        out.count(Counter::WitnessReplies);
        self.hear_reference(reference, out);
        self.hear_mark(reference, reply, s);
        if reply.kind == WitnessKind::Yield {
            // It is heard, so it can be asked for the lease.
            let lease = self.agreement.lease_mut(reference);
            let soon = s.now.max(lease.requested_at + s.timing.rate_limit());
            lease.next_request = lease.next_request.min(soon);
        }
        let known = self.lasting.observed;
        self.observe(reply.epoch);
        if leased && !reply.granted {
            self.notice_spent(reply.epoch);
        }
        let retry = s.now + Duration::from_micros(reply.retry_after_us.into());
        let surpassed = self.lasting.observed > known;
        let worthwhile = surpassed || waits(reply);
        if self.wants(reference) && !reply.granted && leased && worthwhile {
            let lease = self.agreement.lease_mut(reference);
            // Refused for its epoch: the next request carries a higher one. Refused because of a
            // running promise: ask again when that ends. For anything else the rounds ask.
            let soon = if surpassed { s.now } else { retry };
            let earliest = lease.requested_at + s.timing.rate_limit();
            lease.next_request = lease.next_request.min(soon.max(earliest));
        }
        self.decide(s, out);
        true
    }

    /// Takes an echo reply to a request sent at `sent`.
    pub(crate) fn hear_echo(
        &mut self,
        reference: ReferenceId,
        sent: Instant,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        self.notice_lapse(s, out);
        self.agreement
            .take_echo(reference, sent, self.lasting.rights_since, s.timing, s.now);
        self.hear_reference(reference, out);
        self.decide(s, out);
    }

    fn hear_reference(&mut self, reference: ReferenceId, out: &mut Outbox) {
        let lease = self.agreement.lease_mut(reference);
        if !lease.heard {
            lease.heard = true;
            out.event(Event::ReferenceHeard {
                group: self.terms.id,
                reference,
            });
        }
    }
}

//! The role of one group on this node: what it knows, what it promised, what it may do.
//!
//! The transitions are in [`decide`](crate::decide), ordered switchover is in
//! [`hand_over`](crate::hand_over). Clauses.

use crate::agreement::{Agreement, waits};
use crate::alone::Alone;
use crate::event::{Event, Outbox, RedundancyLevel, RoleCause, WaitCause};
use crate::hand_over::HandOver;
use crate::id::{GroupId, ReferenceId, ReferenceSet};
use crate::newest::Newest;
use crate::setup::{GroupSetup, MAX_REFERENCES, Timing};
use bumpless_base::fault::{Fault, deliberate};
use bumpless_base::{Counter, Duration, Epoch, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, NO_REFERENCE, Role, WitnessKind, WitnessReply};

/// The right to write outputs. Look at it right before each output: it may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputPermit {
    /// The stamp of the outputs.
    pub epoch: Epoch,
    /// No output may leave at or after this instant of this node's clock.
    pub until: Instant,
}

/// What a group sees of its surroundings at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) timing: &'a Timing,
    pub(crate) lone_start_without: bool,
    pub(crate) now: Instant,
    /// The partner is heard and hears us on some link.
    pub(crate) reachable: bool,
    pub(crate) unreachable_since: Instant,
    /// The partner's adopted session, 0 for none.
    pub(crate) session: u64,
    /// There is proof that two processes use the partner's name.
    pub(crate) duplicate_partner: bool,
    /// Another process uses this node's name.
    pub(crate) duplicate_self: bool,
    /// The partner runs another configuration.
    pub(crate) conflict: Option<Conflict>,
    /// The partner is heard and answers, but later than the pair can bear.
    pub(crate) late: bool,
}

/// Leases for which a primary without a right hurries at most.
const HASTE_LEASES: u64 = 10;

/// A partner with another configuration, as one of its groups sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conflict {
    /// It has a role already, so its configuration is in force there.
    pub(crate) established: bool,
}

/// The primary's right has run out.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Lapse {
    /// When that was noticed.
    pub(crate) since: Instant,
    /// When it ended.
    pub(crate) ended: Instant,
    /// The partner has been told, and may count on it that no earlier promise is used any more.
    pub(crate) said: bool,
    /// The partner's incarnation that was known before.
    pub(crate) ally: u64,
    /// The reference points of which the partner may have needed one to take over since: a later
    /// incarnation of the partner that agrees on another says nothing about them.
    pub(crate) mask: ReferenceSet,
    /// The witnesses' incarnations that had our epoch on record before, 0 for none.
    pub(crate) witnesses: [u64; MAX_REFERENCES],
}

impl Lapse {
    /// Whether this incarnation of the witness had our epoch on record before.
    pub(crate) fn is_known(&self, reference: ReferenceId, session: u64) -> bool {
        let before = self.witnesses[usize::from(reference.0) % MAX_REFERENCES];
        before != 0 && before == session
    }
}

/// The state machine of one group.
#[derive(Clone, Debug, Hash)]
pub(crate) struct RoleMachine {
    pub(crate) id: GroupId,
    /// Position of the partner in the table of partners.
    pub(crate) peer: usize,
    /// 0 for the preferred candidate, 1 for the other.
    pub(crate) index: u8,
    /// For how long after the last output a node may go on from the newest state.
    pub(crate) hot_restart: Duration,
    /// The group goes no further when nobody holds a state that is young enough.
    pub(crate) stop_when_old: bool,
    pub(crate) started: Instant,
    quiet_until: Instant,
    pub(crate) role: Role,
    pub(crate) cause: Option<RoleCause>,
    /// Stamp of outputs while primary.
    pub(crate) epoch: Epoch,
    /// Highest epoch known, except an own candidate that was never used.
    pub(crate) observed: Epoch,
    /// The epoch that this node would use next; of its own residue, so nobody else's.
    pub(crate) candidate: Option<Epoch>,
    pub(crate) newest: Newest,
    /// What the partner said last in its adopted session.
    pub(crate) partner: Option<GroupEntry>,
    /// The latest of our send times that the partner had heard when it said that.
    pub(crate) partner_heard: Instant,
    /// When the partner's session was adopted.
    pub(crate) partner_since: Instant,
    /// The partner's incarnation that was last heard while our right was valid.
    pub(crate) ally: u64,
    /// The partner will not take over before this instant of our clock.
    pub(crate) right: Instant,
    /// Promises and leases asked for at or before this were renounced.
    pub(crate) rights_since: Instant,
    /// When this node last ceased to be primary; later by as long as it has stood still since without a partner.
    pub(crate) resigned_at: Instant,
    /// We promised not to take over before this.
    pub(crate) promised_until: Instant,
    /// An earlier session of the partner may count on a promise until this; no other gets one.
    pub(crate) grant_from: Instant,
    pub(crate) granting: bool,
    pub(crate) lapse: Option<Lapse>,
    /// Trying to become primary by leases since.
    pub(crate) attempt: Option<Instant>,
    /// The attempt does not claim a fresh state.
    pub(crate) attempt_lone: bool,
    /// As primary: the role began without a fresh state.
    pub(crate) cold: bool,
    pub(crate) alone: Alone,
    pub(crate) waiting: Option<WaitCause>,
    pub(crate) hand_over: HandOver,
    pub(crate) agreement: Agreement,
    pub(crate) level: Option<RedundancyLevel>,
    /// Something changed that the partner should hear at once.
    pub(crate) urgent: bool,
}

impl RoleMachine {
    pub(crate) fn new(
        setup: &GroupSetup,
        peer: usize,
        index: u8,
        agreement: Agreement,
        (timing, now): (&Timing, Instant),
    ) -> Self {
        Self {
            id: setup.id,
            hot_restart: setup.hot_restart,
            stop_when_old: setup.stop_when_old,
            peer,
            index,
            started: now,
            quiet_until: now + timing.promise(),
            role: Role::Starting,
            cause: None,
            epoch: Epoch(0),
            observed: Epoch(0),
            candidate: None,
            newest: Newest::default(),
            partner: None,
            partner_heard: Instant::ZERO,
            partner_since: now,
            ally: 0,
            right: Instant::ZERO,
            rights_since: Instant::ZERO,
            resigned_at: Instant::ZERO,
            promised_until: Instant::ZERO,
            grant_from: Instant::ZERO,
            granting: false,
            lapse: None,
            attempt: None,
            attempt_lone: false,
            cold: false,
            alone: Alone::default(),
            waiting: None,
            hand_over: HandOver::default(),
            agreement,
            level: None,
            urgent: false,
        }
    }

    /// Until when this node may write, were it primary: the partner's promise or the leases.
    pub(crate) fn right_until(&self) -> Instant {
        if deliberate(Fault::LeaseNeverEnds) {
            return Instant::FAR_FUTURE;
        }
        self.right
            .max(self.agreement.lease_until(self.agreement.mask()))
    }

    pub(crate) fn permit(&self) -> Option<OutputPermit> {
        let valid = self.role == Role::Primary && self.lapse.is_none();
        valid.then(|| OutputPermit {
            epoch: self.epoch,
            until: self.right_until(),
        })
    }

    /// Why this node may not have the primary role at all. Who has a role does not lose it to a partner that
    /// comes with another configuration.
    pub(crate) fn barred(&self, s: &Surroundings<'_>) -> Option<RoleCause> {
        if s.duplicate_self {
            return Some(RoleCause::DuplicateNode);
        }
        let newcomer = self.role == Role::Starting;
        let yields = |conflict: Conflict| newcomer || conflict.established;
        let conflict = s.conflict.filter(|&conflict| yields(conflict));
        conflict.map(|_| RoleCause::ConfigurationDiffers)
    }

    /// Whether this node is the backup of a primary that it hears: its heartbeats answer the primary's, which
    /// then holds a promise that is as young as can be, and one wake-up serves both.
    pub(crate) fn follows(&self, s: &Surroundings<'_>) -> bool {
        let partner = self.partner.filter(|_| s.reachable);
        self.role == Role::Backup && partner.is_some_and(|partner| partner.role == Role::Primary)
    }

    /// Before this, an earlier incarnation of this node may still be bound by a promise, or hold
    /// a right; the new one neither promises nor takes.
    pub(crate) const fn quiet_until(&self) -> Instant {
        self.quiet_until
    }

    /// Learns of an epoch that somebody uses or has on record.
    pub(crate) fn observe(&mut self, epoch: Epoch) {
        if Some(epoch) == self.candidate || epoch <= self.observed {
            return;
        }
        self.observed = epoch;
        if self.candidate.is_some_and(|candidate| candidate <= epoch) {
            self.candidate = None;
        }
    }

    /// A witness that refuses a lease has `epoch` on record. If that is the one that this node would use, or
    /// uses, an earlier process of it has asked for it there: it would be refused for ever.
    fn notice_spent(&mut self, epoch: Epoch) {
        if Some(epoch) == self.candidate {
            self.candidate = None;
            self.observe(epoch);
        } else if self.role == Role::Primary && self.lapse.is_none() && epoch == self.epoch {
            // The next one is the partner's, and whoever knows of it goes above it.
            self.observe(Epoch(epoch.0.saturating_add(1)));
            self.urgent = true;
        }
    }

    /// The epoch to use next; `None` when the range is used up.
    pub(crate) fn next_epoch(&mut self) -> Option<Epoch> {
        let index = self.index * u8::from(!deliberate(Fault::EpochsNotApart));
        self.candidate = self.candidate.or(self.observed.next_for(index, 2));
        self.candidate
    }

    /// The highest epoch that is known or that this node wants on record at the partner. Who asks
    /// the reference points wants it on record there: a primary that hears of it would go above it
    /// each time, and this node above the primary, without end.
    pub(crate) fn stated_epoch(&self) -> Epoch {
        let candidate = self.candidate.filter(|_| self.attempt.is_none());
        self.observed.max(candidate.unwrap_or_default())
    }

    /// What the next round of heartbeats says. If it promises, the promise is given here.
    pub(crate) fn entry(&mut self, heard_at: Option<Instant>, s: &Surroundings<'_>) -> GroupEntry {
        let lapsed = self.say_lapse(s);
        let only_one = !s.duplicate_partner && s.now >= self.grant_from;
        let granting = self.granting && heard_at.is_some() && only_one;
        self.note_said(s.now);
        if let (true, Some(at)) = (granting, heard_at)
            && !deliberate(Fault::PromiseForgotten)
        {
            self.promised_until = self.promised_until.max(at + s.timing.promise());
        }
        self.urgent = self.is_in_haste(s);
        let (reference, version) = self.agreement.stated(self.role == Role::Primary);
        let reaches = self
            .agreement
            .needed()
            .iter()
            .all(|r| self.agreement.serves(r, s.timing, s.now));
        let flags = GroupFlags::EMPTY
            .with(GroupFlags::SYNCED, self.synced(s.now))
            .with(GroupFlags::GRANTING, granting)
            .with(
                GroupFlags::SWITCHOVER_REQUEST,
                self.hand_over.is_requested(),
            )
            .with(GroupFlags::HANDING_OVER, self.hand_over.offered().is_some())
            .with(GroupFlags::ELIGIBLE, self.role != Role::Stopped && reaches)
            .with(GroupFlags::ALONE, self.says_alone())
            .with(GroupFlags::DUPLICATE, s.duplicate_partner)
            .with(GroupFlags::LAPSED, lapsed)
            .with(
                GroupFlags::NEWEST,
                self.role == Role::Primary || self.claim(s.now).is_some(),
            )
            .with(GroupFlags::UNFIT, !self.newest.holding.fit)
            .with(GroupFlags::HELD, self.newest.holds_some(s.now));
        GroupEntry {
            group: self.id.0,
            role: self.role,
            epoch: self.stated_epoch(),
            used: self.newest.used,
            flags,
            reference,
            reference_version: version,
            token: self.hand_over.token(),
        }
    }

    /// Whether the round that is sent at `s.now` says that the right has run out: not at once, since what brings it
    /// back is mostly on its way. From the first on that does, no promise that names an earlier one is used.
    fn say_lapse(&mut self, s: &Surroundings<'_>) -> bool {
        let Some(lapse) = &mut self.lapse else {
            return false;
        };
        if !lapse.said && s.now >= lapse.since + s.timing.heartbeat / 2 {
            lapse.said = true;
            if deliberate(Fault::PromisesKeptAtLapse) {
                return true;
            }
            self.right = Instant::ZERO;
            self.rights_since = s.now.before(Duration::from_nanos(1));
            self.agreement.renounce();
        }
        lapse.said
    }

    /// A right has run out not long ago, here or at the partner: the sooner one of many heartbeats gets through, the
    /// sooner outputs go on.
    fn is_in_haste(&self, s: &Surroundings<'_>) -> bool {
        let lapsed = |lapse: &Lapse| s.now < lapse.since + s.timing.lease * HASTE_LEASES;
        let partner_lapsed = |p: GroupEntry| p.flags.contains(GroupFlags::LAPSED);
        let partner = self.partner.filter(|_| s.reachable);
        self.lapse.as_ref().is_some_and(lapsed) || partner.is_some_and(partner_lapsed)
    }

    /// Takes what the partner says; `lease_echo` is from when its promise counts, our clock.
    pub(crate) fn hear_partner(
        &mut self,
        entry: GroupEntry,
        lease_echo: u64,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        self.notice_lapse(s, out);
        let before = self.partner.replace(entry);
        let asked = Instant::from_nanos(lease_echo);
        let promised = entry.flags.contains(GroupFlags::GRANTING);
        if promised && asked <= s.now && asked > self.rights_since {
            let from = match deliberate(Fault::PromiseCountedFromHearing) {
                false => asked,
                true => s.now,
            };
            self.right = self.right.max(from + s.timing.lease);
        }
        self.partner_heard = asked;
        self.observe(entry.epoch);
        self.hear_lapse(before, &entry);
        self.hear_alone(asked, s);
        self.hear_newest(&entry, s);
        let view = (entry.reference != NO_REFERENCE)
            .then_some((ReferenceId(entry.reference), entry.reference_version));
        let changed = match (self.role, entry.role) {
            (Role::Primary, Role::Primary) => false,
            (Role::Primary, _) => self.agreement.hear_view(view),
            (_, Role::Primary) => self.agreement.hear_choice(view, s.timing, s.now),
            _ => false,
        };
        if let (true, Some(reference)) = (changed, self.agreement.current()) {
            self.urgent = true;
            out.event(Event::ReferenceChanged {
                group: self.id,
                reference,
            });
        }
        self.hear_hand_over(&entry, s, out);
        self.urgent |= before.is_none_or(|b| b.role != entry.role || b.flags != entry.flags);
        self.decide(s, out);
        if self.lapse.is_none() {
            self.ally = s.session;
        }
    }

    /// A primary that says that its right has run out has given up every promise that names an earlier heartbeat
    /// of it, and so far it was promised nothing else.
    fn hear_lapse(&mut self, before: Option<GroupEntry>, entry: &GroupEntry) {
        let lapsed = |entry: GroupEntry| entry.flags.contains(GroupFlags::LAPSED);
        if lapsed(*entry) && before.is_some_and(|before| !lapsed(before)) {
            self.promised_until = Instant::ZERO;
        }
    }

    /// The partner restarted: what its earlier incarnation said is void, what we promised is not.
    #[cold]
    pub(crate) fn forget_partner(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.notice_lapse(s, out);
        self.partner = None;
        self.partner_since = s.now;
        self.grant_from = self.promised_until;
        if self.role == Role::Primary {
            self.declare(self.alone.is_ahead(), s.timing, s.now);
        }
    }

    /// Takes a witness's answer.
    pub(crate) fn hear_witness(
        &mut self,
        reference: ReferenceId,
        reply: &WitnessReply,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        self.notice_lapse(s, out);
        let leased = reply.kind.is_lease();
        let since = self.rights_since;
        if !self
            .agreement
            .take_reply(reference, reply, leased, since, s.timing, s.now)
        {
            out.count(Counter::DiscardDuplicate);
            return;
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
        let known = self.observed;
        self.observe(reply.epoch);
        if leased && !reply.granted && !deliberate(Fault::EpochsNotApart) {
            self.notice_spent(reply.epoch);
        }
        let retry = s.now + Duration::from_micros(reply.retry_after_us.into());
        let surpassed = self.observed > known;
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
            .take_echo(reference, sent, self.rights_since, s.timing, s.now);
        self.hear_reference(reference, out);
        self.decide(s, out);
    }

    fn hear_reference(&mut self, reference: ReferenceId, out: &mut Outbox) {
        let lease = self.agreement.lease_mut(reference);
        if !lease.heard {
            lease.heard = true;
            out.event(Event::ReferenceHeard {
                group: self.id,
                reference,
            });
        }
    }

    #[cold]
    pub(crate) fn set_role(&mut self, to: Role, cause: RoleCause, out: &mut Outbox) {
        let from = core::mem::replace(&mut self.role, to);
        self.cause = Some(cause);
        self.urgent = true;
        if from == to {
            return;
        }
        out.count(Counter::RoleChanges);
        let epoch = if to == Role::Primary {
            self.epoch
        } else {
            self.observed
        };
        out.event(Event::RoleChanged {
            group: self.id,
            from,
            to,
            epoch,
            cause,
        });
    }
}

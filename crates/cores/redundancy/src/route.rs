//! How the hub finds whom something concerns, and what follows from any change.

use crate::event::{Event, Outbox};
use crate::id::{GroupId, GroupPlace, ReferenceId};
use crate::partner::{Partner, conflict_hold};
use crate::redundancy::Redundancy;
use crate::role::status::LinksView;
use crate::role::{RoleMachine, Surroundings};
use crate::setup::Setup;
use bumpless_base::random::mix64;
use bumpless_base::{Counter, Duration, Instant, PeerId};
use bumpless_wire::Heartbeat;

impl Redundancy {
    pub(crate) fn route_entries(&mut self, at: PeerId, heartbeat: &Heartbeat<'_>, now: Instant) {
        let lease_echo = heartbeat.lease_echo;
        for entry in heartbeat.groups() {
            let group = GroupId(entry.group);
            let shared = self.index_of(group);
            let shared = shared.filter(|&index| self.groups[index].terms.peer == at);
            match shared {
                Some(index) => self.with_group(index, now, |group, s, out| {
                    group.hear_partner(entry, lease_echo, s, out);
                }),
                None => self.out.count(Counter::DiscardWrongNode),
            }
        }
    }

    /// The partner has proof that our name is used twice.
    #[cold]
    pub(crate) fn hear_duplicate(&mut self, now: Instant) {
        if self.duplicate_until.is_none() {
            self.out.event(Event::DuplicateNode);
        }
        self.duplicate_until = Some(now + conflict_hold(&self.setup.timing));
    }

    /// Proves that an answer belongs to a request of this incarnation. The kind is part of it, so
    /// that an observation cannot be passed off as a grant.
    pub(crate) fn token(&self, group: GroupId, reference: ReferenceId, sent: u64, kind: u8) -> u64 {
        let which = u64::from(group.0) << 16 | u64::from(reference.0) << 8 | u64::from(kind);
        mix64(self.secret ^ mix64(sent ^ mix64(which)))
    }

    /// Something is due at least once each heartbeat. A driver that comes later than twice that
    /// was stopped, and so may have been what it reads from: it cannot judge its partners yet.
    pub(crate) fn notice_stall(&mut self, now: Instant) {
        let heartbeat = self.setup.timing.heartbeat;
        let gap = now.since(self.now);
        if gap > heartbeat * 2 {
            self.grace = now + heartbeat * 2;
            self.discount_stall(gap);
        }
        self.now = self.now.max(now);
    }

    /// While it stands still, a node does not look for a partner that it has lost.
    #[cold]
    fn discount_stall(&mut self, gap: Duration) {
        for group in &mut self.groups {
            if !self.partners[group.terms.peer].is_reachable() {
                group.lasting.resigned_at += gap;
            }
        }
        for partner in &mut self.partners {
            partner.discount_stall(gap);
        }
    }

    pub(crate) fn index_of(&self, group: GroupId) -> Option<GroupPlace> {
        let mut groups = self.groups.indices();
        groups.find(|&index| self.groups[index].terms.id == group)
    }

    pub(crate) fn links_view(&self, peer: PeerId) -> LinksView {
        let partner = &self.partners[peer];
        let all = partner.links();
        LinksView {
            all,
            up: all.iter().filter(|&l| partner.link_up(l)).collect(),
            narrow: all.iter().filter(|&l| partner.is_narrow(l)).collect(),
        }
    }

    pub(crate) fn surroundings(&self, peer: PeerId, now: Instant) -> Surroundings<'_> {
        surroundings(
            &self.setup,
            &self.partners[peer],
            self.duplicate_until.is_some(),
            now,
        )
    }

    pub(crate) fn with_group(
        &mut self,
        index: GroupPlace,
        now: Instant,
        act: impl FnOnce(&mut RoleMachine, &Surroundings<'_>, &mut Outbox),
    ) {
        let group = &mut self.groups[index];
        let partner = &self.partners[group.terms.peer];
        let s = surroundings(&self.setup, partner, self.duplicate_until.is_some(), now);
        act(group, &s, &mut self.out);
    }

    pub(crate) fn each_group(
        &mut self,
        peer: Option<PeerId>,
        now: Instant,
        mut act: impl FnMut(&mut RoleMachine, &Surroundings<'_>, &mut Outbox),
    ) {
        for index in self.groups.indices() {
            if peer.is_none_or(|peer| self.groups[index].terms.peer == peer) {
                self.with_group(index, now, &mut act);
            }
        }
    }

    /// Each group says how redundant it is. At least once in each heartbeat, since it follows from much that says
    /// nothing when it changes.
    pub(crate) fn watch(&mut self, now: Instant) {
        for index in self.groups.indices() {
            let links = self.links_view(self.groups[index].terms.peer);
            self.with_group(index, now, |group, s, out| group.watch(links, s, out));
        }
    }

    /// After anything that may have changed a group: what is urgent goes out with the next round,
    /// and rounds that are due are opened. Returns whether one was.
    pub(crate) fn after(&mut self, peer: Option<PeerId>, now: Instant) -> bool {
        self.notice_stall(now);
        let conflict = |partner: &Partner| partner.conflict().is_some();
        if self.partners.iter().any(conflict) || self.duplicate_until.is_some() {
            self.each_group(None, now, |group, s, out| group.decide(s, out));
        }
        for group in &self.groups {
            if group.urgent && peer.is_none_or(|peer| peer == group.terms.peer) {
                self.partners[group.terms.peer].hurry();
            }
        }
        self.open_rounds(now)
    }

    fn open_rounds(&mut self, now: Instant) -> bool {
        let mut any = false;
        for at in self.partners.indices() {
            if now >= self.partners[at].next_round(&self.setup.timing) {
                self.open_round(at, now);
                any = true;
            }
        }
        any
    }

    // Apart, so that what it needs is not made ready where no round is due: after most messages.
    #[inline(never)]
    fn open_round(&mut self, at: PeerId, now: Instant) {
        let duplicate = self.duplicate_until.is_some();
        let partner = &mut self.partners[at];
        if partner.is_round_regular(now) {
            // One wake-up for all instead of one for each: requests leave with the heartbeats.
            let groups = self
                .groups
                .iter_mut()
                .filter(|group| group.terms.peer == at);
            let s = surroundings(&self.setup, partner, duplicate, now);
            groups.for_each(|group| group.ask_at_round(&s));
        }
        let heard_at = partner.latest_heard_at();
        let s = surroundings(&self.setup, partner, duplicate, now);
        let mut groups = self.groups.iter().filter(|group| group.terms.peer == at);
        let follows = groups.all(|group| group.follows(&s));
        let groups = self
            .groups
            .iter_mut()
            .filter(|group| group.terms.peer == at);
        partner.open_round(
            (&self.setup.timing, follows),
            &mut self.change,
            now,
            groups.map(|g| g.promise_and_say(heard_at, &s)),
        );
    }
}

fn surroundings<'a>(
    setup: &'a Setup,
    partner: &Partner,
    duplicate: bool,
    now: Instant,
) -> Surroundings<'a> {
    Surroundings {
        timing: &setup.timing,
        now,
        reachable: partner.is_reachable(),
        unreachable_since: partner.unreachable_since(),
        session: partner.session().adopted(),
        duplicate_partner: partner.is_duplicate(),
        duplicate_self: duplicate,
        conflict: partner.conflict(),
        late: partner.late(&setup.timing, now).is_some(),
    }
}

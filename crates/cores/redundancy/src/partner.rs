//! One partner node: its session, its links, and what its heartbeats say.

use crate::change::{Change, Configurations, Follows};
use crate::event::{Event, Outbox};
use crate::liveness::LinkState;
use crate::presence::Presence;
use crate::role::Conflict;
use crate::session::{Admission, Session};
use crate::setup::{PartnerSetup, Timing};
use bumpless_base::{Counter, Duration, Instant, LinkId, LinkSet, MAX_LINKS, NodeId, PeerId};
use bumpless_wire::Heartbeat;

mod conflict;
mod round;

pub(crate) use conflict::conflict_hold;
use round::Round;

/// What a heartbeat amounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Its group entries are to be taken: the partner speaks to this incarnation, and nothing
    /// that it sent later has been heard.
    pub(crate) entries: bool,
    /// It is of the present: the partner's process that counts speaks to this incarnation, on this link for the first
    /// time.
    pub(crate) present: bool,
    /// The partner's session changed with it.
    pub(crate) session_changed: bool,
}

impl Heard {
    const NOTHING: Self = Self {
        entries: false,
        present: false,
        session_changed: false,
    };
}

/// A partner node.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Partner {
    pub(crate) peer: PeerId,
    pub(crate) node: NodeId,
    links: LinkSet,
    session: Session,
    states: [LinkState; MAX_LINKS],
    reachable: bool,
    /// Since when the partner is not reachable; later by as long as this node has stood still since.
    unreachable_since: Instant,
    presence: Presence,
    /// The partner's configuration differs, or did not long ago: until when that counts, and whether it has a role.
    conflict: Option<(Instant, Conflict)>,
    /// From when on the next round goes out at full length.
    next_full: Instant,
    /// Two processes use the partner's name; neither is believed until then.
    duplicate_until: Option<Instant>,
    /// Highest `sent_at` of the adopted session on any link, and when it was first heard.
    latest: u64,
    latest_at: Instant,
    /// What the partner said last of its configurations, in the adopted session and to this incarnation.
    configurations: Option<Configurations>,
    round: Round,
}

impl Partner {
    pub(crate) fn new(
        peer: PeerId,
        setup: PartnerSetup,
        (own, drift_ppm): (u64, u32),
        seed: u64,
        now: Instant,
    ) -> Self {
        Self {
            peer,
            node: setup.node,
            links: setup.links,
            session: Session::new(own, seed),
            states: [LinkState::default(); MAX_LINKS],
            reachable: false,
            unreachable_since: now,
            presence: Presence::never(drift_ppm),
            conflict: None,
            next_full: now,
            duplicate_until: None,
            latest: 0,
            latest_at: now,
            configurations: None,
            round: Round::none(now),
        }
    }

    /// Takes a heartbeat whose pair, sender and addressee are right.
    pub(crate) fn hear(
        &mut self,
        link: LinkId,
        heartbeat: &Heartbeat<'_>,
        (timing, change, established): (&Timing, &mut Change, bool),
        now: Instant,
        out: &mut Outbox,
    ) -> Heard {
        let configurations = Configurations {
            current: heartbeat.fingerprint,
            next: heartbeat.next,
        };
        if !change.accepts(configurations) {
            self.hear_other_configuration(heartbeat, (timing, established), now, out);
            return Heard::NOTHING;
        }
        let Some(session_changed) = self.admit(heartbeat, timing, now, out) else {
            return Heard::NOTHING;
        };
        let addressed = self.session.addresses_us(heartbeat);
        if !self.states[usize::from(link.0)].hear(heartbeat, addressed, now) {
            out.count(Counter::DiscardDuplicate);
            return Heard {
                session_changed,
                ..Heard::NOTHING
            };
        }
        out.count(Counter::HeartbeatsReceived);
        self.conflict = None;
        self.raise_link(link, timing, now, out);
        let peer = self.peer;
        if let Some(narrow) = self.states[usize::from(link.0)].narrow_changed() {
            out.event(Event::LinkNarrow { peer, link, narrow });
        }
        if addressed {
            self.note_answer(heartbeat, now);
        }
        let newest = heartbeat.sent_at > self.latest;
        if newest {
            self.note_newest(heartbeat, now);
        }
        let present = addressed && self.duplicate_until.is_none();
        let entries = newest && present;
        if entries {
            self.follow(timing, now);
            self.configurations = Some(configurations);
            match change.hear(configurations, heartbeat.lease_echo) {
                Follows::Nothing => {}
                Follows::Due => out.event(Event::ConfigurationDue),
                Follows::Withdrawn => out.event(Event::ChangeWithdrawn),
            }
        }
        Heard {
            entries,
            present,
            session_changed,
        }
    }

    /// Decides of which process of the partner `heartbeat` is. Returns whether the session has changed; `None` if that
    /// process does not count.
    fn admit(
        &mut self,
        heartbeat: &Heartbeat<'_>,
        timing: &Timing,
        now: Instant,
        out: &mut Outbox,
    ) -> Option<bool> {
        let was_mutual = self.session.is_mutual();
        let admission = self.session.admit(heartbeat);
        match admission {
            Admission::Foreign => {
                out.count(Counter::DiscardWrongSession);
                return None;
            }
            Admission::Adopted => self.forget_session(),
            Admission::Returned => {
                self.forget_session();
                self.prove_duplicate(timing, now, out);
            }
            Admission::Known => {}
        }
        let changed = admission != Admission::Known || was_mutual != self.session.is_mutual();
        if changed && self.duplicate_until.is_none() {
            let (peer, tag) = (self.peer, self.session.transfer_tag());
            out.event(Event::SessionChanged { peer, tag });
        }
        Some(changed)
    }

    /// Notes the heartbeat that was sent last of all that have come.
    fn note_newest(&mut self, heartbeat: &Heartbeat<'_>, now: Instant) {
        (self.latest, self.latest_at) = (heartbeat.sent_at, now);
        // What is not said to this incarnation must not be taken for what it says now.
        self.configurations = None;
    }

    /// Notes when the partner was there, from a heartbeat that answers this process. Each link has an answer of its
    /// own: that of a link on which the partner hears nothing may have come first, and says nothing.
    fn note_answer(&mut self, heartbeat: &Heartbeat<'_>, now: Instant) {
        let echo = Instant::from_nanos(heartbeat.echo_sent_at);
        if heartbeat.echo_sent_at != 0 && echo <= now {
            let held = Duration::from_micros(heartbeat.echo_delay.into());
            self.presence.answered(heartbeat.sent_at, (echo, held), now);
        }
    }

    /// The partner's name is used twice. Until it has not been for a while, nothing that is said
    /// under it counts, as if the partner were silent.
    #[cold]
    fn prove_duplicate(&mut self, timing: &Timing, now: Instant, out: &mut Outbox) {
        let peer = self.peer;
        if self.duplicate_until.is_none() {
            out.event(Event::DuplicatePartner { peer });
            out.event(Event::SessionChanged { peer, tag: None });
        }
        self.duplicate_until = Some(now + conflict_hold(timing));
        self.set_reachable(false, now, out);
    }

    fn set_reachable(&mut self, reachable: bool, now: Instant, out: &mut Outbox) {
        if self.reachable == reachable {
            return;
        }
        self.reachable = reachable;
        let peer = self.peer;
        out.event(if reachable {
            Event::PartnerHeard { peer }
        } else {
            self.unreachable_since = now;
            Event::PartnerSilent { peer }
        });
    }

    /// When the partner was there last, as far as this node knows: `None` while it is, or if it never was.
    pub(crate) fn last_there(&self) -> Option<Instant> {
        let lost = !self.reachable;
        lost.then(|| self.presence.last(self.latest)).flatten()
    }

    #[cold]
    fn forget_session(&mut self) {
        self.presence.forget_session(self.latest);
        self.latest = 0;
        self.configurations = None;
        self.states.iter_mut().for_each(LinkState::forget_session);
        // A round opened before must promise nothing to the new incarnation.
        self.round.pending = LinkSet::EMPTY;
        self.round.urgent = true;
    }

    fn raise_link(&mut self, link: LinkId, timing: &Timing, now: Instant, out: &mut Outbox) {
        let state = &mut self.states[usize::from(link.0)];
        if state.is_up() || !state.works(timing, now) {
            return;
        }
        state.set_up(true);
        let peer = self.peer;
        out.event(Event::LinkUp { peer, link });
        if self.duplicate_until.is_none() {
            self.set_reachable(true, now, out);
        }
    }

    /// Calls down the links that have been silent for too long; `grace` is until when the observer
    /// itself was too slow to judge.
    pub(crate) fn check_links(
        &mut self,
        timing: &Timing,
        grace: Instant,
        now: Instant,
        out: &mut Outbox,
    ) {
        let over = |until: &mut Instant| now >= *until;
        self.conflict.take_if(|(until, _)| now >= *until);
        let peer = self.peer;
        if self.duplicate_until.take_if(over).is_some() {
            let tag = self.session.transfer_tag();
            out.event(Event::SessionChanged { peer, tag });
        }
        let mut any = false;
        for link in self.links.iter() {
            let state = &mut self.states[usize::from(link.0)];
            if state.is_up() && now >= grace && !state.works(timing, now) {
                state.set_up(false);
                out.event(Event::LinkDown { peer, link });
            }
            any |= state.is_up();
        }
        self.set_reachable(any && self.duplicate_until.is_none(), now, out);
    }

    /// This node stood still for `gap`, and did not look for its partner meanwhile.
    pub(crate) fn discount_stall(&mut self, gap: Duration) {
        if !self.reachable {
            self.unreachable_since += gap;
        }
    }

    /// When [`check_links`](Self::check_links) may have something to do.
    pub(crate) fn next_check(&self, timing: &Timing, grace: Instant) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        for link in self.links.iter() {
            let state = &self.states[usize::from(link.0)];
            if state.is_up() {
                // Strictly after the deadline: at it the link still works.
                let down = state.deadline(timing) + Duration::from_nanos(1);
                next = next.min(down.max(grace));
            }
        }
        for until in [self.conflict.map(|(until, _)| until), self.duplicate_until] {
            next = until.map_or(next, |until| next.min(until));
        }
        next
    }

    pub(crate) const fn links(&self) -> LinkSet {
        self.links
    }
    pub(crate) const fn is_reachable(&self) -> bool {
        self.reachable
    }
    pub(crate) const fn unreachable_since(&self) -> Instant {
        self.unreachable_since
    }
    /// Whether the partner runs another configuration, and has a role.
    pub(crate) fn conflict(&self) -> Option<Conflict> {
        self.conflict.map(|(_, conflict)| conflict)
    }
    /// Where no link is up: one on which the partner answers too late, and after how long.
    pub(crate) fn late(&self, timing: &Timing, now: Instant) -> Option<(LinkId, Duration)> {
        let late = |link: LinkId| Some((link, self.states[usize::from(link.0)].late(timing, now)?));
        self.links.iter().filter(|_| !self.reachable).find_map(late)
    }
    pub(crate) fn is_narrow(&self, link: LinkId) -> bool {
        self.states
            .get(usize::from(link.0))
            .is_some_and(LinkState::is_narrow)
    }
    /// The tag of state transfer; none while it is unknown with which process.
    pub(crate) fn transfer_tag(&self) -> Option<u32> {
        let tag = self.session.transfer_tag();
        tag.filter(|_| self.duplicate_until.is_none())
    }
    /// Whether there is proof that two processes use the partner's name.
    pub(crate) const fn is_duplicate(&self) -> bool {
        self.duplicate_until.is_some()
    }
    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }
    /// What the partner said last of its configurations; `None` before it has spoken to this incarnation.
    pub(crate) const fn configurations(&self) -> Option<Configurations> {
        self.configurations
    }
    /// When the newest heartbeat was first heard; `None` before one of the adopted session was.
    pub(crate) fn latest_heard_at(&self) -> Option<Instant> {
        (self.latest != 0).then_some(self.latest_at)
    }
    pub(crate) fn link_up(&self, link: LinkId) -> bool {
        self.states
            .get(usize::from(link.0))
            .is_some_and(LinkState::is_up)
    }
    pub(crate) fn round_trip(&self, link: LinkId) -> Option<Duration> {
        self.states.get(usize::from(link.0))?.round_trip()
    }
}

#[cfg(test)]
mod tests;

//! The hub of one node: routes what arrives to partners, groups and reference points, and collects
//! what is to be sent. It decides nothing itself.

use crate::change::Change;
use crate::event::{Event, Outbox};
use crate::id::{GroupId, GroupPlace, ReferenceId};
use crate::partner::Partner;
use crate::ping::PingState;
use crate::role::RoleMachine;
use crate::role::agreement::Agreement;
use crate::role::status::{Standing, Status};
use crate::session::nonzero;
use crate::setup::{ReferenceKind, Setup, SetupError, Timing};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bumpless_base::{
    Candidate, Counter, Counters, Duration, Instant, LinkId, PeerId, Permit, Random, Table,
    TableIndex,
};
use bumpless_wire::{GroupEntry, GroupFlags, Heartbeat, Role, WitnessReply};

/// The redundancy core of one node.
///
/// **Driving contract.** Call a `handle_*` or command method with `now`; then drain
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event) until each gives
/// `None`; then sleep until [`poll_timeout`](Self::poll_timeout) at the latest and call
/// [`handle_timeout`](Self::handle_timeout). `now` is this node's monotonic clock and never goes
/// back. Before `handle_timeout`, hand over everything that has been received: a driver that was
/// paused would otherwise take its own silence for its partner's.
///
/// **Outputs.** Right before each output, compare the clock with
/// [`output_permit`](Self::output_permit): no output may leave at or after its `until`. The permit
/// is a plain value and may be handed to the output thread; it is never revoked before `until`
/// except by a driver that asked for the revocation (switchover) or when a higher epoch was seen.
///
/// **State.** Whether a node may go on with what it holds is told by the driver with
/// [`set_holding`](Self::set_holding), and again when a primary role has ended. Whether that is the newest state
/// that there is, the core finds out.
///
/// No method panics, and none allocates after [`new`](Self::new).
///
/// **Hash** covers everything that decides what this node does next, and no counters. A model checker tells
/// states apart by it.
#[derive(Clone, Debug, Hash)]
pub struct Redundancy {
    pub(crate) setup: Setup,
    pub(crate) change: Change,
    pub(crate) partners: Table<PeerId, Partner>,
    pub(crate) groups: Table<GroupPlace, RoleMachine>,
    pub(crate) pings: Box<[PingState]>,
    pub(crate) out: Outbox,
    /// Witness answers are matched with requests by this.
    pub(crate) secret: u64,
    pub(crate) session: u64,
    /// A partner has proof that another process uses our name; we do not write before this.
    pub(crate) duplicate_until: Option<Instant>,
    /// The latest `now`.
    pub(crate) now: Instant,
    /// Links are not called down before this: this node itself was too slow to judge.
    pub(crate) grace: Instant,
}

impl Redundancy {
    /// Takes all memory that will be needed. `session_seed` must be random for each start of the
    /// process: it tells its incarnations apart.
    ///
    /// # Errors
    /// [`SetupError`] says what contradicts what.
    pub fn new(setup: Setup, session_seed: u64, now: Instant) -> Result<Self, SetupError> {
        setup.check()?;
        let mut random = Random::new(session_seed);
        let (session, secret) = (nonzero(&mut random), random.next_u64());
        let numbered = setup.partners.iter().enumerate();
        let partners = numbered.map(|(i, partner)| {
            let peer = PeerId(u8::try_from(i).unwrap_or(u8::MAX));
            Partner::new(
                peer,
                *partner,
                (session, setup.timing.drift_ppm),
                random.next_u64(),
                now,
            )
        });
        let partners: Table<_, _> = partners.collect();
        let groups = setup.groups.iter().map(|group| {
            let members = group.references.iter().map(|&r| {
                let kind = setup.references[usize::from(r.0)];
                (r, kind)
            });
            let agreement = Agreement::new(members.collect::<Vec<_>>(), now);
            let other = group.other(setup.node);
            let peer = setup
                .partners
                .iter()
                .position(|p| Some(p.node) == other)
                .map_or(PeerId(0), PeerId::from_index);
            let index = Candidate(u8::from(group.candidates[1] == setup.node));
            RoleMachine::new(group, peer, index, agreement, (&setup.timing, now))
        });
        let groups: Table<_, _> = groups.collect();
        let pings = setup
            .references
            .iter()
            .map(|_| PingState::new(now))
            .collect();
        let decides = setup
            .partners
            .iter()
            .all(|partner| setup.node < partner.node);
        let events = 64 + 16 * groups.len() + 16 * partners.len();
        Ok(Self {
            change: Change::new(setup.fingerprint, decides),
            partners,
            groups,
            pings,
            out: Outbox::new(events),
            secret,
            session,
            duplicate_until: None,
            now,
            grace: now,
            setup,
        })
    }

    /// Takes a heartbeat that arrived on `link`. What is not for this node is counted by cause and
    /// has no other effect. Returns whether it shows that its sender is there at present: it answers this process, and
    /// has not come before.
    pub fn handle_heartbeat(
        &mut self,
        link: LinkId,
        heartbeat: &Heartbeat<'_>,
        now: Instant,
    ) -> bool {
        let ours = heartbeat.pair == self.setup.pair && heartbeat.link == link;
        let mut partners = self.partners.indices();
        let from = partners.find(|&peer| self.partners[peer].node == heartbeat.from);
        let Some(at) = from.filter(|_| ours && heartbeat.to == self.setup.node) else {
            self.out.count(Counter::DiscardWrongNode);
            return false;
        };
        if !self.partners[at].links().contains(link) {
            self.out.count(Counter::DiscardWrongNode);
            return false;
        }
        let before = self.partners[at].session().adopted();
        let established = self
            .groups
            .iter()
            .any(|g| g.terms.peer == at && matches!(g.role(), Role::Backup | Role::Primary));
        let own = (&self.setup.timing, &mut self.change, established);
        let heard = self.partners[at].hear(link, heartbeat, own, now, &mut self.out);
        if heard.session_changed && before != self.partners[at].session().adopted() {
            self.each_group(Some(at), now, |group, s, out| group.forget_partner(s, out));
        }
        if heard.entries {
            let told = |entry: GroupEntry| entry.flags.contains(GroupFlags::DUPLICATE);
            if heartbeat.groups().any(told) {
                self.hear_duplicate(now);
            }
            self.route_entries(at, heartbeat, now);
        }
        // A round that answers the partner's is the backup's timeout.
        if self.after(Some(at), now) {
            self.watch(now);
        }
        heard.present
    }

    /// Takes the answer of the witness `reference`. Answers that nobody asked for are counted and
    /// have no other effect. Returns whether it shows that the witness is there at present: it answers a request of
    /// this process that was not answered before, nor a later one.
    pub fn handle_witness_reply(
        &mut self,
        reference: ReferenceId,
        reply: &WitnessReply,
        now: Instant,
    ) -> bool {
        let group = self.groups.indices().find(|&index| {
            let g = &self.groups[index];
            let kind = g.agreement.kind(reference);
            g.terms.id.0 == reply.group && kind == Some(ReferenceKind::Witness)
        });
        let ours = reply.pair == self.setup.pair && reply.node == self.setup.node;
        let token = self.token(
            GroupId(reply.group),
            reference,
            reply.echo_sent_at,
            reply.kind as u8,
        );
        let Some(index) = group.filter(|_| ours && reply.token == token) else {
            self.out.count(Counter::DiscardWrongNode);
            return false;
        };
        let mut present = false;
        self.with_group(index, now, |group, s, out| {
            present = group.hear_witness(reference, reply, s, out);
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
        present
    }

    /// Takes the echo reply of the address `reference` to the request with this sequence number.
    pub fn handle_ping_reply(&mut self, reference: ReferenceId, sequence: u16, now: Instant) {
        let state = self.pings.get_mut(usize::from(reference.0));
        let Some(sent) = state.and_then(|state| state.answer(sequence)) else {
            self.out.count(Counter::DiscardUnaskedEcho);
            return;
        };
        self.out.count(Counter::WitnessReplies);
        for index in self.groups.indices() {
            if self.groups[index].agreement.kind(reference) == Some(ReferenceKind::Ping) {
                self.with_group(index, now, |group, s, out| {
                    group.hear_echo(reference, sent, s, out);
                });
            }
        }
        self.after(None, now);
    }

    /// Does what is due. May be called at any time, and must be when
    /// [`poll_timeout`](Self::poll_timeout) says.
    pub fn handle_timeout(&mut self, now: Instant) {
        let timing = self.setup.timing;
        self.notice_stall(now);
        if self.duplicate_until.is_some_and(|until| now >= until) {
            self.duplicate_until = None;
        }
        for partner in &mut self.partners {
            partner.check_links(&timing, self.grace, now, &mut self.out);
        }
        self.each_group(None, now, |group, s, out| group.decide(s, out));
        self.after(None, now);
        self.watch(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called at the latest. May lie in the
    /// past: call it at once.
    pub fn poll_timeout(&self) -> Instant {
        let timing = &self.setup.timing;
        // What is later than the time of the last call is all that `next_decision` looks for.
        let now = self.now;
        let mut next = self.next_request();
        for partner in &self.partners {
            next = next
                .min(partner.next_round(timing))
                .min(partner.next_check(timing, self.grace));
        }
        for group in &self.groups {
            let since = self.partners[group.terms.peer].unreachable_since();
            next = next.min(group.next_decision(timing, since, now));
        }
        self.duplicate_until.map_or(next, |until| next.min(until))
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.out.events.pop()
    }

    /// The right to write outputs of the group. `None`: none. **Compare `until` with the clock
    /// right before each output.**
    pub fn output_permit(&self, group: GroupId) -> Option<Permit> {
        self.groups.get(self.index_of(group)?)?.permit()
    }

    /// The group's role on this node.
    pub fn role(&self, group: GroupId) -> Option<Role> {
        Some(self.groups.get(self.index_of(group)?)?.role())
    }

    /// The tag of state transfer with a partner: changes with each restart of either node, `None`
    /// until both know each other.
    pub fn transfer_tag(&self, peer: PeerId) -> Option<u32> {
        self.partners.get(peer)?.transfer_tag()
    }

    /// Smoothed round trip of heartbeats, without the time that the partner held them.
    pub fn round_trip(&self, peer: PeerId, link: LinkId) -> Option<Duration> {
        self.partners.get(peer)?.round_trip(link)
    }

    /// Where no link to a partner is up: one on which it answers too late, and after how long.
    pub fn late_link(&self, peer: PeerId) -> Option<(LinkId, Duration)> {
        let partner = self.partners.get(peer)?;
        partner.late(&self.setup.timing, self.now)
    }

    /// When a partner that is not reachable was there last, as far as its heartbeats tell; `None` of one that is
    /// reachable, or never was. What comes from it later may have been sent then.
    pub fn last_there(&self, peer: PeerId) -> Option<Instant> {
        self.partners.get(peer)?.last_there()
    }

    /// The times that this node was set up with.
    pub const fn timing(&self) -> &Timing {
        &self.setup.timing
    }

    /// The group at `now`, for people.
    pub fn status(&self, group: GroupId, now: Instant) -> Option<Status> {
        let group = self.groups.get(self.index_of(group)?)?;
        let peer = self.partners.get(group.terms.peer)?.peer;
        Some(group.status(
            peer,
            self.links_view(group.terms.peer),
            &self.surroundings(group.terms.peer, now),
        ))
    }

    /// What a driver needs of the group after each call; a part of [`status`](Self::status) that
    /// costs little.
    pub fn standing(&self, group: GroupId, now: Instant) -> Option<Standing> {
        let group = self.groups.get(self.index_of(group)?)?;
        let partner = &self.partners[group.terms.peer];
        Some(group.standing(partner.is_reachable(), now))
    }

    /// Everything counted here.
    pub const fn counters(&self) -> &Counters {
        &self.out.counters
    }

    /// This process's session, for traces.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// The groups of which this node is a candidate.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().map(|group| group.terms.id)
    }
}

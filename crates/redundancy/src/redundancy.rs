//! The hub of one node: routes what arrives to partners, groups and reference points, and collects
//! what is to be sent. It decides nothing itself.

use crate::change::Change;
use crate::event::{Event, Outbox, RoleCause, SwitchoverRefused};
use crate::id::{GroupId, ReferenceId};
use crate::partner::Partner;
use crate::ping::PingState;
use crate::role::RoleMachine;
use crate::role::agreement::Agreement;
use crate::role::newest::Holding;
use crate::role::state::Retreat;
use crate::role::status::{Standing, Status};
use crate::session::nonzero;
use crate::setup::{ReferenceKind, Setup, SetupError, Timing};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bumpless_base::{Counter, Counters, Duration, Epoch, Instant, LinkId, PeerId, Permit, Random};
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
    pub(crate) partners: Box<[Partner]>,
    pub(crate) groups: Box<[RoleMachine]>,
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
            Partner::new(peer, *partner, session, random.next_u64(), now)
        });
        let partners: Box<[_]> = partners.collect();
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
                .unwrap_or(0);
            let index = u8::from(group.candidates[1] == setup.node);
            RoleMachine::new(group, peer, index, agreement, (&setup.timing, now))
        });
        let groups: Box<[_]> = groups.collect();
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
    /// has no other effect.
    pub fn handle_heartbeat(&mut self, link: LinkId, heartbeat: &Heartbeat<'_>, now: Instant) {
        let ours = heartbeat.pair == self.setup.pair && heartbeat.link == link;
        let from = self.partners.iter().position(|p| p.node == heartbeat.from);
        let Some(at) = from.filter(|_| ours && heartbeat.to == self.setup.node) else {
            self.out.count(Counter::DiscardWrongNode);
            return;
        };
        if !self.partners[at].links().contains(link) {
            self.out.count(Counter::DiscardWrongNode);
            return;
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
    }

    /// Takes the answer of the witness `reference`. Answers that nobody asked for are counted and
    /// have no other effect.
    pub fn handle_witness_reply(
        &mut self,
        reference: ReferenceId,
        reply: &WitnessReply,
        now: Instant,
    ) {
        let group = self.groups.iter().position(|g| {
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
            return;
        };
        self.with_group(index, now, |group, s, out| {
            group.hear_witness(reference, reply, s, out);
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }

    /// Takes the echo reply of the address `reference` to the request with this sequence number.
    pub fn handle_ping_reply(&mut self, reference: ReferenceId, sequence: u16, now: Instant) {
        let state = self.pings.get_mut(usize::from(reference.0));
        let Some(sent) = state.and_then(|state| state.answer(sequence)) else {
            self.out.count(Counter::DiscardUnaskedEcho);
            return;
        };
        self.out.count(Counter::WitnessReplies);
        for index in 0..self.groups.len() {
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

    /// Tells what this node holds of the group's applications, which is what a takeover needs. To be told on each
    /// change, and when a primary role has ended: what the core knew of it before is forgotten then.
    pub fn set_holding(&mut self, group: GroupId, holding: Holding, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| {
            let says = |group: &RoleMachine| {
                let newest = &group.newest;
                let held = (newest.holds_some(s.now), newest.holding.fit);
                (group.synced(s.now), group.claim(s.now), held)
            };
            let before = says(group);
            group.newest.holding = holding;
            group.urgent |= before != says(group);
            group.decide(s, out);
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }

    /// Tells, before anything is heard, that an earlier process of this node has left a state of `epoch` where it
    /// survives, a disk say. It may lack outputs written since, so it is no claim to the newest state: what
    /// [`set_holding`](Self::set_holding) says of it belongs in `some_usable_until` alone. A partner that holds
    /// the newest state goes before, and of two that have nothing else the one that was primary in the latest
    /// epoch of them.
    pub fn restore(&mut self, group: GroupId, epoch: Epoch, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, _, _| {
            group.observe(epoch);
            group.newest.restore(epoch);
        });
    }

    /// As primary: `false` says that the last state of every application of the group, as far as
    /// outputs have been written from it, is safe at the partner's present incarnation; `true`
    /// that outputs are to be written although it is not. While `true`, partner and witnesses are
    /// told that what the partner holds is old, and it cannot take over without a break;
    /// [`is_alone`](Self::is_alone) says when that is certain, and such an output may leave.
    ///
    /// Before saying `false`, make sure that no output can leave any more on an earlier
    /// [`is_alone`](Self::is_alone) that was passed on to another thread.
    ///
    /// **Each primary role begins with `true`**, so the partner counts as synced only after the
    /// first `false`. Repeating the present value has no effect, nor has a call on a node that is
    /// not primary..
    pub fn set_alone(&mut self, group: GroupId, wanted: bool, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| group.set_alone(wanted, s, out));
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }

    /// Whether the partner cannot take over with what it holds, so that an output whose state is
    /// not safe there may be written: [`set_alone`](Self::set_alone) is `true`, and since then
    /// every witness that the partner may need has put it on record, **or** the partner itself has
    /// heard it. A group without a witness is alone at once, which is weaker. That the
    /// partner says that it is not synced is no substitute: a state sent earlier may yet reach it.
    pub fn is_alone(&self, group: GroupId) -> bool {
        let index = self.index_of(group);
        index.is_some_and(|index| self.groups[index].is_alone())
    }

    /// What [`set_alone`](Self::set_alone) said last, or the role began with.
    pub fn wants_alone(&self, group: GroupId) -> bool {
        let index = self.index_of(group);
        index.is_some_and(|index| self.groups[index].wants_alone())
    }

    /// As primary: whether the role began without the certainty that this node holds the newest state (lone
    /// start, or both nodes started). Outputs then begin anew, unless the field devices show that what this node
    /// holds is the newest after all. `true` of a node that is not primary.
    pub fn is_cold(&self, group: GroupId) -> bool {
        let index = self.index_of(group);
        index.is_some_and(|index| self.groups[index].is_cold())
    }

    /// Tells of an epoch that a field device has seen. A primary that writes in a lower one steps
    /// down.
    #[cold]
    pub fn observe_epoch(&mut self, group: GroupId, epoch: Epoch, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| {
            group.notice_lapse(s, out);
            let used = epoch > group.lasting.stamped;
            group.observe(epoch);
            group.newest.seen_at_device(epoch);
            if used && group.role() == Role::Primary {
                group.resign(Retreat::Starting, RoleCause::HigherEpoch, s, out);
            }
            group.decide(s, out);
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }

    /// Tells of an epoch in which an earlier process of this node has written, as a field device
    /// shows. A primary that has it goes above it without leaving its role: since the epoch is this
    /// node's, nobody else writes in it.
    #[cold]
    pub fn observe_spent_epoch(&mut self, group: GroupId, epoch: Epoch, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| {
            group.notice_lapse(s, out);
            // The next one is the partner's, and whoever knows of it goes above it.
            let above = Epoch(epoch.0.saturating_add(1));
            let held = group.role() == Role::Primary && group.lasting.stamped == epoch;
            group.observe(if held { above } else { epoch });
            group.urgent |= held;
            group.decide(s, out);
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }

    /// Orders a switchover; on either node.
    ///
    /// # Errors
    /// [`SwitchoverRefused`] says why not; roles have not changed. That the order is accepted does
    /// not mean that it succeeds: see [`Event::RoleChanged`] and [`Event::HandOverAborted`].
    #[cold]
    pub fn command_switchover(
        &mut self,
        group: GroupId,
        now: Instant,
    ) -> Result<(), SwitchoverRefused> {
        let index = self
            .index_of(group)
            .ok_or(SwitchoverRefused::UnknownGroup)?;
        let mut result = Ok(());
        self.with_group(index, now, |group, s, out| {
            result = group.command_switchover(s, out)
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
        result
    }

    /// After [`Event::HandOverBegun`]: the last output is written, its state is safe at the
    /// backup, and no further output will be written. The permit ends with this call.
    pub fn hand_over_ready(&mut self, group: GroupId, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| group.hand_over_ready(s, out));
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
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
        self.partners.get(usize::from(peer.0))?.transfer_tag()
    }

    /// Smoothed round trip of heartbeats, without the time that the partner held them.
    pub fn round_trip(&self, peer: PeerId, link: LinkId) -> Option<Duration> {
        self.partners.get(usize::from(peer.0))?.round_trip(link)
    }

    /// Where no link to a partner is up: one on which it answers too late, and after how long.
    pub fn late_link(&self, peer: PeerId) -> Option<(LinkId, Duration)> {
        let partner = self.partners.get(usize::from(peer.0))?;
        partner.late(&self.setup.timing, self.now)
    }

    /// When a partner that is not reachable was there last, as far as its heartbeats tell; `None` of one that is
    /// reachable, or never was. What comes from it later may have been sent then.
    pub fn last_there(&self, peer: PeerId) -> Option<Instant> {
        self.partners.get(usize::from(peer.0))?.last_there()
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

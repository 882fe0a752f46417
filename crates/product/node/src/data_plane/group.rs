//! One group on this node: its gate, its channels, and an ordered hand-over in progress.

use std::sync::Arc;

use bumpless_atomic_box::DirtySet;
use bumpless_base::{Duration, Epoch, Instant, PeerId, Role};
use bumpless_mailbox::{PublishedPermit, end_simplex};
use bumpless_redundancy::{GroupId, Redundancy, RedundancyLevel};

use super::aggregate::Aggregate;
use super::members::{Counts, Member, MemberTimes, Members};
use crate::membership::MemberPlace;
use crate::snapshot::GroupSnapshot;

/// How long an application may be unable to run before this node counts as unfit, and how long a
/// primary that is waits between two requests to be relieved.
const UNFIT_TIMEOUT: Duration = Duration::from_millis(300);
const RELIEF_INTERVAL: Duration = Duration::from_secs(2);
/// How much longer than that, and than a period, a primary without field devices waits before it first asks: the same
/// device may be silent to the backup, which sees so in its next cycle and says it.
const RELIEF_GRACE: Duration = Duration::from_millis(20);
/// No longer period than this is waited for.
const LONGEST_GRACE: Duration = Duration::from_millis(100);
/// The same where a program has failed, which leaves its process without control at once.
const PROGRAM_RELIEF_INTERVAL: Duration = Duration::from_millis(100);
/// A cycle that lasts longer than this, and longer than ten periods, is taken for one that never ends.
const WATCHDOG: Duration = Duration::from_secs(1);

/// A group of which this node is a candidate.
pub struct GroupRuntime {
    /// Its identity in the redundancy core: the position in the configuration.
    pub id: GroupId,
    /// Where executors see role and right.
    pub gate: Arc<PublishedPermit>,
    /// The partner of this group.
    pub peer: PeerId,
    /// The applications, by their place in the group.
    members: Members,
    aggregate: Aggregate,
    /// What status shows.
    pub snapshot: GroupSnapshot,
    /// What the core said last of the redundancy.
    pub level: Option<RedundancyLevel>,
    handing_over: bool,
    /// Paused executors go on once the permit of the role is published: under the earlier permit they could still write.
    resumes: bool,
    /// The role was handed over, and the partner has not reported yet that it has taken it.
    offered: bool,
    partner_role: Option<Role>,
    /// Since when some application cannot run here.
    unfit_since: Option<Instant>,
    /// That has lasted for longer than [`UNFIT_TIMEOUT`].
    unfit: bool,
    /// When this node, as primary, last asked to be relieved for it.
    relieved_at: Option<Instant>,
    epoch_seen: Epoch,
    epoch_spent: Epoch,
}

impl GroupRuntime {
    /// The group `id` with `applications` in the first of its `places`, whose mailboxes mark theirs in `dirty`.
    pub fn new(
        id: GroupId,
        peer: PeerId,
        gate: Arc<PublishedPermit>,
        dirty: Arc<DirtySet>,
        (applications, places): (Vec<Member>, usize),
    ) -> Self {
        Self {
            id,
            gate,
            peer,
            members: Members::new(applications, places),
            aggregate: Aggregate::new(dirty, places),
            snapshot: GroupSnapshot {
                member: true,
                ..GroupSnapshot::default()
            },
            level: None,
            handing_over: false,
            resumes: false,
            offered: false,
            partner_role: None,
            unfit_since: None,
            unfit: false,
            relieved_at: None,
            epoch_seen: Epoch::default(),
            epoch_spent: Epoch::default(),
        }
    }

    /// Notes that a state of the group's application `member` has come, at `came_at` at the earliest, which is fresh
    /// until then, and tells the core what this node holds.
    pub fn note_received(
        &mut self,
        member: MemberPlace,
        (fresh_until, came_at): (Instant, Instant),
        redundancy: &mut Redundancy,
        now: Instant,
    ) {
        self.members.note_received(member, fresh_until, came_at);
        self.aggregate.note_received(member);
        self.tell_holding(redundancy, now);
    }

    /// An earlier process of this node has left a state of `epoch` of one of the applications, which may be gone on
    /// from until then.
    pub fn restore(
        &mut self,
        epoch: Epoch,
        usable_until: Option<Instant>,
        redundancy: &mut Redundancy,
        now: Instant,
    ) {
        if let Some(until) = usable_until {
            self.members.note_restored(until);
        }
        redundancy.restore(self.id, epoch, now);
        self.tell_holding(redundancy, now);
    }

    /// An application comes to a vacant place. Its executor has not begun.
    pub fn arrive(&mut self, place: MemberPlace, mut member: Member) {
        member.counts = Counts::OnceThere;
        self.members.put(place, Some(member));
    }

    /// The application at `place` is about to go: a node without a state of it counts as ready.
    pub fn discount(&mut self, place: MemberPlace, redundancy: &mut Redundancy, now: Instant) {
        self.members.discount(place);
        self.tell_holding(redundancy, now);
    }

    /// The application at `place` is gone; its executor has ended.
    pub fn dismiss(&mut self, place: MemberPlace) -> Option<Member> {
        self.aggregate.forget(place);
        self.members.put(place, None)
    }

    /// The application at `place` goes on with other times.
    pub fn set_times(&mut self, place: MemberPlace, times: MemberTimes) {
        self.members.set_times(place, times);
    }

    fn tell_holding(&self, redundancy: &mut Redundancy, now: Instant) {
        let mut holding = self.members.holding(!self.unfit);
        holding.uncompared_since = self.aggregate.uncompared_since(self.members.count());
        if let Some(until) = self.aggregate.outdated_until() {
            // Whoever has written later has the newest state, if he lives.
            let aggregate = &self.aggregate;
            let counts = |place| !aggregate.is_lacking(place);
            let restored = self.members.restored_usable().filter(|&until| now < until);
            holding.some_usable_until = self.members.latest_usable(counts).max(restored);
            // What lies on a disk is meant for when everything else is lost, and ages meanwhile.
            holding.outdated_until = restored.is_none().then_some(until);
        }
        redundancy.set_holding(self.id, holding, now);
    }

    /// Follows a change of role. What executors may do in it stands in what [`publish`](Self::publish) projects at the
    /// end of the turn; until then, no message has left that somebody else could write on.
    pub fn role_changed(
        &mut self,
        to: Role,
        handed_over: bool,
        redundancy: &mut Redundancy,
        now: Instant,
    ) {
        self.gate.set_cold(redundancy.is_cold(self.id));
        let was_primary = self.gate.is_primary();
        if to == Role::Primary || was_primary {
            self.members.all_there();
        }
        if to == Role::Backup && self.members.forget_restored() {
            // What the primary makes is later than what lies on disk.
            self.tell_holding(redundancy, now);
        }
        if was_primary && to != Role::Primary {
            self.members.own_counts();
        }
        let doubtful = to == Role::Primary && redundancy.is_cold(self.id);
        let undecided = doubtful.then_some(now);
        self.members
            .mailboxes()
            .for_each(|mailbox| mailbox.set_undecided(undecided));
        self.gate.set_role(to, now);
        self.members
            .mailboxes()
            .for_each(|mailbox| mailbox.in_step());
        self.offered = handed_over;
        if was_primary && to != Role::Primary {
            self.void_comparisons(now);
            self.tell_holding(redundancy, now);
        }
        self.go_on();
    }

    /// This node goes on at `now` after standing still, or after a role in which it did not compare what it holds
    /// with the field devices: they may have accepted outputs of somebody else. The core is told with the rest, once
    /// it has what arrived meanwhile: it would take its own silence for its partner's.
    pub fn void_comparisons(&mut self, now: Instant) {
        self.aggregate.void_comparisons(&self.members, now);
    }

    /// Starts an ordered hand-over.
    pub fn begin_hand_over(&mut self) {
        self.handing_over = true;
        self.gate.set_handing_over(true);
    }

    /// The hand-over was abandoned: executors go on.
    pub fn abort_hand_over(&mut self) {
        self.go_on();
    }

    /// What was handed over no longer is; executors that have paused go on at the end of the turn.
    fn go_on(&mut self) {
        self.handing_over = false;
        self.gate.set_handing_over(false);
        self.resumes = true;
    }

    /// Pauses each application at a moment when its last state is at the backup, those with the
    /// longest periods first, so that no application stands still, and no state of it grows old,
    /// while another's long transfer is awaited. Tells the core when all have paused; returns whether
    /// it did.
    pub fn drive_hand_over(&mut self, redundancy: &mut Redundancy, now: Instant) -> bool {
        // Who pauses while others are about to go on would go on with them.
        if !self.handing_over || self.resumes {
            return false;
        }
        let mut longest_waiting = None;
        for member in self.members.by_period() {
            if longest_waiting.is_some_and(|waiting| member.times.period < waiting) {
                return false;
            }
            if !member.mailbox.try_pause() {
                longest_waiting = Some(member.times.period);
            }
        }
        let ready = longest_waiting.is_none();
        if ready {
            self.handing_over = false;
            redundancy.hand_over_ready(self.id, now);
        }
        ready
    }

    /// Passes on what the executors have learned since the last call: epochs that devices hold, and
    /// whether the applications can run here.
    pub fn collect(&mut self, redundancy: &mut Redundancy, now: Instant) {
        self.aggregate.gather(&self.members, now);
        let seen = self.aggregate.epoch_seen();
        if seen > self.epoch_seen {
            self.epoch_seen = seen;
            redundancy.observe_epoch(self.id, seen, now);
        }
        let spent = self.aggregate.epoch_spent();
        if spent > self.epoch_spent {
            self.epoch_spent = spent;
            redundancy.observe_spent_epoch(self.id, self.epoch_spent, now);
        }
        if self.aggregate.take_outdated_changed() {
            self.tell_holding(redundancy, now);
        }
        let fit = self.aggregate.all_fit();
        if fit == self.unfit_since.is_some() {
            self.unfit_since = (!fit).then_some(now);
        }
        // One late answer of a device is not yet a reason to be unfit. A program that is stopped has had its second.
        let unfit = self.aggregate.any_stopped()
            || self
                .unfit_since
                .is_some_and(|since| now.since(since) > UNFIT_TIMEOUT);
        if unfit != self.unfit {
            self.unfit = unfit;
            self.tell_holding(redundancy, now);
        }
        self.seek_relief(redundancy, now);
        if self.gate.is_primary() {
            self.tell_behind(redundancy, now);
        }
    }

    /// Tells the core when outputs are to be written although the partner lacks their state, and when
    /// the partner has everything again.
    fn tell_behind(&mut self, redundancy: &mut Redundancy, now: Instant) {
        let wanted = redundancy.wants_simplex(self.id);
        if wanted && self.aggregate.in_step() {
            // No output may leave any more on what was certain until here. One that may have, as its
            // executor asked just then, keeps the core where it is, and `publish` the gate.
            if end_simplex(&self.gate, self.members.mailboxes()) {
                redundancy.set_simplex(self.id, false, now);
            }
        } else if !wanted && self.aggregate.any_behind() {
            redundancy.set_simplex(self.id, true, now);
        }
    }

    /// A primary that cannot run its applications asks a backup that can to take over. Refused if
    /// the backup is no better off.
    fn seek_relief(&mut self, redundancy: &mut Redundancy, now: Instant) {
        let interval = match self.aggregate.program_seeks_relief() {
            true => PROGRAM_RELIEF_INTERVAL,
            false => RELIEF_INTERVAL,
        };
        let waited = self.relieved_at.is_none_or(|at| now.since(at) > interval);
        let helps = self.unfit && self.aggregate.relief_helps();
        let patience =
            UNFIT_TIMEOUT + self.members.longest_period().min(LONGEST_GRACE) + RELIEF_GRACE;
        let lasts = |since| now.since(since) > patience;
        let is_due = self.aggregate.program_seeks_relief() || self.unfit_since.is_some_and(lasts);
        if helps && is_due && self.gate.is_primary() && waited {
            self.relieved_at = Some(now);
            let _ = redundancy.command_switchover(self.id, now);
        }
    }

    /// Publishes the right to write, whether a backup is there to acknowledge, and status.
    pub fn publish(&mut self, redundancy: &Redundancy, now: Instant) {
        let Some(standing) = redundancy.standing(self.id, now) else {
            return;
        };
        let expected = standing.partner_reachable && redundancy.transfer_tag(self.peer).is_some();
        if self
            .gate
            .publish(standing.permit, expected, standing.simplex)
        {
            self.wake();
        }
        if std::mem::take(&mut self.resumes) {
            self.members.mailboxes().for_each(|mailbox| mailbox.go_on());
            self.wake();
        }
        self.partner_role = standing.partner_role;
        self.offered &= standing.partner_reachable && standing.partner_role != Some(Role::Primary);
        let snapshot = &mut self.snapshot;
        snapshot.role = standing.role;
        snapshot.epoch = standing.epoch;
        snapshot.permit_until = standing.permit.map(|permit| permit.until);
        snapshot.synced = standing.synced;
        snapshot.partner_heard = standing.partner_reachable;
        snapshot.reference = standing.reference.map(|reference| reference.0);
    }

    /// Orders a hand-over because this node is about to end; again if one was abandoned.
    pub fn leave(&mut self, redundancy: &mut Redundancy, now: Instant) {
        if self.gate.is_primary() && !self.handing_over {
            // Refused where no backup could take over; `may_leave` says how long to insist.
            let _ = redundancy.command_switchover(self.id, now);
        }
    }

    /// Whether this node may end: it has no role to hand over, nobody is there to take it, or the
    /// partner has taken it.
    pub fn may_leave(&self) -> bool {
        !self.snapshot.partner_heard || !(self.gate.is_primary() || self.offered)
    }

    /// Takes back the right to write for good: the node ends.
    pub fn release(&self) {
        self.gate.set_permit(None);
        self.gate.set_role(Role::Stopped, Instant::ZERO);
        self.wake();
    }

    /// The period of an application whose cycle has not ended for so long that it never will. What
    /// lies before `stalled_at`, the end of the process's last stall, does not count: a cycle
    /// stood still then, as everything did.
    pub fn overdue(&self, stalled_at: Instant, now: Instant) -> Option<Duration> {
        let is_overdue = |member: &&Member| {
            let bound = (member.times.period * 10).max(WATCHDOG);
            let since = member.mailbox.cycle_since();
            since.is_some_and(|since| now.since(since.max(stalled_at)) > bound)
        };
        self.members
            .present()
            .find(is_overdue)
            .map(|member| member.times.period)
    }

    fn wake(&self) {
        self.members.mailboxes().for_each(|mailbox| mailbox.wake());
    }
}

#[cfg(test)]
mod tests;

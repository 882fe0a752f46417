//! What a driver tells the core of a group, and orders: what it holds, whether it is in simplex, which epochs were
//! seen, a switchover.

use crate::event::{RoleCause, SwitchoverRefused};
use crate::id::GroupId;
use crate::redundancy::Redundancy;
use crate::role::RoleMachine;
use crate::role::newest::Holding;
use crate::role::state::Retreat;
use bumpless_base::Role;
use bumpless_base::{Epoch, Instant};

impl Redundancy {
    /// Tells what this node holds of the group's applications, which is what a takeover needs. To be told on each
    /// change, and when a primary role has ended: what the core knew of it before is forgotten then. If that role began
    /// in doubt ([`is_cold`](Self::is_cold)) and an application has made no state in it, what it holds is in doubt as
    /// before and belongs in `some_usable_until` alone.
    pub fn set_holding(&mut self, group: GroupId, holding: Holding, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| {
            let says = |group: &RoleMachine| {
                let newest = &group.newest;
                let held = (newest.holds_some(s.now), newest.holds_all(s.now));
                let claim = group.claim(s.now);
                (group.synced(s.now), claim, held, newest.holding.fit)
            };
            let before = says(group);
            group.newest.hold(holding);
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
    /// [`is_simplex`](Self::is_simplex) says when that is certain, and such an output may leave.
    ///
    /// Before saying `false`, make sure that no output can leave any more on an earlier
    /// [`is_simplex`](Self::is_simplex) that was passed on to another thread.
    ///
    /// **Each primary role begins with `true`**, so the partner counts as synced only after the
    /// first `false`. Repeating the present value has no effect, nor has a call on a node that is
    /// not primary..
    pub fn set_simplex(&mut self, group: GroupId, wanted: bool, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| {
            group.set_simplex(wanted, s, out)
        });
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }

    /// Whether the partner cannot take over with what it holds, so that an output whose state is
    /// not safe there may be written: [`set_simplex`](Self::set_simplex) is `true`, and since then
    /// every witness that the partner may need has put it on record, **or** the partner itself has
    /// heard it. A group without a witness is in simplex at once, which is weaker. That the
    /// partner says that it is not synced is no substitute: a state sent earlier may yet reach it.
    pub fn is_simplex(&self, group: GroupId) -> bool {
        let index = self.index_of(group);
        index.is_some_and(|index| self.groups[index].is_simplex())
    }

    /// What [`set_simplex`](Self::set_simplex) said last, or the role began with.
    pub fn wants_simplex(&self, group: GroupId) -> bool {
        let index = self.index_of(group);
        index.is_some_and(|index| self.groups[index].wants_simplex())
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
    /// not mean that it succeeds: see [`RoleChanged`](crate::Event::RoleChanged) and
    /// [`HandOverAborted`](crate::Event::HandOverAborted).
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

    /// After [`HandOverBegun`](crate::Event::HandOverBegun): the last output is written, its state is safe at the
    /// backup, and no further output will be written. The permit ends with this call.
    pub fn hand_over_ready(&mut self, group: GroupId, now: Instant) {
        let Some(index) = self.index_of(group) else {
            return;
        };
        self.with_group(index, now, |group, s, out| group.hand_over_ready(s, out));
        let peer = self.groups[index].terms.peer;
        self.after(Some(peer), now);
    }
}

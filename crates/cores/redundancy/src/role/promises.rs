//! What a node says of a group in its heartbeats, and the promise that it gives with it.

use crate::role::state::Lapse;
use crate::role::{RoleMachine, Surroundings};
use bumpless_base::{Duration, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, Role};

/// A primary without a right hurries for so many leases at most.
const HASTE_LEASES: u64 = 10;

impl RoleMachine {
    /// **Binds this node** to what the next round of heartbeats says, and returns that: a promise not to take over,
    /// counted from `heard_at`, when the partner was last heard; that no earlier promise is used any more; that what
    /// the partner holds is old.
    pub(crate) fn promise_and_say(
        &mut self,
        heard_at: Option<Instant>,
        s: &Surroundings<'_>,
    ) -> GroupEntry {
        let lapsed = self.give_up_promises(s);
        let granting = self.promise(heard_at, s);
        self.note_said(s.now);
        self.urgent = self.is_in_haste(s);
        self.entry((granting, lapsed), s)
    }

    /// Promises the partner not to take over, if this node is to; returns whether it did.
    fn promise(&mut self, heard_at: Option<Instant>, s: &Surroundings<'_>) -> bool {
        let only_one = !s.duplicate_partner && s.now >= self.lasting.grant_from;
        let Some(at) = heard_at.filter(|_| self.state.is_granting() && only_one) else {
            return false;
        };
        self.lasting.promised_until = self.lasting.promised_until.max(at + s.timing.promise());
        true
    }

    /// What heartbeats say. `granting`: this round promises the partner not to take over; `lapsed`: from this round on
    /// no earlier promise is used.
    fn entry(&self, (granting, lapsed): (bool, bool), s: &Surroundings<'_>) -> GroupEntry {
        let (reference, version) = self.agreement.stated(self.role() == Role::Primary);
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
                self.is_switchover_requested(),
            )
            .with(GroupFlags::HANDING_OVER, self.offered().is_some())
            .with(
                GroupFlags::ELIGIBLE,
                self.role() != Role::Stopped && reaches,
            )
            .with(GroupFlags::SIMPLEX, self.says_simplex())
            .with(GroupFlags::DUPLICATE, s.duplicate_partner)
            .with(GroupFlags::LAPSED, lapsed)
            .with(
                GroupFlags::NEWEST,
                self.role() == Role::Primary || self.claim(s.now).is_some(),
            )
            .with(GroupFlags::UNFIT, !self.newest.holding.fit)
            .with(GroupFlags::HELD, self.newest.holds_some(s.now))
            .with(GroupFlags::HELD_ALL, self.newest.holds_all(s.now));
        GroupEntry {
            group: self.terms.id.0,
            role: self.role(),
            epoch: self.stated_epoch(),
            used: self.newest.used,
            flags,
            reference,
            reference_version: version,
            token: self.switchover_token(),
        }
    }

    /// Whether the round that is sent at `s.now` says LAPSED: not at once after the right has run out, since what
    /// brings it back is mostly on its way. From the first round on that says so, this node uses no promise that
    /// names an earlier round.
    fn give_up_promises(&mut self, s: &Surroundings<'_>) -> bool {
        let tenure = self.state.tenure_mut();
        let Some(lapse) = tenure.and_then(|tenure| tenure.lapse.as_mut()) else {
            return false;
        };
        if !lapse.said && s.now >= lapse.since + s.timing.heartbeat / 2 {
            lapse.said = true;
            self.lasting.promised_right_until = Instant::ZERO;
            self.lasting.rights_since = s.now.before(Duration::from_nanos(1));
            self.agreement.renounce();
        }
        lapse.said
    }

    /// A right has run out not long ago, here or at the partner: the sooner one of many heartbeats gets through, the
    /// sooner outputs go on.
    fn is_in_haste(&self, s: &Surroundings<'_>) -> bool {
        let lapsed = |lapse: &Lapse| s.now < lapse.since + s.timing.lease * HASTE_LEASES;
        let partner_lapsed = |p: GroupEntry| p.flags.contains(GroupFlags::LAPSED);
        let partner = self.counterpart.entry.filter(|_| s.reachable);
        self.state.lapse().is_some_and(lapsed) || partner.is_some_and(partner_lapsed)
    }
}

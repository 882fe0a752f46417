//! Which of two nodes holds the newest state, and whether anybody else can have written since.
//!
//! Outputs leave only while the state behind them is at the partner, or the partner can know that it is not
//! . So what a node holds is the newest there is unless it has heard otherwise: from its partner, from a
//! witness, or from a field device. Between two that hold a state the later primary role decides.

use crate::id::ReferenceSet;
use crate::role::{RoleMachine, Surroundings};
use crate::setup::{ReferenceKind, Timing};
use bumpless_base::{Epoch, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, Role};

/// What the driver says of the states that this node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holding {
    /// Until when the state of every application is fresh, as its channel's expiry has it.
    pub fresh_until: Option<Instant>,
    /// Until when the state of every application is young enough to go on from (`hot_restart_ms`). `None`:
    /// some application has none.
    pub usable_until: Option<Instant>,
    /// Until when the state of at least one application is young enough to go on from, of those whose field device
    /// shows no later output. Where a state is in doubt, the device may show that it is the newest.
    pub some_usable_until: Option<Instant>,
    /// The field device of some application has accepted an output that the state here does not include: until when
    /// the node that has written it could still go on, if it has written none since.
    pub outdated_until: Option<Instant>,
    /// Since when some field device has not been compared with the state here: since this node last stood still, was
    /// primary, or lost that device. `None`: all have been compared.
    pub uncompared_since: Option<Instant>,
    /// Every application can run here: its field device answers.
    pub fit: bool,
}

impl Holding {
    /// No state at all.
    pub const NOTHING: Self = Self {
        fresh_until: None,
        usable_until: None,
        some_usable_until: None,
        outdated_until: None,
        uncompared_since: None,
        fit: true,
    };

    /// States that are fresh, and may be gone on from, until then.
    pub const fn until(until: Option<Instant>) -> Self {
        Self {
            fresh_until: until,
            usable_until: until,
            some_usable_until: until,
            outdated_until: None,
            uncompared_since: None,
            fit: true,
        }
    }
}

impl Default for Holding {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// What a node knows of the newest state of its group.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Newest {
    /// What this node holds, in the driver's words.
    pub(crate) holding: Holding,
    /// The highest epoch in which somebody is known to have been primary.
    pub(crate) used: Epoch,
    /// What this node holds lacks an output that may have been written since.
    old: bool,
    /// The partner's incarnation beside which `old` is settled. Beside another one the witnesses are asked first
    ///
    confirmed: u64,
    /// The witnesses to ask then: an earlier incarnation of the partner that took the role unheard needed one of them.
    /// `None`: those that this node needs itself.
    needed: Option<ReferenceSet>,
    /// A role that began in doubt has ended, and the driver has not said yet whether a state was made in it.
    unsettled: bool,
}

impl Newest {
    /// Whether this node holds a state of some application that is young enough to go on from, old or not.
    pub(crate) fn holds_some(&self, now: Instant) -> bool {
        let until = self.holding.some_usable_until;
        until.is_some_and(|until| now < until)
    }

    /// Whether this node holds such a state of every application, and no field device shows a later output.
    pub(crate) fn holds_all(&self, now: Instant) -> bool {
        let until = self.holding.usable_until;
        self.holding.outdated_until.is_none() && until.is_some_and(|until| now < until)
    }

    /// Until when this node waits for field devices that have not been compared with the states here.
    pub(crate) fn comparison_awaited_until(&self, timing: &Timing) -> Option<Instant> {
        let since = self.holding.uncompared_since;
        since.map(|since| since + timing.start_wait)
    }

    /// Takes the driver's word. Without a state of every application after a role that began in doubt, what was in doubt
    /// then still is.
    pub(crate) fn hold(&mut self, holding: Holding) {
        self.old |= core::mem::take(&mut self.unsettled) && holding.usable_until.is_none();
        self.holding = holding;
    }

    /// What this node holds may lack an output.
    pub(crate) fn doubt(&mut self) {
        self.old = true;
    }

    /// An earlier process of this node has left a state of `epoch`, which may lack outputs written since.
    pub(crate) fn restore(&mut self, epoch: Epoch) {
        self.used = self.used.max(epoch);
        self.old = true;
    }

    /// This node is primary in `epoch`: what it makes is the newest.
    pub(crate) fn make(&mut self, epoch: Epoch) {
        self.used = self.used.max(epoch);
        self.old = false;
    }

    /// The primary role ends. `incarnation`: the partner's incarnation that was known while the right was valid;
    /// `mask`: the reference points of which that incarnation needed one to take over; `cold`: it began in doubt.
    pub(crate) fn end_role(&mut self, incarnation: u64, mask: ReferenceSet, cold: bool) {
        (self.holding, self.unsettled) = (Holding::NOTHING, cold);
        (self.confirmed, self.needed) = (incarnation, Some(mask));
    }

    /// A field device has accepted `epoch`.
    pub(crate) fn seen_at_device(&mut self, epoch: Epoch) {
        if epoch > self.used {
            self.used = epoch;
            self.old = true;
        }
    }

    /// Takes from the heartbeat of a primary, or of one that hands over, its epoch, and whether the state here is old.
    fn follow(&mut self, entry: &GroupEntry, session: u64) {
        self.used = entry.used;
        self.old = entry.flags.contains(GroupFlags::SIMPLEX);
        (self.confirmed, self.needed) = (session, None);
    }

    /// Takes from the heartbeat of a partner that is not primary whether it knows of later outputs.
    fn compare(&mut self, entry: &GroupEntry) {
        let said_old = entry.used >= self.used && entry.flags.contains(GroupFlags::SIMPLEX);
        self.old |= said_old || entry.used > self.used;
        self.used = self.used.max(entry.used);
    }
}

/// What a node holds, in the order in which one node comes before the other: the greater one does.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// 0 nothing, 1 what may be old, 2 the newest.
    state: u8,
    /// The epoch in which that was made, as a number. 0 with nothing.
    used: u32,
    /// It is a state of every application.
    all: bool,
}

impl Rank {
    fn new(newest: bool, held: bool, all: bool, used: Epoch) -> Self {
        let state = u8::from(held) + u8::from(newest);
        let used = used.0 * u32::from(state > 0);
        Self { state, used, all }
    }
}

impl RoleMachine {
    /// This node's claim to hold the newest state, as the epoch whose outputs that state includes.
    pub(crate) fn claim(&self, now: Instant) -> Option<Epoch> {
        let newest = &self.newest;
        let usable = newest.holding.usable_until.is_some_and(|until| now < until);
        (usable && !newest.old).then_some(newest.used)
    }

    /// Whether this node could take over without a bump, and at once.
    pub(crate) fn synced(&self, now: Instant) -> bool {
        let holding = &self.newest.holding;
        let fresh = holding.fresh_until.is_some_and(|until| now < until);
        fresh && holding.fit && self.claim(now).is_some()
    }

    /// Whether this node holds a state that would be the newest, but for its age.
    pub(crate) fn is_past_hot_restart(&self, now: Instant) -> bool {
        let holding = &self.newest.holding;
        !self.newest.old && holding.usable_until.is_some_and(|until| until <= now)
    }

    /// Takes what a heartbeat of the partner says about the newest state.
    pub(crate) fn hear_newest(&mut self, entry: &GroupEntry, s: &Surroundings<'_>) {
        match (self.role(), entry.role) {
            (Role::Primary, _) => {}
            // One that has lapsed may not know yet who was primary after it.
            (_, Role::Primary) if entry.used >= self.newest.used => {
                self.newest.follow(entry, s.session);
            }
            // A primary's last word: its last state is here, whatever it said when its role began. A node that
            // has just started holds nothing that could be meant.
            (Role::Backup, Role::Backup)
                if entry.flags.contains(GroupFlags::HANDING_OVER)
                    && entry.used >= self.newest.used =>
            {
                self.newest.follow(entry, s.session);
            }
            _ => self.newest.compare(entry),
        }
    }

    /// Both are here and neither is primary: whether this node is the one to take the role. Later states come
    /// before earlier ones, one that may be old before none, since the field device may show that it is not, and
    /// those of every application before those of some. Then a node that can run its applications comes before one
    /// that cannot, and of two that hold the same the one that made it.
    pub(crate) fn is_better(&self, partner: &GroupEntry, now: Instant) -> bool {
        let says = |flag| partner.flags.contains(flag);
        let claim = self.claim(now);
        if self.offered().is_some() {
            return false;
        }
        if partner.role == Role::Stopped {
            return true;
        }
        if says(GroupFlags::HANDING_OVER) {
            return claim.is_some();
        }
        let newest = &self.newest;
        let ours = Rank::new(
            claim.is_some(),
            newest.holds_some(now),
            newest.holds_all(now),
            newest.used,
        );
        let theirs = Rank::new(
            says(GroupFlags::NEWEST),
            says(GroupFlags::HELD),
            says(GroupFlags::HELD_ALL),
            partner.used,
        );
        let fit = self.newest.holding.fit;
        match ours.cmp(&theirs) {
            core::cmp::Ordering::Greater => true,
            core::cmp::Ordering::Less => false,
            core::cmp::Ordering::Equal if fit == says(GroupFlags::UNFIT) => fit,
            core::cmp::Ordering::Equal => u32::from(self.terms.index.0) == ours.used % 2,
        }
    }

    /// Both are here and neither is primary: whether it is settled that nobody has written since the state that this
    /// node holds. A partner's incarnation that this node knew when its claim arose says so itself. For one
    /// that has ended since, the witnesses do. If one of them doubts it, or does not answer for too long, this node
    /// claims nothing any more.
    pub(crate) fn is_state_judged(&mut self, s: &Surroundings<'_>) -> bool {
        let known = self.newest.confirmed == s.session;
        if self.claim(s.now).is_none() || known {
            return true;
        }
        let needed = self.newest.needed.unwrap_or(self.agreement.needed());
        let mut judged = true;
        for reference in needed.iter() {
            if self.agreement.kind(reference) != Some(ReferenceKind::Witness) {
                continue;
            }
            let lease = self.agreement.lease(reference);
            let asked_since = lease.answered_request() >= self.counterpart.since;
            judged &= asked_since;
            self.newest.old |= asked_since && lease.simplex;
        }
        if judged {
            self.newest.confirmed = s.session;
        } else if s.now >= self.counterpart.since + s.timing.start_wait {
            self.newest.old = true;
        }
        judged || self.newest.old
    }
}

#[cfg(test)]
mod tests;

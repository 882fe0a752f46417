//! Ordered switchover.
//!
//! The primary drains (its last state becomes safe at the backup), gives up every right, and only
//! then says so, offering the epoch that its successor may use at once. Each step is repeated in
//! every heartbeat; nothing hangs on a single message.

use crate::event::{Event, Outbox, RoleCause, SwitchoverRefused};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::Timing;
use bumpless_base::{Duration, Epoch, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, Role};

/// Where a switchover stands on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    /// Backup: asks the primary for it.
    Requested(Instant),
    /// Primary: waits for the driver to say that the last state is safe.
    Draining(Instant),
    /// Was primary: has renounced, and until then offers this epoch.
    Offered(Instant, Epoch),
}

/// A group's switchover.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct HandOver {
    phase: Phase,
    /// Number of the last request made here.
    request: u32,
    /// The last request of the partner that was acted upon.
    served: Option<u32>,
}

/// For how long an offer stands: long enough for many heartbeats, then the ordinary rules decide.
fn offer_bound(timing: &Timing) -> Duration {
    timing.lease * 4
}

impl HandOver {
    pub(crate) fn clear(&mut self) {
        self.phase = Phase::Idle;
    }
    pub(crate) fn is_requested(&self) -> bool {
        matches!(self.phase, Phase::Requested(_))
    }
    pub(crate) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining(_))
    }
    pub(crate) fn offered(&self) -> Option<Epoch> {
        match self.phase {
            Phase::Offered(_, epoch) => Some(epoch),
            _ => None,
        }
    }
    pub(crate) fn token(&self) -> u32 {
        match self.phase {
            Phase::Offered(_, epoch) => epoch.0,
            _ => self.request,
        }
    }
    pub(crate) fn deadline(&self, timing: &Timing) -> Option<Instant> {
        match self.phase {
            Phase::Idle => None,
            Phase::Requested(since) | Phase::Draining(since) => Some(since + timing.hand_over),
            Phase::Offered(until, _) => Some(until),
        }
    }
}

impl RoleMachine {
    /// The operator orders a switchover, on either node.
    pub(crate) fn command_switchover(
        &mut self,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) -> Result<(), SwitchoverRefused> {
        self.decide(s, out);
        let partner = self.partner.filter(|_| s.reachable);
        let partner = partner.ok_or(SwitchoverRefused::PartnerSilent)?;
        match self.role {
            Role::Primary => self.begin_draining(s, out),
            Role::Backup if partner.role == Role::Primary => self.begin_request(s),
            _ => Err(SwitchoverRefused::NoRole),
        }
    }

    fn begin_draining(
        &mut self,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) -> Result<(), SwitchoverRefused> {
        if self.hand_over.is_draining() {
            return Err(SwitchoverRefused::InProgress);
        }
        if self.lapse.is_some() {
            return Err(SwitchoverRefused::NoRole);
        }
        self.backup_ready(s)?;
        self.hand_over.phase = Phase::Draining(s.now);
        out.event(Event::HandOverBegun { group: self.id });
        Ok(())
    }

    fn begin_request(&mut self, s: &Surroundings<'_>) -> Result<(), SwitchoverRefused> {
        if self.hand_over.is_requested() {
            return Err(SwitchoverRefused::InProgress);
        }
        if !self.synced(s.now) {
            return Err(SwitchoverRefused::BackupNotSynced);
        }
        self.hand_over.request = self.hand_over.request.wrapping_add(1);
        self.hand_over.phase = Phase::Requested(s.now);
        self.urgent = true;
        Ok(())
    }

    fn backup_ready(&self, s: &Surroundings<'_>) -> Result<(), SwitchoverRefused> {
        let partner = self.partner.filter(|_| s.reachable);
        let partner = partner.ok_or(SwitchoverRefused::PartnerSilent)?;
        if partner.role != Role::Backup || !partner.flags.contains(GroupFlags::SYNCED) {
            return Err(SwitchoverRefused::BackupNotSynced);
        }
        Ok(())
    }

    /// The driver says: the last output is written and its state is safe at the backup.
    pub(crate) fn hand_over_ready(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.decide(s, out);
        if !self.hand_over.is_draining() {
            return;
        }
        if let Err(cause) = self.backup_ready(s) {
            return self.abort_hand_over(cause, out);
        }
        let highest = self.stated_epoch();
        let Some(offer) = highest.next_for(1 - self.index.min(1), 2) else {
            return self.abort_hand_over(SwitchoverRefused::NoRole, out);
        };
        self.declare(false, s.timing, s.now);
        // Every right is gone before the first message says so.
        self.resign(Role::Backup, RoleCause::HandOver, s, out);
        self.observe(offer);
        self.hand_over.phase = Phase::Offered(s.now + offer_bound(s.timing), offer);
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            self.agreement.lease_mut(reference).next_request = s.now;
        }
        self.decide(s, out);
    }

    fn abort_hand_over(&mut self, cause: SwitchoverRefused, out: &mut Outbox) {
        self.hand_over.clear();
        out.event(Event::HandOverAborted {
            group: self.id,
            cause,
        });
    }

    /// Primary: gives a switchover up that the backup cannot follow, or that takes too long.
    pub(crate) fn check_hand_over(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        if !self.hand_over.is_draining() {
            return;
        }
        let late = self
            .hand_over
            .deadline(s.timing)
            .is_some_and(|end| s.now >= end);
        if late {
            self.abort_hand_over(SwitchoverRefused::TimedOut, out);
        } else if let Err(cause) = self.backup_ready(s) {
            self.abort_hand_over(cause, out);
        }
    }

    /// Backup: a request that was not served in time is dropped.
    pub(crate) fn check_request(&mut self, s: &Surroundings<'_>) {
        let late = self
            .hand_over
            .deadline(s.timing)
            .is_some_and(|end| s.now >= end);
        if self.hand_over.is_requested() && (late || self.role == Role::Primary) {
            self.hand_over.clear();
        }
    }

    /// Was primary: the offer ends. A promise that counts from before its end is not used, since
    /// the partner drops what it promised whenever it hears the offer.
    pub(crate) fn check_released(&mut self, s: &Surroundings<'_>) {
        let late = self
            .hand_over
            .deadline(s.timing)
            .is_some_and(|end| s.now >= end);
        if late && self.hand_over.offered().is_some() {
            self.withdraw_offer(s.now);
        }
    }

    fn withdraw_offer(&mut self, now: Instant) {
        self.hand_over.clear();
        self.right = Instant::ZERO;
        self.rights_since = now;
        self.urgent = true;
    }

    /// What the partner's heartbeat says about a switchover.
    pub(crate) fn hear_hand_over(
        &mut self,
        entry: &GroupEntry,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) {
        let says = |flag| entry.flags.contains(flag);
        if entry.role == Role::Primary && self.hand_over.offered().is_some() {
            self.withdraw_offer(s.now);
        }
        if says(GroupFlags::HANDING_OVER) && entry.role == Role::Backup {
            // Whom we promised it has renounced everything that it had before this heartbeat.
            self.promised_until = Instant::ZERO;
        }
        let request = Some(entry.token);
        let asks = says(GroupFlags::SWITCHOVER_REQUEST) && self.hand_over.served != request;
        if asks && self.role == Role::Primary {
            self.hand_over.served = request;
            // Ordered here as well: the same wish, which is under way. An abandonment told now would let the driver
            // go on while this core waits for it to drain.
            if self.hand_over.is_draining() {
                return;
            }
            // A refusal shows at the backup as a request that nobody serves.
            if let Err(cause) = self.begin_draining(s, out) {
                out.event(Event::HandOverAborted {
                    group: self.id,
                    cause,
                });
            }
        }
    }

    /// Takes the offered epoch if it is ours to use, and neither known before nor used.
    pub(crate) fn take_offer(&mut self, token: u32) {
        let offer = Epoch(token);
        let ours = token % 2 == u32::from(self.index);
        if ours && self.observed <= offer && self.epoch < offer {
            self.candidate = Some(offer);
        }
    }

    /// Forgets which request was served: the partner's next incarnation counts anew.
    pub(crate) fn forget_requests(&mut self) {
        self.hand_over.served = None;
    }
}

#[cfg(test)]
mod tests;

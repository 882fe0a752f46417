//! Ordered switchover.
//!
//! The primary drains (its last state becomes safe at the backup), gives up every right, and only
//! then says so, offering the epoch that its successor may use at once. Each step is repeated in
//! every heartbeat; nothing hangs on a single message.

use crate::event::{Event, Outbox, RoleCause, SwitchoverRefused};
use crate::role::state::{Retreat, RoleState, Switchover};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::Timing;
use bumpless_base::{Candidate, Duration, Epoch, Instant};
use bumpless_wire::{GroupEntry, GroupFlags, Role};

/// For how long an offer stands: long enough for many heartbeats, then the ordinary rules decide.
fn offer_bound(timing: &Timing) -> Duration {
    timing.lease * 4
}

impl RoleMachine {
    /// This node asks the primary for the role.
    pub(crate) fn is_switchover_requested(&self) -> bool {
        matches!(self.state.switchover(), Some(Switchover::Requested(_)))
    }

    /// This primary is to hand over, and waits for the driver.
    pub(crate) fn is_draining(&self) -> bool {
        self.state
            .tenure()
            .is_some_and(|tenure| tenure.draining.is_some())
    }

    /// The epoch that this node, which was primary, offers its successor.
    pub(crate) fn offered(&self) -> Option<Epoch> {
        match self.state.switchover() {
            Some(Switchover::Offered(_, epoch)) => Some(epoch),
            _ => None,
        }
    }

    /// What heartbeats say of it: the epoch that is offered, else the number of the last request.
    pub(crate) fn switchover_token(&self) -> u32 {
        self.offered()
            .map_or(self.lasting.requests, |epoch| epoch.0)
    }

    /// When the present step of a switchover has taken too long.
    pub(crate) fn switchover_deadline(&self, timing: &Timing) -> Option<Instant> {
        match &self.state {
            RoleState::Primary(tenure) => tenure.draining.map(|since| since + timing.hand_over),
            other => other.switchover().map(|switchover| match switchover {
                Switchover::Requested(since) => since + timing.hand_over,
                Switchover::Offered(until, _) => until,
            }),
        }
    }

    fn is_switchover_late(&self, s: &Surroundings<'_>) -> bool {
        let deadline = self.switchover_deadline(s.timing);
        deadline.is_some_and(|deadline| s.now >= deadline)
    }

    fn set_switchover(&mut self, switchover: Option<Switchover>) {
        if let Some(candidacy) = self.state.candidacy_mut() {
            candidacy.switchover = switchover;
        }
    }

    /// The operator orders a switchover, on either node.
    pub(crate) fn command_switchover(
        &mut self,
        s: &Surroundings<'_>,
        out: &mut Outbox,
    ) -> Result<(), SwitchoverRefused> {
        self.decide(s, out);
        let partner = self.counterpart.entry.filter(|_| s.reachable);
        let partner = partner.ok_or(SwitchoverRefused::PartnerSilent)?;
        match self.role() {
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
        if self.is_draining() {
            return Err(SwitchoverRefused::InProgress);
        }
        if self.state.lapse().is_some() {
            return Err(SwitchoverRefused::NoRole);
        }
        self.backup_ready(s)?;
        if let Some(tenure) = self.state.tenure_mut() {
            tenure.draining = Some(s.now);
        }
        out.event(Event::HandOverBegun {
            group: self.terms.id,
        });
        Ok(())
    }

    fn begin_request(&mut self, s: &Surroundings<'_>) -> Result<(), SwitchoverRefused> {
        if self.is_switchover_requested() {
            return Err(SwitchoverRefused::InProgress);
        }
        if !self.newest.holding.fit {
            return Err(SwitchoverRefused::BackupUnfit);
        }
        if !self.synced(s.now) {
            return Err(SwitchoverRefused::BackupNotSynced);
        }
        self.lasting.requests = self.lasting.requests.wrapping_add(1);
        self.set_switchover(Some(Switchover::Requested(s.now)));
        self.urgent = true;
        Ok(())
    }

    fn backup_ready(&self, s: &Surroundings<'_>) -> Result<(), SwitchoverRefused> {
        let partner = self.counterpart.entry.filter(|_| s.reachable);
        let partner = partner.ok_or(SwitchoverRefused::PartnerSilent)?;
        // Who is unfit does not call itself synced, whatever it holds.
        if partner.role == Role::Backup && partner.flags.contains(GroupFlags::UNFIT) {
            return Err(SwitchoverRefused::BackupUnfit);
        }
        if partner.role != Role::Backup || !partner.flags.contains(GroupFlags::SYNCED) {
            return Err(SwitchoverRefused::BackupNotSynced);
        }
        Ok(())
    }

    /// The driver says: the last output is written and its state is safe at the backup.
    pub(crate) fn hand_over_ready(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        self.decide(s, out);
        if !self.is_draining() {
            return;
        }
        if let Err(cause) = self.backup_ready(s) {
            return self.abort_hand_over(cause, out);
        }
        let highest = self.stated_epoch();
        let other = Candidate(1 - self.terms.index.0.min(1));
        let Some(offer) = highest.next_for(other, 2) else {
            return self.abort_hand_over(SwitchoverRefused::NoRole, out);
        };
        self.declare(false, s.timing, s.now);
        // Every right is gone before the first message says so.
        self.resign(Retreat::Backup, RoleCause::HandOver, s, out);
        self.observe(offer);
        let until = s.now + offer_bound(s.timing);
        self.set_switchover(Some(Switchover::Offered(until, offer)));
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            self.agreement.lease_mut(reference).next_request = s.now;
        }
        self.decide(s, out);
    }

    fn abort_hand_over(&mut self, cause: SwitchoverRefused, out: &mut Outbox) {
        if let Some(tenure) = self.state.tenure_mut() {
            tenure.draining = None;
        }
        out.event(Event::HandOverAborted {
            group: self.terms.id,
            cause,
        });
    }

    /// Primary: gives a switchover up that the backup cannot follow, or that takes too long.
    pub(crate) fn check_hand_over(&mut self, s: &Surroundings<'_>, out: &mut Outbox) {
        if !self.is_draining() {
            return;
        }
        if self.is_switchover_late(s) {
            self.abort_hand_over(SwitchoverRefused::TimedOut, out);
        } else if let Err(cause) = self.backup_ready(s) {
            self.abort_hand_over(cause, out);
        }
    }

    /// Backup: a request that was not served in time is dropped.
    pub(crate) fn check_request(&mut self, s: &Surroundings<'_>) {
        if self.is_switchover_requested() && self.is_switchover_late(s) {
            self.set_switchover(None);
        }
    }

    /// Was primary: the offer ends. A promise that counts from before its end is not used, since
    /// the partner drops what it promised whenever it hears the offer.
    pub(crate) fn check_released(&mut self, s: &Surroundings<'_>) {
        if self.offered().is_some() && self.is_switchover_late(s) {
            self.withdraw_offer(s.now);
        }
    }

    fn withdraw_offer(&mut self, now: Instant) {
        self.set_switchover(None);
        self.lasting.promised_right_until = Instant::ZERO;
        self.lasting.rights_since = now;
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
        let hands_over = says(GroupFlags::HANDING_OVER) && entry.role == Role::Backup;
        // It was taken by one that is primary, or was and gives the role back before anybody has heard it as primary.
        let taken = entry.role == Role::Primary || hands_over && self.offered() == Some(entry.used);
        if taken && self.offered().is_some() {
            self.withdraw_offer(s.now);
        }
        if hands_over {
            // The partner has renounced every right that it had before this heartbeat, this promise among them.
            self.lasting.promised_until = Instant::ZERO;
        }
        let request = Some(entry.token);
        let asks = says(GroupFlags::SWITCHOVER_REQUEST) && self.counterpart.served != request;
        if asks && self.role() == Role::Primary {
            self.counterpart.served = request;
            // Ordered here as well: the same wish, which is under way. An abandonment told now would let the driver
            // go on while this core waits for it to drain.
            if self.is_draining() {
                return;
            }
            // A refusal shows at the backup as a request that nobody serves.
            if let Err(cause) = self.begin_draining(s, out) {
                out.event(Event::HandOverAborted {
                    group: self.terms.id,
                    cause,
                });
            }
        }
    }

    /// Takes the offered epoch if it is ours to use, and neither known before nor used.
    pub(crate) fn take_offer(&mut self, token: u32) {
        let offer = Epoch(token);
        let ours = token % 2 == u32::from(self.terms.index.0);
        if ours && self.lasting.observed <= offer && self.lasting.stamped < offer {
            self.lasting.candidate = Some(offer);
        }
    }
}

#[cfg(test)]
mod tests;

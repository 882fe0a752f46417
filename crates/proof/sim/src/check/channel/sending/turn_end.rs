//! What must hold of a sender when its turn is over: what applications are told (T-4, T-5, T-7, T-24), and that
//! whoever waits asks (T-23).

use bumpless_base::{Duration, Instant, LinkSet, TransferOutcome};
use bumpless_wire::{packet_count, piece};

use super::super::State;
use super::{Open, Sending};
use crate::check::{Exemption, Verdict};

/// How long may pass without a question (T-23).
#[derive(Clone, Copy, Debug)]
pub struct ProbeTimeouts {
    /// Longer than a sender can wait while it is answered.
    pub answered: Duration,
    /// And while it is not.
    pub unanswered: Duration,
    /// It is not.
    pub slowly: bool,
    /// A wait that had begun by then is as long as if it were not.
    pub slow_at: Instant,
}

impl Sending {
    /// When a packet of the open transfer last left.
    fn last_left(&self) -> Option<Instant> {
        let last = self.left.iter().max()?.checked_sub(1)?;
        Some(Instant::from_nanos(last))
    }

    /// The turn is over: what applications are told must be what the acknowledgements say.
    pub fn ends_turn(&mut self, now: Instant, answer: impl Fn(u64) -> TransferOutcome) -> Verdict {
        if self.open.as_ref().is_some_and(|open| open.ends) {
            self.open = None;
        }
        let deaf = self.session.is_none();
        let cut_off = std::mem::take(&mut self.cut_off) || deaf;
        // Whatever is given up now may have inherited this.
        let earliest = self.states.front().map(|state| self.deadline(state));
        while let Some(&state) = self.states.front() {
            let told = answer(state.ticket);
            let covered = |safe: Option<u64>| safe.is_some_and(|safe| state.ticket <= safe);
            let number = state.ticket;
            match told {
                TransferOutcome::Safe if !covered(self.perhaps_safe) => {
                    return Err(format!(
                        "state {number} is said to be safe; no acknowledgement has said so in time"
                    ));
                }
                TransferOutcome::Failed | TransferOutcome::Pending if covered(self.safe) => {
                    return Err(format!(
                        "state {number} is acknowledged in time and said to be {told:?}"
                    ));
                }
                TransferOutcome::Pending
                    if covered(self.perhaps_safe)
                        || now >= self.deadline(&state)
                        || deaf
                        || self.cut_short >= Some(number) =>
                {
                    return Err(format!(
                        "nothing is said of state {number}, whose transfer, deadline or session has ended"
                    ));
                }
                TransferOutcome::Pending => return Ok(()),
                TransferOutcome::Failed if !cut_off && self.had_time(&state, earliest, now) => {
                    return Err(format!(
                        "state {number} is given up although there was time to send it"
                    ));
                }
                TransferOutcome::Safe | TransferOutcome::Failed => {
                    if let Some(forgiven) = self.forgives(&state, told, (cut_off, now)) {
                        self.tally.count(forgiven);
                    }
                    self.states.pop_front();
                }
            }
        }
        Ok(())
    }

    /// What is forgiven if a state is told as this.
    fn forgives(
        &self,
        state: &State,
        told: TransferOutcome,
        (cut_off, now): (bool, Instant),
    ) -> Option<Exemption> {
        let covered = |safe: Option<u64>| safe.is_some_and(|safe| state.ticket <= safe);
        if covered(self.perhaps_safe) {
            return (!covered(self.safe)).then_some(Exemption::DeadlineInherited);
        }
        let had_time = self.had_time(state, Some(self.deadline(state)), now);
        match told {
            TransferOutcome::Failed if had_time && cut_off => Some(Exemption::SessionEnded),
            TransferOutcome::Failed if had_time => Some(Exemption::DeadlineInherited),
            _ => None,
        }
    }

    /// Whether all of a state could be sent before the earliest deadline that it can have (T-24).
    pub(super) fn had_time(&self, state: &State, earliest: Option<Instant>, now: Instant) -> bool {
        let piece = piece(self.terms.payload_size, self.last_short);
        let packets = u64::from(packet_count(state.len, piece));
        earliest.is_some_and(|deadline| now + self.terms.packet_time * packets < deadline)
    }

    /// Whether no more is to be said of it until a state is published or a packet leaves.
    pub fn is_quiet(&self) -> bool {
        self.states.is_empty() && self.open.is_none()
    }

    /// Whether one of its networks is among those that are `up`.
    pub fn is_reached(&self, up: LinkSet) -> bool {
        up.iter()
            .any(|link| self.terms.networks.contains(&usize::from(link.0)))
    }

    /// How often something was sent again since an acknowledgement came.
    pub fn repeated(&self) -> u32 {
        self.open.as_ref().map_or(0, |open| open.repeated)
    }

    /// T-23: whoever waits for an acknowledgement asks for it, or another channel does at the in-flight
    /// limit. `sent_at`: when this node last sent a packet of any state; `probe_timeout`: longer than the
    /// sender's can be.
    pub fn keeps_silent(
        &self,
        sent_at: Instant,
        now: Instant,
        probe_timeout: ProbeTimeouts,
    ) -> Verdict {
        let waits = |open: &&Open| open.started > open.acknowledged;
        let Some(open) = self.open.as_ref().filter(waits) else {
            return Ok(());
        };
        let silent = now.since(sent_at.max(open.heard));
        if silent <= probe_timeout.answered + self.terms.pacing {
            return Ok(());
        }
        let slowly = probe_timeout.slowly || self.last_left() <= Some(probe_timeout.slow_at);
        let most = match slowly {
            true => probe_timeout.unanswered,
            false => probe_timeout.answered,
        };
        if open.doubtful {
            self.tally.count(Exemption::GivenUpInThisTurn);
        } else if silent <= most + self.terms.pacing {
            self.tally.count(Exemption::AsksMoreSlowly);
        } else {
            return Err(format!(
                "waits for an acknowledgement of transfer cycle {} and has not asked for {}, {} at most are its probe timeout",
                open.cycle, silent, most
            ));
        }
        Ok(())
    }
}

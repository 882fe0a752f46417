//! From the executed cycle to its outputs: the state goes to the backup, and nothing is written before what the
//! commitment asks for is known, nor without a permit.

use bumpless_base::{Counter, Counters, Instant, Pieces};

use super::committed::Committed;
use super::tenure::Tenure;
use super::{CycleMachine, Need, Phase, Published};
use crate::executor::handover::{PublishedPieces, fill};
use crate::executor::{
    CommitMode, CycleReport, FailCause, HoldCause, OnFailure, Outcome, OutputGate, Permit,
    Replication, Role, TransferOutcome,
};
use crate::state::{Progress, encode_envelope};
use crate::{FieldError, FieldErrorKind, OutputStamp};

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    pub(super) fn replicate(&mut self, permit: Permit, stale: Option<FieldError>, now: Instant) {
        let before = self.published;
        if let Some(progress) = self.progress {
            if let Some(committed) = &mut self.committed {
                committed.take(self.application.as_ref(), &self.outputs);
            }
            self.publish(progress, now);
        }
        match stale {
            Some(error) => self.finish(Outcome::Held(HoldCause::NoInputs(error)), now),
            None => self.commit(before, permit, now),
        }
    }

    /// The last whole state goes to the backup.
    pub(super) fn publish(&mut self, progress: Progress, now: Instant) {
        let application = self.application.as_ref();
        let committed = self.committed.as_ref();
        let outputs = committed.map_or(&*self.outputs, Committed::outputs);
        let kept = committed.is_none_or(Committed::is_kept_by_application);
        let pieces = application.pieces().filter(|_| kept);
        let headed = encode_envelope(progress, outputs, &mut self.head);
        let (ticket, bytes) = if let (Some(application), Some(_)) = (pieces, headed) {
            let state = PublishedPieces {
                head: &self.head,
                application,
            };
            (self.replication.publish_pieces(&state), state.size())
        } else {
            let mut bytes = 0;
            let ticket = self.replication.publish(&mut |buffer| {
                bytes = match committed {
                    Some(committed) => committed.fill(application, progress, buffer),
                    None => fill(application, progress, outputs, buffer),
                };
                bytes
            });
            (ticket, bytes)
        };
        self.note_published(ticket, bytes, now);
    }

    fn note_published(&mut self, ticket: u64, bytes: usize, now: Instant) {
        self.published = Some(Published { ticket, at: now });
        self.gate.note_decided(self.tenure_since);
        self.report.published_at = Some(now);
        self.report.state_bytes = bytes;
    }

    /// Decides what must be known before the outputs may be written.
    pub(super) fn commit(&mut self, before: Option<Published>, permit: Permit, now: Instant) {
        let awaited = match self.settings.commit {
            CommitMode::BeforeOutput => self.published,
            // A successor that has nothing of it would begin anew after this output.
            CommitMode::Async if self.newcomer => self.published,
            // In the first cycle after another primary, the state before is the one it began with.
            CommitMode::Async => before,
        };
        let (Some(awaited), Some(this)) = (awaited, self.published) else {
            self.phase = Phase::CopyOut(permit, None);
            return;
        };
        if self.gate.backup_expected() {
            self.phase = Phase::Settling {
                permit,
                awaited,
                this,
            };
        } else if self.replication.settled(awaited.ticket) == TransferOutcome::Safe {
            self.phase = Phase::CopyOut(permit, None);
        } else {
            self.phase = Phase::GoingSimplex(permit, None);
        }
        debug_assert!(this.at <= now);
    }

    pub(super) fn have_settled(
        &mut self,
        permit: Permit,
        awaited: Published,
        this: Published,
        settled: TransferOutcome,
        now: Instant,
    ) {
        if settled == TransferOutcome::Failed && awaited.ticket != this.ticket {
            // A backup that gets this state is not behind either.
            self.phase = Phase::Settling {
                permit,
                awaited: this,
                this,
            };
            return;
        }
        self.report.settled = Some(settled);
        if settled == TransferOutcome::Safe {
            self.report.transfer_settled_after = Some(now.since(awaited.at));
            self.gate.in_step();
            self.phase = Phase::CopyOut(permit, None);
        } else {
            self.phase = Phase::GoingSimplex(permit, Some(awaited.ticket));
        }
    }

    /// Looks at the permit once more and asks for the write. `lacked` is the ticket of the state that was waited
    /// for in vain, if one was; it may have become safe since.
    pub(super) fn copy_out(
        &mut self,
        held: Permit,
        lacked: Option<u64>,
        now: Instant,
    ) -> Option<Need> {
        let permit = self.gate.permit();
        let Some(permit) = permit.filter(|p| p.epoch == held.epoch && now < p.until) else {
            self.phase = Phase::Lapsed(held, HoldCause::PermitLost);
            return None;
        };
        let stamp = OutputStamp {
            epoch: permit.epoch,
            writer: self.settings.writer,
            cycle: self.report.cycle,
        };
        let until = (now + self.settings.field_timeout).min(permit.until);
        self.report.backup_behind =
            lacked.is_some_and(|ticket| self.replication.settled(ticket) != TransferOutcome::Safe);
        self.newcomer = false;
        self.wrote_in = Some(permit.epoch);
        self.phase = Phase::Writing;
        Some(Need::Write { stamp, until })
    }

    /// The outputs of this cycle may not leave with the permit of `held`, which has ended. Until the next cycle is due a
    /// later one may come, perhaps of a higher epoch of this node's own. If this node has been primary ever since, the
    /// state goes to the backup once more, as one of the epoch in which its outputs will leave.
    pub(super) fn await_permit(
        &mut self,
        held: Permit,
        cause: HoldCause,
        now: Instant,
    ) -> Option<Need> {
        if self.safe.is_some() {
            // The next cycle writes them again, and the program stays stopped.
            self.finish(Outcome::Held(cause), now);
            return Some(Need::Sleep { until: self.next });
        }
        let until = self.next + self.settings.period;
        let kept_role = self.gate.role() == Role::Primary
            && self.uninterrupted
            && self.taken_up_at >= self.gate.role_since();
        if !kept_role || self.gate.paused() || now >= until {
            if cause == HoldCause::PermitLost {
                self.tenure = Tenure::Standby;
            }
            // Who wakes a little late has not missed the next cycle.
            self.finish(Outcome::Held(cause), now.min(until));
            // Between two cycles the driver has its turn.
            return Some(Need::Sleep { until: self.next });
        }
        let later = |p: &Permit| now < p.until && (p.epoch, p.until) > (held.epoch, held.until);
        let Some(permit) = self.gate.permit().filter(later) else {
            return Some(Need::Sleep { until });
        };
        let epoch = permit.epoch;
        self.progress = self.progress.map(|progress| Progress { epoch, ..progress });
        self.report.epoch = Some(epoch);
        self.tenure = Tenure::Acting(epoch);
        self.replicate(permit, None, now);
        None
    }

    pub(super) fn have_written(&mut self, result: Result<(), FieldError>, now: Instant) {
        let Err(error) = result else {
            self.report.written_at = Some(now);
            let safe = self.safe.take().map(Outcome::SafeValues);
            return self.finish(safe.unwrap_or(Outcome::Written), now);
        };
        if self.safe.is_some() {
            return self.safe_values_refused(error, now);
        }
        if let FieldErrorKind::RejectedEpoch { seen } = error.kind {
            self.counters.count(Counter::OutputsRejected);
            self.gate.epoch_seen(seen);
            self.tenure = Tenure::Standby;
            return self.finish(Outcome::WriteFailed(error), now);
        }
        self.counters.count(Counter::FieldFailures);
        match self.settings.on_failure {
            OnFailure::Hold => self.finish(Outcome::WriteFailed(error), now),
            OnFailure::Fail => self.fail(FailCause::Field(error), now),
        }
    }
}

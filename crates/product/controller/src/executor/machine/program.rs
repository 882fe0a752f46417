//! A program that fails (F-28 to F-31, F-38): what is done about it, and what holds then.

use bumpless_base::{Counter, Counters, Duration, Instant};

use super::committed::Committed;
use super::record::{ProgramRecord, Reaction};
use super::retention::Retention;
use super::tenure::Tenure;
use super::{CycleMachine, Phase};
use crate::executor::{
    CycleReport, FailCause, FailedExecution, HoldCause, OnProgramFault, Outcome, OutputGate,
    Permit, ProgramStanding, Replication, Then,
};
use crate::state::Progress;
use crate::{
    FieldError, FieldErrorKind, FieldSample, LoadError, Mishap, ProgramFault, ProgramFaultKind,
};

/// How long a program may take to start again.
const RESTART_MAX: Duration = Duration::from_secs(1);

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    /// Executes; what was there before is still there if that fails.
    pub(super) fn execute_or_go_back(
        &mut self,
        permit: Permit,
        stale: Option<FieldError>,
        now: Instant,
    ) {
        if let Some(mishap) = self.application.mishap() {
            let cycle = self.progress.map_or(0, |progress| progress.cycle) + 1;
            if mishap.counts && self.record.is_second(cycle) {
                return self.program_failed(permit, mishap.fault, now);
            }
            self.had_mishap(cycle, mishap, now);
        }
        match self.execute(permit.epoch, now) {
            Ok(()) => self.phase = Phase::Executed(permit, stale),
            Err(fault) => self.program_failed(permit, fault, now),
        }
    }

    /// An output that is not a finite number is nothing that a device could take.
    pub(super) fn answer_fault(&self) -> Option<ProgramFault> {
        self.committed.as_ref()?;
        ProgramFault::of_outputs(&self.outputs)
    }

    /// Something was wrong with the program before `cycle`, which is executed all the same.
    fn had_mishap(&mut self, cycle: u64, mishap: Mishap, now: Instant) {
        self.counters.count(Counter::ProgramFaults);
        if mishap.counts {
            // The first one, so it stops nothing.
            self.record.failed(cycle, mishap.fault.kind, now);
        }
        self.report.program_fault = Some(FailedExecution {
            cycle,
            fault: mishap.fault,
            then: Then::TriedAtOnce,
        });
    }

    fn program_failed(&mut self, permit: Permit, fault: ProgramFault, now: Instant) {
        let restarts = fault.kind == ProgramFaultKind::NotReady;
        if restarts && now.since(self.record.failed_at) < RESTART_MAX && self.go_back().is_ok() {
            self.take_epoch(permit);
            self.publish_committed(now);
            return self.finish(Outcome::Held(HoldCause::Program(fault)), now);
        }
        self.counters.count(Counter::ProgramFaults);
        let cycle = self.progress.map_or(0, |progress| progress.cycle) + 1;
        let own = self.replication.own_usable_until();
        let mut reaction = self.record.failed(cycle, fault.kind, now);
        let mut cause = fault.clone();
        if let Err(error) = self.go_back() {
            let detail = format!("{error}; it had failed: {fault}");
            cause = ProgramFault::new(ProgramFaultKind::NotRunning, detail);
            if reaction == Reaction::Again {
                reaction = self.record.stop(cycle, false, now);
            }
        }
        self.take_epoch(permit);
        if reaction == Reaction::Again {
            self.report.program_fault = Some(FailedExecution {
                cycle,
                fault,
                then: Then::TriedAtOnce,
            });
            self.publish_committed(now);
            return self.finish(Outcome::Held(HoldCause::Program(cause)), now);
        }
        // Nothing has changed outside if a trial has failed.
        if !self.record.is_trial() {
            (self.record.since, self.record.usable_until) = (now, own);
        }
        self.report.program_fault = Some(FailedExecution {
            cycle,
            fault,
            then: self.record.pause().map_or(Then::Stopped, Then::TriedAfter),
        });
        self.publish_committed(now);
        self.set_standing(match reaction {
            Reaction::Stay => ProgramStanding::Stopped,
            _ => ProgramStanding::StoppedSeeksRelief,
        });
        self.fail(FailCause::Program(cause), now);
    }

    /// Whether the program that has stopped for `fault` is to be tried again in the cycle that begins, by itself or on
    /// order. It goes on from the state that it went back to; where that may not be gone on from any more, from the
    /// initial one.
    pub(super) fn is_tried_again(&mut self, fault: &ProgramFault, now: Instant) -> bool {
        if let Some(from) = self.gate.resume_ordered() {
            self.record.order(from);
        }
        if !self.record.is_due(now) {
            return false;
        }
        let Some(permit) = self.gate.permit().filter(|permit| now < permit.until) else {
            return false;
        };
        let cycle = self.progress.map_or(0, |progress| progress.cycle);
        if now >= self.record.usable_until && self.published.is_some() {
            if !self.record.may_begin_anew(self.settings.begins_anew) {
                let then = match self.record.give_up() {
                    true => Then::NotResumed,
                    false => Then::Stopped,
                };
                self.report.program_fault = Some(FailedExecution {
                    cycle: cycle + 1,
                    fault: fault.clone(),
                    then,
                });
                return false;
            }
            if cycle > 0 && self.wrote_in == Some(permit.epoch) {
                // The count begins anew, and the device compares it within an epoch.
                self.gate.epoch_spent(permit.epoch);
                return false;
            }
            self.outlived = true;
        }
        if self.go_back().is_err() {
            self.record.stop(cycle + 1, false, now);
            return false;
        }
        if self.outlived {
            self.record.begin_anew();
        }
        self.record.begin_trial();
        self.tenure = Tenure::Standby;
        true
    }

    /// Takes up the state before the failed execution, which starts the program again.
    fn go_back(&mut self) -> Result<(), LoadError> {
        let Some(committed) = &mut self.committed else {
            // It has said that it never fails.
            self.application.reset();
            return Err(LoadError::NotRunning {
                reason: "it failed although it says that it cannot; this is a defect of its host",
            });
        };
        // What is retained is in the copy of what was begun with, and not in the initial state.
        if self.progress.is_some() || self.retention.is_some() {
            return committed.restore(self.application.as_mut(), &mut self.outputs);
        }
        // Nothing was executed yet: a successor begins where this one did.
        self.application.reset();
        self.outputs.fill(0.0);
        committed.take(self.application.as_ref(), &self.outputs);
        Ok(())
    }

    /// The state that was gone back to counts as one of the present epoch, in which safe values may be written.
    fn take_epoch(&mut self, permit: Permit) {
        let cycle = self.progress.map_or(0, |progress| progress.cycle);
        let epoch = permit.epoch;
        if self.committed.is_some() {
            self.progress = Some(Progress { epoch, cycle });
        }
    }

    /// The last whole state goes to the backup again, so that it stays able to go on from that; not for longer
    /// than anybody may, after it was executed.
    fn publish_committed(&mut self, now: Instant) {
        let stopped = self.record.is_unfit() || self.record.is_trial();
        let usable = now < self.record.usable_until || !stopped;
        let Some(progress) = self.progress.filter(|_| self.committed.is_some()) else {
            return;
        };
        if !usable && self.published.is_some() {
            return;
        }
        self.publish(progress, now);
    }

    /// A cycle of a program that is stopped.
    pub(super) fn begin_stopped(&mut self, fault: ProgramFault, now: Instant) {
        let failed = Outcome::Failed(FailCause::Program(fault.clone()));
        let Some(permit) = self.gate.permit().filter(|permit| now < permit.until) else {
            self.phase = Phase::Warming(Some(failed));
            return;
        };
        self.report.epoch = Some(permit.epoch);
        self.phase = Phase::Stopped(permit, fault);
    }

    /// The connections of a stopped program were looked after.
    pub(super) fn go_on_stopped(
        &mut self,
        (permit, fault): (Permit, ProgramFault),
        noted: Result<FieldSample, FieldError>,
        now: Instant,
    ) {
        if let Ok(sample) = noted {
            if self.is_spent(permit.epoch, sample) {
                self.gate.epoch_spent(permit.epoch);
                return self.finish(Outcome::Held(HoldCause::EpochSpent), now);
            }
            self.take_epoch(permit);
            self.publish_committed(now);
            // Until then a backup takes over that can.
            let waited = now.since(self.record.since) >= self.settings.expiry;
            if waited && matches!(self.settings.on_program_fault, OnProgramFault::Safe(_)) {
                self.safe = Some(fault);
                return self.commit(self.published, permit, now);
            }
        } else {
            self.publish_committed(now);
        }
        self.finish(Outcome::Failed(FailCause::Program(fault)), now);
    }

    /// The device has not taken the safe values. The program stays stopped, whatever the cause.
    pub(super) fn safe_values_refused(&mut self, error: FieldError, now: Instant) {
        if let FieldErrorKind::RejectedEpoch { seen } = error.kind {
            self.counters.count(Counter::OutputsRejected);
            self.gate.epoch_seen(seen);
        } else {
            self.counters.count(Counter::FieldFailures);
        }
        self.finish(Outcome::WriteFailed(error), now);
    }

    /// As backup: the partner has come to `newest`. Where it is past the cycle that failed here, or has begun anew, the
    /// program may run here again.
    pub(super) fn partner_came_to(&mut self, newest: Option<Progress>) {
        let own = self.progress.map(|own| own.epoch);
        // What it went on from may lack a cycle besides the one that failed, but not more.
        let anew = |newest: Progress, at: u64| {
            Some(newest.epoch) > own && newest.cycle > 0 && newest.cycle + 2 < at
        };
        let past = |at: u64| newest.is_some_and(|newest| newest.cycle >= at || anew(newest, at));
        if self.record.is_unfit() && self.record.stopped.is_none_or(past) {
            self.set_standing(ProgramStanding::Runs);
        }
    }

    /// The program may run here: a role begins in which nobody else can, or it has been exchanged.
    pub(super) fn may_run(&mut self) {
        self.set_standing(ProgramStanding::Runs);
    }

    /// Writes the last whole state of the application into `into`, and returns its length.
    pub(in crate::executor) fn save_whole(&self, into: &mut [u8]) -> usize {
        match &self.committed {
            Some(committed) => committed.save(self.application.as_ref(), into),
            None => self.application.save(into),
        }
    }

    /// Another program, or another life of it, has taken the place of the one that was there.
    pub(in crate::executor) fn program_exchanged(&mut self) {
        self.committed = Committed::of(self.application.as_ref());
        let before = self.retention.take();
        self.retention = Retention::of(self.application.as_ref()).map(|it| it.after(before));
        if let (Some(committed), Some(_)) = (&mut self.committed, self.progress) {
            committed.take(self.application.as_ref(), &self.outputs);
        }
        self.may_run();
        self.record = ProgramRecord::default();
        // Also where the one before did not take the state that came: this one may.
        let failed =
            |cause: &FailCause| matches!(cause, FailCause::Program(_) | FailCause::State(_));
        if matches!(&self.tenure, Tenure::Failed(cause) if failed(cause)) {
            self.tenure = Tenure::Standby;
        }
    }

    fn set_standing(&mut self, standing: ProgramStanding) {
        if std::mem::replace(&mut self.record.standing, standing) != standing {
            self.gate.program_changed(standing);
        }
    }
}

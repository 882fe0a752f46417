//! The cyclic executor: copy-in, execute, replicate state, copy-out, on absolute time
//! (first paper, section 2.2 and figure 3).

mod handover;
mod ports;
mod report;
mod settings;
#[cfg(test)]
mod tests;

pub use handover::published_size_max;
pub use ports::{Clock, OutputGate, Permit, Ports, Replication, Role, Settled, StateInfo, Wake};
pub use report::{CycleReport, FailCause, HoldCause, Outcome, Resumed};
pub use settings::{CommitMode, ExecutorSettings, OnFailure};

use crate::state::Progress;
use crate::{
    Application, CycleContext, FieldError, FieldErrorKind, FieldSample, LoadError, OutputStamp,
};
use bumpless_base::{Counter, Counters, Epoch, Instant};
use core::sync::atomic::{AtomicBool, Ordering};
use handover::{fill, load_if_newer};

#[derive(Clone, Debug)]
enum Tenure {
    Standby,
    Acting(Epoch),
    Failed(FailCause),
}

#[derive(Clone, Copy, Debug)]
struct Published {
    ticket: u64,
    at: Instant,
}

/// Runs one application.
///
/// Driving contract: call [`step`](Self::step) again and again (or [`run`](Self::run)); each call
/// either sleeps on the clock or runs one cycle and hands its report to the observer. As backup a
/// cycle only keeps the field connections warm. On becoming primary the newest state is loaded
/// and a cycle runs at once; the grid continues from there. Grid points that a cycle runs into
/// are skipped and counted. The observer must not block.
pub struct Executor<R, G, C, O> {
    settings: ExecutorSettings,
    application: Box<dyn Application>,
    ports: Ports<R, G, C>,
    observer: O,
    counters: Counters,
    next: Instant,
    woken: bool,
    tenure: Tenure,
    progress: Option<Progress>,
    inputs: Box<[f64]>,
    inputs_valid: bool,
    outputs: Box<[f64]>,
    published: Option<Published>,
    /// When the last cycle was executed, and whether this node has been primary ever since.
    executed_at: Instant,
    uninterrupted: bool,
    fit: bool,
}

impl<R, G, C, O> Executor<R, G, C, O>
where
    R: Replication,
    G: OutputGate,
    C: Clock,
    O: FnMut(&CycleReport, &Counters),
{
    /// An executor whose grid starts now. All memory is taken here.
    pub fn new(
        settings: ExecutorSettings,
        application: Box<dyn Application>,
        ports: Ports<R, G, C>,
        observer: O,
    ) -> Self {
        let inputs = vec![0.0; application.inputs()].into_boxed_slice();
        let outputs = vec![0.0; application.outputs()].into_boxed_slice();
        Self {
            settings,
            next: ports.clock.now(),
            application,
            ports,
            observer,
            counters: Counters::default(),
            woken: false,
            tenure: Tenure::Standby,
            progress: None,
            inputs,
            inputs_valid: false,
            outputs,
            published: None,
            executed_at: Instant::ZERO,
            uninterrupted: false,
            fit: true,
        }
    }

    /// What this executor has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How far the application has come on this node.
    pub fn progress(&self) -> Option<Progress> {
        self.progress
    }

    /// Steps until `stop` is set. Whoever sets it wakes the clock.
    pub fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            self.step();
        }
    }

    /// Sleeps until the next grid point or a wake, or runs one cycle.
    pub fn step(&mut self) {
        let now = self.ports.clock.now();
        let role = self.ports.gate.role();
        if role != Role::Primary {
            self.tenure = Tenure::Standby;
            self.uninterrupted = false;
        } else if self.woken && matches!(self.tenure, Tenure::Standby) {
            // A new primary, or one that waited for its permit, does not wait for its grid. It
            // takes a wake, so that a permit that comes and goes cannot make cycles follow
            // without a pause.
            self.next = now;
        }
        self.woken = false;
        if now < self.next {
            self.woken = self.ports.clock.wait_until(self.next) == Wake::Woken;
            return;
        }
        let late = self.pass_over(now);
        self.cycle(role, now, late);
    }

    /// Moves `next` to the last grid point not after `now`; returns how many that passes over.
    fn pass_over(&mut self, now: Instant) -> u64 {
        let period = self.settings.period.as_nanos().max(1);
        let missed = now.since(self.next).as_nanos() / period;
        self.next += self.settings.period * missed;
        missed
    }

    fn cycle(&mut self, role: Role, now: Instant, late: u64) {
        let cycle = self.progress.map_or(0, |progress| progress.cycle);
        let mut report = CycleReport::new(role, cycle, self.next, now);
        report.outcome = match role {
            Role::Primary => self.primary_cycle(&mut report),
            Role::Backup => self.backup_cycle(),
            Role::Inactive => Outcome::Idle,
        };
        report.ended = self.ports.clock.now();
        self.next += self.settings.period;
        report.skipped = late + self.pass_over(report.ended);
        if self.next < report.ended {
            self.next += self.settings.period;
            report.skipped += 1;
        }
        self.count(&report);
        (self.observer)(&report, &self.counters);
    }

    fn count(&mut self, report: &CycleReport) {
        match report.outcome {
            Outcome::Written => self.counters.count(Counter::OutputsWritten),
            Outcome::Held(_) | Outcome::Failed(_) => self.counters.count(Counter::OutputsHeld),
            _ => {}
        }
        if report.role == Role::Primary {
            self.counters.add(Counter::CyclesOverrun, report.skipped);
        }
    }

    fn backup_cycle(&mut self) -> Outcome {
        let until = self.ports.clock.now() + self.settings.field_timeout;
        let result = self.ports.field.keep_warm(until);
        match self.note(result) {
            Ok(()) => Outcome::Warm,
            Err(error) => Outcome::Cold(error),
        }
    }

    fn primary_cycle(&mut self, report: &mut CycleReport) -> Outcome {
        if let Tenure::Failed(cause) = &self.tenure {
            let outcome = Outcome::Failed(cause.clone());
            self.backup_cycle();
            return outcome;
        }
        let now = self.ports.clock.now();
        let Some(permit) = self.ports.gate.permit().filter(|permit| now < permit.until) else {
            self.tenure = Tenure::Standby;
            return Outcome::Held(HoldCause::NoPermit);
        };
        report.epoch = Some(permit.epoch);
        if let Err(error) = self.begin_tenure(permit.epoch, report) {
            return self.fail(FailCause::State(error));
        }
        let stale = match self.copy_in(report) {
            Ok(()) => None,
            Err(error) if self.settings.on_failure == OnFailure::Fail => {
                return self.fail(FailCause::Field(error));
            }
            Err(error) if !self.inputs_valid => return Outcome::Held(HoldCause::NoInputs(error)),
            Err(error) => Some(error),
        };
        let before = self.published;
        self.execute(permit.epoch, report);
        self.replicate(report);
        if let Some(error) = stale {
            return Outcome::Held(HoldCause::NoInputs(error));
        }
        if !self.may_commit(before, permit, report) {
            return Outcome::Held(HoldCause::BackupBehind);
        }
        self.copy_out(permit, report)
    }

    fn fail(&mut self, cause: FailCause) -> Outcome {
        self.tenure = Tenure::Failed(cause.clone());
        self.set_fit(false);
        Outcome::Failed(cause)
    }

    /// On the first cycle under a new epoch: goes on from the newest state there is.
    fn begin_tenure(&mut self, epoch: Epoch, report: &mut CycleReport) -> Result<(), LoadError> {
        if matches!(self.tenure, Tenure::Acting(held) if held == epoch) {
            return Ok(());
        }
        report.resumed = Some(self.load_newest()?);
        self.tenure = Tenure::Acting(epoch);
        self.inputs_valid = false;
        self.published = None;
        Ok(())
    }

    fn load_newest(&mut self) -> Result<Resumed, LoadError> {
        let own = self.progress.filter(|_| self.may_keep());
        let (application, outputs) = (&mut self.application, &mut self.outputs);
        let mut loaded = Ok(None);
        self.ports.replication.read_latest(&mut |state, _| {
            loaded = load_if_newer(application.as_mut(), outputs, state, own);
        });
        if let Some(progress) = loaded? {
            self.progress = Some(progress);
            let Progress { epoch, cycle } = progress;
            return Ok(Resumed::Loaded { epoch, cycle });
        }
        if let Some(Progress { cycle, .. }) = own {
            return Ok(Resumed::Kept { cycle });
        }
        self.progress = None;
        self.application.reset();
        self.outputs.fill(0.0);
        Ok(Resumed::ColdStart)
    }

    /// Whether this node's own state may be gone on from. One from an earlier term in the role is as
    /// old as any other: the partner may have gone on since, unheard.
    fn may_keep(&self) -> bool {
        let now = self.ports.clock.now();
        self.uninterrupted || now < self.executed_at + self.settings.expiry
    }

    fn copy_in(&mut self, report: &mut CycleReport) -> Result<(), FieldError> {
        let until = self.ports.clock.now() + self.settings.field_timeout;
        let result = self.ports.field.read(&mut self.inputs, until);
        self.note(result)?;
        self.inputs_valid = true;
        report.inputs_at = Some(self.ports.clock.now());
        Ok(())
    }

    /// Counts and passes on what a request without outputs has shown.
    fn note(&mut self, result: Result<FieldSample, FieldError>) -> Result<(), FieldError> {
        let failed = matches!(self.tenure, Tenure::Failed(_));
        self.set_fit(result.is_ok() && !failed);
        match result {
            Ok(sample) => {
                if let Some(epoch) = sample.epoch_seen {
                    self.ports.gate.epoch_seen(epoch);
                }
                Ok(())
            }
            Err(error) => {
                self.counters.count(Counter::FieldFailures);
                Err(error)
            }
        }
    }

    fn set_fit(&mut self, fit: bool) {
        if self.fit != fit {
            self.fit = fit;
            self.ports.gate.fit_changed(fit);
        }
    }

    fn execute(&mut self, epoch: Epoch, report: &mut CycleReport) {
        let cycle = self.progress.map_or(0, |progress| progress.cycle) + 1;
        let context = CycleContext {
            cycle,
            period: self.settings.period,
        };
        self.application
            .execute(&context, &self.inputs, &mut self.outputs);
        self.progress = Some(Progress { epoch, cycle });
        self.executed_at = self.ports.clock.now();
        self.uninterrupted = true;
        self.counters.count(Counter::CyclesExecuted);
        report.cycle = cycle;
    }

    fn replicate(&mut self, report: &mut CycleReport) {
        let Some(progress) = self.progress else {
            return;
        };
        let (application, outputs) = (&self.application, &self.outputs);
        let mut bytes = 0;
        let ticket = self.ports.replication.publish(&mut |buffer| {
            bytes = fill(application.as_ref(), progress, outputs, buffer);
            bytes
        });
        let at = self.ports.clock.now();
        self.published = Some(Published { ticket, at });
        report.published_at = Some(at);
        report.state_bytes = bytes;
    }

    /// Whether the outputs may be written: the state that the commit mode names is safe, waited for
    /// no longer than its deadline and the permit, or nobody can take over with an older one.
    fn may_commit(
        &mut self,
        before: Option<Published>,
        permit: Permit,
        report: &mut CycleReport,
    ) -> bool {
        let Some(this) = self.published else {
            return true;
        };
        let awaited = match self.settings.commit {
            CommitMode::BeforeOutput => Some(this),
            CommitMode::Async => before,
        };
        // In the first cycle of a term, the state before is the one it began with.
        let Some(awaited) = awaited else {
            return true;
        };
        let expected = self.ports.gate.backup_expected();
        let settled = self.await_safe(awaited, this, permit);
        report.settled = expected.then_some(settled);
        if settled == Settled::Safe {
            let after = self.ports.clock.now().since(awaited.at);
            report.transfer_settled_after = expected.then_some(after);
            self.ports.gate.in_step();
            return true;
        }
        report.backup_behind = expected;
        self.ports.gate.go_alone(permit.until)
    }

    fn await_safe(&mut self, awaited: Published, this: Published, permit: Permit) -> Settled {
        if !self.ports.gate.backup_expected() {
            return self.ports.replication.settled(awaited.ticket);
        }
        let until = (this.at + self.settings.deadline).min(permit.until);
        let settled = self.ports.replication.wait_settled(awaited.ticket, until);
        if settled == Settled::Failed && awaited.ticket != this.ticket {
            // A backup that gets this state is not behind either.
            return self.ports.replication.wait_settled(this.ticket, until);
        }
        settled
    }

    fn copy_out(&mut self, held: Permit, report: &mut CycleReport) -> Outcome {
        let now = self.ports.clock.now();
        let permit = self.ports.gate.permit();
        let Some(permit) = permit.filter(|p| p.epoch == held.epoch && now < p.until) else {
            self.tenure = Tenure::Standby;
            return Outcome::Held(HoldCause::PermitLost);
        };
        let stamp = OutputStamp {
            epoch: permit.epoch,
            writer: self.settings.writer,
            cycle: report.cycle,
        };
        let until = (now + self.settings.field_timeout).min(permit.until);
        match self.ports.field.write(&self.outputs, stamp, until) {
            Ok(()) => {
                report.written_at = Some(self.ports.clock.now());
                Outcome::Written
            }
            Err(error) => self.write_failed(error),
        }
    }

    fn write_failed(&mut self, error: FieldError) -> Outcome {
        if let FieldErrorKind::RejectedEpoch { seen } = error.kind {
            self.counters.count(Counter::OutputsRejected);
            self.ports.gate.epoch_seen(seen);
            self.tenure = Tenure::Standby;
            return Outcome::WriteFailed(error);
        }
        self.counters.count(Counter::FieldFailures);
        match self.settings.on_failure {
            OnFailure::Hold => Outcome::WriteFailed(error),
            OnFailure::Fail => self.fail(FailCause::Field(error)),
        }
    }
}

//! The cycle without I/O and clock: what comes next, and what follows from each answer.
//!
//! [`CycleMachine::poll`] says what the cycle needs; whoever drives it does that, by blocking calls
//! ([`Executor`](super::Executor)) or as events of a simulated world, and gives the
//! [`Answer`] to [`CycleMachine::answer`]; then `poll` again. `now` comes in with each call and never
//! goes back.

mod committed;
mod copy_out;
mod program;
mod record;
mod retention;
mod tenure;

use committed::Committed;
use record::ProgramRecord;
use retention::Retention;
use tenure::Tenure;

use super::{
    CycleReport, ExecutorSettings, FailCause, HoldCause, OnFailure, OnProgramFault, Outcome,
    OutputGate, Permit, Replication, Resumed, Role, TransferOutcome, Wake,
};
use crate::driver_link::DriverFailures;
use crate::state::{Progress, envelope_len};
use crate::{Application, CycleContext, FieldError, FieldSample, OutputStamp, ProgramFault};
use bumpless_base::{Counter, Counters, Epoch, Instant};

/// What a cycle needs before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Sleep until then, or until something changes.
    Sleep {
        /// The next grid point.
        until: Instant,
    },
    /// Copy-in: [`FieldIo::read`](crate::FieldIo::read) into [`CycleMachine::inputs`].
    Read {
        /// Deadline of the request.
        until: Instant,
    },
    /// [`FieldIo::keep_warm`](crate::FieldIo::keep_warm).
    KeepWarm {
        /// Deadline of the request.
        until: Instant,
    },
    /// The outcome of a published state, as [`Replication::wait_settled`] tells it.
    Settle {
        /// The state.
        ticket: u64,
        /// Wait no longer.
        until: Instant,
    },
    /// The certainty that nobody takes over with an older state ([`OutputGate::go_simplex`]).
    Simplex {
        /// Wait no longer.
        until: Instant,
    },
    /// Copy-out: [`FieldIo::write`](crate::FieldIo::write) of [`CycleMachine::outputs`].
    Write {
        /// The stamp.
        stamp: OutputStamp,
        /// Deadline of the request, and end of the right to write.
        until: Instant,
    },
}

/// What came of a [`Need`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The sleep ended.
    Slept(Wake),
    /// Copy-in ended.
    Read(Result<FieldSample, FieldError>),
    /// The connections were looked after.
    Warm(Result<FieldSample, FieldError>),
    /// What is known of the state.
    Settled(TransferOutcome),
    /// Whether it is certain.
    Simplex(bool),
    /// Copy-out ended.
    Written(Result<(), FieldError>),
}

#[derive(Clone, Copy, Debug)]
struct Published {
    ticket: u64,
    at: Instant,
}

/// Where in the cycle the machine is.
#[derive(Clone, Debug)]
enum Phase {
    /// Between two cycles; may be asleep.
    Between,
    /// Looking after the connections; then the cycle ends with this, if not as backup.
    Warming(Option<Outcome>),
    Reading(Permit),
    /// Looking after the connections of a program that is stopped.
    Stopped(Permit, ProgramFault),
    /// Executed, with the error if the inputs are old.
    Executed(Permit, Option<FieldError>),
    /// Waiting for the first state, else for the second, if they are not the same.
    Settling {
        permit: Permit,
        awaited: Published,
        this: Published,
    },
    /// With the ticket of the state that was waited for in vain, if one was.
    GoingSimplex(Permit, Option<u64>),
    CopyOut(Permit, Option<u64>),
    /// This permit has ended before the outputs could leave, which are held for this unless another comes in time.
    Lapsed(Permit, HoldCause),
    Writing,
}

/// One application in its cycle (first paper, section 2.2 and figure 3).
pub struct CycleMachine<R, G, O> {
    pub(super) settings: ExecutorSettings,
    pub(super) application: Box<dyn Application>,
    replication: R,
    gate: G,
    observer: O,
    counters: Counters,
    phase: Phase,
    report: CycleReport,
    late: u64,
    next: Instant,
    woken: bool,
    tenure: Tenure,
    /// When the role was taken in which the tenure began.
    tenure_since: Instant,
    begun_with: Option<Resumed>,
    progress: Option<Progress>,
    inputs: Box<[f64]>,
    inputs_valid: bool,
    outputs: Box<[f64]>,
    /// Where the envelope of a published state is made.
    head: Box<[u8]>,
    /// What a failed execution goes back to; `None`: the application never fails.
    committed: Option<Committed>,
    record: ProgramRecord,
    /// What of its state outlives it; `None`: nothing.
    retention: Option<Retention>,
    /// The program was stopped for so long that its state may not be gone on from.
    outlived: bool,
    /// In this cycle the safe values are written, since the program has stopped for this.
    safe: Option<ProgramFault>,
    published: Option<Published>,
    /// It came while its node ran, and has neither written anything nor taken up a state.
    pub(super) newcomer: bool,
    /// When the state was last taken up or executed, and whether this node has been primary ever
    /// since.
    taken_up_at: Instant,
    /// What the field device shows, as backup, and since when.
    shown: (FieldSample, Instant),
    uninterrupted: bool,
    /// Since when no state of the version before could be converted that was to be taken up.
    unconverted_since: Option<Instant>,
    /// The epoch of the last output that was sent, whatever became of it.
    wrote_in: Option<Epoch>,
    fit: bool,
}

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    /// A machine whose grid starts at `now`. All memory is taken here.
    pub fn new(
        settings: ExecutorSettings,
        application: Box<dyn Application>,
        (replication, gate): (R, G),
        observer: O,
        now: Instant,
    ) -> Self {
        let inputs = vec![0.0; application.inputs()].into_boxed_slice();
        let outputs = vec![0.0; application.outputs()].into_boxed_slice();
        Self {
            settings,
            committed: Committed::of(application.as_ref()),
            retention: Retention::of(application.as_ref()),
            application,
            record: ProgramRecord::default(),
            outlived: false,
            safe: None,
            replication,
            gate,
            observer,
            counters: Counters::default(),
            phase: Phase::Between,
            report: CycleReport::new(Role::Stopped, 0, now, now),
            late: 0,
            next: now,
            woken: false,
            tenure: Tenure::Standby,
            tenure_since: Instant::ZERO,
            begun_with: None,
            progress: None,
            inputs,
            inputs_valid: false,
            head: vec![0; envelope_len(outputs.len())].into_boxed_slice(),
            outputs,
            published: None,
            newcomer: false,
            taken_up_at: Instant::ZERO,
            shown: (FieldSample::default(), Instant::ZERO),
            uninterrupted: false,
            unconverted_since: None,
            wrote_in: None,
            fit: true,
        }
    }

    /// What this application's cycles have counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How far the application has come on this node.
    pub fn progress(&self) -> Option<Progress> {
        self.progress
    }

    /// With what a tenure as primary has begun since this was asked last.
    pub fn take_resumed(&mut self) -> Option<Resumed> {
        self.begun_with.take()
    }

    /// Where [`Need::Read`] puts the inputs.
    pub fn inputs(&mut self) -> &mut [f64] {
        &mut self.inputs
    }

    /// What [`Need::Write`] writes.
    pub fn outputs(&self) -> &[f64] {
        match (&self.safe, &self.settings.on_program_fault) {
            (Some(_), OnProgramFault::Safe(values)) if values.len() == self.outputs.len() => values,
            _ => &self.outputs,
        }
    }

    /// The channel, for whoever answers [`Need::Settle`].
    pub fn replication(&mut self) -> &mut R {
        &mut self.replication
    }

    /// The gate, for whoever answers [`Need::Simplex`].
    pub fn gate(&mut self) -> &mut G {
        &mut self.gate
    }

    /// Which devices of the field did not answer last ([`FieldIo::silent`](crate::FieldIo::silent)): the report of the
    /// cycle says so.
    pub fn note_silent(&mut self, devices: u64) {
        self.report.silent_devices = devices;
    }

    /// The process of a field driver failed: the report of the cycle says so.
    pub fn note_driver_failures(&mut self, failures: DriverFailures) {
        self.counters
            .add(Counter::FieldDriverFailures, failures.count);
        self.report.driver_failure = Some(failures.why);
    }

    /// Whether the report of the cycle says so of one already.
    pub const fn has_driver_failure(&self) -> bool {
        self.report.driver_failure.is_some()
    }

    /// When the next cycle begins, if nothing happens before.
    pub const fn next_at(&self) -> Instant {
        self.next
    }

    /// Whether no cycle is under way.
    pub fn is_between_cycles(&self) -> bool {
        matches!(self.phase, Phase::Between)
    }

    /// What is needed at `now`. Without an answer in between, the same again.
    pub fn poll(&mut self, now: Instant) -> Need {
        loop {
            let need = match self.phase.clone() {
                Phase::Between => self.begin(now),
                Phase::Executed(permit, stale) => {
                    self.replicate(permit, stale, now);
                    None
                }
                Phase::CopyOut(permit, lacked) => self.copy_out(permit, lacked, now),
                Phase::Reading(_) => Some(Need::Read {
                    until: now + self.settings.field_timeout,
                }),
                Phase::Warming(_) | Phase::Stopped(..) => Some(Need::KeepWarm {
                    until: now + self.settings.field_timeout,
                }),
                Phase::Settling {
                    permit,
                    awaited,
                    this,
                } => Some(Need::Settle {
                    ticket: awaited.ticket,
                    until: (this.at + self.settings.deadline).min(permit.until),
                }),
                Phase::GoingSimplex(permit, _) => Some(Need::Simplex {
                    until: permit.until,
                }),
                Phase::Lapsed(permit, cause) => self.await_permit(permit, cause, now),
                Phase::Writing => None,
            };
            if let Some(need) = need {
                return need;
            }
        }
    }

    /// Takes the answer to what [`poll`](Self::poll) said last. An answer to anything else is ignored.
    pub fn answer(&mut self, answer: Answer, now: Instant) {
        match (self.phase.clone(), answer) {
            (Phase::Between, Answer::Slept(wake)) => self.woken = wake == Wake::Woken,
            (Phase::Warming(outcome), Answer::Warm(result)) => {
                let noted = self.note(result);
                if let (None, Ok(sample)) = (&outcome, &noted) {
                    self.compare_with_device(*sample, now);
                }
                let as_backup = noted.map_or_else(Outcome::Cold, |_| Outcome::Warm);
                self.finish(outcome.unwrap_or(as_backup), now);
            }
            (Phase::Reading(permit), Answer::Read(result)) => self.have_read(permit, result, now),
            (Phase::Stopped(permit, fault), Answer::Warm(result)) => {
                let noted = self.note(result);
                self.go_on_stopped((permit, fault), noted, now);
            }
            (
                Phase::Settling {
                    permit,
                    awaited,
                    this,
                },
                Answer::Settled(settled),
            ) => {
                self.have_settled(permit, awaited, this, settled, now);
            }
            (Phase::GoingSimplex(permit, lacked), Answer::Simplex(certain)) => {
                self.phase = match certain {
                    true => Phase::CopyOut(permit, lacked),
                    false => Phase::Lapsed(permit, HoldCause::BackupBehind),
                };
            }
            (Phase::Writing, Answer::Written(result)) => self.have_written(result, now),
            _ => {}
        }
    }

    /// Sleeps on, or begins the cycle that is due.
    fn begin(&mut self, now: Instant) -> Option<Need> {
        let role = self.gate.role();
        let paused = role == Role::Primary && self.gate.paused();
        if role != Role::Primary {
            self.tenure = Tenure::Standby;
            self.uninterrupted = false;
        } else if self.woken && !paused && matches!(self.tenure, Tenure::Standby) {
            // A new primary, or one that waited for its permit, does not wait for its grid. It
            // takes a wake, so that a permit that comes and goes cannot make cycles follow
            // without a pause.
            self.next = now;
        }
        self.woken = false;
        if now < self.next {
            return Some(Need::Sleep { until: self.next });
        }
        self.late = self.pass_over(now);
        let cycle = self.progress.map_or(0, |progress| progress.cycle);
        let acting = if paused { Role::Backup } else { role };
        self.report = CycleReport::new(acting, cycle, self.next, now);
        match acting {
            Role::Primary => self.begin_as_primary(now),
            Role::Starting | Role::Backup => {
                self.replication.keep_received();
                self.phase = Phase::Warming(None);
            }
            Role::Stopped => self.finish(Outcome::Idle, now),
        }
        None
    }

    /// Moves `next` to the last grid point not after `now`; returns how many that passes over.
    fn pass_over(&mut self, now: Instant) -> u64 {
        let period = self.settings.period.as_nanos().max(1);
        let missed = now.since(self.next).as_nanos() / period;
        self.next += self.settings.period * missed;
        missed
    }

    fn have_read(&mut self, permit: Permit, result: Result<FieldSample, FieldError>, now: Instant) {
        let stale = match self.note(result) {
            Ok(sample) if self.is_spent(permit.epoch, sample) => {
                self.gate.epoch_spent(permit.epoch);
                return self.finish(Outcome::Held(HoldCause::EpochSpent), now);
            }
            Ok(sample) => {
                if let Err(error) = self.decide_tenure(sample, now) {
                    return self.fail(FailCause::State(error), now);
                }
                self.inputs_valid = true;
                self.report.inputs_at = Some(now);
                None
            }
            Err(error) if self.settings.on_failure == OnFailure::Fail => {
                return self.fail(FailCause::Field(error), now);
            }
            Err(error) if !self.inputs_valid => {
                return self.finish(Outcome::Held(HoldCause::NoInputs(error)), now);
            }
            Err(error) => Some(error),
        };
        self.execute_or_go_back(permit, stale, now);
    }

    /// Counts and passes on what a request without outputs has shown.
    fn note(&mut self, result: Result<FieldSample, FieldError>) -> Result<FieldSample, FieldError> {
        let failed = matches!(self.tenure, Tenure::Failed(_)) || self.record.is_unfit();
        self.set_fit(result.is_ok() && !failed);
        match result {
            Ok(sample) => {
                if let Some(epoch) = sample.epoch_seen {
                    self.gate.epoch_seen(epoch);
                }
                Ok(sample)
            }
            Err(error) => {
                self.counters.count(Counter::FieldFailures);
                Err(error)
            }
        }
    }

    /// Whether somebody has written in `epoch`, in which this process has not: since an epoch belongs
    /// to one node, an earlier process of this one (F-26).
    fn is_spent(&self, epoch: Epoch, sample: FieldSample) -> bool {
        sample.epoch_seen == Some(epoch) && self.wrote_in != Some(epoch)
    }

    fn set_fit(&mut self, fit: bool) {
        if self.fit != fit {
            self.fit = fit;
            self.gate.fit_changed(fit);
        }
    }

    fn execute(&mut self, epoch: Epoch, now: Instant) -> Result<(), ProgramFault> {
        let cycle = self.progress.map_or(0, |progress| progress.cycle) + 1;
        let context = CycleContext {
            cycle,
            period: self.settings.period,
        };
        self.application
            .execute(&context, &self.inputs, &mut self.outputs)?;
        self.answer_fault().map_or(Ok(()), Err)?;
        self.progress = Some(Progress { epoch, cycle });
        self.taken_up_at = now;
        self.uninterrupted = true;
        self.record.executed();
        self.counters.count(Counter::CyclesExecuted);
        self.report.cycle = cycle;
        Ok(())
    }

    /// Ends the cycle and reports it.
    fn finish(&mut self, outcome: Outcome, now: Instant) {
        self.phase = Phase::Between;
        self.safe = None;
        self.next += self.settings.period;
        self.report.outcome = outcome;
        self.report.ended = now;
        self.report.skipped = self.late + self.pass_over(now);
        if self.next < now {
            self.next += self.settings.period;
            self.report.skipped += 1;
        }
        match self.report.outcome {
            Outcome::Written | Outcome::SafeValues(_) => {
                self.counters.count(Counter::OutputsWritten);
            }
            Outcome::Held(_) | Outcome::Failed(_) => self.counters.count(Counter::OutputsHeld),
            _ => {}
        }
        if self.report.role == Role::Primary {
            self.counters
                .add(Counter::CyclesOverrun, self.report.skipped);
        }
        self.replication.count(&mut self.counters);
        (self.observer)(&self.report, &self.counters);
    }
}

//! What follows each cycle's end: the data plane may go on, counters are shown, the log is told.

use std::sync::Arc;

use bumpless_base::{Counters, Instant};
use bumpless_controller::executor::{
    FailedExecution, HoldCause, Outcome, Resumed, RetainedFrom, RetainedReport, Then,
};
use bumpless_controller::{CycleReport, FieldError, FieldErrorKind};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit};

use crate::counter_board::{CounterBoard, ProgramNote, RetainedNote};
use crate::event::{NodeEvent, OutputOutcome};
use crate::executor::Environment;
use crate::log::EventSink;
use crate::membership::ApplicationNumber;
use crate::short_text::ShortText;

/// What follows each cycle's end: the data plane may go on with a hand-over, the log is told.
pub struct FollowUp<E> {
    /// Role and right to write.
    gate: Arc<PublishedPermit>,
    /// What the application's executor and the data plane share.
    mailbox: Arc<ApplicationMailbox>,
    /// Where the executor's counters are shown.
    board: Arc<CounterBoard>,
    /// Turns reports into events.
    reporter: Reporter,
    /// The way to the data plane.
    environment: E,
    /// How the program failed, not shown yet.
    unshown: Option<ProgramNote>,
    /// What was kept at a cold start, not shown yet.
    unshown_retained: Option<RetainedNote>,
}

impl<E: Environment> FollowUp<E> {
    /// What follows the cycles of an application that shares this with the data plane.
    pub fn new(
        (gate, mailbox): (Arc<PublishedPermit>, Arc<ApplicationMailbox>),
        board: Arc<CounterBoard>,
        reporter: Reporter,
        environment: E,
    ) -> Self {
        Self {
            gate,
            mailbox,
            board,
            reporter,
            environment,
            unshown: None,
            unshown_retained: None,
        }
    }

    /// A cycle has ended, with this report.
    pub fn cycle_ended(&mut self, report: &CycleReport, counters: &Counters) {
        if self.mailbox.leave_cycle(&self.gate) {
            self.environment.wake_data_plane();
        }
        self.board.store(counters);
        self.board.note_silent(report.silent_devices);
        self.show_fault(report);
        self.show_retained(report);
        self.reporter.report(report);
    }
}

impl<E> FollowUp<E> {
    /// Shows how the program last failed, as soon as nobody reads that.
    fn show_fault(&mut self, report: &CycleReport) {
        if let Some(failed) = &report.program_fault {
            self.unshown = Some(ProgramNote {
                cycle: failed.cycle,
                at: report.ended,
                cause: ShortText::of(&failed.fault),
                then: failed.then,
            });
        }
        if let Some(note) = self.unshown
            && self.board.note_program(note)
        {
            self.unshown = None;
        }
    }

    /// Shows what was kept at a cold start, likewise.
    fn show_retained(&mut self, report: &CycleReport) {
        if let Some(kept) = &report.retained {
            self.unshown_retained = Some(RetainedNote {
                at: report.ended,
                what: ShortText::of(Describe(kept)),
                taken: kept.applied.taken,
                lacking: kept.applied.lacking(),
            });
        }
        if let Some(note) = self.unshown_retained
            && self.board.note_retained(note)
        {
            self.unshown_retained = None;
        }
    }
}

/// Turns cycle reports into events; trouble that lasts is told when it starts and when it changes.
pub struct Reporter {
    application: ApplicationNumber,
    sink: EventSink,
    log_outputs: bool,
    last_trouble: Option<&'static str>,
}

impl Reporter {
    /// Tells `sink` of `application`; of written outputs, too, with `log_outputs`.
    pub fn new(application: ApplicationNumber, sink: EventSink, log_outputs: bool) -> Self {
        Self {
            application,
            sink,
            log_outputs,
            last_trouble: None,
        }
    }

    fn report(&mut self, report: &CycleReport) {
        if let Some(resumed) = report.resumed {
            self.notice("resumed", ShortText::of(Describe(resumed)), report.ended);
        }
        if let Some(kept) = &report.retained {
            self.notice("retained", ShortText::of(Describe(kept)), report.ended);
        }
        if let Some(failed) = &report.program_fault {
            let cause = ShortText::of(Describe(failed));
            self.notice("program_fault", cause, report.ended);
        }
        if let Some(why) = &report.driver_failure {
            self.notice("field_driver", ShortText::of(why), report.ended);
        }
        if report.backup_behind {
            let cause = ShortText::of(format_args!(
                "the outputs of cycle {} went to the device before the backup had the state it should have",
                report.cycle
            ));
            self.notice("behind", cause, report.ended);
        }
        if report.skipped > 0 && report.epoch.is_some() {
            let overrun = NodeEvent::Overrun {
                application: self.application,
                skipped: report.skipped,
            };
            self.sink.record(report.ended, overrun);
        }
        self.outcome(report);
    }

    fn outcome(&mut self, report: &CycleReport) {
        if let Outcome::Cold(error) = &report.outcome {
            return self.unreachable(error, report.ended);
        }
        let Some((outcome, kind, cause)) = verdict(&report.outcome) else {
            self.last_trouble = None;
            return;
        };
        let repeated = kind.is_some() && kind == self.last_trouble;
        self.last_trouble = kind;
        if repeated || (outcome == OutputOutcome::Written && !self.log_outputs) {
            return;
        }
        let epoch = report.epoch.unwrap_or_default();
        let event = NodeEvent::Output {
            application: self.application,
            epoch,
            cycle: report.cycle,
            outcome,
            cause,
        };
        self.sink.record(report.ended, event);
    }

    /// Who is not primary has nothing to write; that it could not either is no failure of an output.
    fn unreachable(&mut self, error: &FieldError, at: Instant) {
        if self.last_trouble.replace("cold") != Some("cold") {
            self.notice("field_unreachable", ShortText::of(error), at);
        }
    }

    fn notice(&mut self, name: &'static str, cause: ShortText, at: Instant) {
        self.sink.record(
            at,
            NodeEvent::Notice {
                name,
                group: None,
                application: Some(self.application),
                cause,
            },
        );
    }
}

/// What became of an output, which kind of trouble that is if it may repeat itself, and why; `None` if there was none.
fn verdict(outcome: &Outcome) -> Option<(OutputOutcome, Option<&'static str>, ShortText)> {
    let held = |kind, cause: &str| (OutputOutcome::Held, kind, ShortText::of(cause));
    Some(match outcome {
        Outcome::Written => (OutputOutcome::Written, None, ShortText::EMPTY),
        Outcome::Held(HoldCause::NoPermit) => held(Some("no permit"), "no lease"),
        Outcome::Held(HoldCause::PermitLost) => held(None, "lease ran out during the cycle"),
        Outcome::Held(HoldCause::EpochSpent) => {
            held(None, "an earlier process of this node wrote in this epoch")
        }
        Outcome::Held(HoldCause::BackupBehind) => held(
            Some("behind"),
            "the backup could have taken over from an older state",
        ),
        Outcome::Held(HoldCause::NoInputs(error)) => {
            (OutputOutcome::Held, Some("no inputs"), ShortText::of(error))
        }
        Outcome::Held(HoldCause::Program(fault)) => (
            OutputOutcome::Held,
            None,
            ShortText::of(format_args!("the program failed: {fault}")),
        ),
        Outcome::SafeValues(fault) => (
            OutputOutcome::Safe,
            Some("safe values"),
            ShortText::of(format_args!("the program has stopped: {fault}")),
        ),
        Outcome::WriteFailed(error) => {
            let (outcome, kind) = match error.kind {
                FieldErrorKind::RejectedEpoch { .. } => (OutputOutcome::Rejected, None),
                _ => (OutputOutcome::Failed, Some("write failed")),
            };
            (outcome, kind, ShortText::of(error))
        }
        Outcome::Failed(cause) => (
            OutputOutcome::Held,
            Some("stopped"),
            ShortText::of(Describe(cause)),
        ),
        Outcome::Cold(_) | Outcome::Warm | Outcome::Idle => return None,
    })
}

/// Words for what the controller layer reports.
struct Describe<T>(T);

impl std::fmt::Display for Describe<Resumed> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Resumed::Loaded { epoch, cycle } => {
                write!(
                    f,
                    "goes on from cycle {cycle} of epoch {epoch}, received from the partner"
                )
            }
            Resumed::Kept { cycle } => write!(f, "goes on from its own cycle {cycle}"),
            Resumed::Restored { epoch, cycle } => {
                write!(
                    f,
                    "goes on from cycle {cycle} of epoch {epoch}, read from its disk; later outputs may be undone"
                )
            }
            Resumed::ColdStart => f.write_str("starts from the initial state"),
        }
    }
}

impl std::fmt::Display for Describe<&RetainedReport> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RetainedReport {
            from,
            progress,
            applied,
        } = self.0;
        let from = match from {
            RetainedFrom::Memory => "memory",
            RetainedFrom::Disk => "disk",
        };
        let (epoch, cycle) = (progress.epoch, progress.cycle);
        // What does not fit comes last, since a long text is cut.
        write!(
            f,
            "of cycle {cycle} of epoch {epoch}, from {from}: {applied}"
        )
    }
}

impl std::fmt::Display for Describe<&FailedExecution> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FailedExecution { cycle, fault, then } = self.0;
        match then {
            Then::TriedAtOnce => write!(f, "cycle {cycle}: {fault}"),
            Then::TriedAfter(pause) => {
                let pause = pause.as_millis();
                write!(f, "cycle {cycle}, stopped for {pause} ms: {fault}")
            }
            Then::Stopped => write!(f, "cycle {cycle}, stopped: {fault}"),
            Then::NotResumed => write!(
                f,
                "cycle {cycle}, stopped, and not resumed from a state as old as hot_restart_ms: {fault}"
            ),
        }
    }
}

impl std::fmt::Display for Describe<&bumpless_controller::executor::FailCause> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use bumpless_controller::executor::FailCause;
        match self.0 {
            FailCause::Field(error) => write!(f, "stopped as on_failure = \"fail\" says: {error}"),
            FailCause::State(error) => write!(f, "the predecessor's state cannot be used: {error}"),
            FailCause::Program(fault) => write!(f, "the program has stopped: {fault}"),
        }
    }
}

#[cfg(test)]
mod tests;

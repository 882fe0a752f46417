//! The cyclic executor: copy-in, execute, replicate state, copy-out, on absolute time
//! (first paper, section 2.2 and figure 3).
//!
//! [`CycleMachine`] decides; [`Executor`] drives it with blocking calls, as a thread of the daemon
//! does.

mod handover;
mod machine;
mod ports;
mod report;
mod settings;
#[cfg(test)]
mod tests;
mod tuning;

pub use handover::published_size_max;
pub use machine::{Answer, CycleMachine, Need};
pub use ports::{
    Clock, OutputGate, Permit, Ports, ProgramStanding, Replication, ResumeFrom, Role, StateInfo,
    TransferOutcome, Wake,
};
pub use report::{
    CycleReport, FailCause, FailedExecution, HoldCause, Outcome, Resumed, RetainedFrom,
    RetainedReport, Then,
};
pub use settings::{CommitMode, ExecutorSettings, OnFailure, OnProgramFault};

use crate::state::Progress;
use crate::{Application, FieldIo, LoadError};
use bumpless_base::{Counters, Instant};

/// What [`Executor::tune`] puts in or gives back.
pub type Tuned = (Box<dyn Application>, Box<dyn FieldIo>);

/// Runs one application by blocking calls.
///
/// Driving contract: call [`step`](Self::step) again and again; each call
/// either sleeps on the clock or runs one cycle and hands its report to the observer. As backup a
/// cycle only keeps the field connections warm. On becoming primary the newest state is loaded
/// and a cycle runs at once; the grid continues from there. Grid points that a cycle runs into
/// are skipped and counted. The observer must not block.
pub struct Executor<R, G, C, O> {
    machine: CycleMachine<R, G, O>,
    field: Box<dyn FieldIo>,
    clock: C,
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
        let Ports {
            field,
            replication,
            gate,
            clock,
        } = ports;
        let now = clock.now();
        let machine = CycleMachine::new(settings, application, (replication, gate), observer, now);
        Self {
            machine,
            field,
            clock,
        }
    }

    /// What this executor has counted.
    pub fn counters(&self) -> &Counters {
        self.machine.counters()
    }

    /// How far the application has come on this node.
    pub fn progress(&self) -> Option<Progress> {
        self.machine.progress()
    }

    /// Goes on with `settings`, with `application` ([`CycleMachine::tune`]) and with `field`; what was in
    /// their place comes back.
    ///
    /// # Errors
    /// The application does not take the state: nothing has changed, and what was given comes back.
    pub fn tune(
        &mut self,
        settings: ExecutorSettings,
        mut application: Box<dyn Application>,
        field: Box<dyn FieldIo>,
    ) -> Result<Tuned, (LoadError, Tuned)> {
        match self.machine.hand_state_to(&mut *application) {
            Ok(()) => Ok(self.exchange(settings, application, field)),
            Err(error) => Err((error, (application, field))),
        }
    }

    /// See [`CycleMachine::hand_state_to`].
    ///
    /// # Errors
    /// `next` does not take the state.
    pub fn hand_state_to(&mut self, next: &mut dyn Application) -> Result<(), LoadError> {
        self.machine.hand_state_to(next)
    }

    /// Goes on with `settings`, with `application`, which has taken over the state ([`CycleMachine::exchange`]), and with
    /// `field`; what was in their place comes back.
    pub fn exchange(
        &mut self,
        settings: ExecutorSettings,
        application: Box<dyn Application>,
        mut field: Box<dyn FieldIo>,
    ) -> Tuned {
        let application = self.machine.exchange(settings, application);
        field.take_over(&mut *self.field);
        (application, std::mem::replace(&mut self.field, field))
    }

    /// When the next cycle begins, if nobody wakes the executor before.
    pub const fn next_at(&self) -> Instant {
        self.machine.next_at()
    }

    /// See [`CycleMachine::newest_state`].
    pub fn newest_state(&mut self, into: &mut Vec<u8>) {
        self.machine.newest_state(into);
    }

    /// See [`CycleMachine::comes_late`].
    pub fn comes_late(&mut self) {
        self.machine.comes_late();
    }

    /// The channel.
    pub fn replication(&mut self) -> &mut R {
        self.machine.replication()
    }

    /// Sleeps until the next grid point or a wake, or runs one cycle.
    pub fn step(&mut self) {
        loop {
            let need = self.machine.poll(self.clock.now());
            let in_cycle = !matches!(need, Need::Sleep { .. });
            let answer = self.meet(need);
            self.machine.note_silent(self.field.silent());
            // The report of a cycle tells of one device; what happens to others waits for the next ones.
            if in_cycle
                && !self.machine.has_driver_failure()
                && let Some(failures) = self.field.driver_failures()
            {
                self.machine.note_driver_failures(failures);
            }
            self.machine.answer(answer, self.clock.now());
            if self.machine.is_between_cycles() {
                return;
            }
        }
    }

    fn meet(&mut self, need: Need) -> Answer {
        match need {
            Need::Sleep { until } => Answer::Slept(self.clock.wait_until(until)),
            Need::Read { until } => Answer::Read(self.field.read(self.machine.inputs(), until)),
            Need::KeepWarm { until } => Answer::Warm(self.field.keep_warm(until)),
            Need::Settle { ticket, until } => {
                Answer::Settled(self.machine.replication().wait_settled(ticket, until))
            }
            Need::Simplex { until } => Answer::Simplex(self.machine.gate().go_simplex(until)),
            Need::Write { stamp, until } => {
                Answer::Written(self.field.write(self.machine.outputs(), stamp, until))
            }
        }
    }
}

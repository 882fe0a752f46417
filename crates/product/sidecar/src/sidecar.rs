//! A program in a process of its own, cycle by cycle: what is asked of it, and which state counts after that.

mod application;

use std::sync::atomic::{AtomicU64, Ordering};

use bumpless_base::Duration;
use bumpless_controller::retain::{Retained, Table, TableError};
use bumpless_controller::{Application, CycleContext, Mishap, ProgramFault, ProgramFaultKind};
use bumpless_program::layout::command;

use crate::committed::Committed;
use crate::keeper::{Keeper, Ready};
use crate::process::Attached;
use crate::running::Running;
use crate::{Cause, Command, Fault, HowItEnded, Limits, Shape, StartCause, StartFault};

/// Bytes of a saved state before the program's own (H-19).
pub(crate) const HEAD: usize = 8;

/// How many there have been in this process: what tells their states apart.
static SIDECARS: AtomicU64 = AtomicU64::new(0);

/// What happened to a program since [`Sidecar::start`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cycles that had not ended by the limit.
    pub unanswered: u64,
    /// Ends of the process that nobody ordered.
    pub deaths: u64,
    /// Cycles of which the program said that they failed.
    pub failures: u64,
    /// Answers that were wrong.
    pub wrong_answers: u64,
    /// Cycles for which there was no process.
    pub not_running: u64,
    /// Starts of a process, the first included.
    pub starts: u64,
    /// How often tracking of changes was given up, so that the whole state is compared since.
    pub tracking_lost: u64,
}

/// A program in a process of its own.
pub struct Sidecar {
    /// The how manyth it is in this process.
    number: u64,
    name: String,
    shape: Shape,
    limits: Limits,
    keeper: Keeper,
    running: Option<Running>,
    attached: Attached,
    initial: Box<[u8]>,
    committed: Committed,
    counts: Counts,
    /// How its process ended last between two cycles, until that is told.
    ended: Option<HowItEnded>,
    /// How much of `tracking_lost` has been told.
    lost_told: u64,
    retained: Table,
}

impl Sidecar {
    /// Starts the program and waits until it is ready for its first cycle.
    ///
    /// # Errors
    /// It does not start, is not ready in time, or does not fit `shape`.
    pub fn start(command: &Command, shape: Shape, limits: Limits) -> Result<Self, StartFault> {
        Self::start_while(command, shape, limits, &|| true)
    }

    /// The same, given up when it is not wanted any more.
    ///
    /// # Errors
    /// As [`Sidecar::start`]; it is not wanted any more.
    pub fn start_while(
        command: &Command,
        shape: Shape,
        limits: Limits,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Self, StartFault> {
        let name = command.name();
        let fault = |cause| StartFault {
            program: name.clone(),
            cause,
        };
        let mut keeper = Keeper::begin(command.clone(), shape, limits)
            .map_err(|error| fault(StartCause::Thread(error)))?;
        let ready = match keeper.first(wanted) {
            Ok(ready) => ready,
            Err(cause) => {
                keeper.end(|| ());
                return Err(fault(cause));
            }
        };
        let mut initial = vec![0; ready.attached.state_len].into_boxed_slice();
        ready.process.shared().copy_state(0, &mut initial);
        let mut sidecar = Self {
            number: SIDECARS.fetch_add(1, Ordering::Relaxed),
            name,
            shape,
            limits,
            keeper,
            running: None,
            attached: ready.attached,
            committed: Committed::new(initial.clone(), limits.track_from),
            initial,
            counts: Counts::default(),
            ended: None,
            lost_told: 0,
            retained: Table::default(),
        };
        sidecar.take_up(ready);
        Ok(sidecar)
    }

    /// The same with variables that are retained, as [`retained`](crate::plc::retained) finds them in its file.
    ///
    /// # Errors
    /// They are not in its state, or two have one name.
    pub fn retaining(mut self, variables: Vec<Retained>) -> Result<Self, TableError> {
        self.retained = Table::new(variables, self.state_size_max())?;
        Ok(self)
    }

    /// How people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of its state.
    pub fn state_len(&self) -> usize {
        self.attached.state_len
    }

    /// What its states are told by: the version of their layout, else its file (H-19).
    pub fn owner(&self) -> u64 {
        self.attached.owner
    }

    /// The only period with which it can run, if it cannot with any.
    pub fn period(&self) -> Option<Duration> {
        let period = self.attached.period;
        (period != Duration::from_nanos(0)).then_some(period)
    }

    /// The version of its state's layout, as it gives it; 0: none.
    pub fn state_version(&self) -> u64 {
        self.attached.state_version
    }

    /// Whether it converts states of other versions (H-36).
    pub fn converts(&self) -> bool {
        self.attached.converts
    }

    /// Whether only what changed of the state is copied after a cycle.
    pub fn is_tracked(&self) -> bool {
        self.committed.is_tracked()
    }

    /// Number of its process, while there is one.
    pub fn process_id(&self) -> Option<u32> {
        let running = self.running.as_ref()?;
        (!running.process.is_gone()).then(|| running.process.pid().as_raw_pid().cast_unsigned())
    }

    /// What happened to it.
    pub fn counts(&self) -> Counts {
        Counts {
            starts: self.keeper.starts(),
            tracking_lost: self.committed.tracking_lost(),
            ..self.counts
        }
    }

    /// Runs one cycle. It returns by the limit and what it takes to be scheduled.
    ///
    /// # Errors
    /// There are no outputs, and the state is that of the last cycle that ended well. The program is started again,
    /// if it was the program.
    pub fn run_cycle(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), Fault> {
        self.ask_for_outputs(context, inputs, outputs)?;
        self.commit();
        Ok(())
    }

    /// Runs one cycle, whose state counts once it is [committed](Self::commit).
    fn ask_for_outputs(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), Fault> {
        let cause = match self.cycle(context, inputs, outputs) {
            Ok(()) => return Ok(()),
            Err(cause) => cause,
        };
        let counter = match &cause {
            Cause::Unanswered(_) => &mut self.counts.unanswered,
            Cause::Died(_) => &mut self.counts.deaths,
            Cause::Failed(_) => &mut self.counts.failures,
            Cause::WrongAnswer { .. } => &mut self.counts.wrong_answers,
            Cause::NotReady | Cause::NotRunning(_) | Cause::Period { .. } => {
                &mut self.counts.not_running
            }
        };
        *counter += 1;
        Err(Fault {
            program: self.name.clone(),
            cycle: context.cycle,
            cause,
        })
    }

    fn cycle(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), Cause> {
        let (needs, configured) = (self.attached.period, context.period);
        if needs != Duration::from_nanos(0) && needs != configured {
            return Err(Cause::Period { needs, configured });
        }
        self.find_process()?;
        let Some(running) = &mut self.running else {
            return Err(Cause::NotRunning("it was stopped".into()));
        };
        self.committed.announce(running.process.shared());
        let answered = running.execute(context, self.limits.execute, inputs, outputs);
        let judged = answered.and_then(|()| running.judge(self.shape, &self.attached));
        if let Err(cause) = judged {
            running.process.kill();
            self.running = None;
            return Err(cause);
        }
        running.process.prove();
        let shared = running.process.shared();
        for (value, slot) in outputs.iter_mut().zip(shared.outputs()) {
            *value = f64::from_bits(slot.load(Ordering::Relaxed));
        }
        Ok(())
    }

    /// The cycle that has just ended well counts.
    fn commit(&mut self) {
        if let Some(running) = &self.running {
            self.committed.commit(running.process.shared());
        }
    }

    /// Has the program make its state from `old`, one of another version of it, whose layout has the version `version`; it has
    /// as long as for a cycle.
    ///
    /// # Errors
    /// It has not, and the state is as it was.
    pub fn convert(&mut self, version: u64, old: &[u8]) -> Result<(), Cause> {
        self.find_process()?;
        let Some(running) = &mut self.running else {
            return Err(Cause::NotRunning("it was stopped".into()));
        };
        if old.len() > self.shape.state_max {
            return Err(Cause::WrongAnswer {
                field: "bytes of the state before",
                expected: self.shape.state_max as u64,
                found: old.len() as u64,
            });
        }
        let converted = running.convert((version, old), self.limits.execute);
        let judged = converted.and_then(|()| running.judge(self.shape, &self.attached));
        if let Err(cause) = judged {
            // What it has left in its memory is of neither version.
            running.process.kill();
            self.running = None;
            return Err(cause);
        }
        let shared = running.process.shared();
        let mut state = vec![0; self.attached.state_len];
        shared.copy_state(0, &mut state);
        self.committed.replace(&state);
        self.committed.follow(shared);
        Ok(())
    }

    /// Sees to it that there is a process, if one is ready.
    fn find_process(&mut self) -> Result<(), Cause> {
        let ended = match &self.running {
            Some(running) if running.process.is_gone() => Some(running.process.how()),
            Some(_) => return Ok(()),
            None => None,
        };
        self.running = None;
        match (self.keeper.take(), ended) {
            (Ok(ready), _) if ready.attached != self.attached => {
                ready.process.kill();
                Err(Cause::NotRunning(StartCause::Changed.to_string()))
            }
            (Ok(ready), ended) => {
                if let Some(how) = ended {
                    // It ended between two cycles, and none lacks anything.
                    self.counts.deaths += 1;
                    self.ended = Some(how);
                }
                self.take_up(ready);
                Ok(())
            }
            (Err(_), Some(how)) => Err(Cause::Died(how)),
            (Err(why), None) => Err(why.map_or(Cause::NotReady, Cause::NotRunning)),
        }
    }

    /// What nobody has been told yet of ends between two cycles and of tracking. A process that has ended so is
    /// replaced, if the next one is ready; if not, the cycle fails for it.
    fn untold(&mut self) -> Option<Mishap> {
        let ended = self.running.as_ref().is_some_and(|it| it.process.is_gone());
        if ended && self.keeper.has_ready(self.attached) {
            // Where that one has ended at this very moment, the cycle says so.
            let _ = self.find_process();
        }
        if let Some(how) = self.ended.take() {
            let detail = format!(
                "{}: {how} between two cycles; no cycle lacks anything, but look at what it printed and mend it",
                self.name
            );
            let fault = ProgramFault::new(ProgramFaultKind::Crash, detail);
            return Some(Mishap {
                fault,
                counts: true,
            });
        }
        let lost = self.committed.tracking_lost();
        if std::mem::replace(&mut self.lost_told, lost) == lost {
            return None;
        }
        let detail = format!(
            "{}: it has not told of a change of its state, which is compared as a whole from now on; nothing but its library \
             may say what has changed, so build it with the library of this release",
            self.name
        );
        Some(Mishap {
            fault: ProgramFault::new(ProgramFaultKind::WrongAnswer, detail),
            counts: false,
        })
    }

    /// Goes on with another process, which gets the committed state.
    fn take_up(&mut self, ready: Ready) {
        let process = ready.process;
        process.shared().write_state(self.committed.state());
        self.committed.follow(process.shared());
        self.running = Some(Running {
            process,
            request: 1,
        });
    }

    fn put_state(&mut self) {
        if let Some(running) = &self.running {
            running.process.shared().write_state(self.committed.state());
        }
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let running = self.running.take();
        self.keeper.end(|| {
            if let Some(Running { process, request }) = running {
                process.request(request.wrapping_add(1), command::END);
            }
        });
    }
}

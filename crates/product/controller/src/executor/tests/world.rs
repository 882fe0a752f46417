//! A world in simulated time with every port of an executor in it.

use crate::executor::*;
use crate::retain::{Record, Retained, Table};
use crate::state::Progress;
use crate::state::{encode_envelope, envelope_len};
use crate::{Application, FieldIo};
use crate::{CycleContext, FieldError, FieldErrorKind, FieldSample, LoadError, OutputStamp};
use crate::{Mishap, ProgramFault, ProgramFaultKind};
use bumpless_base::pieces::overlay;
use bumpless_base::{Counters, Duration, Epoch, Instant, NodeId, Pieces, Revision};
use std::sync::{Arc, Mutex, MutexGuard};

/// For how long a published state may be used.
const EXPIRY: Duration = Duration::from_millis(60);

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn at(n: u64) -> Instant {
    Instant::ZERO + ms(n)
}

type Change = Box<dyn FnOnce(&mut State) + Send>;

/// What a write looked like to the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub at: Instant,
    pub until: Instant,
    pub epoch: u32,
    pub cycle: u64,
    pub outputs: Vec<f64>,
}

pub struct State {
    pub now: Instant,
    changes: Vec<(Instant, Change)>,
    pub role: Role,
    pub permit: Option<Permit>,
    pub backup: bool,
    /// Whether it can be made certain that nobody takes over with an older state.
    pub simplex: bool,
    /// How long that takes.
    pub simplex_after: Duration,
    pub cold: bool,
    pub role_since: Instant,
    pub paused: bool,
    /// Time from publishing to the acknowledgement; `None`: never.
    pub transfer: Option<Duration>,
    /// Transfers end as failed after this.
    pub transfer_fails: Option<Duration>,
    pub published: Vec<(Instant, Vec<u8>)>,
    /// For how long a published state may be used.
    pub usable_for: Duration,
    /// When each published state becomes safe and failed.
    fates: Vec<(Option<Instant>, Option<Instant>)>,
    pub received: Option<Vec<u8>>,
    /// What lies on disk, and until when it may be gone on from.
    pub restored: Option<(Vec<u8>, Instant)>,
    /// The record that lies on disk, and how far its state had come.
    pub record: Option<(Progress, Vec<u8>)>,
    /// Whether the program retains its sum.
    pub retains: bool,
    /// Whether the program keeps its last whole state itself.
    pub keeps: bool,
    /// How often a backup's cycle kept what has come.
    pub kept: u64,
    pub input: Result<f64, FieldErrorKind>,
    pub write_error: Option<FieldErrorKind>,
    pub execution: Duration,
    pub device_epoch: Option<Epoch>,
    pub device_cycle: Option<u64>,
    pub writes: Vec<Write>,
    pub warmed: Vec<Instant>,
    pub executed: Vec<Instant>,
    pub epochs_seen: Vec<Epoch>,
    pub epochs_spent: Vec<Epoch>,
    /// An order to go on that has not been taken.
    pub ordered: Option<ResumeFrom>,
    pub fit: Vec<bool>,
    pub oversleep: Duration,
    /// The program fails in these cycles, when it has done its work, and how.
    pub failing: Vec<u64>,
    pub failing_how: ProgramFaultKind,
    /// What is wrong with the program before its next execution.
    pub mishap: Option<Mishap>,
    /// It cannot be started again, or has not started again yet.
    pub dead: bool,
    pub starting: bool,
    pub standings: Vec<ProgramStanding>,
}

impl State {
    /// Lets time pass; what is scheduled happens on the way.
    fn pass(&mut self, span: Duration) {
        let target = self.now + span;
        while self.happen_until(target) {}
        self.now = target;
    }

    /// Runs the next scheduled change that is due by `target`; returns whether there was one.
    fn happen_until(&mut self, target: Instant) -> bool {
        let due = self.changes.iter().position(|(when, _)| *when <= target);
        let Some(due) = due else { return false };
        let (when, change) = self.changes.remove(due);
        self.now = self.now.max(when);
        change(self);
        true
    }

    fn settled(&self, ticket: u64) -> (TransferOutcome, Instant) {
        // Safe as soon as this state or any later one is.
        let fates = &self.fates[ticket as usize..];
        let safe = fates.iter().filter_map(|(safe, _)| *safe).min();
        let failed = fates[0].1;
        match (safe, failed) {
            (Some(at), _) if at <= self.now => (TransferOutcome::Safe, at),
            (_, Some(at)) if at <= self.now => (TransferOutcome::Failed, at),
            (Some(at), _) | (None, Some(at)) => (TransferOutcome::Pending, at),
            (None, None) => (TransferOutcome::Pending, Instant::FAR_FUTURE),
        }
    }
}

#[derive(Clone)]
pub struct World(Arc<Mutex<State>>);

impl World {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Instant::ZERO,
            changes: Vec::new(),
            role: Role::Primary,
            permit: Some(Permit {
                epoch: Epoch(1),
                until: Instant::FAR_FUTURE,
            }),
            backup: true,
            simplex: true,
            simplex_after: Duration::ZERO,
            cold: false,
            role_since: Instant::ZERO,
            paused: false,
            transfer: Some(ms(1)),
            transfer_fails: None,
            published: Vec::new(),
            usable_for: EXPIRY,
            fates: Vec::new(),
            received: None,
            restored: None,
            record: None,
            retains: false,
            keeps: false,
            kept: 0,
            input: Ok(0.0),
            write_error: None,
            execution: Duration::ZERO,
            device_epoch: None,
            device_cycle: None,
            writes: Vec::new(),
            warmed: Vec::new(),
            executed: Vec::new(),
            epochs_seen: Vec::new(),
            epochs_spent: Vec::new(),
            ordered: None,
            fit: Vec::new(),
            oversleep: Duration::ZERO,
            failing: Vec::new(),
            failing_how: ProgramFaultKind::Trap,
            mishap: None,
            dead: false,
            starting: false,
            standings: Vec::new(),
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// At `when`, `change` happens and wakes the executor.
    pub fn schedule(&self, when: Instant, change: impl FnOnce(&mut State) + Send + 'static) {
        self.lock().changes.push((when, Box::new(change)));
    }

    /// Runs an executor in this world until `end` and returns its reports.
    pub fn run(&self, settings: ExecutorSettings, end: Instant) -> Vec<CycleReport> {
        let mut reports = Vec::new();
        let observer = |report: &CycleReport, _: &Counters| reports.push(report.clone());
        let mut executor = self.executor(settings, observer);
        self.run_until(end, &mut executor);
        reports
    }

    /// An executor of the [`Accumulator`] in this world.
    pub fn executor<O>(
        &self,
        settings: ExecutorSettings,
        observer: O,
    ) -> Executor<Self, Self, Self, O>
    where
        O: FnMut(&CycleReport, &Counters),
    {
        let ports = Ports {
            field: Box::new(self.clone()) as Box<dyn FieldIo>,
            replication: self.clone(),
            gate: self.clone(),
            clock: self.clone(),
        };
        Executor::new(settings, Box::new(accumulator(self)), ports, observer)
    }

    /// Steps `executor` until `end`.
    pub fn run_until<O>(&self, end: Instant, executor: &mut Executor<Self, Self, Self, O>)
    where
        O: FnMut(&CycleReport, &Counters),
    {
        while self.lock().now < end {
            executor.step();
        }
    }
}

impl Clock for World {
    fn now(&self) -> Instant {
        self.lock().now
    }
    fn wait_until(&mut self, until: Instant) -> Wake {
        let mut state = self.lock();
        if state.happen_until(until) {
            return Wake::Woken;
        }
        let oversleep = std::mem::take(&mut state.oversleep);
        state.now = until.max(state.now) + oversleep;
        Wake::Reached
    }
}

impl OutputGate for World {
    fn permit(&mut self) -> Option<Permit> {
        self.lock().permit
    }
    fn role(&self) -> Role {
        self.lock().role
    }
    fn role_since(&self) -> Instant {
        self.lock().role_since
    }
    fn began_cold(&self) -> bool {
        self.lock().cold
    }
    fn paused(&self) -> bool {
        self.lock().paused
    }
    fn go_simplex(&mut self, _: Instant) -> bool {
        let mut state = self.lock();
        let span = state.simplex_after;
        state.pass(span);
        state.simplex
    }
    fn backup_expected(&self) -> bool {
        self.lock().backup
    }
    fn epoch_seen(&mut self, epoch: Epoch) {
        self.lock().epochs_seen.push(epoch);
    }
    fn epoch_spent(&mut self, epoch: Epoch) {
        self.lock().epochs_spent.push(epoch);
    }
    fn fit_changed(&mut self, fit: bool) {
        self.lock().fit.push(fit);
    }
    fn program_changed(&mut self, standing: ProgramStanding) {
        self.lock().standings.push(standing);
    }
    fn resume_ordered(&mut self) -> Option<ResumeFrom> {
        self.lock().ordered.take()
    }
}

impl Replication for World {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let mut buffer = vec![0; 64];
        let len = fill(&mut buffer);
        buffer.truncate(len);
        let mut state = self.lock();
        let (now, transfer, fails) = (state.now, state.transfer, state.transfer_fails);
        state
            .fates
            .push((transfer.map(|t| now + t), fails.map(|t| now + t)));
        state.published.push((now, buffer));
        state.published.len() as u64 - 1
    }
    fn own_usable_until(&self) -> Instant {
        let state = self.lock();
        let published = state.published.last();
        published.map_or(Instant::ZERO, |(at, _)| *at + state.usable_for)
    }
    fn wait_settled(&mut self, ticket: u64, until: Instant) -> TransferOutcome {
        let mut state = self.lock();
        let (settled, when) = state.settled(ticket);
        if settled != TransferOutcome::Pending {
            return settled;
        }
        let end = when.min(until);
        let span = end.since(state.now);
        state.pass(span);
        state.settled(ticket).0
    }
    fn settled(&mut self, ticket: u64) -> TransferOutcome {
        self.lock().settled(ticket).0
    }
    fn read_latest(&mut self, _: Instant, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        let received = self.lock().received.clone();
        let info = StateInfo {
            transfer_cycle: 0,
            expires_at: Instant::FAR_FUTURE,
        };
        received.inspect(|state| load(state, info)).is_some()
    }
    fn read_restored(&mut self, at: Instant, load: &mut dyn FnMut(&[u8])) -> bool {
        let restored = self.lock().restored.clone();
        let young = restored.filter(|(_, until)| at < *until);
        young.inspect(|(state, _)| load(state)).is_some()
    }
    fn read_retained(&mut self, take: &mut dyn FnMut(Progress, Record<'_>)) -> bool {
        let record = self.lock().record.clone();
        let shown = record
            .as_ref()
            .and_then(|(at, it)| Record::parse(it).map(|it| take(*at, it)));
        shown.is_some()
    }
    fn keep_received(&mut self) {
        self.lock().kept += 1;
    }
}

impl World {
    fn request(
        &self,
        result: Result<(), FieldErrorKind>,
        until: Instant,
    ) -> Result<FieldSample, FieldError> {
        let mut state = self.lock();
        if result == Err(FieldErrorKind::Timeout) {
            let span = until.since(state.now);
            state.pass(span);
        }
        let sample = FieldSample {
            epoch_seen: state.device_epoch,
            cycle_seen: state.device_cycle,
        };
        let place = "device".into();
        result
            .map(|()| sample)
            .map_err(|kind| FieldError { kind, place })
    }
}

impl FieldIo for World {
    fn read(&mut self, inputs: &mut [f64], until: Instant) -> Result<FieldSample, FieldError> {
        let input = self.lock().input;
        let sample = self.request(input.map(|_| ()), until)?;
        inputs[0] = input.unwrap();
        Ok(sample)
    }
    fn write(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldError> {
        let error = self.lock().write_error;
        self.request(error.map_or(Ok(()), Err), until)?;
        let mut state = self.lock();
        let write = Write {
            at: state.now,
            until,
            epoch: stamp.epoch.0,
            cycle: stamp.cycle,
            outputs: outputs.to_vec(),
        };
        state.writes.push(write);
        Ok(())
    }
    fn keep_warm(&mut self, until: Instant) -> Result<FieldSample, FieldError> {
        let input = self.lock().input;
        {
            let mut state = self.lock();
            let now = state.now;
            state.warmed.push(now);
        }
        self.request(input.map(|_| ()), until)
    }
}

/// Adds its input to its state in each cycle, plus one, and puts out the sum.
pub struct Accumulator {
    world: World,
    sum: f64,
    /// After its last whole cycle, if it keeps that itself.
    kept: Option<f64>,
    retained: Option<Table>,
}

impl Accumulator {
    fn set(&mut self, sum: f64) {
        self.sum = sum;
        self.kept = self.kept.map(|_| sum);
    }
}

impl Pieces for Accumulator {
    fn size(&self) -> usize {
        8
    }
    fn revision(&self) -> Option<Revision> {
        None
    }
    fn copy(&self, at: usize, piece: &mut [u8], _: Option<Revision>) {
        let sum = self.kept.unwrap_or(self.sum);
        overlay(piece, at, &sum.to_be_bytes(), 0);
    }
}

impl Application for Accumulator {
    fn inputs(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        1
    }
    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        if self.world.lock().starting {
            return Err(ProgramFault::new(ProgramFaultKind::NotReady, ""));
        }
        self.sum += 1.0 + inputs[0];
        outputs[0] = self.sum;
        let mut state = self.world.lock();
        let now = state.now;
        state.executed.push(now);
        let span = state.execution;
        state.pass(span);
        // What it has done until then is half of it.
        match state.failing.contains(&context.cycle) {
            true => Err(ProgramFault {
                kind: state.failing_how,
                ..fault()
            }),
            false => {
                drop(state);
                if let Some(kept) = &mut self.kept {
                    ProgramFault::of_outputs(outputs).map_or(Ok(()), Err)?;
                    *kept = self.sum;
                }
                Ok(())
            }
        }
    }
    fn mishap(&mut self) -> Option<Mishap> {
        self.world.lock().mishap.take()
    }
    fn keeps_state(&self) -> bool {
        self.kept.is_some()
    }
    fn restore(&mut self) -> Result<(), LoadError> {
        if self.world.lock().dead {
            return Err(LoadError::NotRunning { reason: "dead" });
        }
        self.sum = self.kept.expect("it keeps its state");
        Ok(())
    }
    fn pieces(&self) -> Option<&dyn Pieces> {
        self.kept.is_some().then_some(self)
    }
    fn retained(&self) -> Option<&Table> {
        self.retained.as_ref()
    }
    fn state_size_max(&self) -> usize {
        8
    }
    fn save(&self, into: &mut [u8]) -> usize {
        self.copy_whole(into)
    }
    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        if self.world.lock().dead {
            return Err(LoadError::NotRunning { reason: "dead" });
        }
        let raw = state.try_into().map_err(|_| LoadError::Length {
            expected: 8,
            found: state.len(),
        })?;
        self.set(f64::from_be_bytes(raw));
        Ok(())
    }
    fn reset(&mut self) {
        self.set(0.0);
    }
}

/// Why the [`Accumulator`] fails.
pub fn fault() -> ProgramFault {
    ProgramFault::new(ProgramFaultKind::Trap, "division by zero at line 7")
}

pub fn accumulator(world: &World) -> Accumulator {
    let (keeps, retains) = {
        let state = world.lock();
        (state.keeps, state.retains)
    };
    Accumulator {
        world: world.clone(),
        sum: 0.0,
        kept: keeps.then_some(0.0),
        retained: retains.then(|| sum_as("LREAL")),
    }
}

/// A table with the sum, called `SUM`, of this type.
pub fn sum_as(of: &str) -> Table {
    let sum = Retained {
        name: "SUM".into(),
        of: of.into(),
        offset: 0,
        len: 8,
    };
    Table::new(vec![sum], 8).unwrap()
}

/// When each output was written, of which cycle, and what it was.
pub fn written(world: &World) -> Vec<(Instant, u64, f64)> {
    let state = world.lock();
    let writes = state.writes.iter();
    writes
        .map(|write| (write.at, write.cycle, write.outputs[0]))
        .collect()
}

/// A published state of the [`Accumulator`].
pub fn published(epoch: u32, cycle: u64, sum: f64) -> Vec<u8> {
    let mut state = vec![0; envelope_len(1)];
    let progress = Progress {
        epoch: Epoch(epoch),
        cycle,
    };
    encode_envelope(progress, &[sum], &mut state).unwrap();
    state.extend(sum.to_be_bytes());
    state
}

/// Period 10 ms, deadline 8 ms, field timeout 3 ms, `async`, `hold`.
pub fn settings() -> ExecutorSettings {
    ExecutorSettings {
        writer: NodeId(0),
        period: ms(10),
        expiry: EXPIRY,
        deadline: ms(8),
        field_timeout: ms(3),
        commit: CommitMode::Async,
        on_failure: OnFailure::Hold,
        on_program_fault: OnProgramFault::Hold,
        begins_anew: true,
    }
}

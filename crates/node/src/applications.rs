//! The application threads: building each from the configuration, running it, telling the log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use bumpless_base::{Counter, Counters, Instant, NodeId};
use bumpless_config::{self as config, ApplicationKind, Commit};
use bumpless_controller::executor::{CycleReport, HoldCause, Outcome, Resumed};
use bumpless_controller::pid::PidParameters;
use bumpless_controller::plant::model::SENSOR_GAIN;
use bumpless_controller::{
    Application, Clock, CommitMode, Executor, ExecutorSettings, FieldErrorKind, FieldIo,
    ModbusField, ModbusSettings, NoField, OnFailure, OutputGate, Ports, QuadrupleTank,
    QuadrupleTankParameters, SetPointStep, Synthetic, SyntheticParameters,
};

use bumpless_exchange::Exchange;
use bumpless_meeting::{ApplicationPort, GroupGate};
use bumpless_net_linux::realtime;

use crate::event::{NodeEvent, OutputOutcome};
use crate::executor::{
    ChannelReplication, Environment, GroupOutputGate, ThreadClock, Threads, now,
};
use crate::log::EventSink;
use crate::short_text::ShortText;

/// Counters of one executor, readable from any thread.
#[derive(Debug)]
pub struct CounterBoard([AtomicU64; Counter::ALL.len()]);

impl Default for CounterBoard {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl CounterBoard {
    fn store(&self, counters: &Counters) {
        for (slot, &counter) in self.0.iter().zip(Counter::ALL) {
            slot.store(counters.get(counter), Ordering::Relaxed);
        }
    }

    /// Adds the figures to `sum`.
    pub fn add_to(&self, sum: &mut Counters) {
        for (slot, &counter) in self.0.iter().zip(Counter::ALL) {
            sum.add(counter, slot.load(Ordering::Relaxed));
        }
    }
}

/// Everything that one application's thread takes with it.
pub struct ApplicationThread {
    /// Position in the configuration.
    pub index: usize,
    /// This node.
    pub node: NodeId,
    /// The channel's ends.
    pub replication: ChannelReplication<Threads>,
    /// Role and right to write.
    pub gate: Arc<GroupGate>,
    /// Meeting point with the data plane.
    pub port: Arc<ApplicationPort>,
    /// Way into the log.
    pub sink: EventSink,
    /// Whether to log written outputs, too.
    pub log_outputs: bool,
    /// Where its counters are shown.
    pub board: Arc<CounterBoard>,
    /// Ends the thread.
    pub stop: Arc<AtomicBool>,
    /// Other settings for it.
    pub tuning: Arc<TuningSlots>,
    /// It came while the node ran.
    pub newcomer: bool,
}

/// Other settings for an application that runs.
pub struct Tuning {
    settings: ExecutorSettings,
    application: Box<dyn Application>,
    field: Box<dyn FieldIo>,
    /// What is told of the executor's thread when it has taken them, or not.
    result: Result<(), String>,
}

impl Tuning {
    /// With what `settings` describe, on `node`.
    ///
    /// # Errors
    /// What the system says of its field I/O.
    pub fn new(settings: &config::Application, node: NodeId) -> io::Result<Self> {
        Ok(Self {
            settings: executor_settings(settings, node),
            application: build(settings),
            field: open_field(settings)?,
            result: Ok(()),
        })
    }
}

/// Where an application's thread finds other settings, and leaves what it had.
#[derive(Default)]
pub struct TuningSlots {
    asked: Exchange<Tuning>,
    done: Exchange<Tuning>,
}

impl TuningSlots {
    /// Asks the thread to go on with `tuning` after its cycle.
    pub fn ask(&self, tuning: Tuning) {
        self.done.swap(None);
        self.asked.swap(Some(Box::new(tuning)));
    }

    /// Whether it has; `None`: not yet. What it had is dropped here.
    pub fn answer(&self) -> Option<Result<(), String>> {
        self.done.swap(None).map(|tuning| tuning.result)
    }
}

impl ApplicationThread {
    /// Builds the application and starts its thread; `priority` is the data plane's.
    pub fn start(
        self,
        settings: &config::Application,
        priority: Option<u8>,
    ) -> io::Result<thread::JoinHandle<()>> {
        let application = build(settings);
        let field = open_field(settings)?;
        let executor = executor_settings(settings, self.node);
        let name = format!("app {}", settings.name);
        thread::Builder::new()
            .name(name)
            .spawn(move || self.run(executor, application, field, priority))
    }

    fn run(
        self,
        settings: ExecutorSettings,
        application: Box<dyn Application>,
        field: Box<dyn FieldIo>,
        priority: Option<u8>,
    ) {
        let _guard = AbortOnPanic;
        self.port.register_executor();
        // What is refused here is refused to the data plane, too, which says so in status.
        let _ = realtime::tighten_timers();
        if let Some(priority) = priority {
            let _ = realtime::set_fifo(priority.saturating_sub(1).max(1));
        }
        let environment = self.replication.environment.clone();
        let ports = Ports {
            field,
            replication: self.replication,
            gate: GroupOutputGate {
                gate: Arc::clone(&self.gate),
                port: Arc::clone(&self.port),
                environment: environment.clone(),
            },
            clock: ThreadClock::new(
                Arc::clone(&self.gate),
                Arc::clone(&self.port),
                Arc::clone(&self.stop),
            ),
        };
        let reporter = Reporter::new(self.index as u16, self.sink, self.log_outputs);
        let mut follow_up = FollowUp {
            gate: self.gate,
            port: self.port,
            board: self.board,
            reporter,
            environment,
        };
        let observer = move |report: &CycleReport, counters: &Counters| {
            follow_up.cycle_ended(report, counters);
        };
        let mut executor = Executor::new(settings, application, ports, observer);
        if self.newcomer {
            executor.comes_late();
        }
        while !self.stop.load(Ordering::Acquire) {
            if let Some(tuning) = self.tuning.asked.swap(None) {
                self.tuning.done.swap(Some(tune(&mut executor, tuning)));
            }
            executor.step();
        }
    }
}

/// The state stays, everything else is as `tuning` says; it comes back with what was there before.
fn tune<G, C, O>(
    executor: &mut Executor<ChannelReplication<Threads>, G, C, O>,
    mut tuning: Box<Tuning>,
) -> Box<Tuning>
where
    G: OutputGate,
    C: Clock,
    O: FnMut(&CycleReport, &Counters),
{
    let Tuning {
        settings,
        application,
        field,
        ..
    } = *tuning;
    tuning.result = match executor.tune(settings, application, field) {
        Ok((application, field)) => {
            (tuning.application, tuning.field) = (application, field);
            executor
                .replication()
                .set_times(settings.deadline, settings.expiry)
        }
        Err((error, (application, field))) => {
            (tuning.application, tuning.field) = (application, field);
            Err(error.to_string())
        }
    };
    tuning
}

/// What follows each cycle's end: the data plane may go on with a hand-over, the log is told.
pub struct FollowUp<E> {
    /// Role and right to write.
    pub gate: Arc<GroupGate>,
    /// Meeting point with the data plane.
    pub port: Arc<ApplicationPort>,
    /// Where the executor's counters are shown.
    pub board: Arc<CounterBoard>,
    /// Turns reports into events.
    pub reporter: Reporter,
    /// The way to the data plane.
    pub environment: E,
}

impl<E: Environment> FollowUp<E> {
    /// A cycle has ended, with this report.
    pub fn cycle_ended(&mut self, report: &CycleReport, counters: &Counters) {
        if self.port.leave_cycle(&self.gate) {
            self.environment.wake_data_plane();
        }
        self.board.store(counters);
        self.reporter.report(report);
    }
}

/// A controller whose application has died must not keep the role: the process ends at once, and
/// the backup takes over while its state is fresh.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "bumpless: an application panicked; this node ends so that its partner takes over"
            );
            std::process::abort();
        }
    }
}

/// Turns cycle reports into events; trouble that lasts is told when it starts and when it changes.
pub struct Reporter {
    application: u16,
    sink: EventSink,
    log_outputs: bool,
    last_trouble: Option<&'static str>,
}

impl Reporter {
    /// Tells `sink` of the application at position `application` of the configuration; of written
    /// outputs, too, with `log_outputs`.
    pub fn new(application: u16, sink: EventSink, log_outputs: bool) -> Self {
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
        if report.backup_behind {
            let cause = ShortText::of(format_args!(
                "cycle {} written before the backup had its state",
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
        let (outcome, kind, cause) = match &report.outcome {
            Outcome::Written => (OutputOutcome::Written, None, ShortText::EMPTY),
            Outcome::Held(HoldCause::NoPermit) => (
                OutputOutcome::Held,
                Some("no permit"),
                ShortText::of("no lease"),
            ),
            Outcome::Held(HoldCause::PermitLost) => (
                OutputOutcome::Held,
                None,
                ShortText::of("lease ran out during the cycle"),
            ),
            Outcome::Held(HoldCause::EpochSpent) => (
                OutputOutcome::Held,
                None,
                ShortText::of("an earlier process of this node wrote in this epoch"),
            ),
            Outcome::Held(HoldCause::BackupBehind) => (
                OutputOutcome::Held,
                Some("behind"),
                ShortText::of("the backup could have taken over from an older state"),
            ),
            Outcome::Held(HoldCause::NoInputs(error)) => {
                (OutputOutcome::Held, Some("no inputs"), ShortText::of(error))
            }
            Outcome::WriteFailed(error) => match error.kind {
                FieldErrorKind::RejectedEpoch { .. } => {
                    (OutputOutcome::Rejected, None, ShortText::of(error))
                }
                _ => (
                    OutputOutcome::Failed,
                    Some("write failed"),
                    ShortText::of(error),
                ),
            },
            Outcome::Failed(cause) => (
                OutputOutcome::Held,
                Some("stopped"),
                ShortText::of(Describe(cause)),
            ),
            Outcome::Cold(error) => (OutputOutcome::Failed, Some("cold"), ShortText::of(error)),
            Outcome::Warm | Outcome::Idle => {
                self.last_trouble = None;
                return;
            }
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

    fn notice(&mut self, name: &'static str, cause: ShortText, at: Instant) {
        self.sink.record(
            at,
            NodeEvent::Notice {
                name,
                group: None,
                cause,
            },
        );
    }
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
            Resumed::ColdStart => f.write_str("starts from the initial state"),
        }
    }
}

impl std::fmt::Display for Describe<&bumpless_controller::executor::FailCause> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use bumpless_controller::executor::FailCause;
        match self.0 {
            FailCause::Field(error) => write!(f, "stopped as on_failure = \"fail\" says: {error}"),
            FailCause::State(error) => write!(f, "the predecessor's state cannot be used: {error}"),
        }
    }
}

/// How the application with these settings is executed on node `writer`.
pub fn executor_settings(settings: &config::Application, writer: NodeId) -> ExecutorSettings {
    let on_failure = settings.field.as_ref().map(|field| field.on_failure);
    ExecutorSettings {
        writer,
        period: settings.period,
        deadline: settings.deadline,
        expiry: settings.expiry,
        field_timeout: settings
            .field
            .as_ref()
            .map_or(settings.period, |field| field.timeout),
        commit: match settings.commit {
            Commit::BeforeOutput => CommitMode::BeforeOutput,
            Commit::Async => CommitMode::Async,
        },
        on_failure: match on_failure {
            Some(config::OnFailure::Fail) => OnFailure::Fail,
            Some(config::OnFailure::Hold) | None => OnFailure::Hold,
        },
    }
}

/// The application that `settings` describe.
pub fn build(settings: &config::Application) -> Box<dyn Application> {
    match &settings.kind {
        ApplicationKind::QuadrupleTank(tank) => Box::new(QuadrupleTank::new(tank_parameters(tank))),
        ApplicationKind::Synthetic(synthetic) => Box::new(Synthetic::new(SyntheticParameters {
            size: synthetic.size as usize,
            changed_share: synthetic.changed_share,
        })),
    }
}

fn tank_parameters(tank: &config::QuadrupleTank) -> QuadrupleTankParameters {
    let mut parameters = QuadrupleTankParameters {
        time_scale: tank.time_scale,
        ..Default::default()
    };
    for (pid, configured) in parameters.loops.iter_mut().zip(&tank.loops) {
        *pid = PidParameters {
            // Configured per centimetre of level; the controller measures in sensor volts.
            gain: configured.gain / SENSOR_GAIN,
            integral_time: configured.integral_s,
            derivative_time: configured.derivative_s,
            ..*pid
        };
    }
    parameters.steps = tank
        .set_points
        .iter()
        .map(|point| SetPointStep {
            at: point.at.as_secs_f64(),
            levels: [point.tank1_cm, point.tank2_cm],
        })
        .collect();
    if let Some(first) = parameters.steps.first() {
        parameters.initial = first.levels;
    }
    parameters
}

fn open_field(settings: &config::Application) -> io::Result<Box<dyn FieldIo>> {
    Ok(match &settings.field {
        Some(field) => {
            let mut modbus = ModbusSettings::quadruple_tank(field.address);
            if !field.check_epoch {
                // Such a device may keep anything at the place where others keep the epoch.
                modbus.map.epoch = None;
            }
            Box::new(ModbusField::new(modbus, now)?)
        }
        None => Box::new(NoField),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_config::Config;
    use bumpless_controller::executor::published_size_max;

    #[test]
    fn every_channel_carries_the_largest_state_that_its_application_publishes() {
        for example in ["quadruple-tank", "table20", "two-computers"] {
            let path = format!(
                "{}/../../examples/{example}.toml",
                env!("CARGO_MANIFEST_DIR")
            );
            let config = Config::load(path.as_ref()).unwrap();
            for settings in &config.applications {
                let needed = published_size_max(build(settings).as_ref());
                assert!(
                    needed <= settings.state_max as usize,
                    "{example}: {} needs {needed}",
                    settings.name
                );
            }
        }
    }

    #[test]
    fn the_configuration_and_the_wire_agree_on_sizes() {
        use bumpless_config::WireVersion;
        use bumpless_wire::{Version, header_overhead, max_state_size};
        for (config, wire) in [
            (WireVersion::V1, Version::V1),
            (WireVersion::V2, Version::V2),
        ] {
            assert_eq!(usize::from(config.header_len()), header_overhead(wire));
            for payload in [1u16, 1000, 1454] {
                let by_packets = config.max_packets() * u64::from(payload);
                assert_eq!(
                    u64::from(max_state_size(wire, payload)),
                    by_packets.min(u32::MAX.into())
                );
            }
        }
    }
}

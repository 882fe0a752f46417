//! Two controllers and the process in simulated time: what a failover does to the levels.

use bumpless_base::{Counters, Duration, Epoch, Instant, NodeId};
use bumpless_controller::plant::baseline::{BaselineSample, baseline};
use bumpless_controller::tanks::Process;
use bumpless_controller::*;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const PERIOD: Duration = Duration::from_millis(10);
const TIME_SCALE: f64 = 20.0;
const RUN: Duration = Duration::from_secs(40);

struct Shared {
    now: Instant,
    process: Process,
    replicated: Vec<Vec<u8>>,
    writes: Vec<(Instant, OutputStamp)>,
}

/// The process, the clock and the channel; what a node sees of them.
#[derive(Clone)]
struct Node {
    shared: Arc<Mutex<Shared>>,
    epoch: Epoch,
    /// How many of the newest states the backup has not got when the primary dies.
    missing: usize,
}

impl Node {
    fn new() -> Self {
        let shared = Shared {
            now: Instant::ZERO,
            process: Process::at_operating_point(),
            replicated: Vec::new(),
            writes: Vec::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            epoch: Epoch(1),
            missing: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        let mut shared = self.shared.lock().unwrap();
        let time = shared.now.since(Instant::ZERO).as_secs_f64() * TIME_SCALE;
        shared.process.advance_to(time);
        shared
    }

    /// Runs a fresh controller process until `end`; collects what the levels were.
    fn run(&self, end: Instant, samples: &mut Vec<BaselineSample>) {
        let settings = ExecutorSettings {
            writer: NodeId(self.epoch.0 as u8),
            period: PERIOD,
            expiry: Duration::from_millis(60),
            deadline: PERIOD,
            field_timeout: PERIOD,
            commit: CommitMode::Async,
            on_failure: OnFailure::Hold,
            on_program_fault: OnProgramFault::Hold,
            begins_anew: true,
        };
        let ports = Ports {
            field: Box::new(self.clone()),
            replication: self.clone(),
            gate: self.clone(),
            clock: self.clone(),
        };
        let application = Box::new(QuadrupleTank::new(parameters()));
        let observer = |_: &CycleReport, _: &Counters| {
            let shared = self.lock();
            samples.push(BaselineSample {
                process_s: shared.process.time(),
                levels: *shared.process.levels(),
                voltages: shared.process.voltages(),
            });
        };
        let mut executor = Executor::new(settings, application, ports, observer);
        while self.shared.lock().unwrap().now < end {
            executor.step();
        }
    }
}

impl Clock for Node {
    fn now(&self) -> Instant {
        self.shared.lock().unwrap().now
    }
    fn wait_until(&mut self, until: Instant) -> Wake {
        self.shared.lock().unwrap().now = until;
        Wake::Reached
    }
}

impl OutputGate for Node {
    fn permit(&mut self) -> Option<Permit> {
        let (epoch, until) = (self.epoch, Instant::FAR_FUTURE);
        Some(Permit { epoch, until })
    }
    fn role(&self) -> Role {
        Role::Primary
    }
    fn backup_expected(&self) -> bool {
        false
    }
}

impl Replication for Node {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let mut state = vec![0; 256];
        let len = fill(&mut state);
        state.truncate(len);
        self.lock().replicated.push(state);
        0
    }
    fn own_usable_until(&self) -> Instant {
        Instant::ZERO
    }
    fn wait_settled(&mut self, _: u64, _: Instant) -> TransferOutcome {
        TransferOutcome::Safe
    }
    fn settled(&mut self, _: u64) -> TransferOutcome {
        TransferOutcome::Safe
    }
    fn read_latest(&mut self, _: Instant, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        let shared = self.lock();
        let held = shared.replicated.len().saturating_sub(self.missing);
        let info = StateInfo {
            transfer_cycle: 0,
            expires_at: Instant::FAR_FUTURE,
        };
        let newest = shared.replicated[..held].last();
        newest.inspect(|state| load(state, info)).is_some()
    }
}

impl FieldIo for Node {
    fn read(&mut self, inputs: &mut [f64], _: Instant) -> Result<FieldSample, FieldError> {
        let shared = self.lock();
        let &[h1, h2, ..] = shared.process.levels();
        inputs.copy_from_slice(&[h1, h2, shared.process.time()]);
        Ok(FieldSample::default())
    }
    fn write(&mut self, outputs: &[f64], stamp: OutputStamp, _: Instant) -> Result<(), FieldError> {
        let mut shared = self.lock();
        let now = shared.now;
        shared.writes.push((now, stamp));
        shared.process.set_voltages([outputs[0], outputs[1]]);
        Ok(())
    }
    fn keep_warm(&mut self, _: Instant) -> Result<FieldSample, FieldError> {
        Ok(FieldSample::default())
    }
}

fn parameters() -> QuadrupleTankParameters {
    QuadrupleTankParameters {
        steps: vec![
            SetPointStep {
                at: 40.0,
                levels: [13.3, 12.8],
            },
            SetPointStep {
                at: 400.0,
                levels: [13.3, 11.8],
            },
        ],
        time_scale: TIME_SCALE,
        ..QuadrupleTankParameters::default()
    }
}

/// Kills the primary at `kill` and lets the backup take over `gap` later, `missing` states behind.
/// Returns the largest deviation of levels 1 and 2 from the run without a fault, and the writes.
fn failover(kill: Duration, gap: Duration, missing: usize) -> (f64, Vec<(Instant, OutputStamp)>) {
    let (mut node, mut samples) = (Node::new(), Vec::new());
    node.run(Instant::ZERO + kill, &mut samples);
    node.lock().now = Instant::ZERO + kill + gap;
    (node.epoch, node.missing) = (Epoch(2), missing);
    node.run(Instant::ZERO + RUN, &mut samples);
    static IDEAL: OnceLock<Vec<BaselineSample>> = OnceLock::new();
    let ideal = IDEAL.get_or_init(|| baseline(&parameters(), RUN, PERIOD));
    let level = |at: f64, tank: usize| {
        let after = ideal.partition_point(|sample| sample.process_s < at - 1e-9);
        ideal.get(after).map(|sample| sample.levels[tank])
    };
    let step = PERIOD.as_secs_f64() * TIME_SCALE;
    let deviation = |sample: &BaselineSample| {
        let off = |tank| {
            // The grids of two controllers differ in phase: compare with both neighbours.
            let seen = sample.levels[tank];
            let (a, b) = (
                level(sample.process_s - step, tank)?,
                level(sample.process_s, tank)?,
            );
            Some((a.min(b) - seen).max(seen - a.max(b)).max(0.0))
        };
        off(0).unwrap_or(0.0).max(off(1).unwrap_or(0.0))
    };
    let largest = samples.iter().map(deviation).fold(0.0, f64::max);
    let writes = node.lock().writes.clone();
    (largest, writes)
}

#[test]
fn the_process_does_not_notice_a_failover_at_any_moment() {
    for kill in [1_000, 2_005, 2_105, 2_500, 3_333, 20_010, 20_250] {
        let (deviation, _) = failover(Duration::from_millis(kill), Duration::from_millis(20), 1);
        assert!(deviation < 0.01, "killed at {kill} ms: {deviation} cm");
    }
}

#[test]
fn without_the_predecessors_state_it_would_notice() {
    let (kill, gap) = (Duration::from_millis(3_333), Duration::from_millis(20));
    let (deviation, _) = failover(kill, gap, usize::MAX);
    assert!(deviation > 0.1, "{deviation} cm");
}

#[test]
fn the_successors_first_output_is_that_of_the_last_cycle_or_later() {
    for missing in [0, 1] {
        let kill = Duration::from_millis(2_105);
        let (_, writes) = failover(kill, Duration::from_millis(20), missing);
        let first = writes
            .iter()
            .position(|(_, stamp)| stamp.epoch == Epoch(2))
            .unwrap();
        let ((_, last), (at, next)) = (writes[first - 1], writes[first]);
        assert!(next.cycle >= last.cycle, "{last:?} then {next:?}");
        assert_eq!(
            at,
            Instant::ZERO + kill + Duration::from_millis(20),
            "at once"
        );
    }
}

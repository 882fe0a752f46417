//! What the tests of this crate share: cycles, moves of a state between processes, and waiting.

#![allow(dead_code, reason = "each file of tests uses a part")]

pub mod programs;
pub mod raw;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use bumpless_base::Duration;
use bumpless_controller::{Application, CycleContext};
use bumpless_sidecar::{Command, Fault, Limits, Shape, Sidecar};

pub const PERIOD: Duration = Duration::from_millis(10);

/// Limits that no stall of the machine reaches.
pub fn patient() -> Limits {
    Limits {
        execute: Duration::from_secs(20),
        start: Duration::from_secs(60),
        memory: None,
    }
}

pub fn context(cycle: u64) -> CycleContext {
    CycleContext {
        cycle,
        period: PERIOD,
    }
}

/// A fixed sequence of numbers that look random (xorshift, Marsaglia 2003).
pub struct Sequence(pub u64);

impl Sequence {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// This file of tests as the program `name` of [`programs`].
pub fn own(name: &str) -> Command {
    Command::new(std::env::current_exe().expect("this program")).argument(name)
}

/// What lies in the workspace.
pub fn workspace(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

/// Starts what must start.
pub fn started(command: &Command, shape: Shape, limits: Limits) -> Sidecar {
    Sidecar::start(command, shape, limits).unwrap_or_else(|fault| panic!("{fault}"))
}

pub fn saved(sidecar: &Sidecar) -> Vec<u8> {
    let mut state = vec![0; sidecar.state_size_max()];
    let len = sidecar.save(&mut state);
    state.truncate(len);
    state
}

/// Waits until `done` says so.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < StdDuration::from_secs(30), "{what}");
        thread::sleep(StdDuration::from_millis(1));
    }
}

/// Runs the cycle again and again until there is a process that runs it.
pub fn run_when_ready(sidecar: &mut Sidecar, cycle: u64, inputs: &[f64], outputs: &mut [f64]) {
    until("the program runs again", || {
        sidecar.run_cycle(&context(cycle), inputs, outputs).is_ok()
    });
}

pub fn fault(sidecar: &mut Sidecar, cycle: u64, inputs: &[f64]) -> Fault {
    let mut outputs = [7.5; 8];
    let outputs = &mut outputs[..sidecar.outputs()];
    let fault = sidecar
        .run_cycle(&context(cycle), inputs, outputs)
        .expect_err("a fault");
    assert!(outputs.iter().all(|&value| value == 7.5), "{outputs:?}");
    fault
}

/// What a run has shown, for tests that ask whether the program did anything.
#[derive(Debug, Default)]
pub struct Seen {
    pub heated: bool,
    pub batches: f64,
    pub phases: [bool; 4],
}

/// [`first_difference_with`] for a program that runs with any period.
pub fn first_difference(
    make: impl Fn() -> Sidecar + Sync,
    cycles: (u64, u64),
    inputs: impl FnMut(u64, &mut [f64]),
) -> Option<u64> {
    first_difference_with(make, cycles, PERIOD, inputs, &mut |_, _| ()).0
}

/// Two instances side by side, the second of which goes on in a new process after each of `moves` random cycles; the
/// first cycle in which their outputs differ, and what `look` has seen in them.
pub fn first_difference_with(
    make: impl Fn() -> Sidecar + Sync,
    (cycles, moves): (u64, u64),
    period: Duration,
    mut inputs: impl FnMut(u64, &mut [f64]),
    look: &mut dyn FnMut(&[f64], &mut Seen),
) -> (Option<u64>, Seen) {
    let mut sequence = Sequence(0x9E37_79B9_7F4A_7C15);
    let mut at = BTreeSet::new();
    while (at.len() as u64) < moves {
        at.insert(1 + sequence.below(cycles - 1));
    }
    let (mut stays, mut goes) = (make(), make());
    let (n, m) = (stays.inputs(), stays.outputs());
    let (mut given, mut one, mut other) = (vec![0.0; n], vec![0.0; m], vec![0.0; m]);
    let (make, mut seen) = (&make, Seen::default());
    let first = thread::scope(|scope| {
        // The next process starts while this one runs.
        let mut next = Some(scope.spawn(make));
        for cycle in 1..=cycles {
            inputs(cycle, &mut given);
            let context = CycleContext { cycle, period };
            for (program, outputs) in [(&mut stays, &mut one), (&mut goes, &mut other)] {
                program
                    .run_cycle(&context, &given, outputs)
                    .unwrap_or_else(|fault| panic!("{fault}"));
            }
            look(&one, &mut seen);
            if !one
                .iter()
                .zip(&other)
                .all(|(a, b)| a.to_bits() == b.to_bits())
            {
                return Some(cycle);
            }
            if at.remove(&cycle) {
                let mut successor = next
                    .take()
                    .expect("one was made")
                    .join()
                    .expect("it starts");
                successor.load(&saved(&goes)).expect("its own state");
                goes = successor;
                next = (!at.is_empty()).then(|| scope.spawn(make));
            }
        }
        None
    });
    assert!(first.is_some() || at.is_empty(), "moves were left out");
    (first, seen)
}

//! What the tests of this crate share: cycles, moves of a state between processes, and waiting.

#![allow(dead_code, reason = "each file of tests uses a part")]

pub mod languages;
pub mod programs;
pub mod project;
pub mod raw;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command as Tool;
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use bumpless_base::Duration;
use bumpless_controller::{Application, CycleContext};
use bumpless_sidecar::{Command, Fault, Limits, Shape, Sidecar};
use bumpless_testing::skip;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Makes the `main` that runs these functions as tests, or this binary as one of the [`programs`].
#[macro_export]
macro_rules! tests_and_programs {
    ($($test:ident),+ $(,)?) => {
        tests_and_programs!(main: $($test),+);
    };
    ($main:ident: $($test:ident),+ $(,)?) => {
        fn $main() -> ::std::process::ExitCode {
            match common::programs::played() {
                Some(code) => code,
                None => ::bumpless_testing::run(&[$((stringify!($test), $test)),+]),
            }
        }
    };
}

pub const PERIOD: Duration = Duration::from_millis(10);

/// Limits that no stall of the machine reaches.
pub fn patient() -> Limits {
    Limits {
        execute: Duration::from_secs(20),
        start: Duration::from_secs(60),
        ..Limits::default()
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

/// One instance runs undisturbed, the other is killed at random instants of its cycles so many times: their outputs are the same
/// in each cycle.
pub fn survives_kills(
    make: impl Fn() -> Sidecar,
    (cycles, kills): (u64, u64),
    period: Duration,
    mut inputs: impl FnMut(u64, &mut [f64]),
) {
    let (mut stays, mut dies, mut sequence) = (make(), make(), Sequence(5));
    let (n, m) = (stays.inputs(), stays.outputs());
    let (mut given, mut one, mut other) = (vec![0.0; n], vec![0.0; m], vec![0.0; m]);
    for cycle in 1..=cycles {
        let context = CycleContext { cycle, period };
        inputs(cycle, &mut given);
        stays
            .run_cycle(&context, &given, &mut one)
            .expect("nobody disturbs it");
        let killer = (cycle % (cycles / kills) == 0).then(|| {
            let id = dies.process_id();
            let wait = StdDuration::from_micros(sequence.below(60));
            thread::spawn(move || {
                thread::sleep(wait);
                let id = id.and_then(|id| Pid::from_raw(id.cast_signed()));
                id.map(|id| kill_process(id, Signal::KILL))
            })
        });
        until("it runs again", || {
            dies.run_cycle(&context, &given, &mut other).is_ok()
        });
        if let Some(killer) = killer {
            let _ = killer.join().expect("no panic");
        }
        assert_eq!(one, other, "cycle {cycle}");
    }
    // A process that was killed after the last cycle has no successor yet.
    assert!(dies.counts().starts >= kills, "{:?}", dies.counts());
}

/// A C compiler; without one, this test is left out.
pub fn need_compiler() -> PathBuf {
    let compiler = std::env::var_os("CC").unwrap_or("cc".into());
    let asked = Tool::new(&compiler).arg("--version").output();
    if !asked.is_ok_and(|it| it.status.success()) {
        skip("needs a C compiler");
    }
    compiler.into()
}

/// The interpreter itself: what is first in the path may be a script that looks for it anew each time.
pub fn python() -> PathBuf {
    let asked = Tool::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let Some(asked) = asked.ok().filter(|it| it.status.success()) else {
        skip("needs python3");
    };
    String::from_utf8_lossy(&asked.stdout).trim().into()
}

/// The example in C, compiled, with the folder that holds it.
pub fn level_in_c() -> (TempDir, Command) {
    let place = tempfile::tempdir().expect("a folder");
    let (program, c) = (
        place.path().join("level"),
        workspace("crates/product/program/c"),
    );
    let compiled = Tool::new(need_compiler())
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(&c)
        .arg(workspace("examples/programs/c/level.c"))
        .arg(c.join("bumpless.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(compiled.is_ok_and(|status| status.success()));
    (place, Command::new(program))
}

/// The example in Python, with a folder that holds a script which finds the package.
pub fn level_in_python() -> (TempDir, Command) {
    let place = tempfile::tempdir().expect("a folder");
    let script = place.path().join("level.py");
    let text = format!(
        "import runpy, sys\nsys.path.insert(0, {:?})\nrunpy.run_path({:?}, run_name='__main__')\n",
        workspace("crates/product/program/python")
            .display()
            .to_string(),
        workspace("examples/programs/python/level.py")
            .display()
            .to_string(),
    );
    std::fs::write(&script, text).expect("a file");
    (
        place,
        Command::new(python()).argument("-ISB").script(script),
    )
}

/// An example of this package, which is built with its tests.
pub fn example(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("this program");
    let target = exe
        .parent()
        .and_then(Path::parent)
        .expect("the target folder");
    target.join("examples").join(name)
}

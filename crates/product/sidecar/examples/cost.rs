//! What a program in a process of its own costs in each cycle, and what copying only changes saves.
//!
//!     cargo run --release -p bumpless-sidecar --example cost
//!
//! The bars of the project: 15 us at the median beyond the program itself; 1 MB of which 1 % changes in at most a quarter
//! of the time that copying all of it takes. With the state on its way to the network: from the program's memory to the
//! committed state, and from there to one of a channel's two buffers.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use bumpless_base::{Duration, Pieces, Revision};
use bumpless_controller::{Application, CycleContext, QuadrupleTank, QuadrupleTankParameters};
use bumpless_program::layout::VARIABLE;
use bumpless_program::{Cycle, Program, run};
use bumpless_sidecar::{Command, Limits, Shape, Sidecar};

const SAMPLES: usize = 20_000;
const PERIOD: Duration = Duration::from_millis(1);
const LARGE: usize = 1 << 20;
const PAGE: usize = 4096;

/// Does next to nothing: what is measured is the way there and back.
struct Little;

impl Program for Little {
    type State = [u64; 8];
    const INPUTS: usize = 4;
    const OUTPUTS: usize = 4;

    fn step(
        _: Cycle,
        inputs: &[f64],
        outputs: &mut [f64],
        state: &mut [u64; 8],
    ) -> Result<(), String> {
        state[0] += 1;
        outputs.copy_from_slice(inputs);
        Ok(())
    }
}

/// A megabyte, of which it changes one part in a hundred: `SPREAD` says in how many places.
struct Large<const SPREAD: usize>;

impl<const SPREAD: usize> Program for Large<SPREAD> {
    type State = [u8; LARGE];
    const INPUTS: usize = 0;
    const OUTPUTS: usize = 0;

    fn step(cycle: Cycle, _: &[f64], _: &mut [f64], state: &mut [u8; LARGE]) -> Result<(), String> {
        if SPREAD == 0 {
            return Ok(());
        }
        let (part, apart) = (LARGE / 100 / SPREAD, LARGE / SPREAD);
        let shift = (cycle.number as usize * PAGE) % apart;
        for place in 0..SPREAD {
            let at = (place * apart + shift).min(LARGE - part);
            state[at..at + part].fill(cycle.number as u8);
        }
        Ok(())
    }
}

struct Nothing;

impl Program for Nothing {
    type State = u64;
    const INPUTS: usize = 0;
    const OUTPUTS: usize = 0;

    fn step(_: Cycle, _: &[f64], _: &mut [f64], _: &mut u64) -> Result<(), String> {
        Ok(())
    }
}

struct Loop;

impl Program for Loop {
    type State = u64;
    const INPUTS: usize = 0;
    const OUTPUTS: usize = 0;

    fn step(_: Cycle, _: &[f64], _: &mut [f64], _: &mut u64) -> Result<(), String> {
        loop {
            std::hint::spin_loop();
        }
    }
}

fn main() -> ExitCode {
    if env::var_os(VARIABLE).is_some() {
        return match env::args().nth(1).as_deref() {
            Some("1") => run::<Large<1>>(),
            Some("26") => run::<Large<26>>(),
            Some("0") => run::<Large<0>>(),
            Some("none") => run::<Nothing>(),
            Some("loop") => run::<Loop>(),
            _ => run::<Little>(),
        };
    }
    one_cycle();
    large_states();
    an_endless_loop();
    ExitCode::SUCCESS
}

/// Median, 90th and 99th percentile in microseconds.
fn percentiles(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    format!(
        "p50 {:7.2}  p90 {:7.2}  p99 {:7.2} us",
        at(0.5),
        at(0.9),
        at(0.99)
    )
}

fn timed(samples: usize, mut act: impl FnMut(u64)) -> Vec<u64> {
    let mut times = Vec::with_capacity(samples);
    for number in 1..=samples as u64 {
        let began = Instant::now();
        act(number);
        times.push(began.elapsed().as_nanos() as u64);
    }
    times
}

fn context(cycle: u64) -> CycleContext {
    CycleContext {
        cycle,
        period: PERIOD,
    }
}

fn start(role: &str, shape: Shape) -> Sidecar {
    start_tracking(role, shape, usize::MAX)
}

fn start_tracking(role: &str, shape: Shape, track_from: usize) -> Sidecar {
    let limits = Limits {
        execute: Duration::from_secs(5),
        track_from,
        ..Limits::default()
    };
    let command = Command::new(env::current_exe().expect("this program")).argument(role);
    Sidecar::start(&command, shape, limits).unwrap_or_else(|fault| panic!("{fault}"))
}

fn one_cycle() {
    let shape = Shape {
        inputs: 4,
        outputs: 4,
        state_max: 64,
    };
    let (mut sidecar, mut outputs) = (start("little", shape), [0.0; 4]);
    let mut tank = QuadrupleTank::new(QuadrupleTankParameters::default());
    let (inputs, mut tank_outputs) = (vec![1.0; tank.inputs()], vec![0.0; tank.outputs()]);
    println!("one cycle of a program that does next to nothing, {SAMPLES} cycles");
    for round in 1..=3 {
        let away = timed(SAMPLES, |number| {
            let done = sidecar.run_cycle(&context(number), &[1.0; 4], &mut outputs);
            assert!(done.is_ok());
        });
        let inside = timed(SAMPLES, |number| {
            let done = tank.execute(&context(number), &inputs, &mut tank_outputs);
            assert!(black_box(done).is_ok());
        });
        println!("  round {round}: sidecar   {}", percentiles(away));
        println!("           built in  {}", percentiles(inside));
    }
}

/// A buffer of a channel, and which state it has.
struct Buffer(Vec<u8>, Option<Revision>);

impl Buffer {
    fn of(sidecar: &Sidecar) -> Self {
        Self(vec![0; sidecar.size()], None)
    }

    /// Copies what it lacks.
    fn take(&mut self, sidecar: &Sidecar) {
        sidecar.copy(0, &mut self.0, self.1);
        self.1 = sidecar.revision();
    }
}

fn large_states() {
    const CYCLES: usize = 3000;
    let shape = Shape {
        inputs: 0,
        outputs: 0,
        state_max: LARGE,
    };
    let cycles = |role: &str, shape: Shape, track_from: usize| {
        let mut sidecar = start_tracking(role, shape, track_from);
        let tracked = sidecar.is_tracked();
        let mut buffers = [(); 2].map(|()| Buffer::of(&sidecar));
        let mut copies = Vec::with_capacity(CYCLES);
        let times = timed(CYCLES, |number| {
            let done = sidecar.run_cycle(&context(number), &[], &mut []);
            assert!(done.is_ok());
            let began = Instant::now();
            buffers[number as usize % 2].take(&sidecar);
            copies.push(began.elapsed().as_nanos() as u64);
        });
        (times, copies, tracked)
    };
    println!("1 MB of state: whole cycles, the program's own part and its page faults included");
    for round in 1..=3 {
        for (role, told) in [
            ("0", "nothing changes"),
            ("1", "1 % in one place"),
            ("26", "1 % in 26 places"),
        ] {
            for track_from in [0, usize::MAX] {
                let (times, copies, tracked) = cycles(role, shape, track_from);
                let how = if tracked { "changes" } else { "whole" };
                println!("  round {round}: {how:8} {told:18} {}", percentiles(times));
                println!(
                    "           of that to a buffer          {}",
                    percentiles(copies)
                );
            }
        }
        let (times, ..) = cycles(
            "none",
            Shape {
                state_max: 64,
                ..shape
            },
            usize::MAX,
        );
        println!(
            "  round {round}: no state to speak of        {}",
            percentiles(times)
        );
        memory(round, CYCLES);
    }
}

/// What memory alone takes, without another process.
fn memory(round: u32, cycles: usize) {
    let (from, mut into) = (vec![1_u8; LARGE], vec![2_u8; LARGE]);
    let whole = timed(cycles, |_| {
        black_box(&mut into[..]).copy_from_slice(black_box(&from));
    });
    println!(
        "  round {round}: copying 1 MB alone          {}",
        percentiles(whole)
    );
    let compared = timed(cycles, |_| {
        for (into, from) in into.chunks_mut(PAGE).zip(black_box(&from).chunks(PAGE)) {
            if into != from {
                into.copy_from_slice(from);
            }
        }
    });
    println!(
        "  round {round}: comparing it page by page   {}",
        percentiles(compared)
    );
}

/// How long after its limit a program that loops for ever is gone.
fn an_endless_loop() {
    let limit = Duration::from_millis(2);
    let limits = Limits {
        execute: limit,
        ..Limits::default()
    };
    let shape = Shape {
        inputs: 0,
        outputs: 0,
        state_max: 64,
    };
    let command = Command::new(env::current_exe().expect("this program")).argument("loop");
    let (mut returned, mut gone) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let mut sidecar =
            Sidecar::start(&command, shape, limits).unwrap_or_else(|fault| panic!("{fault}"));
        let stat = format!("/proc/{}/stat", sidecar.process_id().expect("a process"));
        let began = Instant::now();
        assert!(sidecar.run_cycle(&context(1), &[], &mut []).is_err());
        let beyond = |began: Instant| began.elapsed().as_nanos() as u64 - limit.as_nanos();
        returned.push(beyond(began));
        while std::fs::read_to_string(&stat)
            .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
        {}
        gone.push(beyond(began));
    }
    println!("an endless loop with a limit of 2 ms, 200 times: beyond the limit");
    println!("  the host goes on           {}", percentiles(returned));
    println!("  the process has ended      {}", percentiles(gone));
}

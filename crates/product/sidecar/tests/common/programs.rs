//! Programs that the tests run: this file's own binary, started again with a name.

use std::cell::RefCell;
use std::hint::black_box;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{env, process, thread};

use bumpless_program::{Cycle, Program, run, state};

use super::raw;

state! {
    /// What [`Sum`] and its like remember.
    pub struct Total { sum: f64, cycles: u64 }
}

/// Well behaved: sums its input, and does on order what a program must not do.
struct Sum;

/// The orders of [`Sum`], as its second input.
pub mod order {
    pub const LOOP: f64 = 1.0;
    pub const ABORT: f64 = 2.0;
    pub const EXIT: f64 = 3.0;
    pub const FAIL: f64 = 4.0;
    pub const ALLOCATE: f64 = 5.0;
    pub const SPAWN: f64 = 6.0;
    pub const SLEEP: f64 = 7.0;
}

impl Program for Sum {
    type State = Total;
    const INPUTS: usize = 2;
    const OUTPUTS: usize = 2;

    fn start(state: &mut Total) {
        state.sum = 100.0;
    }

    fn step(
        cycle: Cycle,
        inputs: &[f64],
        outputs: &mut [f64],
        state: &mut Total,
    ) -> Result<(), String> {
        // Half made, should it end here.
        state.sum += inputs[0];
        outputs[0] = -1.0;
        match inputs[1] {
            order::LOOP => loop {
                std::hint::spin_loop();
            },
            order::SLEEP => thread::sleep(Duration::from_secs(1000)),
            order::ABORT => process::abort(),
            order::EXIT => process::exit(3),
            order::FAIL => return Err(format!("the valve is stuck in cycle {}", cycle.number)),
            order::ALLOCATE => drop(black_box(vec![1_u8; 1 << 30])),
            order::SPAWN => {
                let child = Command::new("sleep")
                    .arg("1000")
                    .stdin(Stdio::null())
                    .spawn();
                outputs[1] = child.map_or(0.0, |child| f64::from(child.id()));
                outputs[0] = state.sum;
                return Ok(());
            }
            _ => {}
        }
        state.cycles += 1;
        outputs[0] = state.sum;
        outputs[1] = state.cycles as f64;
        Ok(())
    }
}

/// Makes a program without a state of its own, of one output.
macro_rules! hides {
    ($name:ident, $output:expr) => {
        struct $name;

        impl Program for $name {
            type State = u64;
            const INPUTS: usize = 1;
            const OUTPUTS: usize = 1;

            fn step(
                _: Cycle,
                _: &[f64],
                outputs: &mut [f64],
                state: &mut u64,
            ) -> Result<(), String> {
                *state += 1;
                outputs[0] = $output;
                Ok(())
            }
        }
    };
}

static COUNTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LIST: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

hides!(InStatic, COUNTED.fetch_add(1, Ordering::Relaxed) as f64);
hides!(
    OnHeap,
    LIST.with_borrow_mut(|list| {
        list.push(1);
        list.len() as f64
    })
);
hides!(ByClock, {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_nanos() as f64)
});
hides!(ByChance, {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(1) as f64
});

/// All words of its state are the number of the last cycle; it is torn for most of the time that it computes.
struct Words;

pub const WORDS: usize = 16 * 1024;

impl Program for Words {
    type State = [u64; WORDS];
    const INPUTS: usize = 0;
    const OUTPUTS: usize = 1;

    fn step(
        cycle: Cycle,
        _: &[f64],
        outputs: &mut [f64],
        state: &mut [u64; WORDS],
    ) -> Result<(), String> {
        for word in state.iter_mut() {
            *black_box(word) = cycle.number;
        }
        outputs[0] = cycle.number as f64;
        Ok(())
    }
}

/// A megabyte of which each cycle changes a few places.
struct Large;

pub const LARGE: usize = 1 << 20;

/// The places that `cycle` changes, with what it writes there: few pages, and for a while many.
pub fn written(cycle: u64) -> impl Iterator<Item = (usize, u8)> {
    let mut sequence = super::Sequence(cycle | 1 << 40);
    let count = if (200..210).contains(&cycle) { 120 } else { 12 };
    (0..count).map(move |_| (sequence.below(LARGE as u64) as usize, cycle as u8))
}

impl Program for Large {
    type State = [u8; LARGE];
    const INPUTS: usize = 0;
    const OUTPUTS: usize = 1;

    fn step(
        cycle: Cycle,
        _: &[f64],
        outputs: &mut [f64],
        state: &mut [u8; LARGE],
    ) -> Result<(), String> {
        for (at, value) in written(cycle.number) {
            state[at] = value;
        }
        outputs[0] = cycle.number as f64;
        Ok(())
    }
}

/// The variable that makes this file's binary a host, in a role that the tests give it.
pub const HOST: &str = "BUMPLESS_TEST_HOST";

/// What this process was started as, if it was as a program.
pub fn played() -> Option<ExitCode> {
    env::var_os(bumpless_program::layout::VARIABLE)?;
    let name = env::args().nth(1).unwrap_or_default();
    Some(match name.as_str() {
        "sum" => run::<Sum>(),
        "static" => run::<InStatic>(),
        "heap" => run::<OnHeap>(),
        "clock" => run::<ByClock>(),
        "chance" => run::<ByChance>(),
        "words" => run::<Words>(),
        "large" => run::<Large>(),
        "silent" => ExitCode::from(9),
        "asleep" => {
            thread::sleep(Duration::from_secs(1000));
            ExitCode::FAILURE
        }
        raw => raw::run(raw),
    })
}

//! A critical task and a flood on this computer, measured (spec/reception.md, V-45 and further), and a flood that is raised (V-107).
//!
//! Two network namespaces with a pair of virtual interfaces between them: in one a task that computes for a given time in each period, in the
//! other who sends. What comes is worked off by a thread of the interface's own on the task's processor, above the task, as interrupts and the
//! driver are on a computer with one processor for both. Nothing is left, however this process ends: nobody but it holds the namespaces.

mod files;
mod flooder;
mod prompt;
mod raise;
mod stage;
mod still;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::Duration;
use bumpless_bench::network::namespace::Namespace;
use bumpless_impact::measured::{Measured, Step};

use self::flooder::{Flood, Sent};
use self::stage::{Counts, Stage};
use self::task::{Done, Had, Task};

pub use self::raise::{RaiseOptions, TIMES_MAX, raise};

/// The task's period, which is also its target.
pub const PERIOD: Duration = Duration::from_millis(10);
/// Highest rate that may be asked for, packets a second.
pub const RATE_MAX: u64 = 500_000;
/// Most rates.
pub const RATES_MAX: usize = 20;
/// Longest time for a step, seconds.
pub const SECONDS_MAX: u64 = 10;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct FloodOptions {
    /// Packets a second, one after the other, each without a guard and with one.
    pub rates: Vec<u64>,
    /// How long each of both.
    pub seconds: u64,
    /// What a job takes of its period, percent.
    pub work_percent: u64,
    /// Ends it early.
    pub stop: Arc<AtomicBool>,
}

impl FloodOptions {
    /// What a job takes.
    pub fn work(&self) -> Duration {
        PERIOD * self.work_percent / 100
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// Measures it; `told` hears of each step before it begins: which one, and of how many.
///
/// # Errors
/// What the system refuses, with what to do.
pub fn measure(
    options: &FloodOptions,
    told: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<Measured, String> {
    let (here, there) = (Namespace::new()?, Namespace::new()?);
    here.run(|| measure_here(options, (&here, &there), told))?
}

/// The same, in the task's namespace.
fn measure_here(
    options: &FloodOptions,
    (here, there): (&Namespace, &Namespace),
    told: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<Measured, String> {
    let (mut stage, mut weaknesses) = Stage::set(here, there)?;
    let count = 2 * options.rates.len();
    let mut steps = Vec::new();
    for (at, &rate) in options.rates.iter().enumerate() {
        for guarded in [false, true] {
            if options.is_stopped() {
                break;
            }
            told(2 * at + usize::from(guarded), count);
            stage.guard(guarded)?;
            steps.push(step(
                options,
                (&stage, there),
                (rate, guarded),
                &mut weaknesses,
            )?);
        }
    }
    let interrupted = steps.len() < count || options.is_stopped();
    Ok(Measured {
        computer: stage.computer(),
        period: PERIOD,
        work: options.work(),
        lasts: Duration::from_secs(options.seconds),
        steps,
        weaknesses,
        interrupted,
    })
}

fn step(
    options: &FloodOptions,
    (stage, there): (&Stage, &Namespace),
    (rate, guarded): (u64, bool),
    weaknesses: &mut Vec<String>,
) -> Result<Step, String> {
    let what = What {
        rate,
        lasts: Duration::from_secs(options.seconds),
        work: options.work(),
        is_prompt: false,
    };
    let ran = run(&what, (stage, there), &options.stop, |_| ())?;
    note(weaknesses, ran.done.weaknesses);
    let (before, after) = ran.counts;
    Ok(Step {
        guarded,
        asked_per_s: rate,
        lasted: ran.sent.lasted,
        sent: ran.sent.flood,
        worked_off: after.packets.saturating_sub(before.packets),
        worked: after.worked - before.worked,
        wanted: ran.sent.wanted,
        had: ran.had.wanted,
        let_in: ran.had.of_flood,
        overflowed: ran.overflowed,
        jobs: ran.done.jobs,
        late: ran.done.late,
        lateness: ran.done.lateness,
        worst: ran.done.worst,
    })
}

/// What a step is to be.
struct What {
    /// Packets of the flood a second.
    rate: u64,
    lasts: Duration,
    /// What a job takes.
    work: Duration,
    is_prompt: bool,
}

/// What came of a step.
struct Ran<T> {
    done: Done,
    sent: Sent,
    /// At its beginning and at its end.
    counts: (Counts, Counts),
    had: Had,
    overflowed: u64,
    beside: T,
}

/// Runs the task and who sends to it, and `beside` on a thread of its own until it hears that all was sent.
fn run<T: Send>(
    what: &What,
    (stage, there): (&Stage, &Namespace),
    stop: &AtomicBool,
    beside: impl FnOnce(&AtomicBool) -> T + Send,
) -> Result<Ran<T>, String> {
    let task = Task::new(stage.processors.0, what.work)?;
    let before = stage.counts()?;
    let (ended, sent_all) = (AtomicBool::new(false), AtomicBool::new(false));
    let flood = Flood {
        rate: what.rate,
        at_most: what.lasts + Duration::from_secs(1),
        processor: stage.processors.1,
        is_prompt: what.is_prompt,
    };
    let (done, sent, beside) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| beside(&sent_all));
        let sending = scope.spawn(|| there.run(|| flood.send(&ended)));
        let done = std::thread::scope(|inner| {
            let run = || task.run(what.lasts, stop);
            inner.spawn(run).join()
        });
        ended.store(true, Ordering::Release);
        let sent = sending.join();
        sent_all.store(true, Ordering::Release);
        (done, sent, beside.join())
    });
    let panicked = |_| "a thread ended by a panic".to_owned();
    let (done, sent) = (done.map_err(panicked)?, sent.map_err(panicked)???);
    Ok(Ran {
        had: done.had + task.had_besides(),
        done,
        sent,
        counts: (before, stage.counts()?),
        overflowed: task.overflowed()?,
        beside: beside.map_err(panicked)?,
    })
}

/// Keeps each sentence once.
fn note(weaknesses: &mut Vec<String>, more: Vec<String>) {
    for weakness in more {
        if !weaknesses.contains(&weakness) {
            weaknesses.push(weakness);
        }
    }
}

//! A flood that is raised step by step: without a guard until the flow that matters is ended, then with one to several times that rate
//! (spec/reception.md, V-107).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::Duration;
use bumpless_bench::network::namespace::Namespace;
use bumpless_impact::raised::{Flow, Raised, RaisedStep};

use super::prompt::{Prompt, delays};
use super::stage::Stage;
use super::{PERIOD, RATE_MAX, What, note, run, still};

/// The flood's first rate, packets a second.
const FIRST: u64 = 8_000;
/// How often the highest rate and none are measured, in turn: a single step's tail is the machine's.
const ROUNDS: u64 = 3;
/// Most times the rate that ends the flow.
pub const TIMES_MAX: u64 = 12;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct RaiseOptions {
    /// How many times the rate that ends the flow is to be reached with a guard.
    pub times: u64,
    /// How long each step.
    pub seconds: u64,
    /// What a job of the task takes of its period, percent.
    pub work_percent: u64,
    /// Ends it early.
    pub stop: Arc<AtomicBool>,
}

/// Measures it; `told` hears of each step before it begins, in words.
///
/// # Errors
/// What the system refuses, with what to do.
pub fn raise(
    options: &RaiseOptions,
    told: &mut (dyn FnMut(&str) + Send),
) -> Result<Raised, String> {
    let (here, there) = (Namespace::new()?, Namespace::new()?);
    here.run(|| {
        let (stage, weaknesses) = Stage::set(&here, &there)?;
        let raised = Raised {
            computer: stage.computer(),
            times: options.times,
            weaknesses,
            ..Raised::default()
        };
        let mut raising = Raising {
            options,
            stage,
            there: &there,
            told,
            raised,
        };
        raising.all()?;
        raising.raised.interrupted = raising.is_stopped();
        Ok(raising.raised)
    })?
}

struct Raising<'a> {
    options: &'a RaiseOptions,
    stage: Stage,
    there: &'a Namespace,
    told: &'a mut (dyn FnMut(&str) + Send),
    raised: Raised,
}

impl Raising<'_> {
    fn is_stopped(&self) -> bool {
        self.options.stop.load(Ordering::Acquire)
    }

    fn all(&mut self) -> Result<(), String> {
        self.stage.guard(false)?;
        self.step(false, 0)?;
        let ends = self.until_ended()?;
        let highest = ends.saturating_mul(self.options.times).min(RATE_MAX);
        self.step(false, highest)?;
        self.stage.guard(true)?;
        let steps = (1..self.options.times).map(|it| ends.saturating_mul(it));
        for rate in steps.filter(|&it| it < highest) {
            self.step(true, rate)?;
        }
        for _ in 0..ROUNDS {
            self.step(true, 0)?;
            self.step(true, highest)?;
        }
        Ok(())
    }

    /// Half as much again each time: the rate that ends the flow, or the highest one.
    fn until_ended(&mut self) -> Result<u64, String> {
        let mut rate = FIRST;
        loop {
            self.step(false, rate)?;
            if rate >= RATE_MAX || self.raised.end().is_some() || self.is_stopped() {
                return Ok(rate);
            }
            rate = (rate * 3 / 2).min(RATE_MAX);
        }
    }

    fn step(&mut self, guarded: bool, rate: u64) -> Result<(), String> {
        if self.is_stopped() {
            return Ok(());
        }
        let with = if guarded { "with a guard" } else { "without" };
        (self.told)(&format!("{rate} packets a second {with}"));
        let lasts = Duration::from_secs(self.options.seconds);
        let what = What {
            rate,
            lasts,
            work: PERIOD * self.options.work_percent / 100,
            is_prompt: true,
        };
        let (task, sender) = self.stage.processors;
        let prompt = Prompt::new()?;
        // One each millisecond, and as long as the sender lasts at most.
        let room = (self.options.seconds as usize + 2) * 1_000;
        let with = (&self.stage, self.there);
        let (ran, stalls) = still::beside([task, sender], || {
            run(&what, with, &self.options.stop, |sent_all| {
                prompt.read(task, room, sent_all)
            })
        });
        let ran = ran?;
        note(&mut self.raised.weaknesses, ran.done.weaknesses);
        note(&mut self.raised.weaknesses, ran.beside.weaknesses);
        let longest = stalls.iter().map(|it| it.length()).max();
        self.raised.steps.push(RaisedStep {
            guarded,
            asked_per_s: rate,
            sent_per_s: ran.sent.flood as f64 / ran.sent.lasted.as_secs_f64(),
            cyclic: Flow {
                sent: ran.sent.wanted,
                had: ran.had.wanted,
            },
            prompt: Flow {
                sent: ran.sent.prompt,
                had: ran.beside.all.len() as u64,
            },
            delays: delays(&ran.beside.all, &stalls),
            ring_full: ran.counts.1.ring_full - ran.counts.0.ring_full,
            decided: guarded.then(|| ran.counts.1.decided - ran.counts.0.decided),
            jobs: ran.done.jobs,
            late: ran.done.late,
            stalls: stalls.len() as u64,
            longest_stall: longest.unwrap_or_default(),
        });
        Ok(())
    }
}

//! Trials under a load that is shaped like a pyramid.

use bumpless_base::{Duration, Instant};

use crate::chart::Line;
use crate::load::{Load, Shape, Stretch, pyramid};
use crate::machine::ESP32;
use crate::patterns::Trial;
use crate::policy::{Order, Policy};
use crate::processor::Tally;

/// Steps from the ground of the pyramid to its top.
const STEPS: u32 = 15;
/// Each lasts so long. The dissertation reports each second; rates here do not change within one.
const STEP: Duration = Duration::from_millis(400);

/// So many percent of its time the driver of the budget mitigation must see for the text's slope.
pub const SEEN: u32 = 25;

/// One step of a pyramid.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Packets a second.
    pub rate: f64,
    /// What happened in it.
    pub tally: Tally,
}

impl Measured {
    /// So many a second.
    pub fn per_second(count: u64) -> f64 {
        count as f64 / STEP.as_secs_f64()
    }
}

/// A trial under a load shaped like a pyramid.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Step by step.
    pub steps: Vec<Measured>,
}

/// Lets `trial` climb the pyramid.
pub fn sweep(trial: &Trial) -> Sweep {
    let rates = pyramid(trial.machine.peak, STEPS);
    let stretch = |&rate: &f64| Stretch {
        shape: Shape::Uniform(rate),
        lasts: STEP,
    };
    let load = Load::new(rates.iter().map(stretch).collect(), 60, 0);
    let mut processor = trial.processor(load);
    let mut before = Tally::default();
    let mut end = Instant::ZERO;
    let steps = rates.iter().map(|&rate| {
        end += STEP;
        let after = processor.run_until(end);
        let tally = after.since(&before);
        before = after;
        Measured { rate, tally }
    });
    Sweep {
        steps: steps.collect(),
    }
}

impl Sweep {
    /// The way up.
    pub fn up(&self) -> &[Measured] {
        &self.steps[..STEPS as usize]
    }

    /// Its last step.
    pub fn top(&self) -> Measured {
        self.up()[STEPS as usize - 1]
    }

    /// The worst lateness of a step, percent.
    pub fn lateness(&self) -> f64 {
        self.steps
            .iter()
            .map(|it| it.tally.lateness_percent())
            .fold(0.0, f64::max)
    }

    /// Late jobs of all steps.
    pub fn late(&self) -> u64 {
        self.steps.iter().map(|it| it.tally.late).sum()
    }

    /// Packets worked off in all steps.
    pub fn handled(&self) -> u64 {
        self.steps.iter().map(|it| it.tally.handled).sum()
    }

    /// The worst lateness where at most so many packets a second come, percent.
    pub fn lateness_up_to(&self, rate: f64) -> f64 {
        let low = self.steps.iter().filter(|it| it.rate <= rate);
        low.map(|it| it.tally.lateness_percent())
            .fold(0.0, f64::max)
    }

    /// What `value` tells of each step, drawn.
    pub fn line(&self, name: &str, value: impl Fn(&Measured) -> f64) -> Line {
        let points = self.steps.iter().enumerate();
        Line::new(
            name,
            points
                .map(|(at, it)| (at as f64 + 1.0, value(it)))
                .collect(),
        )
    }
}

/// One of `policy` with a queue of so many packets, the task first.
pub fn trial(policy: Policy, queue: u32) -> Trial {
    Trial {
        queue,
        ..Trial::of(ESP32, policy)
    }
}

/// The trials of these figures.
pub struct Sweeps {
    pub equal: Sweep,
    pub first: Sweep,
    pub burst: Sweep,
    pub burst_raised: Sweep,
    pub hysteresis: Sweep,
    pub budget: Sweep,
    pub short: Sweep,
    pub queues: [Sweep; 3],
}

/// Runs all of them.
pub fn sweeps() -> Sweeps {
    let equal = Trial {
        order: Order::Equal,
        ..trial(Policy::None, 100)
    };
    let slice = Duration::from_millis(20);
    Sweeps {
        equal: sweep(&equal),
        first: sweep(&trial(Policy::None, 100)),
        burst: sweep(&trial(Policy::Burst(600, slice), 100)),
        burst_raised: sweep(&trial(Policy::Burst(900, slice), 100)),
        hysteresis: sweep(&trial(Policy::Hysteresis(90, 90), 100)),
        budget: sweep(&trial(Policy::Budget, 100)),
        short: sweep(&trial(Policy::ShortBudget(SEEN), 100)),
        queues: [100, 500, 750].map(|queue| sweep(&trial(Policy::Queue, queue))),
    }
}

//! Random loads, and every policy under each.

use bumpless_base::{Duration, Instant, Random};
use bumpless_guard::mitigation::SlackSettings;

use crate::load::{Load, Shape, Stretch};
use crate::machine::Machine;
use crate::nic::{Moderation, Nic};
use crate::policy::{Order, Policy};
use crate::processor::{Critical, Processor, Setup, Tally, Work};

/// How a policy is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// On which machine.
    pub machine: Machine,
    /// Under which policy.
    pub policy: Policy,
    /// Whose priority is higher.
    pub order: Order,
    /// Packets between interrupt and driver.
    pub queue: u32,
    /// Of a job of the critical task.
    pub work: Work,
    /// Draws the work of jobs.
    pub seed: u64,
}

impl Trial {
    /// With what section 5.3 gives the policy: its priorities, and a queue of 500 for the queue mitigation, else of 100. Ours
    /// may have a longer one, which makes it no later: [`SLACK_QUEUE`].
    pub fn of(machine: Machine, policy: Policy) -> Self {
        Self {
            machine,
            policy,
            order: policy.order(),
            queue: match policy {
                Policy::Queue => 500,
                Policy::Slack => SLACK_QUEUE,
                _ => machine.queue,
            },
            work: Work::Fixed(machine.work),
            seed: 0,
        }
    }

    /// A processor under this load.
    pub fn processor(&self, load: Load) -> Processor {
        let machine = &self.machine;
        let settings = SlackSettings {
            target: machine.period,
            work: self.work.longest(),
            interrupt: machine.interrupt.of(MAX_FRAME),
        };
        let setup = Setup {
            nic: Nic::new(Moderation::Simple, machine.ring),
            interrupt: machine.interrupt,
            packet: machine.packet,
            queue: self.queue,
            order: self.order,
            critical: Critical::Periodic {
                period: machine.period,
                work: self.work.clone(),
            },
            mitigation: self.policy.build(settings),
            seed: self.seed,
        };
        Processor::new(setup, load)
    }

    /// The whole load, and then until what was received is worked off.
    pub fn run(&self, stretches: &[Stretch], seed: u64) -> Tally {
        let lasts = stretches
            .iter()
            .fold(Duration::ZERO, |sum, it| sum + it.lasts);
        let load = Load::new(stretches.to_vec(), 60, seed);
        let mut processor = self.processor(load);
        processor.run_until(Instant::ZERO + lasts);
        processor.drain(Instant::ZERO + lasts * 2 + Duration::from_secs(1))
    }
}

/// The queue for ours: that of the queue mitigation, and what one job lets in besides. With 500, too, no job is late, but where a flood ends
/// just after a job began with a full queue, the queue mitigation may have let in more during that job.
pub const SLACK_QUEUE: u32 = 500 + 652;

/// The longest frame without VLAN tag, bytes.
const MAX_FRAME: u64 = 1514;

/// A random load: up to eight stretches, silent, even, drawn or in bursts, at up to 120,000 packets a second (4.3.3).
pub fn pattern(seed: u64) -> Vec<Stretch> {
    let mut random = Random::new(seed ^ 0x696d_7061_6374);
    let count = 1 + random.below(8);
    let stretch = |_| {
        let rate = random.below(120_000) as f64 + 1.0;
        let shape = match random.below(8) {
            0 => Shape::Uniform(0.0),
            1..=3 => Shape::Uniform(rate),
            4 | 5 => Shape::Poisson(rate),
            _ => Shape::Bursts {
                packets: 1 + random.below(1_500) as u32,
                every: Duration::from_micros(500 + random.below(60_000)),
                gap: Duration::from_nanos(1_000 + random.below(30_000)),
            },
        };
        // A burst that is not over when the next is due would go back in time.
        let shape = match shape {
            Shape::Bursts {
                packets,
                every,
                gap,
            } => Shape::Bursts {
                packets,
                every: every.max(gap * u64::from(packets)),
                gap,
            },
            other => other,
        };
        Stretch {
            shape,
            lasts: Duration::from_millis(2 + random.below(60)),
        }
    };
    (0..count).map(stretch).collect()
}

/// What one pattern did under every policy.
#[derive(Clone, Debug)]
pub struct Round {
    /// Its seed.
    pub seed: u64,
    /// In the order of [`Policy::ALL`].
    pub tallies: [Tally; 6],
}

impl Round {
    /// The pattern of `seed` under each policy. In every other pattern the task's own work varies, between half of it and all.
    pub fn run(machine: Machine, seed: u64) -> Self {
        let stretches = pattern(seed);
        let tallies = Policy::ALL.map(|policy| {
            let mut trial = Trial::of(machine, policy);
            trial.seed = seed;
            if seed % 2 == 1 {
                trial.work = Work::Between(machine.work / 2, machine.work);
            }
            trial.run(&stretches, seed)
        });
        Self { seed, tallies }
    }

    /// What it did under a policy.
    pub fn of(&self, name: &str) -> Tally {
        let at = Policy::ALL.iter().position(|policy| policy.name() == name);
        at.and_then(|at| self.tallies.get(at))
            .copied()
            .unwrap_or_default()
    }

    /// What ours did not keep: no lateness, and at least as many packets as the queue mitigation hands on.
    pub fn broken(&self) -> Option<String> {
        let (ours, queue) = (self.of("slack"), self.of("queue"));
        if ours.late > 0 {
            return Some(format!(
                "pattern {}: {} of {} jobs late, by {} at most",
                self.seed, ours.late, ours.jobs, ours.worst
            ));
        }
        (ours.handled < queue.handled).then(|| {
            format!(
                "pattern {}: {} packets handed on, the queue mitigation {}",
                self.seed, ours.handled, queue.handled
            )
        })
    }
}

//! What is tried on a set, and what came of it.

use bumpless_base::{LinkSet, Random};
use bumpless_plan::demand::Condition;
use bumpless_plan::evaluate::Unmet;
use bumpless_plan::{Plan as Planned, Scenario, evaluate};

use super::draw::{Drawn, draw, situations};
use super::flood::Flood;
use super::losses::{Losses, Pattern, Plan};
use super::start::Start;
use super::world::{Lateness, Manner, Outcome, World};
use super::{Told, search};
use crate::streams::{Purpose, stream};

/// What was promised and is not so: a missed deadline, or a state that took longer than the plan's longest time.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The seed of the set.
    pub seed: u64,
    /// What was broken, in words.
    pub what: String,
}

/// What the plan says, and whether it is so.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Yes.
    Admitted {
        /// States that were answered.
        states: u64,
        /// The first state for which it is not so; a missed deadline before one that was in time.
        broken: Option<Broken>,
        /// Whether a deadline was missed.
        missed: bool,
        /// States that were in time but took longer than the plan's longest time.
        over: u64,
    },
    /// No, for want of time.
    Refused {
        /// The step of the admission test that failed first.
        condition: Condition,
        /// Whether a miss was found; `None`: none was looked for.
        found: Option<bool>,
    },
    /// No, for another reason than time.
    Otherwise,
}

/// One judged set.
#[derive(Clone, Debug)]
pub struct Judged {
    /// How full the fullest resource is, thousandths.
    pub fullness: u64,
    /// Packets of a flood a second that come to each node besides; 0: it bears none by plan, or none was asked for.
    pub flood_per_s: u64,
    /// The verdict.
    pub verdict: Verdict,
}

/// Judges the set of `seed`, the plan being told `told`. `search`: a miss is looked for if the plan refuses it,
/// which takes most of the time.
pub fn judge(seed: u64, told: Told, search: bool) -> Judged {
    let drawn = draw(seed);
    let scenario = told.of(&drawn.scenario);
    verdict((seed, &drawn), None, &scenario, search)
}

/// Judges the set of `seed` while both nodes are flooded with as much as they bear by plan (V-101). No miss is looked for.
pub fn judge_flooded(seed: u64, told: Told) -> Judged {
    let drawn = draw(seed);
    let flood = Flood::of(&drawn.scenario);
    let mut scenario = told.of(&drawn.scenario);
    if told != Told::NoFloods {
        flood.tell(&mut scenario);
    }
    let flood = match told {
        Told::QuarterOfFloods => flood.times(4),
        _ => flood,
    };
    verdict((seed, &drawn), Some(flood), &scenario, false)
}

/// What becomes of a drawn set, where the plan is told `told`.
fn verdict(
    (seed, drawn): (u64, &Drawn),
    flood: Option<Flood>,
    told: &Scenario,
    search: bool,
) -> Judged {
    let flood_per_s = flood.map_or(0, |flood| flood.rate());
    let trial = Trial {
        seed,
        scenario: &drawn.scenario,
        situations: situations(&drawn.scenario).collect(),
        flood,
    };
    let verdict = match evaluate(told) {
        Ok(plan) => trial.verdict(&plan, search),
        Err(faults) => unreachable!("a drawn set has no faults: {faults:?}"),
    };
    Judged {
        fullness: drawn.fullness,
        flood_per_s,
        verdict,
    }
}

/// A set that is tried.
pub struct Trial<'a> {
    seed: u64,
    /// The set.
    pub scenario: &'a Scenario,
    /// Networks in service, as the plan orders its situations.
    pub situations: Vec<LinkSet>,
    /// What comes besides.
    flood: Option<Flood>,
}

impl Trial<'_> {
    fn verdict(&self, plan: &Planned, search: bool) -> Verdict {
        if plan.admitted {
            return self.admitted(plan);
        }
        let late: Vec<(usize, usize)> = plan
            .unmet
            .iter()
            .filter_map(|unmet| match *unmet {
                Unmet::Late {
                    situation,
                    resource,
                } => Some((situation, resource)),
                _ => None,
            })
            .collect();
        let refusal = |&(situation, resource): &(usize, usize)| {
            plan.situations[situation].resources[resource]
                .refusal
                .as_ref()
                .map(|(refusal, _)| *refusal)
        };
        let Some(first) = late.first().and_then(refusal) else {
            return Verdict::Otherwise;
        };
        Verdict::Refused {
            condition: first.condition,
            found: search.then(|| search::finds_miss(self, plan)),
        }
    }

    /// Random numbers of this set.
    pub fn random(&self, index: usize) -> Random {
        stream(self.seed, Purpose::Promise, index + 1)
    }

    /// The world of one run.
    pub fn world(&self, index: usize, manner: Manner, plan: Plan) -> World<'_> {
        let losses = Losses::new(self.scenario, plan, self.random(2 * index));
        match World::new(self.scenario, manner, losses, self.random(2 * index + 1)) {
            Ok(world) => match &self.flood {
                Some(flood) => world.flooded(flood),
                None => world,
            },
            Err(error) => unreachable!("a drawn set suits the cores: {error}"),
        }
    }

    /// How long a state took by its deadline; one that was not answered, twice as long.
    pub fn nearness(&self, outcome: &Outcome) -> f64 {
        let deadline = self.scenario.channels[outcome.channel].deadline.as_nanos() as f64;
        outcome.took.map_or(2.0, |took| took as f64 / deadline)
    }

    /// Whether a deadline was missed.
    pub fn is_late(&self, outcome: &Outcome) -> bool {
        let deadline = self.scenario.channels[outcome.channel].deadline.as_nanos();
        outcome.took.is_none_or(|took| took > deadline)
    }

    /// Tries to break the promise made to an admitted set.
    fn admitted(&self, plan: &Planned) -> Verdict {
        let (mut states, mut over, mut longer) = (0, 0, None);
        for (at, situation) in plan.situations.iter().enumerate() {
            for attempt in 0..ATTEMPTS {
                let index = at * ATTEMPTS + attempt;
                let (manner, losses) = self.manner(index, attempt, self.situations[at]);
                let told = format!("{manner:?}, {losses:?}");
                let response = |outcome: &Outcome| {
                    situation.channels[outcome.channel].response_ns.unwrap_or(0)
                };
                let broken = |outcome: &Outcome| self.broken(outcome, response(outcome), &told);
                let outcomes = self
                    .world(index, manner, losses)
                    .run(|outcome| self.is_late(outcome));
                states += outcomes.len() as u64;
                if let Some(outcome) = outcomes.iter().find(|outcome| self.is_late(outcome)) {
                    return Verdict::Admitted {
                        states,
                        broken: Some(broken(outcome)),
                        missed: true,
                        over,
                    };
                }
                let is_longer = |o: &&Outcome| o.took.is_some_and(|took| took > response(o));
                over += outcomes.iter().filter(is_longer).count() as u64;
                longer = longer.or_else(|| outcomes.iter().find(is_longer).map(broken));
            }
        }
        Verdict::Admitted {
            states,
            broken: longer,
            missed: false,
            over,
        }
    }

    /// Says that a state took too long.
    fn broken(&self, outcome: &Outcome, planned: u64, told: &str) -> Broken {
        let channel = &self.scenario.channels[outcome.channel];
        let took = match outcome.took {
            Some(took) => format!("took {took} ns"),
            None => "failed".into(),
        };
        Broken {
            seed: self.seed,
            what: format!(
                "channel {} published at {} ns {took}; planned {planned} ns, deadline {}; {told}",
                channel.name, outcome.published, channel.deadline,
            ),
        }
    }

    /// The manner of an attempt on an admitted set.
    fn manner(&self, index: usize, attempt: usize, up: LinkSet) -> (Manner, Plan) {
        let mut random = self.random(1_000 + index);
        let channels = &self.scenario.channels;
        let longest = channels.iter().map(|c| c.period.as_nanos()).max();
        let end = longest.unwrap_or(0) * 3 / 2;
        let start = match attempt {
            0 | 1 => {
                let victim = random.below(channels.len() as u64) as usize;
                let (d, t) = (channels[victim].deadline, channels[victim].period);
                let window = d.as_nanos() + random.below(3) * t.as_nanos();
                let victim = (attempt == 1).then_some(victim);
                Start::at_once(self.scenario, victim, window)
            }
            2 => Start::anyhow(self.scenario, &mut random, 0, end),
            _ => Start::anyhow(self.scenario, &mut random, 500, end),
        };
        let own =
            |random: &mut Random| Pattern::ALL[random.below(Pattern::ALL.len() as u64) as usize];
        let losses = match random.below(3) {
            0 => Plan::Drawn,
            1 => Plan::ByChannel(vec![Pattern::Last; channels.len()]),
            _ => Plan::ByChannel((0..channels.len()).map(|_| own(&mut random)).collect()),
        };
        let lateness = match random.below(3) {
            0 => Lateness::Never,
            1 => Lateness::Always,
            _ => Lateness::Sometimes,
        };
        let others = random.below(2) == 0;
        let slow_before = random.below(2) == 0;
        let manner = Manner {
            up,
            lateness,
            others,
            slow_before,
            start,
        };
        (manner, losses)
    }
}

/// Runs for each situation of an admitted set.
const ATTEMPTS: usize = 4;

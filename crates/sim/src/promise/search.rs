//! The search for the miss that a refusal foretells.

use bumpless_base::LinkSet;
use bumpless_plan::Plan as Planned;

use super::judge::Trial;
use super::losses::{Pattern, Plan};
use super::start::Start;
use super::world::{Lateness, Manner, Note};

/// Longest window for which a miss is looked for, nanoseconds.
const LONGEST: u64 = 10_000_000_000;
/// Channels that are tried as the one that comes last.
const VICTIMS: usize = 4;
/// Later than anything that is looked at.
const NEVER: u64 = 1 << 60;

/// Whether a deadline is missed on what the plan refuses at `place`, a situation and one of its resources.
pub fn finds_miss(
    trial: &Trial<'_>,
    plan: &Planned,
    (situation, resource): (usize, usize),
) -> bool {
    let resource = &plan.situations[situation].resources[resource];
    let Some((refusal, _)) = &resource.refusal else {
        return false;
    };
    let mut search = Search {
        trial,
        up: trial.situations[situation],
        window: refusal.window_ns.unwrap_or(LONGEST).min(LONGEST),
        runs: 0,
        slow_before: true,
    };
    let victims = search.victims(plan, situation);
    [true, false].into_iter().any(|slow| {
        search.slow_before = slow;
        victims.iter().any(|&victim| search.at_once(victim))
            || victims
                .iter()
                .flatten()
                .any(|&victim| search.in_step(victim))
    })
}

struct Search<'a> {
    trial: &'a Trial<'a>,
    up: LinkSet,
    window: u64,
    runs: usize,
    slow_before: bool,
}

impl Search<'_> {
    /// Channels that are worth trying as the one that comes last in the window, the most blocked first.
    fn victims(&self, plan: &Planned, situation: usize) -> Vec<Option<usize>> {
        let states = &plan.situations[situation].channels;
        let mut victims: Vec<(u64, usize)> = states
            .iter()
            .enumerate()
            .filter(|(at, _)| self.deadline(*at) <= self.window)
            .filter_map(|(at, state)| Some((state.blocking?.total(), at)))
            .collect();
        victims.sort_unstable_by(|a, b| b.cmp(a));
        let most = victims.into_iter().map(|(_, at)| Some(at)).take(VICTIMS);
        most.chain([None]).collect()
    }

    fn deadline(&self, channel: usize) -> u64 {
        self.trial.scenario.channels[channel].deadline.as_nanos()
    }

    /// Everything at once, with losses at different places.
    fn at_once(&mut self, victim: Option<usize>) -> bool {
        let start = Start::at_once(self.trial.scenario, victim, self.window);
        let all = [Pattern::First, Pattern::Tail, Pattern::Last];
        [Pattern::Last, Pattern::One, Pattern::Answers]
            .into_iter()
            .flat_map(|own| all.map(|others| (own, others)))
            .any(|(own, others)| self.run(victim, own, others, &start).0)
    }

    /// The same, but what is less urgent comes one by one, each just when `victim` is about to send again.
    fn in_step(&mut self, victim: usize) -> bool {
        let sizes = |at: &usize| self.trial.scenario.channels[*at].size;
        let mut less_urgent: Vec<usize> = (0..self.trial.scenario.channels.len())
            .filter(|&at| at != victim && self.deadline(at) > self.window)
            .collect();
        less_urgent.sort_by_key(sizes);
        let ascending = less_urgent.clone();
        less_urgent.reverse();
        [less_urgent, ascending]
            .iter()
            .any(|order| self.one_by_one(victim, order))
    }

    fn one_by_one(&mut self, victim: usize, order: &[usize]) -> bool {
        let late = self.trial.scenario.machine.jitter_ns;
        let mut start = Start::at_once(self.trial.scenario, Some(victim), self.window);
        for &channel in order.iter().skip(1) {
            start.first[channel] = NEVER;
        }
        let cycle = (self.window - self.deadline(victim))
            / self.trial.scenario.channels[victim].period.as_nanos()
            + 1;
        for round in 1..=order.len() {
            let (missed, notes) = self.run(Some(victim), Pattern::Last, Pattern::First, &start);
            if missed {
                return true;
            }
            let notes: Vec<&Note> = notes
                .iter()
                .filter(|note| u64::from(note.cycle) == cycle)
                .collect();
            let again = notes
                .windows(2)
                .filter(|pair| pair[0].fell)
                .map(|pair| pair[1].at);
            let (Some(again), Some(&next)) = (again.clone().nth(round - 1), order.get(round))
            else {
                break;
            };
            start.first[next] = again.saturating_sub(2 * late + 1);
        }
        false
    }

    fn run(
        &mut self,
        victim: Option<usize>,
        own: Pattern,
        others: Pattern,
        start: &Start,
    ) -> (bool, Vec<Note>) {
        let mut patterns = vec![others; self.trial.scenario.channels.len()];
        if let Some(victim) = victim {
            patterns[victim] = own;
        }
        let manner = Manner {
            up: self.up,
            lateness: Lateness::Always,
            others: true,
            slow_before: self.slow_before,
            start: start.clone(),
        };
        self.runs += 1;
        let plan = Plan::ByChannel(patterns);
        let mut world = self.trial.world(self.runs, manner, plan);
        world.watched = victim;
        let outcomes = world.run(|outcome| self.trial.is_late(outcome));
        let missed = outcomes.last().is_some_and(|last| self.trial.is_late(last));
        (missed, std::mem::take(&mut world.notes))
    }
}

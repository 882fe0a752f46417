//! The search for the miss that a refusal foretells.
//!
//! First starts that are critical by reasoning: everything at once, as it is where the plan finds too much, each
//! channel in turn the one that comes last. Then what came nearest to a miss is changed a little, again and again, as
//! long as it comes nearer.

use bumpless_base::{LinkSet, Random};
use bumpless_plan::Plan as Planned;
use bumpless_plan::resource::{Kind, Resource, resources};

use super::climb;
use super::judge::Trial;
use super::losses::{Pattern, Plan};
use super::start::Start;
use super::world::{Lateness, Manner, Note};

/// Longest window for which a miss is looked for, nanoseconds.
const LONGEST: u64 = 10_000_000_000;
/// Windows that are tried for each channel.
const WINDOWS: usize = 2;
/// Windows that are looked at for that.
const LOOKS: usize = 200;
/// Later than anything that is looked at.
const NEVER: u64 = 1 << 60;

/// Whether a deadline is missed in a situation in which the plan refuses a resource.
pub fn finds_miss(trial: &Trial<'_>, plan: &Planned) -> bool {
    let mut search = Search {
        trial,
        nearest: Vec::new(),
        random: trial.random(1 << 20),
    };
    let refused = |at: &usize| {
        let resources = &plan.situations[*at].resources;
        resources.iter().any(|resource| resource.refusal.is_some())
    };
    let situations: Vec<usize> = (0..plan.situations.len()).filter(refused).collect();
    let places: Vec<Place> = situations
        .iter()
        .flat_map(|&at| places(trial, plan, at))
        .collect();
    places.iter().any(|place| search.at_once(place))
        || places.iter().any(|place| search.in_step(place))
        || search.climbs()
}

/// Where a miss may be.
#[derive(Clone, Copy, Debug)]
struct Place {
    up: LinkSet,
    /// Length of the window in which too much is asked for.
    window: u64,
    /// The channel that comes last; `None`: as it comes.
    victim: Option<usize>,
}

/// Windows and channels on what the plan refuses in the situation at this position, the fullest first.
fn places(trial: &Trial<'_>, plan: &Planned, at: usize) -> Vec<Place> {
    let up = trial.situations[at];
    let refused = |kind: Kind| {
        let all = plan.situations[at].resources.iter();
        all.filter(|planned| planned.kind == kind)
            .find_map(|planned| planned.refusal.as_ref())
    };
    let mut places = Vec::new();
    for resource in resources(trial.scenario, up) {
        let Some((refusal, _)) = refused(resource.kind) else {
            continue;
        };
        let window = refusal.window_ns.unwrap_or(LONGEST).min(LONGEST);
        let first = Place {
            up,
            window,
            victim: None,
        };
        places.push((f64::INFINITY, first));
        for (position, &channel) in resource.channels.iter().enumerate() {
            for (fullness, window) in fullest(&resource, position) {
                let victim = Some(channel);
                places.push((fullness, Place { up, window, victim }));
            }
        }
    }
    places.sort_by(|a, b| b.0.total_cmp(&a.0));
    places.into_iter().map(|(_, place)| place).collect()
}

/// The windows of a channel in which most is asked for of those that are too short, with how full they are.
fn fullest(resource: &Resource, position: usize) -> Vec<(f64, u64)> {
    let task = resource.tasks[position];
    if task.blocking.is_none() {
        return Vec::new();
    }
    let set = resource.set();
    let each = |other: &bumpless_plan::demand::Task| {
        let (first, period) = (other.deadline, other.period);
        (0..LOOKS as u64).map(move |n| first + n * period)
    };
    let windows = resource.tasks.iter().flat_map(each);
    let mut windows: Vec<u64> = windows
        .filter(|&window| window >= task.deadline && window <= LONGEST)
        .collect();
    windows.sort_unstable();
    windows.dedup();
    windows.truncate(LOOKS);
    let full = |&window: &u64| {
        let load = set.demand(window) + u128::from(set.blocking_of(&task, window));
        (load as f64 / window as f64, window)
    };
    let windows = windows.iter().map(full).filter(|(full, _)| *full > 1.0);
    let mut windows: Vec<(f64, u64)> = windows.collect();
    windows.sort_by(|a, b| b.0.total_cmp(&a.0));
    windows.truncate(WINDOWS);
    windows
}

/// One run that is or could be made.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub manner: Manner,
    pub patterns: Vec<Pattern>,
    /// The channel that comes last, and when its deadline is.
    pub victim: Option<(usize, u64)>,
    /// Which random numbers it takes.
    pub index: usize,
}

/// What came of one.
pub(super) struct Ran {
    /// The longest time of a state by its deadline; above one, a deadline was missed.
    pub nearness: f64,
    /// Packets of the channel that came last.
    pub notes: Vec<Note>,
}

struct Search<'a> {
    trial: &'a Trial<'a>,
    /// What came nearest to a miss.
    nearest: Vec<(f64, Attempt)>,
    random: Random,
}

impl Search<'_> {
    /// Everything at once, with losses at different places.
    fn at_once(&mut self, place: &Place) -> bool {
        let start = Start::at_once(self.trial.scenario, place.victim, place.window);
        let all = [Pattern::First, Pattern::Tail, Pattern::Last];
        let each = [Pattern::Last, Pattern::One, Pattern::Answers]
            .into_iter()
            .flat_map(|own| all.map(|others| (own, others)));
        [true, false].into_iter().any(|slow| {
            let mut each = each.clone();
            each.any(|hit| self.tried(&attempt(self.trial, place, hit, &start, slow)).0)
        })
    }

    /// The same, but what is less urgent comes one by one, each just when the last channel is about to send again.
    fn in_step(&mut self, place: &Place) -> bool {
        let Some(victim) = place.victim else {
            return false;
        };
        let channels = &self.trial.scenario.channels;
        let mut less_urgent: Vec<usize> = (0..channels.len())
            .filter(|&at| at != victim && channels[at].deadline.as_nanos() > place.window)
            .collect();
        less_urgent.sort_by_key(|&at| channels[at].size);
        let ascending = less_urgent.clone();
        less_urgent.reverse();
        let orders = [less_urgent, ascending];
        [true, false].into_iter().any(|slow| {
            orders
                .iter()
                .any(|order| self.one_by_one(place, victim, order, slow))
        })
    }

    fn one_by_one(&mut self, place: &Place, victim: usize, order: &[usize], slow: bool) -> bool {
        let late = self.trial.scenario.machine.jitter_ns;
        let mut start = Start::at_once(self.trial.scenario, place.victim, place.window);
        for &channel in order.iter().skip(1) {
            start.first[channel] = NEVER;
        }
        let setup = &self.trial.scenario.channels[victim];
        let cycle = (place.window - setup.deadline.as_nanos()) / setup.period.as_nanos() + 1;
        for round in 1..=order.len() {
            let hit = (Pattern::Last, Pattern::First);
            let (missed, notes) = self.tried(&attempt(self.trial, place, hit, &start, slow));
            if missed {
                return true;
            }
            let again = notes
                .iter()
                .filter(|note| u64::from(note.cycle) == cycle)
                .collect::<Vec<_>>();
            let again = again.windows(2).filter(|pair| pair[0].fell);
            let again = again.map(|pair| pair[1].at).nth(round - 1);
            let (Some(again), Some(&next)) = (again, order.get(round)) else {
                break;
            };
            start.first[next] = again.saturating_sub(2 * late + 1);
        }
        false
    }

    /// What came nearest is changed as long as it comes nearer.
    fn climbs(&mut self) -> bool {
        self.nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.nearest.truncate(climb::FROM);
        let nearest = std::mem::take(&mut self.nearest);
        nearest
            .into_iter()
            .any(|(_, from)| climb::climbs(self.trial, from, &mut self.random))
    }

    /// Whether an attempt misses a deadline, and the packets of the channel that comes last.
    fn tried(&mut self, attempt: &Attempt) -> (bool, Vec<Note>) {
        let ran = run(self.trial, attempt);
        // Of each place, what came nearest.
        let place = |other: &Attempt| (other.manner.up, other.victim);
        let same = |known: &&mut (f64, Attempt)| place(&known.1) == place(attempt);
        match self.nearest.iter_mut().find(same) {
            Some(known) if known.0 < ran.nearness => *known = (ran.nearness, attempt.clone()),
            Some(_) => {}
            None => self.nearest.push((ran.nearness, attempt.clone())),
        }
        (ran.nearness > 1.0, ran.notes)
    }
}

fn attempt(
    trial: &Trial<'_>,
    place: &Place,
    (own, others): (Pattern, Pattern),
    start: &Start,
    slow_before: bool,
) -> Attempt {
    let end = start.last_deadline(trial.scenario, place.window);
    let mut start = start.clone();
    // What comes later is in nobody's way.
    start.end = end;
    let mut patterns = vec![others; trial.scenario.channels.len()];
    if let Some(victim) = place.victim {
        patterns[victim] = own;
    }
    Attempt {
        manner: Manner {
            up: place.up,
            lateness: Lateness::Always,
            others: true,
            slow_before,
            start,
        },
        patterns,
        victim: place.victim.map(|victim| (victim, end)),
        index: 0,
    }
}

pub(super) fn run(trial: &Trial<'_>, attempt: &Attempt) -> Ran {
    let plan = Plan::ByChannel(attempt.patterns.clone());
    let mut world = trial.world(attempt.index, attempt.manner.clone(), plan);
    world.watched = attempt.victim.map(|(channel, _)| channel);
    let outcomes = world.run(|outcome| trial.is_late(outcome));
    let nearness = outcomes.iter().map(|outcome| trial.nearness(outcome));
    Ran {
        nearness: nearness.fold(0.0, f64::max),
        notes: std::mem::take(&mut world.notes),
    }
}

//! A yes with its margin: how far each channel may still go.

use serde::Serialize;

use crate::acknowledgements;
use crate::evaluate::{Plan, is_admitted};
use crate::input::Scenario;
use crate::losses;
use crate::variation::{Variation, deadline_with, largest_below, smallest_above};

/// How much is left of everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headroom {
    /// How many times as long every state could take on the resource that is filled most.
    pub growth: f64,
    /// By how much all deadlines could be shorter, nanoseconds.
    pub spare_ns: u64,
    /// Each channel, in the scenario's order.
    pub channels: Vec<ChannelHeadroom>,
}

/// How far one channel may go while all others stay as they are. A value that is as it is: no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelHeadroom {
    /// Largest state, bytes, with the budget that its accepted loss then needs.
    pub size: u32,
    /// That budget.
    pub size_budget: u32,
    /// Shortest deadline, nanoseconds.
    pub deadline_ns: u64,
    /// Shortest period, nanoseconds.
    pub period_ns: u64,
    /// The deadline that goes with it (`deadline_with`), nanoseconds.
    pub period_deadline_ns: u64,
}

/// The margin of `scenario`, admitted as `plan` says; `None` for a no. Values are on a grid of three significant
/// digits, rounded to the safe side. `done` is called after each channel: there is much to try for many.
pub fn headroom(scenario: &Scenario, plan: &Plan, mut done: impl FnMut()) -> Option<Headroom> {
    if !plan.admitted {
        return None;
    }
    let all = || plan.situations.iter().flat_map(|s| &s.resources);
    let resources = || all().filter(|resource| resource.judged > 0);
    let growth = resources().map(|resource| resource.growth);
    let spare = resources().map(|resource| resource.spare_ns);
    Some(Headroom {
        growth: growth.fold(f64::INFINITY, f64::min),
        spare_ns: spare.min().unwrap_or(u64::MAX),
        channels: (0..scenario.channels.len())
            .map(|at| of_channel(scenario, at))
            .inspect(|_| done())
            .collect(),
    })
}

fn of_channel(scenario: &Scenario, at: usize) -> ChannelHeadroom {
    let fits = |change: Variation| is_admitted(&change.apply(scenario));
    let channel = &scenario.channels[at];
    let (period, deadline) = (channel.period.as_nanos(), channel.deadline.as_nanos());
    let size = largest_size(channel.size, |to| is_admitted(&with_size(scenario, at, to)));
    let deadline_ns = shortest(deadline, 1, |to_ns| {
        fits(Variation::Deadline { channel: at, to_ns })
    });
    // A deadline that stays as it is bounds the period: the longest of what would go with any shorter one.
    let least = deadline_with(channel, 1);
    let period_ns = shortest(period, least.as_nanos(), |to_ns| {
        fits(Variation::Period { channel: at, to_ns })
    });
    ChannelHeadroom {
        size,
        size_budget: with_size(scenario, at, size).channels[at].budget,
        deadline_ns,
        period_ns,
        period_deadline_ns: deadline_with(channel, period_ns).as_nanos(),
    }
}

/// `scenario` with other states of channel `at`, and a budget that is enough for them.
pub fn with_size(scenario: &Scenario, at: usize, to_bytes: u32) -> Scenario {
    let change = Variation::Size {
        channel: at,
        to_bytes,
    };
    let mut changed = change.apply(scenario);
    let needed = losses::smallest_budget(&changed, at);
    // One that is stated may have to be raised.
    let channel = &mut changed.channels[at];
    channel.budget = channel.budget.max(needed);
    acknowledgements::renew(&mut changed);
    changed
}

/// The shortest time on the grid that still fits; as it is if none shorter does.
fn shortest(from: u64, least: u64, fits: impl Fn(u64) -> bool) -> u64 {
    // A time that is much shorter has a finer grid.
    let mut shorter = from;
    while shorter / 10 > least && fits(shorter / 10) {
        shorter /= 10;
    }
    // What does not fit is below what fits: the first that fits above the last that does not.
    let misfit = largest_below(shorter, least, |to| !fits(to));
    match misfit {
        None if fits(least) => least,
        None => shorter,
        Some(misfit) => {
            smallest_above(misfit, shorter, &fits).map_or(shorter, |to| to.min(shorter))
        }
    }
}

/// The largest state on the grid that still fits; as it is if none larger does.
fn largest_size(from: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let most = u64::from(u32::MAX);
    let fits = |to: u64| u32::try_from(to).is_ok_and(&fits);
    // Double until it does not fit, then look between.
    let mut beyond = u64::from(from).max(1);
    while fits(beyond) {
        if beyond == most {
            return u32::MAX;
        }
        beyond = (beyond * 2).min(most);
    }
    let largest = largest_below(beyond, from.into(), fits);
    largest.map_or(from, |to| u32::try_from(to).unwrap_or(from).max(from))
}

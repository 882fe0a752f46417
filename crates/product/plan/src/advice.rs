//! A no that helps: the smallest single changes that would make it a yes.

use serde::Serialize;

use crate::evaluate::{Plan, Unmet, is_admitted};
use crate::input::{Distribution, MAX_BANDWIDTH, Scenario};
use crate::variation::{
    Variation, largest_below, longest_round_trip, other_links, smallest_above,
    smallest_above_within,
};

/// Channels for which changes are searched: those with the largest share of what is too much, then those with the
/// largest share of all.
const CANDIDATES: usize = 16;
/// Longest period that is proposed, nanoseconds: the longest that a configuration takes.
const LONGEST_NS: u64 = 60_000_000_000;
/// Shortest round trip that is proposed, nanoseconds: the shortest that a configuration takes.
const SHORTEST_ROUND_TRIP_NS: u64 = 1_000;
/// Fastest network that is proposed, in percent of what it is.
const FASTEST_PERCENT: u64 = 10_000;

/// A change that makes a refused scenario a yes, where one step less does not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What to change.
    pub change: Variation,
    /// How far that is from what is: the logarithm of the ratio; `None` for a change without a size.
    pub distance: Option<f64>,
}

/// Every single change that makes `scenario`, refused as `plan` says, a yes: nearest first.
///
/// Empty if no single change does.
pub fn advise(scenario: &Scenario, plan: &Plan) -> Vec<Advice> {
    if plan.admitted {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for channel in candidates(scenario, plan) {
        of_channel(scenario, channel, &mut changes);
    }
    networks(scenario, &mut changes);
    in_flight(scenario, plan, &mut changes);
    statements(scenario, &mut changes);
    let mut advice: Vec<Advice> = changes
        .into_iter()
        .map(|change| Advice {
            change,
            distance: change.distance(scenario),
        })
        .collect();
    let far = |advice: &Advice| advice.distance.unwrap_or(f64::MAX);
    advice.sort_by(|a, b| far(a).total_cmp(&far(b)));
    advice
}

/// The channels that make up what is too much, or lose too much, most first; then the others, those that send most
/// first: what is told is the first time at which there is too much, and there may be later ones.
fn candidates(scenario: &Scenario, plan: &Plan) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for unmet in &plan.unmet {
        match *unmet {
            Unmet::Late {
                situation,
                resource,
            } => {
                let refusal = &plan.situations[situation].resources[resource].refusal;
                let loads = refusal.iter().flat_map(|(_, loads)| loads);
                all.extend(loads.map(|load| load.channel));
            }
            Unmet::Lossy { channel, .. } => all.push(channel),
            Unmet::InFlight { .. } => {}
        }
    }
    let sent = |at: &usize| {
        let channel = &scenario.channels[*at];
        channel.size as f64 / channel.period.as_nanos().max(1) as f64
    };
    let mut others: Vec<usize> = (0..scenario.channels.len()).collect();
    others.sort_by(|a, b| sent(b).total_cmp(&sent(a)));
    all.extend(others);
    let mut seen = Vec::new();
    for channel in all {
        if !seen.contains(&channel) {
            seen.push(channel);
        }
    }
    seen.truncate(CANDIDATES);
    seen
}

fn of_channel(scenario: &Scenario, at: usize, changes: &mut Vec<Variation>) {
    // No change of a channel helps more than its end.
    let mut without = scenario.clone();
    for link in &mut without.links {
        link.background
            .retain(|message| message.acknowledges != Some(at));
    }
    without.channels.remove(at);
    if !is_admitted(&without) {
        return;
    }
    let fits = |change: Variation| is_admitted(&change.apply(scenario));
    let channel = &scenario.channels[at];
    let (period, deadline) = (channel.period.as_nanos(), channel.deadline.as_nanos());
    let to_period = |to_ns| Variation::Period { channel: at, to_ns };
    let to_deadline = |to_ns| Variation::Deadline { channel: at, to_ns };
    let to_size = |bytes: u64| Variation::Size {
        channel: at,
        to_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
    };
    changes.extend(smallest_above(period, LONGEST_NS, |to| fits(to_period(to))).map(to_period));
    if deadline < period {
        let found = smallest_above(deadline, period, |to| fits(to_deadline(to)));
        changes.extend(found.map(to_deadline));
    }
    let size = u64::from(channel.size);
    changes.extend(largest_below(size, 0, |to| fits(to_size(to))).map(to_size));
    changes.extend(budget(scenario, at));
    if channel.links.len() > 1 {
        let to = match channel.distribution {
            Distribution::Replicate => Distribution::Spread,
            Distribution::Spread => Distribution::Replicate,
        };
        let change = Variation::Distribution { channel: at, to };
        changes.extend(fits(change).then_some(change));
    }
    for link in other_links(scenario, at) {
        let change = Variation::Network {
            channel: at,
            link: usize::from(link.0),
        };
        changes.extend(fits(change).then_some(change));
    }
}

/// The nearest budget with which channel `at` is in time and loses no more than accepted.
fn budget(scenario: &Scenario, at: usize) -> Option<Variation> {
    let to = |to: u64| Variation::Budget {
        channel: at,
        to: to as u32,
    };
    let present = u64::from(scenario.channels[at].budget);
    // Whether all is in time falls with the budget, whether enough arrives grows with it.
    let mut careless = scenario.clone();
    for channel in &mut careless.channels {
        channel.accepted_loss_per_year = None;
    }
    let in_time = |budget: u64| is_admitted(&to(budget).apply(&careless));
    let fewer = largest_below(present, 0, in_time);
    let more = || {
        let alone = |budget: u64| {
            let mut other = scenario.clone();
            other.channels = vec![to(budget).apply(scenario).channels.swap_remove(at)];
            crate::losses::are_accepted(&other)
        };
        smallest_above(present, crate::input::MAX_BUDGET.into(), alone)
    };
    let nearest = if in_time(present) { more() } else { fewer };
    let change = to(nearest?);
    is_admitted(&change.apply(scenario)).then_some(change)
}

fn networks(scenario: &Scenario, changes: &mut Vec<Variation>) {
    let fits = |change: Variation| is_admitted(&change.apply(scenario));
    for (link, network) in scenario.links.iter().enumerate() {
        let to_rate = |to| Variation::Bandwidth { link, to };
        let most = network
            .bandwidth
            .saturating_mul(FASTEST_PERCENT / 100)
            .min(MAX_BANDWIDTH);
        // At a much higher rate more packets would have to be in flight than may be.
        let found = smallest_above_within(network.bandwidth, most, |to| fits(to_rate(to)));
        changes.extend(found.map(to_rate));
    }
    if scenario.links.len() > 1 {
        let to_all = |to_percent| Variation::Faster { to_percent };
        let found = smallest_above_within(100, FASTEST_PERCENT, |to| fits(to_all(to)));
        changes.extend(found.map(to_all));
    }
}

/// As many unacknowledged packets as keep every network busy.
fn in_flight(scenario: &Scenario, plan: &Plan, changes: &mut Vec<Variation>) {
    let needed = plan.unmet.iter().filter_map(|unmet| match *unmet {
        Unmet::InFlight { needed, .. } => Some(needed),
        _ => None,
    });
    let needed = needed.max().and_then(|needed| u32::try_from(needed).ok());
    let change = needed.map(|to| Variation::InFlight { to });
    changes.extend(change.filter(|change| is_admitted(&change.apply(scenario))));
}

/// What would be enough if networks and machines were better than stated.
fn statements(scenario: &Scenario, changes: &mut Vec<Variation>) {
    let fits = |change: Variation| is_admitted(&change.apply(scenario));
    let at_most = |at_most_ns| Variation::RoundTrips { at_most_ns };
    let sooner = |from: u64, to: &dyn Fn(u64) -> Variation| {
        largest_below(from, SHORTEST_ROUND_TRIP_NS, |at| fits(to(at))).map(to)
    };
    changes.extend(sooner(longest_round_trip(scenario), &at_most));
    if scenario.links.len() > 1 {
        for (link, network) in scenario.links.iter().enumerate() {
            let to = |to_ns| Variation::RoundTrip { link, to_ns };
            changes.extend(sooner(network.round_trip.1.as_nanos(), &to));
        }
    }
    let to_jitter = |to_ns| Variation::Jitter { to_ns };
    let jitter = scenario.machine.jitter_ns;
    changes.extend(largest_below(jitter, 1, |to| fits(to_jitter(to))).map(to_jitter));
}

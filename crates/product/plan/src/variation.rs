//! Single changes of a scenario, and the smallest ones that turn an answer.
//!
//! Values are searched on a grid of three significant digits, so that what is found can be read out, written
//! into a configuration, and really is a yes.

use bumpless_base::{Duration, LinkId, LinkSet};
use serde::{Serialize, Serializer};

use crate::acknowledgements;
use crate::input::{Channel, Distribution, Link, MAX_BANDWIDTH, Scenario};
use crate::losses;

/// One way in which it could differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Variation {
    /// Another period, and the deadline that goes with it ([`deadline_with`]).
    Period {
        /// Position of the channel.
        channel: usize,
        /// Nanoseconds.
        to_ns: u64,
    },
    /// Another deadline.
    Deadline {
        /// Position of the channel.
        channel: usize,
        /// Nanoseconds.
        to_ns: u64,
    },
    /// Another largest state.
    Size {
        /// Position of the channel.
        channel: usize,
        /// Bytes in the channel.
        to_bytes: u32,
    },
    /// Another retransmission budget.
    Budget {
        /// Position of the channel.
        channel: usize,
        /// Packets.
        to: u32,
    },
    /// Packets shared out over the networks instead of sent on each, or the other way round.
    Distribution {
        /// Position of the channel.
        channel: usize,
        /// The other one.
        #[serde(serialize_with = "name")]
        to: Distribution,
    },
    /// One more network for a channel.
    Network {
        /// Position of the channel.
        channel: usize,
        /// Position of the network.
        link: usize,
    },
    /// Another bandwidth of one network.
    Bandwidth {
        /// Position of the network.
        link: usize,
        /// Bit/s.
        to: u64,
    },
    /// One network answers sooner, where that is true.
    RoundTrip {
        /// Position of the network.
        link: usize,
        /// Nanoseconds.
        to_ns: u64,
    },
    /// All networks that are said to take longer answer so soon, where that is true.
    RoundTrips {
        /// Nanoseconds.
        at_most_ns: u64,
    },
    /// Threads go on sooner, where that is true.
    Jitter {
        /// Nanoseconds.
        to_ns: u64,
    },
    /// All networks so many percent faster.
    Faster {
        /// Percent of the present bandwidth.
        to_percent: u64,
    },
    /// Another limit of unacknowledged packets.
    InFlight {
        /// Packets.
        to: u32,
    },
}

fn name<S: Serializer>(to: &Distribution, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(to.name())
}

impl Variation {
    /// `scenario` with this change.
    pub fn apply(&self, scenario: &Scenario) -> Scenario {
        let mut changed = scenario.clone();
        match *self {
            Self::Period { channel, to_ns } => {
                let channel = &mut changed.channels[channel];
                channel.deadline = deadline_with(channel, to_ns);
                channel.period = Duration::from_nanos(to_ns);
            }
            Self::Deadline { channel, to_ns } => {
                changed.channels[channel].deadline = Duration::from_nanos(to_ns);
            }
            Self::Size { channel, to_bytes } => changed.channels[channel].size = to_bytes,
            Self::Budget { channel, to } => {
                changed.channels[channel].budget = to;
                changed.channels[channel].budget_follows = false;
            }
            Self::Distribution { channel, to } => changed.channels[channel].distribution = to,
            Self::Network { channel, link } => {
                changed.channels[channel].links.insert(LinkId(link as u8));
                acknowledgements::also_on(&mut changed, link, channel);
            }
            Self::Bandwidth { link, to } => changed.links[link].bandwidth = to,
            Self::RoundTrip { link, to_ns } => answer_within(&mut changed.links[link], to_ns),
            Self::RoundTrips { at_most_ns } => {
                let links = changed.links.iter_mut();
                links.for_each(|link| answer_within(link, at_most_ns));
            }
            Self::Jitter { to_ns } => changed.machine.jitter_ns = to_ns,
            Self::Faster { to_percent } => {
                for link in &mut changed.links {
                    let to = u128::from(link.bandwidth) * u128::from(to_percent);
                    let to = u64::try_from(to / 100).unwrap_or(u64::MAX);
                    link.bandwidth = to.min(MAX_BANDWIDTH);
                }
            }
            Self::InFlight { to } => changed.packets.in_flight_max = to,
        }
        if let Some(at) = self
            .channel()
            .filter(|at| changed.channels[*at].budget_follows)
        {
            changed.channels[at].budget = losses::smallest_budget(&changed, at);
        }
        acknowledgements::renew(&mut changed);
        changed
    }

    /// Position of the one channel that it changes.
    fn channel(&self) -> Option<usize> {
        match *self {
            Self::Period { channel, .. }
            | Self::Deadline { channel, .. }
            | Self::Size { channel, .. }
            | Self::Budget { channel, .. }
            | Self::Distribution { channel, .. }
            | Self::Network { channel, .. } => Some(channel),
            _ => None,
        }
    }

    /// How far it is from what is: the logarithm of the ratio; `None` for a change without a size.
    pub fn distance(&self, scenario: &Scenario) -> Option<f64> {
        let ratio = |from: f64, to: f64| (to / from).ln().abs();
        Some(match *self {
            Self::Period { channel, to_ns } => {
                let from = scenario.channels[channel].period.as_nanos();
                ratio(from as f64, to_ns as f64)
            }
            Self::Deadline { channel, to_ns } => {
                let from = scenario.channels[channel].deadline.as_nanos();
                ratio(from as f64, to_ns as f64)
            }
            Self::Size { channel, to_bytes } => {
                let from = scenario.channels[channel].size;
                ratio(f64::from(from) + 1.0, f64::from(to_bytes) + 1.0)
            }
            Self::Budget { channel, to } => {
                let from = scenario.channels[channel].budget;
                ratio(f64::from(from) + 1.0, f64::from(to) + 1.0)
            }
            Self::Bandwidth { link, to } => ratio(scenario.links[link].bandwidth as f64, to as f64),
            Self::RoundTrip { link, to_ns } => {
                let from = scenario.links[link].round_trip.1.as_nanos();
                ratio(from as f64, to_ns as f64)
            }
            Self::RoundTrips { at_most_ns } => {
                ratio(longest_round_trip(scenario) as f64, at_most_ns as f64)
            }
            Self::Jitter { to_ns } => ratio(scenario.machine.jitter_ns as f64, to_ns as f64),
            Self::Faster { to_percent } => ratio(100.0, to_percent as f64),
            Self::InFlight { to } => ratio(scenario.packets.in_flight_max.into(), to.into()),
            Self::Distribution { .. } | Self::Network { .. } => return None,
        })
    }
}

/// The deadline of `channel` at a period of `to_ns`: one that is the whole period, or half of it, stays that, as a
/// configuration's defaults do; any other stays as it is.
pub fn deadline_with(channel: &Channel, to_ns: u64) -> Duration {
    match channel.deadline {
        whole if whole == channel.period => Duration::from_nanos(to_ns),
        half if half * 2 == channel.period => Duration::from_nanos(to_ns / 2),
        stated => stated,
    }
}

/// The longest stated time until an answer on any network, nanoseconds.
pub fn longest_round_trip(scenario: &Scenario) -> u64 {
    let all = scenario.links.iter().map(|link| link.round_trip.1);
    all.max().unwrap_or_default().as_nanos()
}

fn answer_within(link: &mut Link, nanos: u64) {
    let (least, most) = link.round_trip;
    link.round_trip.1 = most.min(Duration::from_nanos(nanos)).max(least);
}

/// Distance between neighbouring values around `value`, so that each has three significant digits.
pub fn step(value: u64) -> u64 {
    10u64.pow(value.max(1).ilog10().saturating_sub(2))
}

/// The smallest value on the grid above `from`, at most `most`, that `fits`, if every larger one fits too.
pub fn smallest_above(from: u64, most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let step = step(from);
    let base = from - from % step;
    let last = most.checked_sub(base)? / step;
    if last == 0 || !fits(base + last * step) {
        return None;
    }
    let (mut below, mut above) = (0, last);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if fits(base + middle * step) {
            above = middle;
        } else {
            below = middle;
        }
    }
    Some(base + above * step)
}

/// The same where much too large a value does not fit either: the smallest that leads up to the first that fits of
/// those that grow by a quarter.
pub fn smallest_above_within(from: u64, most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let step = step(from);
    let grown = |to: &u64| Some((to + (to / 4).max(1)).next_multiple_of(step));
    let mut tried = std::iter::successors(grown(&(from - from % step)), grown);
    let reached = tried
        .by_ref()
        .take_while(|to| *to <= most)
        .find(|to| fits(*to));
    smallest_above(from, reached?, fits)
}

/// The largest value below `from`, at least `least`, that `fits`, if every smaller one fits too; on a grid of three
/// significant digits of the value itself, however far below it is.
pub fn largest_below(from: u64, least: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    // One digit more, as the value may lose one on its way down.
    let (mut from, mut step) = (from, (step(from) / 10).max(1));
    loop {
        let found = largest_on_grid(from, least, step, &fits);
        if step == 1 || found.is_some_and(|found| found >= 100 * step) {
            return found;
        }
        // It is below the first on this grid that does not fit.
        let misfit = found.map_or(least.next_multiple_of(step), |found| found + step);
        (from, step) = (from.min(misfit), step / 10);
    }
}

fn largest_on_grid(from: u64, least: u64, step: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let first = least.div_ceil(step);
    let last = from.checked_sub(1)? / step;
    if first > last || !fits(first * step) {
        return None;
    }
    let (mut below, mut above) = (first, last + 1);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if fits(middle * step) {
            below = middle;
        } else {
            above = middle;
        }
    }
    Some(below * step)
}

/// Networks of `scenario` on which channel `channel` does not travel.
pub(crate) fn other_links(scenario: &Scenario, channel: usize) -> impl Iterator<Item = LinkId> {
    let carried = scenario.channels[channel].links;
    LinkSet::first(scenario.links.len())
        .iter()
        .filter(move |link| !carried.contains(*link))
        .collect::<Vec<_>>()
        .into_iter()
}

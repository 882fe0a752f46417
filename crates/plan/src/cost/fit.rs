//! Finding the costs of a route from measured times.
//!
//! The model is the longest of three sums, each linear in the costs. If it is known which of them each state's
//! time is, the best costs follow from linear equations (least squares of the relative errors, so that a
//! small state counts as much as a large one; no cost below zero). So it is supposed, solved, and
//! supposed anew from the solution, until nothing changes; from several beginnings, the best of which counts.
//! What is measured with two payloads tells packets and bytes apart.

use std::fmt;

use super::{Cost, PARTS, Route, Takes, time};

/// Fewest sizes from which costs are told.
const FEWEST_SIZES: usize = 6;
/// How many times as large as the smallest state that is not empty the largest must be at least.
const LEAST_SPAN: u32 = 1_000;
/// States from so many bytes on are at first supposed to take what the wire takes.
const BEGINNINGS: [u32; 5] = [u32::MAX, 10_000, 40_000, 80_000, 300_000];
/// Most times that it is supposed anew from one beginning.
const ROUNDS: usize = 60;
/// Most sweeps over the costs when equations are solved, and the change that ends them.
const SWEEPS: usize = 20_000;
const STILL: f64 = 1e-12;
/// A wire that is supposed must make the squares of the errors so much smaller, or there is none.
const WORTH_A_WIRE: f64 = 0.8;
/// Typical relative error without a wire below which there is none.
const GOOD_WITHOUT: f64 = 0.005;

/// The typical time of states of one size, cut one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// How they travelled.
    pub route: Route,
    /// Bytes of each state.
    pub size: u32,
    /// Their median time, nanoseconds.
    pub nanos: f64,
}

/// Why no costs can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Fewer sizes than there are costs to be told.
    FewSizes(usize),
    /// No empty state was measured.
    NoEmptyState,
    /// The largest state is not so much larger than the smallest.
    Narrow,
    /// All states were cut the same way, so that packets and bytes cannot be told apart.
    OnePayload,
    /// A time is zero or no number.
    Time,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewSizes(count) => write!(
                f,
                "{count} sizes were measured; costs need at least {FEWEST_SIZES}"
            ),
            Self::NoEmptyState => {
                f.write_str("no empty state was measured; its time is that of every transfer")
            }
            Self::Narrow => write!(
                f,
                "the largest state must be at least {LEAST_SPAN} times as large as the smallest"
            ),
            Self::OnePayload => f.write_str(
                "all states were cut into packets the same way; measure with a second payload too",
            ),
            Self::Time => f.write_str("a measured time is zero or no number"),
        }
    }
}

impl std::error::Error for Unfit {}

/// The costs that tell `samples` best.
///
/// # Errors
/// The samples are too few or too much alike to tell costs from.
pub fn fit(samples: &[Sample]) -> Result<Cost, Unfit> {
    check(samples)?;
    let mut found = BEGINNINGS.map(|from| settle(samples, from));
    let [without_wire, with_wire @ ..] = &mut found;
    with_wire.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (wired, height) = with_wire[0];
    let good = samples.len() as f64 * GOOD_WITHOUT.powi(2);
    let worth = without_wire.1 > good && height < without_wire.1 * WORTH_A_WIRE;
    Ok(if worth { wired } else { without_wire.0 })
}

/// The largest relative error of `cost` among `samples`: 0.1 is a tenth too much or too little.
pub fn largest_error(samples: &[Sample], cost: &Cost) -> f64 {
    let errors = samples.iter().map(|sample| {
        let predicted = cost.predict(&sample.route, sample.size);
        (predicted / sample.nanos - 1.0).abs()
    });
    errors.fold(0.0, f64::max)
}

fn check(samples: &[Sample]) -> Result<(), Unfit> {
    let sound = |sample: &Sample| sample.nanos > 0.0 && sample.nanos.is_finite();
    if !samples.iter().all(sound) {
        return Err(Unfit::Time);
    }
    let mut sizes: Vec<u32> = samples.iter().map(|sample| sample.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < FEWEST_SIZES {
        return Err(Unfit::FewSizes(sizes.len()));
    }
    if sizes[0] != 0 {
        return Err(Unfit::NoEmptyState);
    }
    if sizes[sizes.len() - 1] / LEAST_SPAN < sizes[1] {
        return Err(Unfit::Narrow);
    }
    let first = samples[0].route.payload;
    if samples.iter().all(|sample| sample.route.payload == first) {
        return Err(Unfit::OnePayload);
    }
    Ok(())
}

/// What is made least: the squares of the relative errors.
fn misfit(samples: &[Sample], cost: &Cost) -> f64 {
    let error = |sample: &Sample| cost.predict(&sample.route, sample.size) / sample.nanos - 1.0;
    samples.iter().map(|sample| error(sample).powi(2)).sum()
}

/// Supposes and solves until nothing changes, with a wire for states of at least `wire_from` bytes at first; gives
/// the best costs on the way and their misfit.
fn settle(samples: &[Sample], wire_from: u32) -> (Cost, f64) {
    let wired = wire_from < u32::MAX;
    let begin = |sample: &Sample| {
        let takes = sample.route.takes(sample.size);
        match wired && sample.size >= wire_from {
            true => takes[1],
            false => takes[2].or(takes[0]),
        }
    };
    let mut supposed: Vec<Takes> = samples.iter().filter_map(begin).collect();
    let mut best = (Cost::default(), f64::INFINITY);
    for _ in 0..ROUNDS {
        let cost = Cost::of_parts(solve(samples, &supposed));
        let height = misfit(samples, &cost);
        if height < best.1 {
            best = (cost, height);
        }
        let parts = cost.parts();
        let longest = |sample: &Sample| {
            let takes = sample.route.takes(sample.size).into_iter().enumerate();
            let possible = takes.filter(|(at, _)| wired || *at != 1);
            let each = possible.filter_map(|(_, takes)| takes);
            each.max_by(|a, b| time(a, &parts).total_cmp(&time(b, &parts)))
        };
        let next: Vec<Takes> = samples.iter().filter_map(longest).collect();
        if next == supposed {
            break;
        }
        supposed = next;
    }
    best
}

/// The costs, none below its least, with which `supposed` comes closest to the samples: the normal equations,
/// one cost after the other.
fn solve(samples: &[Sample], supposed: &[Takes]) -> [f64; PARTS] {
    let mut least = [0.0; PARTS];
    least[PARTS - 1] = 1.0;
    let mut matrix = [[0.0; PARTS]; PARTS];
    let mut right = [0.0; PARTS];
    for (sample, takes) in samples.iter().zip(supposed) {
        let row = takes.map(|much| much / sample.nanos);
        for (at, factor) in row.iter().enumerate() {
            right[at] += factor;
            for (other, sum) in matrix[at].iter_mut().enumerate() {
                *sum += factor * row[other];
            }
        }
    }
    let mut parts = least;
    for _ in 0..SWEEPS {
        let mut change: f64 = 0.0;
        for at in 0..PARTS {
            let own = matrix[at][at];
            if own <= 0.0 {
                continue;
            }
            let others: f64 = (0..PARTS)
                .map(|other| matrix[at][other] * parts[other])
                .sum();
            let moved = (parts[at] + (right[at] - others) / own).max(least[at]);
            change = change.max((moved - parts[at]).abs() * own.sqrt());
            parts[at] = moved;
        }
        if change < STILL {
            break;
        }
    }
    parts
}

//! Finding the costs of a route from measured times.
//!
//! The model is the longest of three sums, each linear in the costs once it is known how late a paced sender goes
//! on. If it is known which of them each state's time is, the best costs follow from linear equations: least
//! squares of the relative errors, so that a small state counts as much as a large one, with medians that lie
//! far off counting less, and no cost below zero. So it is supposed, solved, and supposed anew from the
//! solution, until nothing changes; from several beginnings and latenesses, the best of which counts. What is
//! measured with two payloads tells packets and bytes apart.

use std::fmt;

use super::{Cost, PARTS, Route, Takes, time};

/// Fewest sizes from which costs are told.
const FEWEST_SIZES: usize = 6;
/// How many times as large as the smallest state that is not empty the largest must be at least.
const LEAST_SPAN: u32 = 1_000;
/// States from so many bytes on are at first supposed to take what the wire takes.
const BEGINNINGS: [u32; 4] = [10_000, 40_000, 80_000, 300_000];
/// Most times that it is supposed anew from one beginning.
const ROUNDS: usize = 60;
/// A change of the misfit below this share of it is none.
const STILL: f64 = 1e-6;
/// How late a paced sender may go on, nanoseconds: in which steps it is tried, and up to what.
const LATE_STEP: usize = 2_500;
const LATE_MAX: usize = 200_000;
/// The same where a wire may be what takes longest, which hides most of it.
const LATE_STEP_WIRED: usize = 25_000;
/// A relative error from which on a median counts less.
const FAR: f64 = 0.05;
/// A wire that is supposed must make the squares of the errors so much smaller, or there is none.
const WORTH_A_WIRE: f64 = 0.8;
/// Typical relative error without a wire below which there is none.
const GOOD_WITHOUT: f64 = 0.001;

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
    let samples = &level(samples)[..];
    let without_wire = latest(samples, &[u32::MAX], LATE_STEP);
    let with_wire = latest(samples, &BEGINNINGS, LATE_STEP_WIRED);
    let good = samples.len() as f64 * GOOD_WITHOUT.powi(2);
    let worth = without_wire.1 > good && with_wire.1 < without_wire.1 * WORTH_A_WIRE;
    Ok(if worth { with_wire.0 } else { without_wire.0 })
}

/// The samples, those of other payloads moved so that states that are one packet in either way take the same: each
/// payload is measured in processes of its own, and what a transfer takes differs from one to the next.
fn level(samples: &[Sample]) -> Vec<Sample> {
    let first = samples[0].route.payload;
    let base = |payload: u32| {
        let single = samples
            .iter()
            .filter(|sample| sample.route.payload == payload && sample.size <= first.min(payload));
        let (sum, count) = single.fold((0.0, 0.0), |(sum, count), sample| {
            (sum + sample.nanos, count + 1.0)
        });
        (count > 0.0).then_some(sum / count)
    };
    let moved = |sample: &Sample| {
        let payload = sample.route.payload;
        let more = base(payload)
            .zip(base(first))
            .map_or(0.0, |(own, first)| own - first);
        // What would vanish was not measured well enough to be moved.
        let nanos = (sample.nanos - more).max(sample.nanos / 4.0);
        Sample { nanos, ..*sample }
    };
    samples.iter().map(moved).collect()
}

/// The best costs of all latenesses, and their misfit.
fn latest(samples: &[Sample], beginnings: &[u32], step: usize) -> (Cost, f64) {
    let paced = samples.iter().any(|sample| sample.route.bandwidth > 0);
    let most = if paced { LATE_MAX } else { 0 };
    let mut best = (Cost::default(), f64::INFINITY);
    for late in (0..=most).step_by(step) {
        for &from in beginnings {
            let tried = settle(samples, from, late as f64);
            if tried.1 < best.1 {
                best = tried;
            }
        }
    }
    best
}

/// The largest relative error of `cost` among `samples`, moved as [`fit()`] moves them: 0.1 is a tenth too much or
/// too little.
pub fn largest_error(samples: &[Sample], cost: &Cost) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    level(samples)
        .iter()
        .map(|sample| error(sample, cost))
        .fold(0.0, f64::max)
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

fn error(sample: &Sample, cost: &Cost) -> f64 {
    (cost.predict(&sample.route, sample.size) / sample.nanos - 1.0).abs()
}

/// What is made least: the squares of the relative errors, beyond [`FAR`] no more than their size.
fn misfit(samples: &[Sample], cost: &Cost) -> f64 {
    let height = |error: f64| error.min(FAR) * (2.0 * error - error.min(FAR));
    samples
        .iter()
        .map(|sample| height(error(sample, cost)))
        .sum()
}

/// Supposes and solves until nothing changes, with a wire for states of at least `wire_from` bytes at first; gives
/// the best costs on the way and their misfit.
fn settle(samples: &[Sample], wire_from: u32, late: f64) -> (Cost, f64) {
    let wired = wire_from < u32::MAX;
    let begin = |sample: &Sample| {
        let takes = sample.route.takes(sample.size, late);
        match wired && sample.size >= wire_from {
            true => takes[1],
            false => takes[2].or(takes[0]),
        }
    };
    let mut supposed: Vec<Takes> = samples.iter().filter_map(begin).collect();
    let mut weights = vec![1.0; samples.len()];
    let mut best = (Cost::default(), f64::INFINITY);
    for _ in 0..ROUNDS {
        let cost = Cost::of_parts(solve(samples, &supposed, &weights), late);
        let height = misfit(samples, &cost);
        let settled = (height - best.1).abs() < height * STILL;
        if height < best.1 {
            best = (cost, height);
        }
        let parts = cost.parts();
        let longest = |sample: &Sample| {
            let takes = sample
                .route
                .takes(sample.size, late)
                .into_iter()
                .enumerate();
            let possible = takes.filter(|(at, _)| wired || *at != 1);
            let each = possible.filter_map(|(_, takes)| takes);
            each.max_by(|a, b| time(a, &parts).total_cmp(&time(b, &parts)))
        };
        let next: Vec<Takes> = samples.iter().filter_map(longest).collect();
        if next == supposed && settled {
            break;
        }
        supposed = next;
        weights = samples
            .iter()
            .map(|sample| (FAR / error(sample, &cost)).min(1.0))
            .collect();
    }
    best
}

/// The costs, none below its least, with which `supposed` comes closest to the samples: the normal equations of
/// those that are above it, found by leaving out one that would fall below at a time.
fn solve(samples: &[Sample], supposed: &[Takes], weights: &[f64]) -> [f64; PARTS] {
    let mut matrix = [[0.0; PARTS]; PARTS];
    let mut right = [0.0; PARTS];
    for ((sample, takes), weight) in samples.iter().zip(supposed).zip(weights) {
        let row = takes.map(|much| much / sample.nanos);
        for (at, factor) in row.iter().enumerate() {
            right[at] += weight * factor;
            for (other, sum) in matrix[at].iter_mut().enumerate() {
                *sum += weight * factor * row[other];
            }
        }
    }
    let mut least = [0.0; PARTS];
    least[PARTS - 1] = 1.0;
    let mut free: Vec<usize> = (0..PARTS).filter(|&at| matrix[at][at] > 0.0).collect();
    loop {
        let mut parts = least;
        for (&at, value) in free.iter().zip(solution(&matrix, &right, &free, &least)) {
            parts[at] = value;
        }
        // Costs differ in size by orders: what weighs most falls out first.
        let below = |at: &&usize| parts[**at] < least[**at];
        let short = |at: &&usize| (least[**at] - parts[**at]) * matrix[**at][**at].sqrt();
        let worst = free
            .iter()
            .filter(below)
            .max_by(|a, b| short(a).total_cmp(&short(b)));
        match worst.copied() {
            Some(worst) => free.retain(|&at| at != worst),
            None => return parts,
        }
    }
}

/// The `free` ones of the unknowns of symmetric equations, with all others at their least: elimination after
/// scaling the diagonal to one.
fn solution(
    matrix: &[[f64; PARTS]; PARTS],
    right: &[f64; PARTS],
    free: &[usize],
    least: &[f64; PARTS],
) -> Vec<f64> {
    let scale: Vec<f64> = free.iter().map(|&at| matrix[at][at].sqrt()).collect();
    let count = free.len();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (&at, own) in free.iter().zip(&scale) {
        let others = free.iter().zip(&scale);
        let mut row: Vec<f64> = others
            .map(|(&other, s)| matrix[at][other] / (own * s))
            .collect();
        let fixed = (0..PARTS).filter(|other| !free.contains(other));
        let known: f64 = fixed.map(|other| matrix[at][other] * least[other]).sum();
        row.push((right[at] - known) / own);
        rows.push(row);
    }
    for at in 0..count {
        // A hint of the diagonal keeps what cannot be told apart from growing without bounds.
        rows[at][at] += 1e-12;
        let (above, under) = rows.split_at_mut(at + 1);
        for row in under {
            let factor = row[at] / above[at][at];
            let columns = row.iter_mut().zip(&above[at]).skip(at);
            columns.for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    let mut values = vec![0.0; count];
    for at in (0..count).rev() {
        let rest: f64 = (at + 1..count)
            .map(|column| rows[at][column] * values[column])
            .sum();
        values[at] = (rows[at][count] - rest) / rows[at][at];
    }
    values
        .iter()
        .zip(&scale)
        .map(|(value, scale)| value / scale)
        .collect()
}

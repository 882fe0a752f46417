//! Quick processor-demand analysis: from the longest window downward, each step as far as the load itself
//! says that nothing can be wrong in between.
//!
//! F. Zhang, A. Burns, *Schedulability Analysis for Real-Time Systems with EDF Scheduling*, IEEE Transactions on
//! Computers 58 (9), 2009. Load that grows with the window is all that its argument needs, so blocking by
//! steps and interference may be part of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Condition, HORIZON, Refusal, TaskSet, Utilisation};

/// Windows that the search for the shortest failing one looks at, at most.
const SEARCH: usize = 300_000;

/// Looks at a task after which a set counts as one that cannot be decided: some seconds. Only one that is full
/// but for a millionth, and has small periods, takes so many.
const LOOKS_MAX: u64 = 200_000_000;

/// What the walk from the longest window downward ends with.
enum Answer {
    Yes,
    Overload,
    TooShort(u64),
    Endless,
}

pub(super) fn admit(set: &TaskSet) -> (Result<(), Refusal>, u64) {
    let (answer, looks) = walk(set);
    let undecided = || refusal(set, Condition::Undecidable, None);
    let result = match answer {
        Answer::Yes => Ok(()),
        Answer::Overload => Err(overload(set)),
        Answer::TooShort(window) => {
            let first = shortest_failing(set, window).unwrap_or(window);
            Err(refusal(set, Condition::Demand, Some(first)))
        }
        Answer::Endless => Err(
            shortest_failing(set, HORIZON).map_or_else(undecided, |window| {
                refusal(set, Condition::Demand, Some(window))
            }),
        ),
    };
    (result, looks)
}

/// Yes or no, without a search for the window that shows a no.
pub(super) fn is_admitted(set: &TaskSet) -> bool {
    matches!(walk(set).0, Answer::Yes)
}

/// The answer, and how many times a task was looked at.
fn walk(set: &TaskSet) -> (Answer, u64) {
    let Some(shortest) = set.shortest() else {
        return (Answer::Yes, 0);
    };
    let utilisation = Utilisation::of(set);
    if utilisation.is_above_one() {
        return (Answer::Overload, 0);
    }
    let Some(bound) = bound(set, &utilisation) else {
        return (Answer::Endless, 0);
    };
    let mut looks = 0;
    let mut next = set.window_before(bound);
    while let Some(window) = next {
        // Once for the load, once for the next window.
        looks += 2 * set.tasks.len() as u64;
        let load = set.load(window);
        if load > u128::from(window) {
            return (Answer::TooShort(window), looks);
        }
        if load <= u128::from(shortest) {
            break;
        }
        if looks > LOOKS_MAX {
            return (Answer::Endless, looks);
        }
        // It fits in a u64, as it is not above the window.
        let load = load as u64;
        next = set.window_before(load.min(window - 1));
    }
    (Answer::Yes, looks)
}

/// Windows longer than this need no test.
fn bound(set: &TaskSet, utilisation: &Utilisation) -> Option<u64> {
    if utilisation.is_below_one() {
        return set.longest_window(utilisation);
    }
    // Full to the last nanosecond: with nothing on top, what happens repeats after the hyperperiod.
    set.is_periodic().then(|| hyperperiod(set)).flatten()
}

/// The least common multiple of all periods, if it is below the horizon.
pub(super) fn hyperperiod(set: &TaskSet) -> Option<u64> {
    set.tasks.iter().try_fold(1u64, |so_far, task| {
        let multiple = so_far / gcd(so_far, task.period);
        multiple
            .checked_mul(task.period)
            .filter(|&all| all < HORIZON)
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn refusal(set: &TaskSet, condition: Condition, window: Option<u64>) -> Refusal {
    Refusal {
        condition,
        window_ns: window,
        demand_ns: window.map(|window| set.load(window)),
    }
}

/// More than everything is asked for: sooner or later a window is too short.
fn overload(set: &TaskSet) -> Refusal {
    let mut reach = set.tasks.last().map_or(1, |task| task.deadline.max(1));
    loop {
        let too_short = |&window: &u64| set.load(window) > u128::from(window);
        if let Some(window) = set.window_before(reach).filter(too_short) {
            let first = shortest_failing(set, window).unwrap_or(window);
            return refusal(set, Condition::Utilisation, Some(first));
        }
        if reach >= HORIZON {
            return refusal(set, Condition::Utilisation, None);
        }
        reach *= 2;
    }
}

/// The shortest window that is too short, if it is not longer than `end` and is found in time.
fn shortest_failing(set: &TaskSet, end: u64) -> Option<u64> {
    let shortest = set.shortest()?;
    let step = |at: usize, after: u64| Reverse((set.tasks[at].step_after(after), at));
    let mut steps: BinaryHeap<_> = (0..set.tasks.len()).map(|at| step(at, 0)).collect();
    let (mut states, mut queued) = (0u128, set.queued_in(0));
    for _ in 0..SEARCH {
        let Reverse((window, at)) = steps.pop()?;
        if window > end {
            return None;
        }
        let task = &set.tasks[at];
        states += task.demand(window) - task.demand(window - 1);
        queued = queued + task.queued_in(window) - task.queued_in(window - 1);
        steps.push(step(at, window));
        if steps
            .peek()
            .is_some_and(|Reverse((next, _))| *next == window)
        {
            continue;
        }
        let others = set.interference.iter();
        let others =
            others.map(|other| u128::from(window / other.period + 1) * u128::from(other.cost));
        let load = states + others.sum::<u128>() + u128::from(set.blocking_by(window, queued));
        if window >= shortest && load > u128::from(window) {
            return Some(window);
        }
    }
    None
}

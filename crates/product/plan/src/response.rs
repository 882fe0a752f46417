//! The longest time that a state takes, by channel.
//!
//! Two bounds, both true; the smaller one counts:
//!
//! - With every deadline shortened by the same time, earliest deadline first sends the same packets in the same
//!   order. So if every window of a channel has this much to spare, each of its states is done that much
//!   before its deadline.
//! - M. Spuri, *Analysis of Deadline Scheduled Real-Time Systems*, INRIA RR-2772, 1996: a state that is published so
//!   long after the others have begun is longest in the busy period that ends with it. Closer, and dear: for
//!   sets that are not large.

use crate::demand::{Task, TaskSet};

/// Steps that the closer bound may take for a set before the coarser one has to do.
const EFFORT: u64 = 2_000_000;

/// Sets up to this size have the time to spare computed for each channel, larger ones for all at once.
const SEPARATELY: usize = 500;

/// For each task in the order given, the longest time from publication until it is done, nanoseconds;
/// `None` for one that is not asked about. Meaningful for admitted sets only.
pub fn worst_cases(set: &TaskSet) -> Vec<Option<u64>> {
    let mut worst = vec![None; set.tasks().len()];
    let separately = set.tasks().len() <= SEPARATELY;
    let common = if separately { 0 } else { spare(set, None) };
    let mut effort = EFFORT;
    for (given, task) in set.tasks() {
        if task.blocking.is_none() {
            continue;
        }
        let spare = if separately {
            spare(set, Some(given))
        } else {
            common
        };
        let close = busiest(set, given, task, &mut effort);
        worst[given] = [Some(task.deadline.saturating_sub(spare)), close]
            .into_iter()
            .flatten()
            .min();
    }
    worst
}

/// By how much the deadline of task `only`, or of all, could be shorter without a change in the order of
/// packets, nanoseconds; zero for a set that is refused.
pub fn spare(set: &TaskSet, only: Option<usize>) -> u64 {
    let asked = |given: usize| only.is_none_or(|only| only == given);
    let mut tasks = vec![None; set.tasks().len()];
    for (given, task) in set.tasks() {
        tasks[given] = Some(Task {
            blocking: task.blocking.filter(|_| asked(given)),
            ..task
        });
    }
    let tasks: Vec<Task> = tasks.into_iter().flatten().collect();
    let asked = tasks.iter().filter(|task| task.blocking.is_some());
    let most = asked.map(|task| task.deadline).min().unwrap_or(0);
    let fits = |extra: u64| {
        let longer = |task: &Task| Task {
            blocking: task.blocking.map(|b| b.saturating_add(extra)),
            ..*task
        };
        let tasks: Vec<Task> = tasks.iter().map(longer).collect();
        TaskSet::new(&tasks, set.interference()).is_admitted()
    };
    largest(most, fits)
}

/// The largest number up to `most` that `fits`, if every smaller one fits too; zero if none does.
pub fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut below, mut above) = (0, most.saturating_add(1));
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if fits(middle) {
            below = middle
        } else {
            above = middle
        }
    }
    below
}

/// The longest time from publication to completion over all busy periods; `None` if that takes too long.
fn busiest(set: &TaskSet, given: usize, task: Task, effort: &mut u64) -> Option<u64> {
    let end = busy_period(set, set.most_blocking_of(&task), effort)?;
    let others: Vec<(usize, Task)> = set.tasks().collect();
    let mut starts = Vec::new();
    let last = end.checked_add(task.deadline)?;
    for &(_, other) in &others {
        // The state is published so long after the busy period has begun that with it more becomes urgent.
        let first = other.step_after(0);
        let steps = std::iter::successors(Some(first), |&step| Some(other.step_after(step)));
        for step in steps.take_while(|&step| step <= last) {
            *effort = effort.checked_sub(1)?;
            starts.extend(step.checked_sub(task.deadline));
        }
    }
    starts.push(0);
    starts.sort_unstable();
    starts.dedup();
    let mut worst = 0;
    for start in starts {
        let done = completion(set, &others, (given, task), start, effort)?;
        worst = worst.max(done.saturating_sub(start));
    }
    Some(worst)
}

/// When the state of `task` published `start` after the busy period's begin is done.
fn completion(
    set: &TaskSet,
    others: &[(usize, Task)],
    (given, task): (usize, Task),
    start: u64,
    effort: &mut u64,
) -> Option<u64> {
    let end = start.checked_add(task.deadline)?;
    let blocking = set.blocking_of(&task, end);
    let own = task.demand(end);
    let mut done = u128::from(blocking) + own;
    loop {
        *effort = effort.checked_sub(others.len() as u64)?;
        let at = u64::try_from(done).ok()?;
        let ahead = |&(position, other): &(usize, Task)| {
            if position == given {
                return 0;
            }
            let published = u128::from(at.div_ceil(other.period)) * u128::from(other.cost);
            other.demand(end).min(published + u128::from(other.again))
        };
        let states: u128 = others.iter().map(ahead).sum();
        let messages = set.interference().iter();
        let messages =
            messages.map(|other| u128::from(at / other.period + 1) * u128::from(other.cost));
        let next = u128::from(blocking) + own + states + messages.sum::<u128>();
        if next == done {
            return Some(at);
        }
        done = next;
    }
}

/// The longest time without a pause, from a start in which all channels publish at once.
fn busy_period(set: &TaskSet, blocking: u64, effort: &mut u64) -> Option<u64> {
    let mut length = u128::from(blocking.max(1));
    loop {
        *effort = effort.checked_sub(set.tasks().len() as u64)?;
        let at = u64::try_from(length).ok()?;
        let of_task = |task: Task| {
            u128::from(at.div_ceil(task.period)) * u128::from(task.cost) + u128::from(task.again)
        };
        let states = set.tasks().map(|(_, task)| of_task(task));
        let messages = set.interference().iter();
        let messages =
            messages.map(|other| u128::from(at / other.period + 1) * u128::from(other.cost));
        let next = u128::from(blocking) + states.sum::<u128>() + messages.sum::<u128>();
        if next == length {
            return Some(at);
        }
        length = next;
    }
}

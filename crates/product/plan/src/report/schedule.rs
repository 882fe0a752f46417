//! A schedule: earliest deadline first on one resource, of equal deadlines the lowest channel number (T-10), from a
//! start in which all channels publish at once, every state at its largest and with its whole budget used.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bumpless_base::ChannelId;

use crate::resource::{Blocking, Resource};

/// Most states that are drawn.
const STATES: usize = 1_500;

/// One state of one channel.
#[derive(Clone, Debug)]
pub struct Job {
    /// Position among the resource's tasks.
    pub task: usize,
    /// Which state of the channel, from 1.
    pub number: u64,
    /// When it is published, nanoseconds.
    pub published: u64,
    /// When it must be acknowledged.
    pub deadline: u64,
    /// When it is sent: from, to.
    pub sent: Vec<(u64, u64)>,
}

impl Job {
    /// When its last packet is sent; `None` if that is beyond what is looked at.
    pub fn end(&self, cost: u64) -> Option<u64> {
        let done: u64 = self.sent.iter().map(|(from, to)| to - from).sum();
        (done >= cost).then(|| self.sent.last().map_or(self.published, |&(_, to)| to))
    }
}

/// What is drawn, and of how long a time.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Every state published in that time, by channel.
    pub jobs: Vec<Job>,
    /// Nanoseconds.
    pub length: u64,
    /// Whether that is the hyperperiod, after which everything repeats.
    pub whole: bool,
}

/// The schedule of `resource` over its hyperperiod, or over its first states where that is too long.
pub fn schedule(resource: &Resource) -> Schedule {
    let hyperperiod = hyperperiod(resource);
    let count = |length: u64| -> u64 {
        let periods = resource.tasks.iter().map(|task| task.period);
        periods.map(|period| length.div_ceil(period)).sum()
    };
    let whole = hyperperiod.filter(|&length| count(length) <= STATES as u64);
    let length = whole.unwrap_or_else(|| busy_at_first(resource, &count));
    let mut jobs: Vec<Job> = Vec::new();
    for (at, task) in resource.tasks.iter().enumerate() {
        for number in 0..length.div_ceil(task.period) {
            let published = number * task.period;
            jobs.push(Job {
                task: at,
                number: number + 1,
                published,
                deadline: published + task.deadline,
                sent: Vec::new(),
            });
        }
    }
    send(resource, &mut jobs, length);
    Schedule {
        jobs,
        length,
        whole: whole.is_some(),
    }
}

/// The tasks of which a state is acknowledged too late in the schedule of `resource`.
pub fn late(resource: &Resource) -> Vec<usize> {
    let planned = schedule(resource);
    let is_late = |job: &&Job| {
        let task = &resource.tasks[job.task];
        let waiting = resource.blocking[job.task].as_ref();
        let waiting = waiting.map_or(0, Blocking::total);
        match job.end(task.cost) {
            Some(end) => end.saturating_add(waiting) > job.deadline,
            None => job.deadline <= planned.length,
        }
    };
    let mut late: Vec<usize> = planned
        .jobs
        .iter()
        .filter(is_late)
        .map(|job| job.task)
        .collect();
    late.dedup();
    late
}

/// Sends the jobs in the order of their deadlines until `length`.
fn send(resource: &Resource, jobs: &mut [Job], length: u64) {
    let mut coming: Vec<usize> = (0..jobs.len()).collect();
    coming.sort_by_key(|&at| Reverse((jobs[at].published, at)));
    let mut left: Vec<u64> = jobs
        .iter()
        .map(|job| resource.tasks[job.task].cost)
        .collect();
    let mut ready: BinaryHeap<Reverse<(u64, ChannelId, usize)>> = BinaryHeap::new();
    let mut now = 0;
    while now < length {
        while coming.last().is_some_and(|&at| jobs[at].published <= now) {
            let Some(at) = coming.pop() else { break };
            let job = &jobs[at];
            ready.push(Reverse((job.deadline, resource.ids[job.task], at)));
        }
        let next = coming.last().map_or(length, |&at| jobs[at].published);
        let Some(&Reverse((.., at))) = ready.peek() else {
            now = next;
            continue;
        };
        let until = next.min(now + left[at]).min(length);
        if until > now {
            match jobs[at].sent.last_mut() {
                Some((_, to)) if *to == now => *to = until,
                _ => jobs[at].sent.push((now, until)),
            }
        }
        left[at] -= until - now;
        now = until;
        if left[at] == 0 {
            ready.pop();
        }
    }
}

fn hyperperiod(resource: &Resource) -> Option<u64> {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    resource.tasks.iter().try_fold(1u64, |so_far, task| {
        (so_far / gcd(so_far, task.period)).checked_mul(task.period)
    })
}

/// The time until the resource is idle for the first time, at least the longest deadline and no more than
/// [`STATES`] states take.
fn busy_at_first(resource: &Resource, count: &impl Fn(u64) -> u64) -> u64 {
    let deadlines = resource.tasks.iter().map(|task| task.deadline);
    let mut length = deadlines.max().unwrap_or(1);
    let demand = |length: u64| -> u128 {
        let tasks = resource.tasks.iter();
        tasks
            .map(|task| u128::from(length.div_ceil(task.period)) * u128::from(task.cost))
            .sum()
    };
    while demand(length) > length.into() && count(length * 2) <= STATES as u64 {
        length *= 2;
    }
    // One with a very short period beside a very long one would fill the drawing alone.
    while count(length) > 4 * STATES as u64 {
        length /= 2;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::Task;
    use crate::resource::Kind;
    use bumpless_base::{ChannelId, LinkSet};

    fn ids(numbers: impl Iterator<Item = u16>) -> Vec<ChannelId> {
        numbers.filter_map(ChannelId::new).collect()
    }

    fn resource(tasks: &[(u64, u64, u64)]) -> Resource {
        Resource {
            kind: Kind::Networks(LinkSet::first(1)),
            rate: 1,
            channels: (0..tasks.len()).collect(),
            ids: ids(1..=tasks.len() as u16),
            blocking: vec![None; tasks.len()],
            tasks: tasks
                .iter()
                .map(|&(cost, period, deadline)| Task {
                    cost,
                    period,
                    deadline,
                    blocking: Some(0),
                    again: 0,
                    left: 0,
                    queued: 0,
                    room: 0,
                })
                .collect(),
            interference: Vec::new(),
        }
    }

    #[test]
    fn the_earlier_deadline_goes_first_and_interrupts() {
        let schedule = schedule(&resource(&[(2, 10, 5), (9, 30, 30)]));
        assert!(schedule.whole);
        assert_eq!((schedule.length, schedule.jobs.len()), (30, 4));
        assert_eq!(schedule.jobs[0].sent, [(0, 2)]);
        assert_eq!(schedule.jobs[1].sent, [(10, 12)]);
        assert_eq!(schedule.jobs[3].sent, [(2, 10), (12, 13)]);
        assert_eq!(schedule.jobs[3].end(9), Some(13));
    }

    #[test]
    fn of_equal_deadlines_the_lowest_channel_number_goes_first() {
        let mut resource = resource(&[(2, 10, 10), (3, 10, 10), (1, 10, 10)]);
        resource.ids = ids([7, 9, 3].into_iter());
        let jobs = schedule(&resource).jobs;
        let sent: Vec<_> = jobs.iter().map(|job| job.sent.as_slice()).collect();
        assert_eq!(sent, [[(1, 3)], [(3, 6)], [(0, 1)]]);
    }

    #[test]
    fn a_hyperperiod_without_end_is_cut() {
        let schedule = schedule(&resource(&[
            (2, 9_999_991, 9_999_991),
            (9, 9_999_973, 100),
            (1, 7_919, 7_919),
        ]));
        assert!(!schedule.whole);
        assert!(schedule.length >= 9_999_991 && schedule.jobs.len() <= 4 * STATES);
    }
}

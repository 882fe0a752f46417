//! What is going to happen, in order of true time; what was planned first comes first.
//!
//! There are some tens of plans, most of them for soon, at the end of a list in order: nothing is cheaper.

/// A step in changing a key, at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStep {
    /// The secret is given to the data plane for opening.
    Open,
    /// Whether it was taken is looked at; then the other end is told.
    Look,
    /// The other end has it: this one seals with it.
    Seal,
}

/// Something that will happen. Positions are those of the configuration; a `serial` that is no
/// longer the present one marks a plan that was given up. Turns of data planes are not among it:
/// they are put off and brought forward far too often for a queue (see `World::run`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An application's thread goes on.
    Application { node: u8, app: u16, serial: u32 },
    /// A datagram is there.
    Arrival { packet: u32 },
    /// A request is at a field device, or its answer back.
    Request { request: u32 },
    /// A fault of the script begins.
    FaultBegins { fault: u32 },
    /// It ends.
    FaultEnds { fault: u32 },
    /// A fault that acts again and again acts.
    FaultActs { fault: u32 },
    /// A node that ended by itself is started again.
    Restart { node: u8, incarnation: u32 },
    /// A node goes on with a change of its configuration.
    Change { node: u8, incarnation: u32 },
    /// An end takes a step in changing to the key of this number.
    Key { end: u8, number: u32, step: KeyStep },
    /// A packet comes to a node of the wide-area network.
    Hop { flight: u32 },
    /// Links of that network change.
    Step { step: u32 },
    /// Its routers may find out of changes.
    Converge,
    /// Whether the pair has healed is looked at.
    Look,
}

/// An event to come.
struct Planned {
    at: u64,
    what: What,
}

/// The plan of the world, and its true time.
#[derive(Default)]
pub struct Queue {
    /// The next stands last; of two at the same time, the one that was planned first.
    plans: Vec<Planned>,
    now: u64,
}

impl Queue {
    /// True time, nanoseconds since the world began.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Plans `what` for `at`, at once if that has passed.
    pub fn push(&mut self, at: u64, what: What) {
        let at = at.max(self.now);
        let later = self.plans.iter().rposition(|other| other.at > at);
        let place = later.map_or(0, |last| last + 1);
        self.plans.insert(place, Planned { at, what });
    }

    /// Plans all of `plans`, as [`push`](Self::push) would one after the other: of many to come, each would move
    /// those before it.
    pub fn push_all(&mut self, plans: impl DoubleEndedIterator<Item = (u64, What)>) {
        let now = self.now;
        let planned = |(at, what): (u64, What)| Planned {
            at: at.max(now),
            what,
        };
        let earlier = std::mem::take(&mut self.plans);
        self.plans.extend(plans.rev().map(planned));
        self.plans.extend(earlier);
        // Stable, so that of those at the same time the first planned stays the last.
        self.plans.sort_by_key(|plan| std::cmp::Reverse(plan.at));
    }

    /// Goes on to `at`, before which nothing is planned, if that has not passed.
    pub fn go_on_to(&mut self, at: u64) {
        self.now = self.now.max(at);
    }

    /// Goes on to the next event, if there is one not after `end`.
    pub fn pop(&mut self, end: u64) -> Option<What> {
        let next = self.plans.pop_if(|next| next.at <= end)?;
        self.now = next.at;
        Some(next.what)
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::Random;

    use super::*;

    #[test]
    fn events_come_in_order_of_time_then_of_planning_and_never_in_the_past() {
        let mut queue = Queue::default();
        let fault = |fault| What::FaultActs { fault };
        for (at, id) in [(30, 0), (10, 1), (30, 2), (20, 3)] {
            queue.push(at, fault(id));
        }
        assert_eq!(queue.pop(25), Some(fault(1)));
        assert_eq!(queue.pop(25), Some(fault(3)));
        assert_eq!(queue.pop(25), None);
        queue.go_on_to(25);
        queue.push(5, fault(4));
        assert_eq!((queue.pop(40), queue.now()), (Some(fault(4)), 25));
        assert_eq!(
            (queue.pop(40), queue.pop(40)),
            (Some(fault(0)), Some(fault(2)))
        );
    }

    #[test]
    fn many_plans_at_once_come_as_if_planned_one_after_the_other() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let (mut queues, mut id) = ([Queue::default(), Queue::default()], 0);
            let mut draw = |count: u64| -> Vec<(u64, What)> {
                let drawn = (0..count).map(|_| {
                    id += 1;
                    (random.below(9), What::FaultActs { fault: id })
                });
                drawn.collect()
            };
            for (at, what) in draw(5) {
                queues.iter_mut().for_each(|queue| queue.push(at, what));
            }
            queues.iter_mut().for_each(|queue| queue.go_on_to(2));
            let many = draw(20);
            queues[0].push_all(many.iter().copied());
            many.iter().for_each(|&(at, what)| queues[1].push(at, what));
            for (at, what) in draw(5) {
                queues.iter_mut().for_each(|queue| queue.push(at, what));
            }
            for _ in 0..31 {
                let [all, each] = queues.each_mut().map(|queue| queue.pop(9));
                assert_eq!(all, each);
            }
        }
    }

    #[test]
    fn events_come_in_the_order_of_time_and_then_of_planning() {
        let mut random = Random::new(11);
        let (mut queue, mut list) = (Queue::default(), Vec::new());
        for id in 0..5_000 {
            let reach = 1 << (4 + random.below(24));
            let at = queue.now() + random.below(reach);
            queue.push(at, What::Arrival { packet: id });
            list.push((at, id));
            let end = queue.now() + random.below(1 << 14);
            while random.chance(0.6) {
                let next = list.iter().enumerate().min_by_key(|(_, plan)| **plan);
                let next = next.filter(|(_, plan)| plan.0 <= end).map(|(at, _)| at);
                let expected = next.map(|at| list.swap_remove(at).1);
                let got = queue.pop(end);
                assert_eq!(got, expected.map(|packet| What::Arrival { packet }));
            }
            if random.chance(0.1) && list.iter().all(|plan| plan.0 >= end) {
                queue.go_on_to(end);
            }
        }
    }
}

//! What is going to happen, in order of true time; what was planned first comes first.
//!
//! Most of it is datagrams that arrive within a millisecond. They lie in buckets of a few microseconds,
//! each put in order when its time comes; what is further away waits in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
    /// Whether the pair has healed is looked at.
    Look,
}

/// A bucket holds two to this power nanoseconds.
const WIDTH: u32 = 13;
/// Buckets beyond the one in use.
const BUCKETS: u64 = 256;

#[derive(Clone, Copy)]
struct Planned {
    at: u64,
    serial: u64,
    what: What,
}

impl Planned {
    fn order(&self) -> (u64, u64) {
        (self.at, self.serial)
    }

    fn bucket(&self) -> u64 {
        self.at >> WIDTH
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

/// The plan of the world, and its true time.
pub struct Queue {
    /// All that is planned up to the end of the bucket in use, but for what the heap has; the next
    /// stands last.
    near: Vec<Planned>,
    /// The number of the bucket in use, counted from the beginning of the world.
    present: u64,
    /// The buckets after it, each at its number modulo [`BUCKETS`], in no order.
    buckets: Vec<Vec<Planned>>,
    /// A bit for each bucket that is not empty.
    filled: [u64; (BUCKETS / 64) as usize],
    far: BinaryHeap<Reverse<Planned>>,
    /// No event is before this: most looks find that the next one is not due.
    first: u64,
    serial: u64,
    now: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            near: Vec::new(),
            present: 0,
            buckets: vec![Vec::new(); BUCKETS as usize],
            filled: [0; (BUCKETS / 64) as usize],
            far: BinaryHeap::new(),
            first: u64::MAX,
            serial: 0,
            now: 0,
        }
    }
}

impl Queue {
    /// True time, nanoseconds since the world began.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Plans `what` for `at`, at once if that has passed.
    pub fn push(&mut self, at: u64, what: What) {
        self.serial += 1;
        let planned = Planned {
            at: at.max(self.now),
            serial: self.serial,
            what,
        };
        self.first = self.first.min(planned.at);
        let bucket = planned.bucket();
        if bucket <= self.present {
            // What was planned before comes first at the same time, so it stands behind.
            let place = self.near.partition_point(|other| other.at > planned.at);
            self.near.insert(place, planned);
        } else if bucket - self.present < BUCKETS {
            let place = (bucket % BUCKETS) as usize;
            self.buckets[place].push(planned);
            self.filled[place / 64] |= 1 << (place % 64);
        } else {
            self.far.push(Reverse(planned));
        }
    }

    /// Goes on to `at`, before which nothing is planned, if that has not passed.
    pub fn go_on_to(&mut self, at: u64) {
        self.now = self.now.max(at);
    }

    /// Goes on to the next event, if there is one not after `end`.
    pub fn pop(&mut self, end: u64) -> Option<What> {
        if self.first > end {
            return None;
        }
        if self.near.is_empty() {
            self.turn_to_next_bucket();
        }
        let near = self.near.last();
        let far = self.far.peek().map(|far| &far.0);
        let next = match (near, far) {
            (Some(near), Some(far)) => *near.min(far),
            (Some(only), None) | (None, Some(only)) => *only,
            (None, None) => {
                self.first = u64::MAX;
                return None;
            }
        };
        self.first = next.at;
        if next.at > end {
            return None;
        }
        if near.is_some_and(|near| near.serial == next.serial) {
            self.near.pop();
        } else {
            self.far.pop();
        }
        self.now = next.at;
        Some(next.what)
    }

    /// Takes the next bucket into use that is not empty; all are behind the one in use.
    fn turn_to_next_bucket(&mut self) {
        let Some(ahead) = self.next_filled() else {
            // A plan for soon is then soon after this one.
            self.present = self.present.max(self.now >> WIDTH);
            return;
        };
        self.present += ahead;
        let place = (self.present % BUCKETS) as usize;
        self.filled[place / 64] &= !(1 << (place % 64));
        std::mem::swap(&mut self.near, &mut self.buckets[place]);
        if self.near.len() > 1 {
            self.near
                .sort_unstable_by_key(|planned| Reverse(planned.order()));
        }
    }

    /// How many buckets ahead the next one stands that is not empty.
    fn next_filled(&self) -> Option<u64> {
        let start = self.present + 1;
        let mut ahead = 0;
        while ahead < BUCKETS {
            let place = (start + ahead) % BUCKETS;
            let rest = self.filled[(place / 64) as usize] >> (place % 64);
            if rest != 0 {
                return Some(1 + ahead + u64::from(rest.trailing_zeros()));
            }
            ahead += 64 - place % 64;
        }
        None
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
    fn plans_near_and_far_come_in_the_order_of_a_sorted_list() {
        let mut random = Random::new(11);
        let (mut queue, mut list) = (Queue::default(), Vec::new());
        for id in 0..5_000 {
            // From within a bucket to beyond all of them.
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

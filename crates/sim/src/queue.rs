//! What is going to happen, in order of true time; what was planned first comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that will happen. Positions are those of the configuration; a `serial` that is no
/// longer the present one marks a plan that was given up. Turns of data planes are not among it:
/// they are put off and brought forward far too often for a heap (see `World::run`).
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
    /// Whether the pair has healed is looked at.
    Look,
}

struct Planned {
    at: u64,
    serial: u64,
    what: What,
}

impl Planned {
    fn order(&self) -> (u64, u64) {
        (self.at, self.serial)
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
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Planned>>,
    serial: u64,
    now: u64,
}

impl Queue {
    /// True time, nanoseconds since the world began.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Plans `what` for `at`, at once if that has passed.
    pub fn push(&mut self, at: u64, what: What) {
        self.serial += 1;
        self.heap.push(Reverse(Planned {
            at: at.max(self.now),
            serial: self.serial,
            what,
        }));
    }

    /// Goes on to `at`, before which nothing is planned, if that has not passed.
    pub fn go_on_to(&mut self, at: u64) {
        self.now = self.now.max(at);
    }

    /// Goes on to the next event, if there is one not after `end`.
    pub fn pop(&mut self, end: u64) -> Option<What> {
        if self.heap.peek().is_none_or(|next| next.0.at > end) {
            return None;
        }
        let Reverse(next) = self.heap.pop()?;
        self.now = next.at;
        Some(next.what)
    }
}

#[cfg(test)]
mod tests {
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
}

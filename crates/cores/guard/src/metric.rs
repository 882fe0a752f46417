//! What shows that the network takes too much of the processor (5.2.1).

use bumpless_base::{Duration, Instant};

/// By how much a job of the critical task was in time, or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earliness {
    /// The duration that the task may take.
    pub target: Duration,
    /// What it took from its release to its end.
    pub took: Duration,
}

impl Earliness {
    /// The laxity that was left; zero for a late job.
    pub fn left(&self) -> Duration {
        self.target - self.took
    }

    /// By how much it was late; zero for one in time.
    pub fn lateness(&self) -> Duration {
        self.took - self.target
    }

    /// Whether more than `percent` of the target was used up.
    pub fn is_beyond(&self, percent: u32) -> bool {
        u128::from(self.took.as_nanos()) * 100
            > u128::from(self.target.as_nanos()) * u128::from(percent)
    }
}

/// Packets in the present slice of time. A slice begins with the first packet after the end of the one before.
#[derive(Clone, Debug)]
pub struct SliceCount {
    length: Duration,
    end: Instant,
    count: u32,
}

impl SliceCount {
    /// A count in slices of `length`.
    pub const fn new(length: Duration) -> Self {
        Self {
            length,
            end: Instant::ZERO,
            count: 0,
        }
    }

    /// A packet at `now`; returns the number in its slice.
    pub fn add(&mut self, now: Instant) -> u32 {
        if now >= self.end {
            self.end = now + self.length;
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// When the present slice ends.
    pub fn end(&self) -> Instant {
        self.end
    }
}

/// How full the queue between interrupt and driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Packets that wait.
    pub waiting: u32,
    /// Packets that can wait.
    pub capacity: u32,
}

impl Fill {
    /// Whether no further packet fits.
    pub fn is_full(&self) -> bool {
        self.waiting >= self.capacity
    }
}

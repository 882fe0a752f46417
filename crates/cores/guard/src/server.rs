//! The deferrable server (2.1.2): so many frames in a period, whenever in it they come.

use bumpless_base::{Duration, Instant};

use crate::flow::Rate;

/// A budget of frames that is whole again at the beginning of each period.
///
/// In any span it lets through at most `capacity * (ceil(span / period) + 1)`: a budget may be used at the end of one period and
/// the next one's right after it.
#[derive(Clone, Debug)]
pub struct DeferrableServer {
    capacity: u32,
    left: u32,
    period: Duration,
    /// When the budget is whole again.
    renewal: Instant,
}

impl DeferrableServer {
    /// A server whose first period begins at `now`.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self {
            capacity: rate.capacity,
            left: rate.capacity,
            period: rate.period,
            renewal: now + rate.period,
        }
    }

    /// What is left of the budget at `now`. Time that goes back changes nothing.
    pub fn left(&mut self, now: Instant) -> u32 {
        if now >= self.renewal {
            self.renew(now);
        }
        self.left
    }

    /// Takes one frame's budget; `false` if none is left.
    pub fn take(&mut self, now: Instant) -> bool {
        let left = self.left(now);
        self.left = left.saturating_sub(1);
        left > 0
    }

    /// When the next period begins.
    pub fn renewal(&self) -> Instant {
        self.renewal
    }

    /// Out of the way of frames within a period: the division takes as long as the rest of a decision.
    #[cold]
    fn renew(&mut self, now: Instant) {
        let missed = now.since(self.renewal).as_nanos() / self.period.as_nanos().max(1);
        self.renewal += self.period * missed.saturating_add(1);
        self.left = self.capacity;
    }
}

//! A record of how late a thread woke, so that a miss can be told from a stall of the machine.

use crate::clock::Clock;
use bumpless_base::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// A time in which the machine did not run a thread that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the thread was due.
    pub asked: Instant,
    /// When it ran.
    pub woke: Instant,
}

impl Stall {
    /// How late it was.
    pub const fn length(&self) -> Duration {
        self.woke.since(self.asked)
    }
}

/// Counts wake-ups, and remembers the last ones that were late by a threshold or more.
/// Memory is taken at construction.
#[derive(Clone, Debug)]
pub struct JitterMeter {
    threshold: Duration,
    capacity: usize,
    wakes: u64,
    stalled: u64,
    longest: Duration,
    stalls: VecDeque<Stall>,
}

impl JitterMeter {
    /// Remembers the last `capacity` stalls (at least one) of `threshold` or more.
    pub fn new(threshold: Duration, capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            threshold,
            capacity,
            wakes: 0,
            stalled: 0,
            longest: Duration::ZERO,
            stalls: VecDeque::with_capacity(capacity),
        }
    }

    /// Notes that a thread asked to wake at `asked` and woke at `woke`.
    pub fn record(&mut self, asked: Instant, woke: Instant) {
        let stall = Stall { asked, woke };
        self.wakes += 1;
        self.longest = self.longest.max(stall.length());
        if stall.length() < self.threshold {
            return;
        }
        self.stalled += 1;
        if self.stalls.len() == self.capacity {
            self.stalls.pop_front();
        }
        self.stalls.push_back(stall);
    }

    /// Wakes every `period` until `stop` is set, and records each time. For a thread of its own.
    pub fn run(&mut self, period: Duration, stop: &AtomicBool) {
        let clock = Clock;
        while !stop.load(Ordering::Relaxed) {
            let asked = clock.now() + period;
            let woke = clock.sleep_until(asked);
            self.record(asked, woke);
        }
    }

    /// Wake-ups recorded.
    pub const fn wakes(&self) -> u64 {
        self.wakes
    }

    /// How many of them were late by the threshold or more.
    pub const fn stalled(&self) -> u64 {
        self.stalled
    }

    /// The latest that a wake-up ever was.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// The remembered stalls, oldest first.
    pub fn stalls(&self) -> impl Iterator<Item = &Stall> {
        self.stalls.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn meter_with(lateness: &[u64]) -> JitterMeter {
        let mut meter = JitterMeter::new(Duration::from_micros(100), 3);
        for (&late, n) in lateness.iter().zip(0..) {
            meter.record(at(n * 10_000), at(n * 10_000 + late));
        }
        meter
    }

    #[test]
    fn only_stalls_of_the_threshold_or_more_are_remembered() {
        let meter = meter_with(&[5, 100, 99, 0, 700]);
        assert_eq!((meter.wakes(), meter.stalled()), (5, 2));
        assert_eq!(meter.longest(), Duration::from_micros(700));
        assert_eq!(
            meter.stalls().map(|stall| stall.asked).collect::<Vec<_>>(),
            [at(10_000), at(40_000)]
        );
    }

    #[test]
    fn memory_is_bounded_and_the_last_stalls_stay() {
        let meter = meter_with(&[100, 200, 300, 400, 500]);
        assert_eq!(meter.stalled(), 5);
        let kept: Vec<u64> = meter
            .stalls()
            .map(|stall| stall.length().as_micros())
            .collect();
        assert_eq!(kept, [300, 400, 500]);
    }
}

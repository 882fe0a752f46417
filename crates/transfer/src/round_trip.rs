//! Round-trip times of one peer on one link.

use bumpless_base::{Duration, Instant};

/// Neither a first probe nor a retransmission is sent earlier than this after the expected answer: the
/// resolution of sleeping drivers and the reordering inside one network.
const GRANULARITY: Duration = Duration::from_micros(100);

/// Smoothed round trip and its variation (RFC 6298, without its 1 s floor).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    measured: bool,
    /// When an answer was last taken for a measurement.
    answered_at: Instant,
}

impl RoundTrip {
    pub fn new(initial: Duration) -> Self {
        Self {
            smoothed: initial,
            variation: initial / 2,
            measured: false,
            answered_at: Instant::ZERO,
        }
    }

    /// Takes into account that what was sent at `left` was answered at `now`, unless it left before the
    /// last measurement was made: all that was under way while a machine stood still is late by the
    /// same stall, which counts once.
    pub fn answered(&mut self, left: Instant, now: Instant) {
        if self.answered_at <= left {
            self.answered_at = now;
            self.sample(now.since(left));
        }
    }

    /// Takes a measurement into account, one that is beyond the patience as the patience: a thread or a
    /// machine that stood still once says little of the network, and hundreds of later measurements
    /// would have to make it good. A way that has become longer is learned all the same, as the
    /// patience grows with each.
    pub fn sample(&mut self, measured: Duration) {
        if !self.measured {
            self.measured = true;
            self.smoothed = measured;
            self.variation = measured / 2;
            return;
        }
        let measured = measured.min(self.patience());
        let error = if measured > self.smoothed {
            measured - self.smoothed
        } else {
            self.smoothed - measured
        };
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + measured) / 8;
    }

    /// Smoothed round trip.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// As long as an answer takes as a rule.
    pub fn usual(&self) -> Duration {
        self.smoothed + self.variation
    }

    /// An answer that is not there so long after the last packet is worth a question.
    pub fn overdue(&self) -> Duration {
        self.smoothed + self.variation.max(GRANULARITY)
    }

    /// An answer that is not there so long after sending is not under way any more.
    pub fn patience(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY)
    }

    /// The instant at which patience with a packet sent at `sent` ends.
    pub fn overdue_at(&self, sent: Instant) -> Instant {
        sent + self.patience()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn known(round_trip: Duration) -> RoundTrip {
        let mut known = RoundTrip::new(Duration::from_millis(1));
        (0..50).for_each(|_| known.sample(round_trip));
        known
    }

    fn at(millisecond: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millisecond)
    }

    #[test]
    fn one_stall_does_not_make_patience_as_long_as_the_stall() {
        let mut known = known(Duration::from_micros(60));
        let before = known.patience();
        known.sample(Duration::from_millis(50));
        assert!(known.patience() < before * 3, "{}", known.patience());
    }

    #[test]
    fn a_way_that_has_become_a_thousand_times_longer_is_learned_within_twenty_measurements() {
        let mut known = known(Duration::from_micros(60));
        let longer = Duration::from_millis(60);
        (0..20).for_each(|_| known.sample(longer));
        assert!(known.patience() > longer, "{}", known.patience());
    }

    #[test]
    fn a_stall_that_delays_many_answers_counts_once() {
        let mut once = known(Duration::from_micros(60));
        let mut often = once;
        once.answered(at(100), at(103));
        for n in 0..30 {
            often.answered(at(100) + Duration::from_micros(100) * n, at(103));
        }
        assert_eq!(often.patience(), once.patience());
        often.answered(at(103), at(103) + Duration::from_micros(60));
        assert!(often.patience() < once.patience());
    }
}

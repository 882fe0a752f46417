//! Round-trip times of one peer on one link.

use bumpless_base::probing::{GRANULARITY, LEAST};
use bumpless_base::{Duration, Instant};

/// The shortest measurement is kept of the last so many to twice as many.
const RECENT: u8 = 16;
/// An answer that takes so many times as long as the shortest of late is held up by a machine, not by the
/// network.
const HELD_UP: u64 = 4;

/// Smoothed round trip and its variation (RFC 6298, without its 1 s floor).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    measured: bool,
    /// The shortest of the last complete [`RECENT`] measurements, and the shortest of those since.
    shortest: (Duration, Duration),
    /// Measurements since the last complete [`RECENT`].
    since: u8,
    /// When an answer was last taken for a measurement.
    answered_at: Instant,
    /// How much later an answer may come because other frames went first, F of T-23: matters on a slow network.
    blocking: Duration,
    /// Derived from the above, and kept because they are asked for much more often than they change.
    expected: Duration,
    overdue: Duration,
}

impl RoundTrip {
    /// Nothing is measured; `blocking`: see [`bumpless_base::pacing::blocking`].
    pub fn new(initial: Duration, blocking: Duration) -> Self {
        let mut known = Self {
            smoothed: initial,
            variation: initial / 2,
            measured: false,
            shortest: (Duration::MAX, Duration::MAX),
            since: 0,
            answered_at: Instant::ZERO,
            blocking,
            expected: Duration::ZERO,
            overdue: Duration::ZERO,
        };
        known.conclude();
        known
    }

    /// The link's bandwidth is another one.
    pub fn set_blocking(&mut self, blocking: Duration) {
        self.blocking = blocking;
        self.conclude();
    }

    /// Takes into account that what was sent at `left` was answered at `now`, unless it left before the
    /// last measurement was made: all that was under way while a machine stood still is late by the
    /// same stall, which counts once. `asked`: it was sent again before the answer came.
    ///
    /// Such an answer counts as one that came just when it was asked for: it was held up by a machine, as a
    /// rule. If the way has become longer, the shortest measurement of late says so.
    pub fn answered(&mut self, left: Instant, now: Instant, asked: bool) {
        if self.answered_at > left {
            return;
        }
        self.answered_at = now;
        let limit = if asked { self.overdue } else { Duration::MAX };
        self.note_shortest(now.since(left));
        self.smooth(now.since(left).min(limit));
    }

    /// Takes a measurement into account, one that is beyond the probe timeout as the probe timeout: a thread or a
    /// machine that stood still once says little of the network, and hundreds of later measurements
    /// would have to make it good. A way that has become longer is learned all the same, as the
    /// probe timeout grows with each.
    pub fn sample(&mut self, measured: Duration) {
        self.note_shortest(measured);
        self.smooth(measured);
    }

    fn note_shortest(&mut self, measured: Duration) {
        self.shortest.1 = self.shortest.1.min(measured);
        self.since += 1;
        if self.since == RECENT {
            self.shortest = (self.shortest.1, Duration::MAX);
            self.since = 0;
        }
    }

    fn smooth(&mut self, measured: Duration) {
        if !self.measured {
            self.measured = true;
            self.smoothed = measured;
            self.variation = measured / 2;
            return self.conclude();
        }
        let measured = measured.min(self.probe_timeout());
        let error = if measured > self.smoothed {
            measured - self.smoothed
        } else {
            self.smoothed - measured
        };
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + measured) / 8;
        self.conclude();
    }

    fn conclude(&mut self) {
        let smoothed = self.within_reason(self.smoothed);
        let expected = self.within_reason(self.smoothed + self.variation);
        self.expected = expected.max(smoothed + self.blocking).max(LEAST);
        self.overdue = (smoothed + GRANULARITY).max(self.expected);
    }

    /// Smoothed round trip.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// How long an answer takes as a rule, on machines that do not stand still.
    pub fn expected(&self) -> Duration {
        self.expected
    }

    /// How long after the last packet the first probe leaves if no answer has come, W of T-23.
    pub fn overdue(&self) -> Duration {
        self.overdue
    }

    /// Not below the shortest of late, and not so far above it that only a machine that stands still can
    /// take as long.
    fn within_reason(&self, time: Duration) -> Duration {
        match self.shortest.0.min(self.shortest.1) {
            Duration::MAX => time,
            shortest => time.clamp(shortest, shortest * HELD_UP),
        }
    }

    /// An answer that has not come so long after its packet was sent is not under way any more (T-19).
    pub fn probe_timeout(&self) -> Duration {
        let least = GRANULARITY.max(self.blocking);
        self.smoothed + (self.variation * 4).max(least)
    }

    /// The instant at which the probe timeout for a packet sent at `sent` ends.
    pub fn overdue_at(&self, sent: Instant) -> Instant {
        sent + self.probe_timeout()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn known(round_trip: Duration) -> RoundTrip {
        let mut known = RoundTrip::new(Duration::from_millis(1), Duration::ZERO);
        (0..50).for_each(|_| known.sample(round_trip));
        known
    }

    fn at(millisecond: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millisecond)
    }

    #[test]
    fn one_stall_does_not_make_the_probe_timeout_as_long_as_the_stall() {
        let mut known = known(Duration::from_micros(60));
        let before = known.probe_timeout();
        known.sample(Duration::from_millis(50));
        assert!(
            known.probe_timeout() < before * 3,
            "{}",
            known.probe_timeout()
        );
    }

    #[test]
    fn a_thousand_times_longer_way_is_learned_within_twenty_measurements() {
        let mut known = known(Duration::from_micros(60));
        let longer = Duration::from_millis(60);
        (0..20).for_each(|_| known.sample(longer));
        assert!(known.probe_timeout() > longer, "{}", known.probe_timeout());
    }

    #[test]
    fn however_often_machines_stall_a_probe_waits_a_few_round_trips() {
        let mut known = known(Duration::from_micros(60));
        for _ in 0..100 {
            (0..5).for_each(|_| known.sample(Duration::from_millis(3)));
            known.sample(Duration::from_micros(60));
        }
        assert_eq!(known.overdue(), Duration::from_micros(340));
        (0..32).for_each(|_| known.sample(Duration::from_millis(3)));
        assert!(known.overdue() >= Duration::from_millis(3));
    }

    #[test]
    fn on_a_slow_network_a_frame_that_goes_first_causes_no_probe() {
        let mut known = RoundTrip::new(Duration::from_millis(1), Duration::from_micros(250));
        (0..50).for_each(|_| known.sample(Duration::from_micros(60)));
        let waits = [known.expected(), known.overdue(), known.probe_timeout()];
        assert_eq!(waits, [Duration::from_micros(310); 3]);
    }

    #[test]
    fn a_stall_that_delays_many_answers_counts_once() {
        let mut once = known(Duration::from_micros(60));
        let mut often = once;
        once.answered(at(100), at(103), false);
        for n in 0..30 {
            often.answered(at(100) + Duration::from_micros(100) * n, at(103), false);
        }
        assert_eq!(often.probe_timeout(), once.probe_timeout());
        often.answered(at(103), at(103) + Duration::from_micros(60), false);
        assert!(often.probe_timeout() < once.probe_timeout());
    }
}

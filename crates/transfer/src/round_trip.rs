//! Round-trip times of one peer on one link.

use bumpless_base::{Duration, Instant};

/// Neither a probe nor a retransmission is sent earlier than this after the expected answer: the
/// resolution of sleeping drivers and the reordering inside one network.
const GRANULARITY: Duration = Duration::from_micros(100);

/// Smoothed round trip and its variation (RFC 6298, without its 1 s floor).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    measured: bool,
}

impl RoundTrip {
    pub fn new(initial: Duration) -> Self {
        Self {
            smoothed: initial,
            variation: initial / 2,
            measured: false,
        }
    }

    /// Takes a measurement into account.
    pub fn sample(&mut self, measured: Duration) {
        if !self.measured {
            *self = Self::new(measured);
            self.measured = true;
            return;
        }
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

    /// An answer that is not there so long after sending is not under way any more.
    pub fn patience(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY)
    }

    /// The instant at which patience with a packet sent at `sent` ends.
    pub fn overdue_at(&self, sent: Instant) -> Instant {
        sent + self.patience()
    }
}

//! When a partner that was lost was there last: a state that comes from it later counts as no younger.

use bumpless_base::{Duration, Instant};

/// When a partner was there last.
///
/// A heartbeat that answers one of this node's was sent after that had left, and later by as long as it says that it
/// held the answer. One that answers nothing new was sent as much later as the partner's clock says. Both hold however
/// long they were on their way. The partner's clock may be the faster one by as much as clocks drift apart.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Presence {
    drift_ppm: u32,
    /// When the last heartbeat that answered one of this node's was sent: by the partner's clock, and, at the earliest,
    /// by this node's.
    answer: Option<(u64, Instant)>,
    /// When earlier processes of the partner were there last.
    before: Option<Instant>,
}

impl Presence {
    /// Of a partner that was never there.
    pub(crate) const fn never(drift_ppm: u32) -> Self {
        Self {
            drift_ppm,
            answer: None,
            before: None,
        }
    }

    /// A heartbeat that was sent at `sent_at`, by the partner's clock, answers what this node sent at `echo`, which
    /// the partner had held for so long. It replaces an earlier one, even if that one and the partner's clock would
    /// give a later time: the earlier time is the safe one.
    pub(crate) fn answered(
        &mut self,
        sent_at: u64,
        (echo, held): (Instant, Duration),
        now: Instant,
    ) {
        let (sent, known) = self.answer.unwrap_or_default();
        if sent_at <= sent {
            return;
        }
        let earliest = (echo + self.at_least(held)).min(now);
        if earliest > known {
            self.answer = Some((sent_at, earliest));
        }
    }

    /// When it was there last, by this node's clock, if its newest heartbeat was sent at `newest` by its own.
    pub(crate) fn last(&self, newest: u64) -> Option<Instant> {
        let later = |(sent_at, earliest): (u64, Instant)| {
            let since = newest.saturating_sub(sent_at);
            earliest + self.at_least(Duration::from_nanos(since))
        };
        self.answer.map(later).or(self.before)
    }

    /// How long a span of the partner's clock has lasted by this node's, at least.
    fn at_least(&self, span: Duration) -> Duration {
        let drift = span.stretched(self.drift_ppm).saturating_sub(span);
        span.saturating_sub(drift)
    }

    /// Its process has ended, whose newest heartbeat was sent at `newest`: the next one's clock may be another.
    pub(crate) fn forget_session(&mut self, newest: u64) {
        (self.before, self.answer) = (self.last(newest), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_heartbeat_without_an_answer_is_dated_by_the_partners_clock() {
        let mut presence = Presence::never(0);
        assert_eq!(presence.last(77), None);
        presence.answered(1_000, (at(50), Duration::ZERO), at(50));
        presence.answered(900, (at(60), Duration::ZERO), at(60));
        presence.answered(1_100, (at(40), Duration::ZERO), at(40));
        assert_eq!(presence.last(1_000), Some(at(50)));
        assert_eq!(presence.last(1_700), Some(at(750)));
        assert_eq!(presence.last(10), Some(at(50)), "a clock that went back");
    }

    #[test]
    fn a_later_process_counts_from_its_first_answer_on() {
        let mut presence = Presence::never(0);
        presence.answered(1_000, (at(50), Duration::ZERO), at(50));
        presence.forget_session(1_200);
        assert_eq!(presence.last(9_999), Some(at(250)));
        presence.answered(9_000, (at(300), Duration::ZERO), at(300));
        assert_eq!(presence.last(9_100), Some(at(400)));
    }

    #[test]
    fn a_faster_clock_of_the_partner_makes_its_presence_no_later() {
        let mut presence = Presence::never(500);
        let held = Duration::from_nanos(1_000_000);
        presence.answered(7, (at(50), held), at(2_000_000));
        assert_eq!(presence.last(7), Some(at(50 + 999_500)));
        assert_eq!(presence.last(2_000_007), Some(at(50 + 999_500 + 1_999_000)));
    }
}

//! One network of a session: where copies go, and how long answers take.

use crate::counters::Departures;
use crate::ind::Ind;
use bumpless_base::{Duration, Instant};
use core::net::IpAddr;

/// Before anything was measured, an answer is waited for this long.
const INITIAL: Duration = Duration::from_millis(100);
/// An answer that takes longer is not measured.
const LONGEST: Duration = Duration::from_secs(2);
/// Added to what was measured: the receiver's process may have been busy.
const GRANULARITY: Duration = Duration::from_millis(2);

/// Round trips as RFC 6298 smooths them, with milliseconds instead of its floor of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
}

impl RoundTrip {
    pub(crate) fn measure(&mut self, sample: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample / 2;
            }
            Some(before) => {
                let off = before.saturating_sub(sample) + sample.saturating_sub(before);
                self.variation = (self.variation * 3 + off) / 4;
                self.smoothed = Some((before * 7 + sample) / 8);
            }
        }
    }

    pub(crate) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// How long an answer may take before it counts as lost.
    pub(crate) fn timeout(&self) -> Duration {
        self.smoothed.map_or(INITIAL, |smoothed| {
            smoothed + (self.variation * 4).min(smoothed) + GRANULARITY
        })
    }
}

/// One network of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub ind: Ind,
    pub to: IpAddr,
    /// Whether this host is on the network.
    pub usable: bool,
    /// Advertisements in a row that have not named it.
    pub missed: u8,
    pub departures: Departures,
    pub round_trip: RoundTrip,
    /// The question whose answer is measured, and when it was asked: the first one since the last answer.
    pub asked: Option<(u32, Instant)>,
    /// The latest question that was answered.
    pub answered: Option<u32>,
}

impl Path {
    pub(crate) fn new(ind: Ind, to: IpAddr, usable: bool) -> Self {
        Self {
            ind,
            to,
            usable,
            missed: 0,
            departures: Departures::default(),
            round_trip: RoundTrip::default(),
            asked: None,
            answered: None,
        }
    }

    /// Question `number` leaves. Others may be on their way: none of them takes the place of the one that is measured, or a network
    /// whose answers take longer than the next question would never be.
    #[inline]
    pub(crate) fn ask(&mut self, now: Instant, number: u32) {
        self.departures.asked += 1;
        let is_open = |(_, at): &(u32, Instant)| now.since(*at) < LONGEST;
        self.asked = self.asked.filter(is_open).or(Some((number, now)));
    }

    /// Question `number` leaves again. It cannot be told which one is answered (RFC 6298, 3).
    pub(crate) fn ask_again(&mut self, number: u32) {
        self.departures.asked += 1;
        self.asked = self.asked.filter(|(before, _)| *before != number);
    }

    /// An answer to question `asked`. Whether it is a later one than all before: others are repeated or late.
    pub(crate) fn handle_answer(&mut self, now: Instant, asked: u32) -> bool {
        if self.answered.is_some_and(|before| before >= asked) {
            return false;
        }
        self.answered = Some(asked);
        self.departures.answered += 1;
        if let Some((number, at)) = self.asked
            && number <= asked
        {
            if number == asked {
                self.round_trip.measure(now.since(at));
            }
            self.asked = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_waited_for_two_round_trips_at_most_and_a_little() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout(), INITIAL);
        let ms = Duration::from_millis;
        round_trip.measure(ms(10));
        assert_eq!(round_trip.timeout(), ms(22));
        for _ in 0..100 {
            round_trip.measure(ms(10));
        }
        assert!(round_trip.timeout() < ms(13), "{}", round_trip.timeout());
    }

    #[test]
    fn only_a_later_question_counts_as_answered() {
        let ind = Ind::new(1).unwrap();
        let to = IpAddr::from([10, 0, 0, 1]);
        let mut path = Path::new(ind, to, true);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        path.asked = Some((7, at(0)));
        assert!(path.handle_answer(at(5), 7));
        assert_eq!(path.round_trip.smoothed(), Some(Duration::from_millis(5)));
        assert!(!path.handle_answer(at(6), 7) && !path.handle_answer(at(6), 3));
    }

    #[test]
    fn an_answer_is_measured_however_many_questions_leave_before_it() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let ind = Ind::new(1).unwrap();
        let mut path = Path::new(ind, IpAddr::from([10, 0, 0, 1]), true);
        let asks = |path: &mut Path, numbers: core::ops::Range<u32>| {
            for number in numbers {
                path.ask(at(u64::from(number) * 50), number);
            }
        };
        asks(&mut path, 0..13);
        assert!(path.handle_answer(at(600), 0));
        assert_eq!(path.round_trip.smoothed(), Some(Duration::from_millis(600)));
        // The next one that is measured is lost; a later one is answered.
        asks(&mut path, 13..30);
        assert!(path.handle_answer(at(1_300), 14));
        assert_eq!(path.asked, None);
        // It cannot be told which of two is answered.
        path.ask(at(1_500), 30);
        path.ask_again(30);
        assert!(path.handle_answer(at(1_710), 30));
        assert_eq!(path.round_trip.smoothed(), Some(Duration::from_millis(600)));
        // One without an answer is not waited for for ever.
        path.ask(at(2_000), 31);
        path.ask(at(4_000), 32);
        assert_eq!(path.asked, Some((32, at(4_000))));
    }
}

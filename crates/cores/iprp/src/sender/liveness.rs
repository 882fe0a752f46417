//! Whether the receiver is there: it is asked now and then, on every network at once, with what is sent anyway. While an answer is
//! missing, and nothing is sent that could ask again, probes do.

use bumpless_base::{Duration, Instant};

/// How often a receiver is asked that answers.
const EVERY: Duration = Duration::from_millis(250);
/// How often one is asked that has not answered yet.
const URGENT: Duration = Duration::from_millis(20);
/// How long after a question is due a packet is waited for that asks it: then a probe does. Flows that are quick ask by themselves, and
/// probes leave as often as those of a receiver that counts as gone: a host may have thousands of sessions with one that dies.
const GRACE: Duration = Duration::from_millis(230);
/// Questions without an answer after which a receiver counts as gone...
const QUESTIONS: u8 = 3;
/// ...if the first of them is that old.
const SILENT: Duration = Duration::from_secs(1);

/// What is known of the receiver's being there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It has answered the last question, or none was asked.
    #[default]
    Heard,
    /// Questions are open: how many, and since when.
    Asked(u8, Instant),
    /// It has answered none of several: packets leave as they are.
    Suspended,
}

/// When the receiver of a session is asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asking {
    pub liveness: Liveness,
    next: Instant,
}

impl Asking {
    /// Whether the packet that leaves at `now` asks.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// A question leaves.
    pub(crate) fn ask(&mut self, now: Instant) {
        self.liveness = match self.liveness {
            Liveness::Heard => Liveness::Asked(1, now),
            Liveness::Asked(count, since) => Liveness::Asked(count.saturating_add(1), since),
            Liveness::Suspended => Liveness::Suspended,
        };
        self.next = match self.liveness {
            Liveness::Asked(1, _) | Liveness::Suspended => now + EVERY,
            _ => now + URGENT,
        };
    }

    /// Whether the receiver counts as gone from here on.
    #[inline]
    pub(crate) fn has_lapsed(&self, now: Instant) -> bool {
        self.lapses().is_some_and(|at| now >= at)
    }

    /// When the receiver counts as gone, unless it is heard before: known once it was asked often enough.
    #[inline]
    pub(crate) fn lapses(&self) -> Option<Instant> {
        match self.liveness {
            Liveness::Asked(count, since) if count >= QUESTIONS => Some(since + SILENT),
            _ => None,
        }
    }

    /// The receiver was heard. Whether packets had left as they are until here.
    pub(crate) fn heard(&mut self) -> bool {
        core::mem::take(&mut self.liveness) == Liveness::Suspended
    }

    /// When a probe is due of a receiver that counts as gone, or has not answered yet.
    pub(crate) fn next_probe(&self) -> Option<Instant> {
        match self.liveness {
            Liveness::Heard => None,
            Liveness::Asked(..) => Some(self.next + GRACE),
            Liveness::Suspended => Some(self.next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_receiver_counts_as_gone_after_a_second_and_three_questions() {
        let mut asking = Asking::default();
        let mut asked = 0;
        for ms in 0..999 {
            if asking.is_due(at(ms)) {
                asking.ask(at(ms));
                asked += 1;
            }
            assert!(!asking.has_lapsed(at(ms)), "{ms}");
        }
        assert!(asking.has_lapsed(at(1000)) && asked > 20, "{asked}");
        let mut slow = Asking::default();
        for question in 0..2 {
            slow.ask(at(5000 * question));
            assert!(!slow.has_lapsed(at(5000 * question + 4999)));
        }
        slow.ask(at(10_000));
        assert!(slow.has_lapsed(at(10_000)));
    }

    #[test]
    fn probes_ask_where_nothing_else_does_and_wait_for_what_may() {
        let mut asking = Asking::default();
        assert_eq!(asking.next_probe(), None);
        asking.ask(at(0));
        assert_eq!(
            (asking.next_probe(), asking.lapses()),
            (Some(at(480)), None)
        );
        asking.ask(at(480));
        assert_eq!(asking.next_probe(), Some(at(730)));
        asking.ask(at(730));
        let next = (asking.next_probe(), asking.lapses());
        assert_eq!(next, (Some(at(980)), Some(at(1_000))));
        assert!(!asking.heard());
        assert_eq!((asking.next_probe(), asking.lapses()), (None, None));
    }

    #[test]
    fn a_receiver_that_answers_is_asked_four_times_a_second() {
        let mut asking = Asking::default();
        let mut asked = 0;
        for ms in 0..1000 {
            if asking.is_due(at(ms)) {
                asking.ask(at(ms));
                asked += 1;
            }
            assert!(!asking.heard());
        }
        assert_eq!(asked, 4);
    }
}

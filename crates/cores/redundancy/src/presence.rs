//! When a partner that was lost was there last: no state of it can be younger.

use bumpless_base::{Duration, Instant};

/// When a partner was there last.
///
/// A heartbeat that answers one of this node's was sent after that had left, and later by as long as it says that it
/// held the answer. One that answers nothing new was sent as much later as the partner's clock says. Both hold however
/// long they were on their way.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Presence {
    /// When the last heartbeat that answered one of this node's was sent: by the partner's clock, and, at the earliest,
    /// by this node's.
    answer: Option<(u64, Instant)>,
    /// When earlier processes of the partner were there last.
    before: Option<Instant>,
}

impl Presence {
    /// A heartbeat that was sent at `sent_at`, by the partner's clock, was sent at `earliest` or later by this node's.
    pub(crate) fn answered(&mut self, sent_at: u64, earliest: Instant) {
        let (sent, known) = self.answer.unwrap_or_default();
        if sent_at > sent && earliest > known {
            self.answer = Some((sent_at, earliest));
        }
    }

    /// When it was there last, by this node's clock, if its newest heartbeat was sent at `newest` by its own.
    pub(crate) fn last(&self, newest: u64) -> Option<Instant> {
        let later = |(sent_at, earliest): (u64, Instant)| {
            let since = newest.saturating_sub(sent_at);
            earliest + Duration::from_nanos(since)
        };
        self.answer.map(later).or(self.before)
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
        let mut presence = Presence::default();
        assert_eq!(presence.last(77), None);
        presence.answered(1_000, at(50));
        presence.answered(900, at(60));
        presence.answered(1_100, at(40));
        assert_eq!(presence.last(1_000), Some(at(50)));
        assert_eq!(presence.last(1_700), Some(at(750)));
        assert_eq!(presence.last(10), Some(at(50)), "a clock that went back");
    }

    #[test]
    fn a_later_process_counts_from_its_first_answer_on() {
        let mut presence = Presence::default();
        presence.answered(1_000, at(50));
        presence.forget_session(1_200);
        assert_eq!(presence.last(9_999), Some(at(250)));
        presence.answered(9_000, at(300));
        assert_eq!(presence.last(9_100), Some(at(400)));
    }
}

//! Echo requests to reference points that can do no more: which were sent, and when.

use bumpless_base::Instant;
use core::hash::{Hash, Hasher};

/// How many outstanding echo requests are remembered for each reference point.
const REMEMBERED: usize = 16;

/// The echo requests to one reference point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingState {
    sent: [Option<Instant>; REMEMBERED],
    next: u16,
    pub(crate) due: Instant,
}

/// By age, not by sequence number: the numbers themselves decide nothing.
impl Hash for PingState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { sent, next, due } = self;
        for age in 1..=REMEMBERED {
            sent[(usize::from(*next) + REMEMBERED - age) % REMEMBERED].hash(state);
        }
        due.hash(state);
    }
}

impl PingState {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            sent: [None; REMEMBERED],
            next: 0,
            due: now,
        }
    }

    /// Sends one: its sequence number.
    pub(crate) fn send(&mut self, now: Instant) -> u16 {
        let sequence = self.next;
        self.sent[usize::from(sequence) % REMEMBERED] = Some(now);
        self.next = sequence.wrapping_add(1);
        sequence
    }

    /// Takes the answer to `sequence` once: when that was sent.
    pub(crate) fn answer(&mut self, sequence: u16) -> Option<Instant> {
        let age = self.next.wrapping_sub(sequence);
        if age == 0 || usize::from(age) > REMEMBERED {
            return None;
        }
        self.sent[usize::from(sequence) % REMEMBERED].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_reply_counts_once_and_only_for_a_request_that_was_sent() {
        let mut ping = PingState::new(Instant::ZERO);
        assert_eq!(ping.answer(0), None);
        let mut last = 0;
        for n in 0..70_000u64 {
            last = ping.send(Instant::from_nanos(n));
        }
        assert_eq!(ping.answer(last), Some(Instant::from_nanos(69_999)));
        assert_eq!(ping.answer(last), None);
        assert_eq!(ping.answer(last.wrapping_sub(16)), None, "too old");
        assert_eq!(ping.answer(last.wrapping_add(1)), None, "never sent");
    }

    #[test]
    fn sequence_numbers_that_wrap_keep_telling_requests_apart() {
        let mut ping = PingState::new(Instant::ZERO);
        // Ends eight requests past the wrap, so that half of those remembered lie before it.
        let sent: std::vec::Vec<_> = (0..65_544u64)
            .map(|n| ping.send(Instant::from_nanos(n)))
            .collect();
        assert_eq!(sent.last(), Some(&7));
        for n in 65_528..65_544 {
            let answered = ping.answer(sent[n as usize]);
            assert_eq!(answered, Some(Instant::from_nanos(n)), "{n}");
        }
        assert_eq!(ping.answer(sent[65_527]), None, "too old");
    }
}

//! When a network's socket looks at datagrams of strangers only now and then (spec/reception.md, V-76).

use bumpless_base::{Duration, Instant};

/// More of them than [`MANY`] in such a span are a flood.
const SPAN: Duration = Duration::from_millis(100);
const MANY: u32 = 100;
/// It is over when no more than [`FEW`] of those that still pass come in such a span.
const CALM: Duration = Duration::from_secs(1);
const FEW: u32 = 8;

/// Counts datagrams of strangers, span by span.
#[derive(Clone, Copy, Debug)]
pub struct Strangers {
    begun: Instant,
    seen: u32,
    is_screened: bool,
}

impl Strangers {
    /// Before any has come.
    pub const fn new(now: Instant) -> Self {
        Self {
            begun: now,
            seen: 0,
            is_screened: false,
        }
    }

    /// Whether most of what they send is dropped before anybody sees it.
    pub const fn is_screened(&self) -> bool {
        self.is_screened
    }

    /// So many have come since the last call, `now` being no earlier than then. Returns whether the screen is to be put up or taken
    /// away; what becomes of that is for [`Self::screened`] to hear.
    pub fn handle(&mut self, seen: u32, now: Instant) -> Option<bool> {
        self.seen = self.seen.saturating_add(seen);
        let span = if self.is_screened { CALM } else { SPAN };
        let is_over = now.since(self.begun) >= span;
        let change = match self.is_screened {
            true => (is_over && self.seen <= FEW).then_some(false),
            false => (self.seen > MANY).then_some(true),
        };
        if is_over || change.is_some() {
            (self.begun, self.seen) = (now, 0);
        }
        change
    }

    /// Whether there is a screen from here on.
    pub const fn screened(&mut self, is_screened: bool) {
        self.is_screened = is_screened;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn screened() -> Strangers {
        let mut strangers = Strangers::new(at(0));
        assert_eq!(strangers.handle(MANY + 1, at(50)), Some(true));
        strangers.screened(true);
        strangers
    }

    #[test]
    fn a_hundred_in_a_hundred_milliseconds_are_looked_at_and_more_are_a_flood() {
        let mut strangers = Strangers::new(at(0));
        for ms in 1..500 {
            assert_eq!(strangers.handle(1, at(ms)), None, "{ms}");
        }
        assert!(!strangers.is_screened());
        let mut strangers = Strangers::new(at(0));
        let changed = (0..500).find(|&ms| strangers.handle(2, at(ms)).is_some());
        assert_eq!(changed, Some(50));
    }

    #[test]
    fn a_flood_is_over_when_few_pass_for_a_second_and_no_earlier() {
        let mut strangers = screened();
        // Fifteen that pass in a second are a thousand that are sent.
        for ms in (100..5000).step_by(66) {
            assert_eq!(strangers.handle(1, at(ms)), None, "{ms}");
        }
        let last = at(5000);
        let over = (5000..9000).find(|&ms| strangers.handle(0, at(ms)) == Some(false));
        let over = at(over.expect("it is over"));
        assert!(over.since(last) >= CALM && over.since(last) <= CALM + CALM);
    }

    #[test]
    fn what_the_system_refuses_is_asked_for_again_while_the_flood_lasts() {
        let mut strangers = Strangers::new(at(0));
        let asked = (0..1000).filter(|&ms| strangers.handle(10, at(ms)).is_some());
        assert_eq!(asked.count(), 1000 / 11);
        assert!(!strangers.is_screened());
    }
}

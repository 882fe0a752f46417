//! How often something unknown is tried, which costs more than to refuse it.

use bumpless_base::{Duration, Instant};

/// Tries at once.
const BURST: u64 = 64;
/// After this one more.
const EVERY: Duration = Duration::from_micros(100);

/// A budget of tries: 64 at once, 10,000 in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trials {
    /// When all that was spent is there again.
    full_at: Instant,
}

impl Trials {
    /// Spends one try, if there is one.
    pub(crate) fn spend(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + EVERY;
        if full_at.since(now) > EVERY * BURST {
            return false;
        }
        self.full_at = full_at;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_at_once_then_one_in_a_hundred_microseconds() {
        let mut trials = Trials::default();
        let mut now = Instant::from_nanos(1_000_000_000);
        let spent = (0..1000).filter(|_| trials.spend(now)).count();
        assert_eq!(spent, 64);
        now += Duration::from_millis(1);
        let spent = (0..1000).filter(|_| trials.spend(now)).count();
        assert_eq!(spent, 10);
    }
}

//! Clocks that are wrong on purpose.

use bumpless_base::Instant;

/// A clock with an offset, and a rate that differs from true time by `ppb` parts per billion.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub offset: u64,
    pub ppb: i64,
}

impl Clock {
    /// What the clock shows at true time `t`.
    pub fn local(self, t: u64) -> Instant {
        let t = i128::from(t);
        let shown = i128::from(self.offset) + t + t * i128::from(self.ppb) / 1_000_000_000;
        Instant::from_nanos(shown as u64)
    }

    /// The first true time at which the clock shows `local` or more.
    pub fn true_time(self, local: Instant) -> u64 {
        if local <= self.local(0) {
            return 0;
        }
        let shown = i128::from(local.as_nanos()) - i128::from(self.offset);
        let guess = shown * 1_000_000_000 / (1_000_000_000 + i128::from(self.ppb));
        let mut t = u64::try_from(guess.saturating_sub(2)).unwrap_or(u64::MAX);
        while t < u64::MAX && self.local(t) < local {
            t += 1;
        }
        t
    }
}

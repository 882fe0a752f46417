//! Clocks of the simulated computers: each has its own origin and its own rate.

use bumpless_base::Instant;

/// Parts per billion to the fixed point in which the rate is kept: `2^40 / 10^9`, times `2^20`.
const PPB_SCALE: i128 = ((1i128 << 60) + 500_000_000) / 1_000_000_000;

/// A clock that runs at its own rate from an anchor; it never goes back.
#[derive(Clone, Debug)]
pub struct LocalClock {
    /// True time and what the clock showed then.
    anchor: (u64, u64),
    ppb: i64,
    /// The deviation of the rate from one, in `2^-40`.
    scaled: i64,
}

impl LocalClock {
    /// A clock that shows `shows` at true time `now` and is `ppb` parts per billion fast.
    pub fn new(now: u64, shows: u64, ppb: i64) -> Self {
        let scaled = ((i128::from(ppb) * PPB_SCALE) >> 20) as i64;
        Self {
            anchor: (now, shows),
            ppb,
            scaled,
        }
    }

    /// How fast it is, parts per billion.
    pub fn ppb(&self) -> i64 {
        self.ppb
    }

    /// Runs at another rate from true time `now` on, after a jump `ahead`.
    pub fn set_rate(&mut self, now: u64, ppb: i64, ahead: u64) {
        let shows = self.local(now).as_nanos().saturating_add(ahead);
        *self = Self::new(now, shows, ppb);
    }

    /// What it shows at true time `now`.
    pub fn local(&self, now: u64) -> Instant {
        Instant::from_nanos(
            self.anchor
                .1
                .saturating_add(self.elapsed(now.saturating_sub(self.anchor.0))),
        )
    }

    /// The first true time at which it shows `local` or later; the end of time if it never does.
    pub fn true_time(&self, local: Instant) -> u64 {
        let span = local.as_nanos().saturating_sub(self.anchor.1);
        if span > 1 << 62 {
            return u64::MAX;
        }
        // Each step corrects all but the rate's share of the error.
        let (mut guess, mut shown) = (span, self.elapsed(span));
        for _ in 0..64 {
            if shown == span {
                // The first time: a fast clock shows nothing twice, and a slow one has come here from
                // before, in steps no longer than what was left.
                return self.anchor.0.saturating_add(guess);
            }
            guess = guess.saturating_add_signed(span as i64 - shown as i64);
            shown = self.elapsed(guess);
        }
        while shown < span {
            guess += 1;
            shown = self.elapsed(guess);
        }
        while guess > 0 && self.elapsed(guess - 1) >= span {
            guess -= 1;
        }
        self.anchor.0.saturating_add(guess)
    }

    /// What the clock counts while true time passes.
    fn elapsed(&self, span: u64) -> u64 {
        // A world never lasts so long that the sign bit matters.
        let extra = (i128::from(span as i64) * i128::from(self.scaled)) >> 40;
        span.saturating_add_signed(extra as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_base::Random;

    #[test]
    fn true_time_is_when_the_clock_first_shows_it_and_rates_make_no_jump() {
        let mut random = Random::new(1);
        for _ in 0..2000 {
            let ppb = random.below(100_000_000) as i64 - 50_000_000;
            let start = random.below(1 << 40);
            let mut clock = LocalClock::new(start, random.below(1 << 50), ppb);
            let later = start + random.below(1 << 38);
            clock.set_rate(later, -ppb / 2, 0);
            assert_eq!(clock.local(later).as_nanos(), clock.anchor.1);
            let local = Instant::from_nanos(clock.anchor.1 + random.below(1 << 40));
            let at = clock.true_time(local);
            assert!(clock.local(at) >= local);
            assert!(at == later || clock.local(at - 1) < local);
        }
        assert_eq!(
            LocalClock::new(0, 0, 0).true_time(Instant::FAR_FUTURE),
            u64::MAX
        );
    }

    #[test]
    fn a_clock_of_500_ppm_gains_half_a_millisecond_a_second() {
        let clock = LocalClock::new(0, 0, 500_000);
        let shown = clock.local(1_000_000_000).as_nanos();
        assert!((1_000_499_999..=1_000_500_000).contains(&shown), "{shown}");
    }
}

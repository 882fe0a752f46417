//! Time as the cores see it: nanoseconds on one node's monotonic clock.
//!
//! The origin is arbitrary and differs between nodes, so an [`Instant`] never crosses the wire as
//! something another node may compare with its own clock; it may only be echoed back.
//! All arithmetic saturates: a core must not panic because of a far deadline.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// A point on this node's monotonic clock, in nanoseconds since an arbitrary origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that a running node can reach (584 years).
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `self - span`, stopping at the origin.
    pub const fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }
    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }
    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
    /// A span of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }
    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Milliseconds as a real number, for people.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds as a real number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - other`, zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self` lengthened by `parts_per_million` of itself; for bounds on clock drift.
    pub const fn stretched(self, parts_per_million: u32) -> Self {
        const MILLION: u64 = 1_000_000;
        // Whole millions and the rest apart: no division of more than 64 bits, which takes a call.
        let (millions, rest) = (self.0 / MILLION, self.0 % MILLION);
        let parts = parts_per_million as u64;
        let extra = (rest * parts).div_ceil(MILLION);
        Self(
            self.0
                .saturating_add(millions.saturating_mul(parts))
                .saturating_add(extra),
        )
    }
    /// The same span for the standard library.
    pub const fn to_std(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    /// Division by zero gives the longest span instead of a panic.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} ns"),
            n if n < 10_000_000 => write!(f, "{}.{} us", n / 1_000, n % 1_000 / 100),
            n if n < 10_000_000_000 => {
                write!(f, "{}.{} ms", n / 1_000_000, n % 1_000_000 / 100_000)
            }
            n => write!(
                f,
                "{}.{} s",
                n / 1_000_000_000,
                n % 1_000_000_000 / 100_000_000
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::FAR_FUTURE + Duration::MAX, Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO.before(Duration::from_secs(1)), Instant::ZERO);
        assert_eq!(Instant::ZERO.since(Instant::FAR_FUTURE), Duration::ZERO);
        assert_eq!(Duration::MAX * 2, Duration::MAX);
        assert_eq!(Duration::from_millis(1) / 0, Duration::MAX);
    }

    #[test]
    fn stretching_rounds_up_so_that_a_bound_stays_a_bound() {
        assert_eq!(
            Duration::from_nanos(1).stretched(1),
            Duration::from_nanos(2)
        );
        assert_eq!(
            Duration::from_millis(10).stretched(1000),
            Duration::from_micros(10_010)
        );
        let most = Duration::from_nanos(u64::MAX);
        assert_eq!(most.stretched(1), most);
        let mut random = crate::Random::new(3);
        for _ in 0..10_000 {
            let (span, parts) = (
                random.next_u64() >> random.below(64),
                random.next_u64() as u32,
            );
            let exact = u128::from(span) * (1_000_000 + u128::from(parts));
            let bound = u64::try_from(exact.div_ceil(1_000_000)).unwrap_or(u64::MAX);
            assert_eq!(
                Duration::from_nanos(span).stretched(parts).as_nanos(),
                bound
            );
        }
    }
}

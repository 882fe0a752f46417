//! The share of a resource that is asked for in the long run, exact to 2^-64 per channel.

use super::TaskSet;

/// Bits behind the point.
const SHIFT: u32 = 64;
const ONE: u128 = 1 << SHIFT;

/// Sum of C / T, as bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utilisation {
    lower: u128,
    upper: u128,
}

impl Utilisation {
    /// That of `set`.
    pub fn of(set: &TaskSet) -> Self {
        let tasks = set.tasks.iter().map(|task| (task.cost, task.period));
        let others = set
            .interference
            .iter()
            .map(|other| (other.cost, other.period));
        let (mut lower, mut upper) = (0u128, 0u128);
        for (cost, period) in tasks.chain(others) {
            let (cost, period) = (u128::from(cost) << SHIFT, u128::from(period.max(1)));
            lower = lower.saturating_add(cost / period);
            upper = upper.saturating_add(cost.div_ceil(period));
        }
        Self { lower, upper }
    }

    /// Certainly more than everything.
    pub fn is_above_one(&self) -> bool {
        self.lower > ONE
    }

    /// Certainly less than everything.
    pub fn is_below_one(&self) -> bool {
        self.upper < ONE
    }

    /// As a number for people.
    pub fn value(&self) -> f64 {
        self.upper as f64 / ONE as f64
    }

    /// The length of window that the load and `fixed` nanoseconds on top fill: fixed / (1 - U), rounded up.
    pub(super) fn windows_filled_by(&self, fixed: u128) -> Option<u64> {
        let left = ONE.checked_sub(self.upper).filter(|&left| left > 0)?;
        let scaled = (fixed < 1 << 63).then_some(fixed << SHIFT)?;
        u64::try_from(scaled.div_ceil(left)).ok()
    }
}

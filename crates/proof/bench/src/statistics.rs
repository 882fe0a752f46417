//! Order statistics of transfer times.

use serde::{Deserialize, Serialize};

/// Minimum, mean, percentiles (nearest rank) and maximum, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// How many figures.
    pub count: usize,
    /// The smallest.
    pub min: u64,
    /// The mean.
    pub avg: u64,
    /// The middle.
    pub p50: u64,
    /// 99 of 100 are not above it.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Summary {
    /// Of `figures`; `None` if there are none.
    pub fn of(figures: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = figures.into_iter().collect();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let sum: u128 = sorted.iter().map(|&figure| u128::from(figure)).sum();
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self {
            count: sorted.len(),
            min,
            avg: u64::try_from(sum / sorted.len() as u128).unwrap_or(u64::MAX),
            p50: rank(50),
            p99: rank(99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_figures_that_were_measured() {
        let summary = Summary::of((1..=200).rev()).unwrap();
        assert_eq!(
            summary,
            Summary {
                count: 200,
                min: 1,
                avg: 100,
                p50: 100,
                p99: 198,
                max: 200
            }
        );
        let one = Summary::of([7]).unwrap();
        assert_eq!(
            (one.min, one.avg, one.p50, one.p99, one.max),
            (7, 7, 7, 7, 7)
        );
        assert_eq!(Summary::of([1, 2]).unwrap().p50, 1);
        assert_eq!(Summary::of([u64::MAX, u64::MAX]).unwrap().avg, u64::MAX);
        assert_eq!(Summary::of([]), None);
    }
}

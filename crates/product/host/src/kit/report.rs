//! What the kit found out about a program.

use super::findings::{Hindrance, Note};

/// What the kit found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Input values of a cycle.
    pub inputs: usize,
    /// Output values of a cycle.
    pub outputs: usize,
    /// Cycles of the first run that were executed.
    pub cycles: u64,
    /// How often the state was moved, to new instances and to used ones.
    pub moves: u64,
    /// What keeps the program from being made redundant.
    pub hindrances: Vec<Hindrance>,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// Time to execute a cycle, nanoseconds.
    pub executing: Percentiles,
    /// Time to save the state, nanoseconds.
    pub saving: Percentiles,
    /// Bytes of the state after each cycle.
    pub state_bytes: Percentiles,
    /// Most bytes that a state can have.
    pub state_max: usize,
    /// Share of the state that a cycle changes, by words of 8 bytes.
    pub changed: Share,
    /// It was stopped before the end.
    pub interrupted: bool,
}

impl Report {
    /// Whether nothing speaks against running the program redundantly.
    pub fn can_be_redundant(&self) -> bool {
        self.hindrances.is_empty() && !self.interrupted
    }
}

/// What share of something, over many cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The mean, 0 to 1.
    pub mean: f64,
    /// The largest, 0 to 1.
    pub max: f64,
}

/// How values are spread, by nearest rank; zeros if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// The median.
    pub p50: u64,
    /// 99 of 100 are not above it.
    pub p99: u64,
    /// 999 of 1,000 are not above it.
    pub p999: u64,
    /// The largest.
    pub max: u64,
}

impl Percentiles {
    /// Of `values`, in any order.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let rank = |per_mille: usize| {
            let rank = (values.len() * per_mille).div_ceil(1_000).max(1);
            values.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            p50: rank(500),
            p99: rank(990),
            p999: rank(999),
            max: rank(1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let spread = Percentiles::of((1..=1_000).rev().collect());
        assert_eq!(
            (spread.p50, spread.p99, spread.p999, spread.max),
            (500, 990, 999, 1_000)
        );
        assert_eq!(
            Percentiles::of(vec![7]),
            Percentiles {
                p50: 7,
                p99: 7,
                p999: 7,
                max: 7
            }
        );
        assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
    }
}

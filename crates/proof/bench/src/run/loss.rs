//! Which packets of a transfer are lost (table 13).

use serde::{Deserialize, Serialize};

use crate::network::filter::Loss;

/// Which packets of each transfer are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCase {
    /// None.
    None,
    /// The first.
    First,
    /// The last.
    Last,
    /// So many in the middle.
    Middle(u32),
    /// Each with a probability of 1 %, those that are sent again among them.
    Random,
}

/// Of random loss.
const CHANCE: f64 = 0.01;

impl LossCase {
    /// The columns of table 15, and what it has not.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::First,
        Self::Last,
        Self::Middle(1),
        Self::Middle(5),
        Self::Middle(10),
        Self::Random,
    ];

    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::Last => "last",
            Self::Middle(1) => "middle-1",
            Self::Middle(5) => "middle-5",
            Self::Middle(_) => "middle-10",
            Self::Random => "random-1-percent",
        }
    }

    /// How many packets are to be lost in each transfer; `None` if that is left to chance.
    pub const fn packets(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::First | Self::Last => Some(1),
            Self::Middle(count) => Some(count as u64),
            Self::Random => None,
        }
    }

    /// Whether it is made for states of `size` bytes: below 10 KB there is no middle (first paper, 6.3).
    pub const fn applies_to(self, size: usize) -> bool {
        !matches!(self, Self::Middle(_)) || size >= 10 * 1024
    }

    /// The loss for a transfer that takes `packets` packets. Where fewer than wanted lie between the first
    /// and the last, the loss begins at the second and goes on into what is sent after it.
    pub fn of(self, packets: u64) -> Loss {
        let first = match self {
            Self::None => return Loss::None,
            Self::First => 0,
            Self::Last => packets.saturating_sub(1),
            Self::Middle(count) => (packets.saturating_sub(count.into()) / 2).max(1),
            Self::Random => return Loss::Random(CHANCE),
        };
        let count = self.packets().unwrap_or_default();
        Loss::These { first, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_lie_where_their_names_say() {
        let at = |case: LossCase, packets| match case.of(packets) {
            Loss::These { first, count } => (first, count),
            other => panic!("{other:?}"),
        };
        assert_eq!(at(LossCase::First, 8), (0, 1));
        assert_eq!(at(LossCase::Last, 8), (7, 1));
        assert_eq!(at(LossCase::Middle(1), 9), (4, 1));
        assert_eq!(at(LossCase::Middle(5), 9), (2, 5));
        assert_eq!(at(LossCase::Middle(10), 100), (45, 10));
        assert_eq!(at(LossCase::Middle(10), 8), (1, 10));
        assert_eq!(at(LossCase::Last, 0), (0, 1));
        assert_eq!(LossCase::None.of(5), Loss::None);
        assert_eq!(LossCase::Random.of(5), Loss::Random(0.01));
        assert!(
            LossCase::Middle(1).applies_to(10 << 10) && !LossCase::Middle(1).applies_to(5 << 10)
        );
        assert!(LossCase::Last.applies_to(128));
    }
}

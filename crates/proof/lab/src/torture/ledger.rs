//! Who wrote what to the plant: counted as it comes, so that an hour takes no more memory than a minute.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::runlog::Write;

/// Epochs whose writer is remembered.
const EPOCHS_MAX: usize = 4096;

/// What the plant has accepted so far, as far as later writes are compared with it.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    writers: BTreeMap<u64, u64>,
    epoch: u64,
    cycle: u64,
    /// When the last write was accepted.
    pub last_ns: Option<u64>,
}

/// Writes by what is to be said of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Accepted by the plant.
    pub accepted: u64,
    /// Refused by it.
    pub refused: u64,
    /// Accepted ones of an earlier cycle than one before: the process went back.
    pub resets: u64,
    /// Accepted ones in an epoch in which another node had written.
    pub dual_writers: u64,
    /// Accepted ones of an older epoch than one before.
    pub older_epochs: u64,
}

impl Ledger {
    /// Takes in one write, in the order of the plant's log.
    pub fn take(&mut self, write: &Write, count: &mut Count) {
        if !write.accepted {
            count.refused += 1;
            return;
        }
        count.accepted += 1;
        let writer = *self.writers.entry(write.epoch).or_insert(write.writer);
        count.dual_writers += u64::from(writer != write.writer);
        count.older_epochs += u64::from(write.epoch < self.epoch);
        count.resets += u64::from(write.cycle < self.cycle);
        self.epoch = self.epoch.max(write.epoch);
        // What comes after a reset counts on from there.
        self.cycle = write.cycle;
        self.last_ns = Some(write.time_ns);
        while self.writers.len() > EPOCHS_MAX {
            self.writers.pop_first();
        }
    }

    /// The highest epoch accepted.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.resets += other.resets;
        self.dual_writers += other.dual_writers;
        self.older_epochs += other.older_epochs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writer, epoch, cycle.
    fn count(writes: &[(u64, u64, u64)]) -> Count {
        let (mut ledger, mut count) = (Ledger::default(), Count::default());
        for (at, &(writer, epoch, cycle)) in writes.iter().enumerate() {
            let write = Write {
                time_ns: at as u64,
                writer,
                epoch,
                cycle,
                outputs: vec![0.0; 2],
                accepted: true,
            };
            ledger.take(&write, &mut count);
        }
        count
    }

    #[test]
    fn a_takeover_with_the_newest_state_is_no_finding() {
        let seen = count(&[(0, 2, 1), (0, 2, 2), (1, 3, 2), (1, 3, 4)]);
        assert_eq!(
            seen,
            Count {
                accepted: 4,
                ..Count::default()
            }
        );
    }

    #[test]
    fn each_reset_counts_once_and_what_follows_does_not() {
        let seen = count(&[(0, 2, 500), (1, 3, 1), (1, 3, 2), (0, 4, 1), (0, 4, 2)]);
        assert_eq!(
            (seen.resets, seen.dual_writers, seen.older_epochs),
            (2, 0, 0)
        );
    }

    #[test]
    fn two_writers_in_an_epoch_and_an_older_epoch_are_found() {
        let seen = count(&[(0, 2, 5), (1, 2, 6), (1, 3, 7), (0, 2, 8)]);
        assert_eq!((seen.dual_writers, seen.older_epochs), (1, 1));
    }
}

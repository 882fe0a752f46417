//! What an executor counts, for others to read.

use std::sync::atomic::{AtomicU64, Ordering};

use bumpless_base::{Counter, Counters};

/// Counters of one executor, readable from any thread.
#[derive(Debug)]
pub struct CounterBoard([AtomicU64; Counter::ALL.len()]);

impl Default for CounterBoard {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl CounterBoard {
    pub(super) fn store(&self, counters: &Counters) {
        for (slot, &counter) in self.0.iter().zip(Counter::ALL) {
            slot.store(counters.get(counter), Ordering::Relaxed);
        }
    }

    /// Adds the figures to `sum`.
    pub fn add_to(&self, sum: &mut Counters) {
        for (slot, &counter) in self.0.iter().zip(Counter::ALL) {
            sum.add(counter, slot.load(Ordering::Relaxed));
        }
    }
}

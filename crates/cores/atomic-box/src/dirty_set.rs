//! Which of many has something to say, found without looking at each.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};

use alloc::boxed::Box;

const BITS: usize = usize::BITS as usize;

/// A set of numbers that many threads add to and one thread empties. Adding costs two atomic
/// operations, emptying what was added; neither takes a lock or allocates.
#[derive(Debug)]
pub struct DirtySet {
    words: Box<[AtomicUsize]>,
    /// A bit says that a word of `words` may have bits.
    summary: Box<[AtomicUsize]>,
}

impl DirtySet {
    /// An empty set for the numbers below `count`.
    pub fn new(count: usize) -> Self {
        let words = count.div_ceil(BITS);
        let zeros = |n: usize| (0..n).map(|_| AtomicUsize::new(0)).collect();
        Self {
            words: zeros(words),
            summary: zeros(words.div_ceil(BITS)),
        }
    }

    /// Adds `number`, which must be below the count. What the caller wrote before is seen by whoever
    /// takes it out.
    pub fn mark(&self, number: usize) {
        let word = number / BITS;
        // Word first: whoever clears the summary's bit before this sets it finds it set again.
        self.words[word].fetch_or(1 << (number % BITS), Ordering::AcqRel);
        self.summary[word / BITS].fetch_or(1 << (word % BITS), Ordering::AcqRel);
    }

    /// Whether nothing is marked; one read for every 4,096 numbers.
    pub fn is_clear(&self) -> bool {
        self.summary
            .iter()
            .all(|bits| bits.load(Ordering::Relaxed) == 0)
    }

    /// Takes every number out that was marked before, and gives it to `each`. One pass: what is
    /// marked meanwhile may stay for the next, so nobody who keeps marking keeps the caller here.
    pub fn take(&self, mut each: impl FnMut(usize)) {
        for (at, summary) in self.summary.iter().enumerate() {
            for_bits(summary.swap(0, Ordering::AcqRel), |bit| {
                let word = at * BITS + bit;
                for_bits(self.words[word].swap(0, Ordering::AcqRel), |bit| {
                    each(word * BITS + bit);
                });
            });
        }
    }
}

fn for_bits(mut bits: usize, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_was_marked_is_found_once_each() {
        let dirty = DirtySet::new(5000);
        let marked: BTreeSet<usize> = [0, 1, 63, 64, 4095, 4096, 4999].into();
        marked.iter().for_each(|&number| dirty.mark(number));
        dirty.mark(64);
        assert!(!dirty.is_clear());
        let mut found = BTreeSet::new();
        dirty.take(|number| {
            assert!(found.insert(number));
            dirty.mark(number);
        });
        assert_eq!(found, marked);
        assert!(!dirty.is_clear(), "marked again meanwhile");
        dirty.take(|number| assert!(found.remove(&number)));
        assert!(dirty.is_clear() && found.is_empty());
    }
}

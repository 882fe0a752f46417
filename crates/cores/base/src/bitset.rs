//! A fixed-size set of small integers, searched a word at a time.

use alloc::boxed::Box;
use alloc::vec;

/// A set of integers below a capacity that is fixed when it is built.
#[derive(Clone, Debug)]
pub struct BitSet {
    words: Box<[u64]>,
    capacity: usize,
}

impl BitSet {
    /// An empty set for the integers below `capacity`.
    pub fn new(capacity: usize) -> Self {
        Self {
            words: vec![0; capacity.div_ceil(64)].into_boxed_slice(),
            capacity,
        }
    }

    /// Integers at or above this cannot be members.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds `i`; returns whether it was absent. Out of range: nothing changes, `false`.
    pub fn insert(&mut self, i: usize) -> bool {
        if i >= self.capacity {
            return false;
        }
        let (word, bit) = (&mut self.words[i / 64], 1u64 << (i % 64));
        let absent = *word & bit == 0;
        *word |= bit;
        absent
    }

    /// Removes `i`; returns whether it was present.
    pub fn remove(&mut self, i: usize) -> bool {
        if i >= self.capacity {
            return false;
        }
        let (word, bit) = (&mut self.words[i / 64], 1u64 << (i % 64));
        let present = *word & bit != 0;
        *word &= !bit;
        present
    }

    /// Whether `i` is a member.
    pub fn contains(&self, i: usize) -> bool {
        i < self.capacity && self.words[i / 64] & (1 << (i % 64)) != 0
    }

    /// Removes every member below `end`; members at or above it stay. Cost: `end / 64`.
    pub fn clear_below(&mut self, end: usize) {
        self.write_below(end, 0);
    }

    /// Adds every integer below `end`. Cost: `end / 64`.
    pub fn fill_below(&mut self, end: usize) {
        self.write_below(end, u64::MAX);
    }

    fn write_below(&mut self, end: usize, value: u64) {
        let end = end.min(self.capacity);
        self.words[..end / 64].fill(value);
        if !end.is_multiple_of(64) {
            let mask = (1u64 << (end % 64)) - 1;
            let word = &mut self.words[end / 64];
            *word = (*word & !mask) | (value & mask);
        }
    }

    /// The lowest member in `from..end`.
    pub fn next_present(&self, from: usize, end: usize) -> Option<usize> {
        self.search(from, end, |word| word)
    }

    /// The lowest integer in `from..end` that is not a member.
    pub fn next_absent(&self, from: usize, end: usize) -> Option<usize> {
        self.search(from, end, |word| !word)
    }

    /// The highest integer in `from..end` that is not a member.
    pub fn last_absent(&self, from: usize, end: usize) -> Option<usize> {
        let end = end.min(self.capacity);
        let last = end.checked_sub(1).filter(|&last| last >= from)?;
        let mut at = last / 64;
        let mut word = !self.words[at] & (u64::MAX >> (63 - last % 64));
        while word == 0 {
            at = at.checked_sub(1).filter(|at| at * 64 + 63 >= from)?;
            word = !self.words[at];
        }
        let found = at * 64 + 63 - word.leading_zeros() as usize;
        (found >= from).then_some(found)
    }

    /// The lowest integer in `from..end` that is a member of `self` and not of `other`.
    /// Both sets must have the same capacity; beyond the smaller one nothing is found.
    pub fn next_present_and_absent_in(
        &self,
        other: &Self,
        from: usize,
        end: usize,
    ) -> Option<usize> {
        let end = end.min(self.capacity).min(other.capacity);
        if from >= end {
            return None;
        }
        let mut at = from / 64;
        let mut word = self.words[at] & !other.words[at] & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            if at * 64 >= end {
                return None;
            }
            word = self.words[at] & !other.words[at];
        }
        let found = at * 64 + word.trailing_zeros() as usize;
        (found < end).then_some(found)
    }

    fn search(&self, from: usize, end: usize, view: impl Fn(u64) -> u64) -> Option<usize> {
        let end = end.min(self.capacity);
        if from >= end {
            return None;
        }
        let mut at = from / 64;
        let mut word = view(self.words[at]) & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            if at * 64 >= end {
                return None;
            }
            word = view(self.words[at]);
        }
        let found = at * 64 + word.trailing_zeros() as usize;
        (found < end).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_an_ordered_set(
            capacity in 0usize..300,
            steps in proptest::collection::vec((0u8..4, 0usize..320), 0..200),
            probes in proptest::collection::vec((0usize..320, 0usize..320), 20),
        ) {
            let (mut set, mut twin) = (BitSet::new(capacity), BTreeSet::new());
            let mut other = BitSet::new(capacity);
            for (op, i) in steps {
                match op {
                    0 => prop_assert_eq!(set.insert(i), i < capacity && twin.insert(i)),
                    1 => prop_assert_eq!(set.remove(i), twin.remove(&i)),
                    2 => { set.clear_below(i); twin.retain(|&x| x >= i); other.insert(i); }
                    _ => { set.fill_below(i / 4); twin.extend(0..(i / 4).min(capacity)); }
                }
            }
            for (from, end) in probes {
                let limit = end.min(capacity);
                prop_assert_eq!(set.contains(from), twin.contains(&from));
                prop_assert_eq!(set.next_present(from, end), (from..limit).find(|i| twin.contains(i)));
                prop_assert_eq!(set.next_absent(from, end), (from..limit).find(|i| !twin.contains(i)));
                prop_assert_eq!(set.last_absent(from, end), (from..limit).rfind(|i| !twin.contains(i)));
                prop_assert_eq!(
                    set.next_present_and_absent_in(&other, from, end),
                    (from..limit).find(|&i| twin.contains(&i) && !other.contains(i))
                );
            }
        }
    }
}

//! A binary heap over the indices of a table, whose keys can change in place.
//!
//! Channels are kept in it by deadline and timers by due time: insert, change and remove cost
//! O(log n), reading the first costs O(1), and nothing is allocated after start.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::table::TableIndex;

const ABSENT: u32 = u32::MAX;

/// A minimum heap of `(key, index)`; each index below the capacity is in it at most once.
/// Equal keys are ordered by index.
#[derive(Clone, Debug)]
pub struct IndexedHeap<K, I = usize> {
    entries: Vec<(K, u32)>,
    position: Box<[u32]>,
    kind: PhantomData<I>,
}

impl<K: Ord + Copy, I: TableIndex> IndexedHeap<K, I> {
    /// An empty heap for the indices below `capacity`.
    pub fn new(capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            position: vec![ABSENT; capacity].into_boxed_slice(),
            kind: PhantomData,
        }
    }

    /// The entry with the lowest key.
    pub fn first(&self) -> Option<(K, I)> {
        self.entries
            .first()
            .map(|&(key, index)| (key, I::from_index(index as usize)))
    }

    /// The key of `index`, if it is in the heap.
    pub fn key(&self, index: I) -> Option<K> {
        match self.position.get(index.index()) {
            Some(&at) if at != ABSENT => Some(self.entries[at as usize].0),
            _ => None,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Puts `index` in with `key`, or moves it there. An index beyond the capacity is ignored.
    pub fn set(&mut self, index: I, key: K) {
        let index = index.index();
        let Some(&at) = self.position.get(index) else {
            return;
        };
        if at == ABSENT {
            let at = self.entries.len();
            self.entries.push((key, index as u32));
            self.position[index] = at as u32;
            self.sift_up(at);
        } else {
            let at = at as usize;
            self.entries[at].0 = key;
            let at = self.sift_up(at);
            self.sift_down(at);
        }
    }

    /// Takes `index` out; returns whether it was in.
    pub fn remove(&mut self, index: I) -> bool {
        let index = index.index();
        let Some(&at) = self.position.get(index) else {
            return false;
        };
        if at == ABSENT {
            return false;
        }
        let at = at as usize;
        self.entries.swap_remove(at);
        self.position[index] = ABSENT;
        if at < self.entries.len() {
            self.position[self.entries[at].1 as usize] = at as u32;
            let at = self.sift_up(at);
            self.sift_down(at);
        }
        true
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        self.position[self.entries[a].1 as usize] = a as u32;
        self.position[self.entries[b].1 as usize] = b as u32;
    }

    fn sift_up(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.entries[parent] <= self.entries[at] {
                break;
            }
            self.swap(parent, at);
            at = parent;
        }
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut lowest = at;
            for child in [left, right] {
                if child < self.entries.len() && self.entries[child] < self.entries[lowest] {
                    lowest = child;
                }
            }
            if lowest == at {
                return;
            }
            self.swap(lowest, at);
            at = lowest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_entry_is_the_one_a_sorted_map_gives(
            steps in proptest::collection::vec((0usize..20, proptest::option::of(0u64..50)), 0..300)
        ) {
            let (mut heap, mut twin) = (IndexedHeap::new(16), BTreeMap::new());
            for (index, key) in steps {
                match key {
                    Some(key) => { heap.set(index, key); if index < 16 { twin.insert(index, key); } }
                    None => prop_assert_eq!(heap.remove(index), twin.remove(&index).is_some()),
                }
                let first = twin.iter().map(|(&i, &k)| (k, i)).min();
                prop_assert_eq!(heap.first(), first);
                prop_assert_eq!(heap.len(), twin.len());
                prop_assert_eq!(heap.key(index), twin.get(&index).copied());
            }
        }
    }
}

//! Finding a place by a key: open addressing in a table that is at most half full and never grows.

use alloc::boxed::Box;
use alloc::vec;
use bumpless_base::random::mix64;

const EMPTY: u32 = u32::MAX;

/// Places (`u32`) by the hash of what is in them; the owner of the places compares the keys themselves.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    slots: Box<[(u32, u32)]>,
    seed: u64,
}

impl Index {
    /// Room for `capacity` places. With another `seed` keys collide otherwise, so that nobody can choose keys that do.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        let len = (capacity.max(1) * 2).next_power_of_two();
        Self {
            slots: vec![(0, EMPTY); len].into_boxed_slice(),
            seed,
        }
    }

    /// The hash of a key of two numbers.
    #[inline]
    pub(crate) const fn hash(&self, a: u64, b: u64) -> u32 {
        (mix64(mix64(a ^ self.seed).wrapping_add(b ^ self.seed.rotate_left(32))) >> 32) as u32
    }

    const fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// The place with `hash` that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = hash as usize & self.mask();
        for _ in 0..self.slots.len() {
            let (other, place) = self.slots[at];
            if place == EMPTY {
                return None;
            }
            if other == hash && is_it(place as usize) {
                return Some(place as usize);
            }
            at = (at + 1) & self.mask();
        }
        None
    }

    /// Adds `place`, which must not be in it. Beyond the capacity nothing is added.
    pub(crate) fn insert(&mut self, hash: u32, place: usize) {
        let mut at = hash as usize & self.mask();
        for _ in 0..self.slots.len() {
            if self.slots[at].1 == EMPTY {
                self.slots[at] = (hash, place as u32);
                return;
            }
            at = (at + 1) & self.mask();
        }
    }

    /// Takes `place` out and moves those behind it up.
    pub(crate) fn remove(&mut self, hash: u32, place: usize) {
        let mask = self.mask();
        let mut hole = hash as usize & mask;
        for _ in 0..self.slots.len() {
            match self.slots[hole].1 {
                EMPTY => return,
                found if found as usize == place => break,
                _ => hole = (hole + 1) & mask,
            }
        }
        let mut at = hole;
        for _ in 0..self.slots.len() {
            at = (at + 1) & mask;
            let (other, next) = self.slots[at];
            if next == EMPTY {
                break;
            }
            let home = other as usize & mask;
            // It may move to the hole unless its home lies between the hole and itself.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = (other, next);
                hole = at;
            }
        }
        self.slots[hole] = (0, EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn it_finds_what_an_ordered_map_does(
            seed: u64,
            steps in proptest::collection::vec((0u64..40, any::<bool>()), 0..300),
        ) {
            let mut index = Index::new(16, seed);
            let (mut keys, mut twin) = (Vec::from([None; 16]), BTreeMap::new());
            for (key, add) in steps {
                // Few hashes, so that they collide.
                let hash = index.hash(key / 3, 0);
                let found = index.find(hash, |place| keys[place] == Some(key));
                prop_assert_eq!(found, twin.get(&key).copied());
                match (found, add) {
                    (Some(place), false) => {
                        index.remove(hash, place);
                        keys[place] = None;
                        twin.remove(&key);
                    }
                    (None, true) => if let Some(place) = keys.iter().position(Option::is_none) {
                        index.insert(hash, place);
                        keys[place] = Some(key);
                        twin.insert(key, place);
                    },
                    _ => {}
                }
            }
            for (key, place) in twin {
                let hash = index.hash(key / 3, 0);
                prop_assert_eq!(index.find(hash, |place| keys[place] == Some(key)), Some(place));
            }
        }
    }
}

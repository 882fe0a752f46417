//! Tables that only their own kind of index opens.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Index, IndexMut};

/// A position in a table, as a type of its own for each kind of table, so that none is taken for another.
pub trait TableIndex: Copy + Ord {
    /// The position counted from 0.
    fn index(self) -> usize;
    /// The position `index`, counted from 0.
    fn from_index(index: usize) -> Self;
}

impl TableIndex for usize {
    fn index(self) -> usize {
        self
    }
    fn from_index(index: usize) -> Self {
        index
    }
}

/// A table of fixed length whose entries have the indices `I`.
#[derive(Clone, Debug, Hash)]
pub struct Table<I, T> {
    entries: Box<[T]>,
    kind: PhantomData<I>,
}

impl<I: TableIndex, T> Table<I, T> {
    /// The entry at `index`, if there is one.
    pub fn get(&self, index: I) -> Option<&T> {
        self.entries.get(index.index())
    }
    /// The entry at `index`, if there is one.
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.entries.get_mut(index.index())
    }
    /// The indices of all entries, in order.
    pub fn indices(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.entries.len()).map(I::from_index)
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Self {
            entries: entries.into_iter().collect(),
            kind: PhantomData,
        }
    }
}

impl<I: TableIndex, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, index: I) -> &T {
        &self.entries[index.index()]
    }
}

impl<I: TableIndex, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.entries[index.index()]
    }
}

/// The entries in order, without their indices.
impl<I, T> Deref for Table<I, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<I, T> DerefMut for Table<I, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<'a, I, T> IntoIterator for &'a Table<I, T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut Table<I, T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Slot(u8);

    impl TableIndex for Slot {
        fn index(self) -> usize {
            self.0.into()
        }
        fn from_index(index: usize) -> Self {
            Self(index as u8)
        }
    }

    #[test]
    fn each_index_opens_its_own_entry_and_none_beyond_the_last() {
        let mut table: Table<Slot, _> = [10, 11, 12].into_iter().collect();
        table[Slot(1)] += 10;
        assert!(table.indices().map(|slot| table[slot]).eq([10, 21, 12]));
        assert_eq!(table.get(Slot(2)).copied(), Some(12));
        assert!(table.get(Slot(3)).is_none() && table.get_mut(Slot(3)).is_none());
    }
}

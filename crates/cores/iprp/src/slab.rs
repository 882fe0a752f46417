//! Places of a fixed number that are taken and given back.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Things in places; a place keeps its number while it is taken.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Box<[Option<T>]>,
    /// Places that are free; the last one is taken next.
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// `capacity` free places.
    pub(crate) fn new(capacity: usize) -> Self {
        let places: Vec<Option<T>> = core::iter::repeat_with(|| None).take(capacity).collect();
        Self {
            places: places.into_boxed_slice(),
            free: (0..capacity as u32).rev().collect(),
        }
    }

    /// Puts `item` into a free place, if there is one.
    pub(crate) fn insert(&mut self, item: T) -> Option<usize> {
        let place = self.free.pop()? as usize;
        *self.places.get_mut(place)? = Some(item);
        Some(place)
    }

    /// Empties `place`.
    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let item = self.places.get_mut(place)?.take()?;
        self.free.push(place as u32);
        Some(item)
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        self.places.get(place)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.as_mut()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, item)| item.as_ref().map(|item| (place, item)))
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.places.len()
    }
}

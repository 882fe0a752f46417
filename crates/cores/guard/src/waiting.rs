//! Frames that wait, by priority and within one priority by arrival (figure 5.13).

use alloc::boxed::Box;
use alloc::vec;

use crate::flow::Priority;

/// No slot.
const NONE: u32 = u32::MAX;

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
pub struct Item<T> {
    /// Index of its flow in the guard's list.
    pub flow: u16,
    /// What the driver knows it by.
    pub token: T,
}

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    item: Option<Item<T>>,
    before: u32,
    after: u32,
}

/// One priority's frames, the oldest first.
#[derive(Clone, Copy, Debug)]
struct Level {
    oldest: u32,
    newest: u32,
}

/// A fixed number of slots in a list for each priority. Everything here takes constant time.
#[derive(Clone, Debug)]
pub struct Waiting<T> {
    slots: Box<[Slot<T>]>,
    levels: Box<[Level; 256]>,
    /// Priorities with frames.
    present: [u64; 4],
    /// First of the slots without a frame, which are linked by `after`.
    free: u32,
    len: u32,
}

impl<T: Copy> Waiting<T> {
    /// Room for so many.
    pub fn new(capacity: u32) -> Self {
        let slot = |at: u32| Slot {
            item: None,
            before: NONE,
            after: if at + 1 < capacity { at + 1 } else { NONE },
        };
        let empty = Level {
            oldest: NONE,
            newest: NONE,
        };
        Self {
            slots: (0..capacity).map(slot).collect(),
            levels: vec![empty; 256]
                .into_boxed_slice()
                .try_into()
                .unwrap_or_else(|_| Box::new([empty; 256])),
            present: [0; 4],
            free: if capacity > 0 { 0 } else { NONE },
            len: 0,
        }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    /// The most urgent priority with a frame.
    pub fn highest(&self) -> Option<Priority> {
        let word = (0..4).rev().find(|&at| self.present[at] != 0)?;
        let bit = 63 - self.present[word].leading_zeros();
        Some(Priority((word as u32 * 64 + bit) as u8))
    }

    /// The least urgent priority with a frame.
    pub fn lowest(&self) -> Option<Priority> {
        let word = (0..4).find(|&at| self.present[at] != 0)?;
        let bit = self.present[word].trailing_zeros();
        Some(Priority((word as u32 * 64 + bit) as u8))
    }

    /// Appends a frame; `false` if there is no room.
    pub fn push(&mut self, priority: Priority, item: Item<T>) -> bool {
        let at = self.free;
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return false;
        };
        let level = &mut self.levels[usize::from(priority.0)];
        let before = level.newest;
        self.free = slot.after;
        *slot = Slot {
            item: Some(item),
            before,
            after: NONE,
        };
        level.newest = at;
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.after = at,
            None => level.oldest = at,
        }
        self.present[usize::from(priority.0 >> 6)] |= 1 << (priority.0 & 63);
        self.len += 1;
        true
    }

    /// Takes the oldest frame of the most urgent priority.
    pub fn pop_highest(&mut self) -> Option<(Priority, Item<T>)> {
        let priority = self.highest()?;
        let at = self.levels[usize::from(priority.0)].oldest;
        Some((priority, self.remove(priority, at)?))
    }

    /// Takes the newest frame of the least urgent priority.
    pub fn pop_lowest(&mut self) -> Option<(Priority, Item<T>)> {
        let priority = self.lowest()?;
        let at = self.levels[usize::from(priority.0)].newest;
        Some((priority, self.remove(priority, at)?))
    }

    fn remove(&mut self, priority: Priority, at: u32) -> Option<Item<T>> {
        let slot = self.slots.get_mut(at as usize)?;
        let item = slot.item.take()?;
        let (before, after) = (slot.before, slot.after);
        slot.after = self.free;
        self.free = at;
        let level = &mut self.levels[usize::from(priority.0)];
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.after = after,
            None => level.oldest = after,
        }
        match self.slots.get_mut(after as usize) {
            Some(slot) => slot.before = before,
            None => level.newest = before,
        }
        if level.oldest == NONE {
            self.present[usize::from(priority.0 >> 6)] &= !(1 << (priority.0 & 63));
        }
        self.len -= 1;
        Some(item)
    }
}

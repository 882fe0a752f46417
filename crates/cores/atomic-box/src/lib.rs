//! What threads hand over without locks: a place for a box that they exchange in one atomic step, bytes of which
//! one reads the front while the other still writes the rest, and dirty bits that say where to look.
//!
//! A crate of its own because the cores forbid `unsafe` and these take some blocks of it, which
//! Miri, the sanitizers and loom judge (CONTRIBUTING.md). Of the crates that offer the same,
//! `crossbeam_utils::atomic::AtomicCell` passes the pointer through an integer, which the language
//! does not allow (crossbeam issue 908), and `atomicbox` is hardly kept up.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

mod dirty_set;
#[cfg(loom)]
mod every_order;
mod growing;

pub use dirty_set::DirtySet;
#[cfg(loom)]
pub use every_order::every_order;
pub use growing::{Growing, Grown, growing};

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicPtr, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};

/// Holds at most one box. Exchanging takes no lock and does not allocate.
#[derive(Debug)]
pub struct AtomicBox<T: Send> {
    /// Null, or a box's pointer that is nowhere else.
    place: AtomicPtr<T>,
    owns: PhantomData<Option<Box<T>>>,
}

// SAFETY: nobody gets a reference to a content through the place; a swap hands it over whole, to one
// thread, which `T: Send` allows.
unsafe impl<T: Send> Sync for AtomicBox<T> {}

impl<T: Send> AtomicBox<T> {
    /// Puts `content` in and returns what was there. What the thread that had put that in wrote before,
    /// is seen by the caller.
    pub fn swap(&self, content: Option<Box<T>>) -> Option<Box<T>> {
        let content = content.map_or(ptr::null_mut(), Box::into_raw);
        let before = self.place.swap(content, Ordering::AcqRel);
        // SAFETY: a pointer that is not null came from `Box::into_raw` in an earlier call, and a swap
        // gives each to one caller only. `T` may go to this thread, as it is `Send`; the order makes
        // what was written to it elsewhere visible here.
        (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
    }
}

impl<T: Send> Default for AtomicBox<T> {
    fn default() -> Self {
        Self {
            place: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }
}

impl<T: Send> Drop for AtomicBox<T> {
    fn drop(&mut self) {
        drop(self.swap(None));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn what_was_put_in_comes_out_once() {
        let place = AtomicBox::default();
        assert_eq!(place.swap(None), None);
        assert_eq!(place.swap(Some(Box::new(1))), None);
        assert_eq!(place.swap(Some(Box::new(2))), Some(Box::new(1)));
        assert_eq!(place.swap(None), Some(Box::new(2)));
        assert_eq!(place.swap(None), None);
    }

    #[test]
    fn what_is_left_is_dropped_with_the_place() {
        let witness = Arc::new(());
        let place = AtomicBox::default();
        place.swap(Some(Box::new(Arc::clone(&witness))));
        assert_eq!(Arc::strong_count(&witness), 2);
        drop(place);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn threads_pass_boxes_on_whole_and_lose_none() {
        const ROUNDS: u64 = if cfg!(miri) { 100 } else { 10_000 };
        let place: AtomicBox<[u64; 2]> = AtomicBox::default();
        let passed_on = |first: u64| {
            let took = (0..ROUNDS).filter_map(|round| {
                let number = first + round;
                place.swap(Some(Box::new([number; 2])))
            });
            took.map(|entry| {
                assert_eq!(entry[0], entry[1]);
                entry[0]
            })
            .collect::<Vec<_>>()
        };
        let mut seen = thread::scope(|threads| {
            let other = threads.spawn(|| passed_on(ROUNDS));
            let mut seen = passed_on(0);
            seen.extend(other.join().unwrap());
            seen
        });
        seen.extend(place.swap(None).map(|entry| entry[0]));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..2 * ROUNDS));
    }
}

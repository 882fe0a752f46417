//! What the protocols are made of: atomics, parking and rings of the machine or, with `--cfg loom`, of
//! loom, which tries every order in which threads can go on and every value that they may then read.
//!
//! loom takes a sequentially consistent access for one that acquires and releases. A protocol in
//! which each of two threads writes its own word and then reads the other's needs more than that, and
//! says so with a [`fence`].

#[cfg(not(loom))]
pub(crate) use rtrb::{Consumer, Producer, RingBuffer};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    thread::{Thread, current},
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    thread::{Thread, current},
};
#[cfg(loom)]
pub(crate) use stand_in::{Consumer, Producer, RingBuffer};

#[cfg(loom)]
mod stand_in {
    //! `rtrb`'s ring as far as it is used, with the same contract: bounded, in order, whoever takes an
    //! entry sees what was written before it was put in. loom cannot look into the real one, so what
    //! is tested with this is what is built on the ring, not the ring.

    use loom::sync::Mutex;
    use std::collections::VecDeque;
    use std::sync::Arc;

    pub(crate) struct RingBuffer;

    #[derive(Debug)]
    struct Ring<T> {
        entries: Mutex<VecDeque<T>>,
        capacity: usize,
    }

    #[derive(Debug)]
    pub(crate) struct Producer<T>(Arc<Ring<T>>);

    #[derive(Debug)]
    pub(crate) struct Consumer<T>(Arc<Ring<T>>);

    impl RingBuffer {
        // Named as rtrb does.
        #[expect(clippy::new_ret_no_self)]
        pub fn new<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
            let entries = Mutex::new(VecDeque::with_capacity(capacity));
            let ring = Arc::new(Ring { entries, capacity });
            (Producer(Arc::clone(&ring)), Consumer(ring))
        }
    }

    impl<T> Producer<T> {
        pub fn push(&mut self, entry: T) -> Result<(), T> {
            let mut entries = self.0.entries.lock().expect("nothing panics inside");
            if entries.len() == self.0.capacity {
                return Err(entry);
            }
            entries.push_back(entry);
            Ok(())
        }
    }

    impl<T> Consumer<T> {
        pub fn pop(&mut self) -> Result<T, ()> {
            let mut entries = self.0.entries.lock().expect("nothing panics inside");
            entries.pop_front().ok_or(())
        }

        pub fn is_empty(&self) -> bool {
            let entries = self.0.entries.lock().expect("nothing panics inside");
            entries.is_empty()
        }

        pub fn is_abandoned(&self) -> bool {
            Arc::strong_count(&self.0) == 1
        }
    }
}

//! Records from several threads to one, over a ring each: recording never blocks and never allocates.

use std::sync::Arc;

use crate::sync::{AtomicU64, Consumer, Ordering, Producer, RingBuffer};

/// One thread's way in. What does not fit is counted.
#[derive(Debug)]
pub struct Recorder<T> {
    ring: Producer<T>,
    lost: Arc<AtomicU64>,
}

impl<T> Recorder<T> {
    /// Records `entry`, or counts it as lost if the ring is full.
    pub fn record(&mut self, entry: T) {
        if self.ring.push(entry).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where the records of all threads come out.
#[derive(Debug)]
pub struct Records<T> {
    rings: Vec<Consumer<T>>,
    lost: Arc<AtomicU64>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self {
            rings: Vec::new(),
            lost: Arc::default(),
        }
    }
}

/// Makes ways in, in any thread.
#[derive(Clone, Debug)]
pub struct Entrance {
    lost: Arc<AtomicU64>,
}

/// What a [`Recorder`] fills, for [`Records::admit`].
#[derive(Debug)]
pub struct Ring<T>(Consumer<T>);

impl Entrance {
    /// A way in for one more thread, with room for `capacity` entries between two drains, and what is to
    /// be admitted before anything comes out.
    pub fn recorder<T>(&self, capacity: usize) -> (Recorder<T>, Ring<T>) {
        let (ring, consumer) = RingBuffer::new(capacity);
        let lost = Arc::clone(&self.lost);
        (Recorder { ring, lost }, Ring(consumer))
    }
}

impl<T> Records<T> {
    /// Where ways in come from.
    pub fn entrance(&self) -> Entrance {
        Entrance {
            lost: Arc::clone(&self.lost),
        }
    }

    /// A way in for one more thread, with room for `capacity` entries between two drains.
    pub fn recorder(&mut self, capacity: usize) -> Recorder<T> {
        let (recorder, ring) = self.entrance().recorder(capacity);
        self.admit(ring);
        recorder
    }

    /// Takes what its recorder records.
    pub fn admit(&mut self, ring: Ring<T>) {
        self.rings.push(ring.0);
    }

    /// Forgets the rings whose recorders are gone and that are empty.
    pub fn forget_gone(&mut self) {
        self.rings
            .retain(|ring| !(ring.is_abandoned() && ring.is_empty()));
    }

    /// Hands on what was recorded so far, one thread's after the other's, each in order.
    pub fn drain(&mut self, mut each: impl FnMut(T)) {
        for ring in &mut self.rings {
            while let Ok(entry) = ring.pop() {
                each(entry);
            }
        }
    }

    /// Entries that found no room since the start. Exact once the recording threads have ended.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

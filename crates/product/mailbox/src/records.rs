//! Records from several threads to one, over a ring each: recording never blocks and never allocates.

use std::sync::Arc;

use crate::sync::{AtomicBool, AtomicU64, Consumer, Ordering, Producer, RingBuffer};

/// What all recorders share.
#[derive(Debug, Default)]
struct Common {
    /// Entries that found no room.
    lost: AtomicU64,
    /// Something may have come into some ring since the last drain. Asked first, because mostly nothing has.
    news: AtomicBool,
}

/// One thread's way to record. What does not fit is counted.
#[derive(Debug)]
pub struct Recorder<T> {
    ring: Producer<T>,
    common: Arc<Common>,
}

impl<T> Recorder<T> {
    /// Records `entry`, or counts it as lost if the ring is full.
    pub fn record(&mut self, entry: T) {
        if self.ring.push(entry).is_err() {
            self.common.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.common.news.store(true, Ordering::Release);
    }
}

/// Where the records of all threads come out.
#[derive(Debug)]
pub struct Records<T> {
    rings: Vec<Consumer<T>>,
    common: Arc<Common>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self {
            rings: Vec::new(),
            common: Arc::default(),
        }
    }
}

/// Makes recorders, in any thread.
#[derive(Clone, Debug)]
pub struct Entrance {
    common: Arc<Common>,
}

/// What a [`Recorder`] fills, for [`Records::admit`].
#[derive(Debug)]
pub struct Ring<T>(Consumer<T>);

impl Entrance {
    /// A recorder for one more thread, with room for `capacity` entries between two drains, and its ring, which is to
    /// be admitted before anything comes out.
    pub fn recorder<T>(&self, capacity: usize) -> (Recorder<T>, Ring<T>) {
        let (ring, consumer) = RingBuffer::new(capacity);
        let common = Arc::clone(&self.common);
        (Recorder { ring, common }, Ring(consumer))
    }

    /// Has [`Records::has_news`] return `true`: something has come that is in no ring.
    pub fn announce(&self) {
        self.common.news.store(true, Ordering::Release);
    }
}

impl<T> Records<T> {
    /// What makes recorders for these records.
    pub fn entrance(&self) -> Entrance {
        Entrance {
            common: Arc::clone(&self.common),
        }
    }

    /// A recorder for one more thread, with room for `capacity` entries between two drains.
    pub fn recorder(&mut self, capacity: usize) -> Recorder<T> {
        let (recorder, ring) = self.entrance().recorder(capacity);
        self.admit(ring);
        recorder
    }

    /// Takes what its recorder records.
    pub fn admit(&mut self, ring: Ring<T>) {
        self.rings.push(ring.0);
        // It may have been recorded to, and looked for in vain, before.
        self.common.news.store(true, Ordering::Release);
    }

    /// Forgets the rings whose recorders are gone and that are empty.
    pub fn forget_gone(&mut self) {
        self.rings
            .retain(|ring| !(ring.is_abandoned() && ring.is_empty()));
    }

    /// Whether [`drain`](Self::drain) may hand on something.
    pub fn has_news(&self) -> bool {
        self.common.news.load(Ordering::Relaxed)
    }

    /// Hands on what was recorded so far, one thread's after the other's, each in order.
    pub fn drain(&mut self, mut each: impl FnMut(T)) {
        // Before the rings are looked at: what comes meanwhile is found now or the next time.
        if !self.has_news() || !self.common.news.swap(false, Ordering::Acquire) {
            return;
        }
        for ring in &mut self.rings {
            while let Ok(entry) = ring.pop() {
                each(entry);
            }
        }
    }

    /// Entries that found no room since the start. Exact once the recording threads have ended.
    pub fn lost(&self) -> u64 {
        self.common.lost.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn records_made_before_their_ring_was_admitted_come_out_afterwards() {
        let mut records = Records::default();
        let (mut recorder, ring) = records.entrance().recorder(4);
        recorder.record(7);
        assert!(records.has_news());
        records.drain(|entry: i32| unreachable!("{entry} is in no ring"));
        assert!(!records.has_news());
        records.admit(ring);
        let mut seen = Vec::new();
        records.drain(|entry| seen.push(entry));
        assert_eq!(seen, [7]);
    }

    #[test]
    fn what_comes_on_another_way_is_news_until_it_is_looked_for() {
        let mut records = Records::<i32>::default();
        assert!(!records.has_news());
        records.entrance().announce();
        assert!(records.has_news());
        records.drain(|_| ());
        assert!(!records.has_news());
    }
}

//! The way of one application's states from its executor to the thread that writes them to disk.
//!
//! Two buffers pass between the two by atomic exchange. The executor always finds one to copy a state to: if the disk
//! is slow, it takes back the one that waits, so states are left out and never queue.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use bumpless_atomic_box::AtomicBox;
use bumpless_base::{Duration, Instant};
use bumpless_controller::retain::Record;
use bumpless_controller::state::Progress;

use super::restore::LeftRecord;

/// A state on its way.
pub struct StateCopy {
    bytes: Box<[u8]>,
    len: usize,
    /// When it was published, or came from the partner, by this node's monotonic clock.
    pub published_at: Instant,
}

impl StateCopy {
    fn new(size: usize) -> Box<Self> {
        Box::new(Self {
            bytes: vec![0; size].into_boxed_slice(),
            len: 0,
            published_at: Instant::ZERO,
        })
    }

    fn set(&mut self, state: &[u8], published_at: Instant) {
        self.len = state.len().min(self.bytes.len());
        self.bytes[..self.len].copy_from_slice(&state[..self.len]);
        self.published_at = published_at;
    }

    /// The state as it was published.
    pub fn state(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Wakes the thread that writes.
#[derive(Debug, Default)]
pub struct Bell(OnceLock<Thread>);

impl Bell {
    /// From here on `thread` is woken.
    pub fn set(&self, thread: Thread) {
        let _ = self.0.set(thread);
    }

    fn ring(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

#[derive(Default)]
struct Way {
    newest: AtomicBox<StateCopy>,
    /// Two, so that there is room for both buffers.
    returned: [AtomicBox<StateCopy>; 2],
    bell: Arc<Bell>,
    ended: AtomicBool,
}

/// The executor's end. Nothing here blocks or allocates after [`way`].
pub struct Keeper {
    way: Arc<Way>,
    spares: [Option<Box<StateCopy>>; 2],
    every: Duration,
    due: Instant,
    /// Until when the state that the first of the spares holds from the start may be gone on from.
    restored_until: Option<Instant>,
    /// Transfer cycle of the received state that was kept last.
    received: Option<u32>,
    /// The retained variables that an earlier process has left.
    retained: Option<LeftRecord>,
}

/// The end of the thread that writes.
pub struct Outlet(Arc<Way>);

/// A way for states of at most `size` bytes, one in `every` at most. `restored`: what an earlier process has left, and
/// until when it may be gone on from.
pub fn way(
    size: usize,
    every: Duration,
    restored: Option<(&[u8], Instant)>,
    bell: &Arc<Bell>,
) -> (Keeper, Outlet) {
    let way = Arc::new(Way {
        bell: Arc::clone(bell),
        ..Way::default()
    });
    let mut first = StateCopy::new(size);
    if let Some((state, _)) = restored {
        first.set(state, Instant::ZERO);
    }
    let keeper = Keeper {
        way: Arc::clone(&way),
        spares: [Some(first), Some(StateCopy::new(size))],
        every,
        due: Instant::ZERO,
        restored_until: restored.map(|(_, until)| until),
        received: None,
        retained: None,
    };
    (keeper, Outlet(way))
}

impl Keeper {
    /// With the retained variables that an earlier process has left.
    pub fn retaining(mut self, left: Option<LeftRecord>) -> Self {
        self.retained = left;
        self
    }

    /// The retained variables that an earlier process has left, and how far their state had come.
    pub fn retained(&self) -> Option<(Progress, Record<'_>)> {
        let left = self.retained.as_ref()?;
        Some((left.progress, Record::parse(&left.record)?))
    }

    /// At most one state in so long from here on.
    pub fn set_every(&mut self, every: Duration) {
        self.every = every;
        self.due = Instant::ZERO;
    }

    /// Whether a state would be taken at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Takes `state`, published at `now`, if one is due.
    pub fn keep(&mut self, state: &[u8], now: Instant) {
        if self.is_due(now) {
            self.put(state, now, now);
        }
    }

    /// Keeps `state`, which came from the partner with the transfer cycle `cycle` at `received_at`: if a write is due at `now`, a
    /// buffer is free and `cycle` was not the last one kept.
    pub fn keep_received(&mut self, state: &[u8], cycle: u32, received_at: Instant, now: Instant) {
        if self.is_due(now) && self.received != Some(cycle) {
            self.received = Some(cycle);
            self.put(state, received_at, now);
        }
    }

    fn put(&mut self, state: &[u8], published_at: Instant, now: Instant) {
        let Some(mut copy) = self.buffer() else {
            return;
        };
        self.restored_until = None;
        self.due = now + self.every;
        copy.set(state, published_at);
        let before = self.way.newest.swap(Some(copy));
        if let Some(place) = self.spares.iter_mut().find(|spare| spare.is_none()) {
            *place = before;
        }
        self.way.bell.ring();
    }

    /// A buffer to copy to. The thread that writes holds at most one of the two.
    fn buffer(&mut self) -> Option<Box<StateCopy>> {
        let way = &self.way;
        let [first, second] = &mut self.spares;
        // What was restored goes last.
        let spare = second.take().or_else(|| first.take());
        let returned = || way.returned.iter().find_map(|place| place.swap(None));
        spare.or_else(returned).or_else(|| way.newest.swap(None))
    }

    /// What an earlier process has left, if it could be gone on from at `taken_at` and no state was kept since.
    pub fn restored(&self, taken_at: Instant) -> Option<&[u8]> {
        self.restored_until.filter(|&until| taken_at < until)?;
        self.spares[0].as_ref().map(|copy| copy.state())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.way.ended.store(true, Ordering::Release);
        self.way.bell.ring();
    }
}

impl Outlet {
    /// The newest state that waits. To be given back before the next one is taken.
    pub fn take(&self) -> Option<Box<StateCopy>> {
        self.0.newest.swap(None)
    }

    /// Gives a buffer back.
    pub fn give_back(&self, copy: Box<StateCopy>) {
        let [first, second] = &self.0.returned;
        if let Some(other) = first.swap(Some(copy)) {
            second.swap(Some(other));
        }
    }

    /// Whether the executor's end is gone; what it has put in before is there.
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;

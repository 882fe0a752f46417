//! A buffer for one state, and the place where two threads exchange it.

use crate::sync::{AtomicUsize, Ordering};
use alloc::boxed::Box;
use alloc::vec;
use bumpless_atomic_box::AtomicBox;
use bumpless_base::Instant;

/// One state and what belongs to it. Plain data: only its owner touches it.
#[derive(Debug)]
pub(crate) struct StateBuffer {
    /// As large as the channel's largest state.
    pub data: Box<[u8]>,
    /// Bytes of `data` that are the state.
    pub len: usize,
    /// Sending side: published and not yet taken by the sender.
    pub queued: bool,
    /// Sending side: the publication's number.
    pub ticket: u64,
    /// Sending side: states that this one superseded in the slot.
    pub superseded: u32,
    /// Sending side: when it was published.
    pub published_at: Instant,
    /// Sending side: when it must be acknowledged.
    pub deadline: Instant,
    /// It must not be used after this, on this node's clock.
    pub expires_at: Instant,
    /// Receiving side: transfer cycle.
    pub cycle: u32,
    /// Receiving side: when the last missing packet came.
    pub received_at: Instant,
}

impl StateBuffer {
    pub fn new(max_size: u32) -> Box<Self> {
        Box::new(Self {
            data: vec![0; max_size as usize].into_boxed_slice(),
            len: 0,
            queued: false,
            ticket: 0,
            superseded: 0,
            published_at: Instant::ZERO,
            deadline: Instant::ZERO,
            expires_at: Instant::ZERO,
            cycle: 0,
            received_at: Instant::ZERO,
        })
    }

    /// The state.
    pub fn bytes(&self) -> &[u8] {
        self.data.get(..self.len).unwrap_or_default()
    }
}

/// Holds at most one buffer, exchanged without a lock.
#[derive(Default)]
pub(crate) struct Slot {
    buffer: AtomicBox<StateBuffer>,
    /// Sending side: the low bits of the ticket that was queued last.
    latest: AtomicUsize,
}

impl Slot {
    pub fn swap(&self, buffer: Option<Box<StateBuffer>>) -> Option<Box<StateBuffer>> {
        self.buffer.swap(buffer)
    }

    pub fn take(&self) -> Option<Box<StateBuffer>> {
        self.buffer.swap(None)
    }

    /// Notes that the state with this number was queued. Before its channel is marked.
    pub fn note_queued(&self, ticket: u64) {
        self.latest.store(ticket as usize, Ordering::Release);
    }

    /// Whether a state was queued after the one with this number, as far as the publisher has noted. The note may
    /// even be older than that one, if the sender took the state after the publisher's exchange and before its note.
    pub fn has_later(&self, ticket: u64) -> bool {
        let ahead = self
            .latest
            .load(Ordering::Acquire)
            .wrapping_sub(ticket as usize);
        ahead.cast_signed() > 0
    }
}

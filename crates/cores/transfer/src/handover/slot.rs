//! The buffers of a channel's two sides, and the place where a sending channel's threads exchange them.

use crate::sync::{AtomicUsize, Ordering};
use alloc::boxed::Box;
use alloc::vec;
use bumpless_atomic_box::{AtomicBox, Growing, Grown, growing};
use bumpless_base::Instant;

/// A state on the receiving side. Plain data: only its owner touches it.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// As large as the channel's largest state.
    pub data: Box<[u8]>,
    /// Bytes of `data` that are the state.
    pub len: usize,
    /// It must not be used after this, on this node's clock.
    pub expires_at: Instant,
    /// Transfer cycle.
    pub cycle: u32,
    /// When the last missing packet came.
    pub received_at: Instant,
}

impl Incoming {
    pub fn new(max_size: u32) -> Box<Self> {
        Box::new(Self {
            data: vec![0; max_size as usize].into_boxed_slice(),
            len: 0,
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

/// A state on the sending side. Only its owner touches it; its bytes may still be growing, since the publisher has
/// their other end.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// What is there of the state, and perhaps more. As large as the channel's largest state when it has grown.
    pub grown: Grown,
    /// Bytes of the whole state.
    pub len: usize,
    /// Published and not yet taken by the sender.
    pub queued: bool,
    /// The publication's number.
    pub ticket: u64,
    /// States that this one superseded in the slot.
    pub superseded: u32,
    /// When it was published.
    pub published_at: Instant,
    /// When it must be acknowledged.
    pub deadline: Instant,
    /// It must not be used after this, on this node's clock.
    pub expires_at: Instant,
    /// The next one in a [`Chain`].
    next: Option<Box<Self>>,
}

impl Outgoing {
    /// One, and the end at which its bytes are written.
    pub fn new(max_size: u32) -> (Box<Self>, Growing) {
        let (write, grown) = growing(max_size as usize);
        let state = Self {
            grown,
            len: 0,
            queued: false,
            ticket: 0,
            superseded: 0,
            published_at: Instant::ZERO,
            deadline: Instant::ZERO,
            expires_at: Instant::ZERO,
            next: None,
        };
        (Box::new(state), write)
    }

    /// What is there of the state.
    pub fn bytes(&self) -> &[u8] {
        let grown = self.grown.bytes();
        grown.get(..self.len).unwrap_or(grown)
    }
}

/// Buffers that hang on one another, so that a slot can hold several. Nothing is allocated for that.
#[derive(Debug, Default)]
pub(crate) struct Chain(Option<Box<Outgoing>>);

impl Chain {
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn first(&self) -> Option<&Outgoing> {
        self.0.as_deref()
    }

    pub fn first_mut(&mut self) -> Option<&mut Outgoing> {
        self.0.as_deref_mut()
    }

    /// Whether its states wait; else its buffers are free.
    pub fn waits(&self) -> bool {
        self.first().is_some_and(|first| first.queued)
    }

    pub fn len(&self) -> usize {
        core::iter::successors(self.first(), |state| state.next.as_deref()).count()
    }

    pub fn take_first(&mut self) -> Option<Box<Outgoing>> {
        let mut first = self.0.take()?;
        self.0 = first.next.take();
        Some(first)
    }

    pub fn take_last(&mut self) -> Option<Box<Outgoing>> {
        let mut place = &mut self.0;
        while place.as_ref()?.next.is_some() {
            place = &mut place.as_mut()?.next;
        }
        place.take()
    }

    pub fn put_first(&mut self, mut state: Box<Outgoing>) {
        state.next = self.0.take();
        self.0 = Some(state);
    }

    pub fn put_last(&mut self, state: Box<Outgoing>) {
        let mut place = &mut self.0;
        while let Some(before) = place {
            place = &mut before.next;
        }
        *place = Some(state);
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, mut other: Self) {
        while let Some(state) = other.take_first() {
            self.put_first(state);
        }
    }
}

/// Where publisher and sender exchange buffers without a lock: states that wait, in their order, or buffers that are
/// free, never both.
#[derive(Default)]
pub(crate) struct Slot {
    chain: AtomicBox<Outgoing>,
    /// The low bits of the ticket that was queued last.
    latest: AtomicUsize,
}

impl Slot {
    pub fn swap(&self, chain: Chain) -> Chain {
        Chain(self.chain.swap(chain.0))
    }

    pub fn take(&self) -> Chain {
        self.swap(Chain::default())
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

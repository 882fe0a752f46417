//! The application's end of a sending channel.

use super::{Slot, StateBuffer};
use crate::setup::{SetupError, Times};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bumpless_atomic_box::DirtySet;
use bumpless_base::{Duration, Instant};

/// What [`Publisher::publish`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Number of this state; the events about it carry it. Grows by one with each state.
    pub ticket: u64,
    /// The state that was waiting and will not be sent because this one took its place.
    pub superseded: Option<u64>,
}

/// Hands an application's states to the sender. One for each channel, usable in any thread.
///
/// Publishing never waits: of the channel's two buffers the sender holds at most one. The driver
/// must be woken afterwards so that it calls `Sender::handle_published`.
pub struct Publisher {
    channel: usize,
    slot: Arc<Slot>,
    dirty: Arc<DirtySet>,
    /// The buffer that lies neither in the slot nor at the sender, if any.
    held: Option<Box<StateBuffer>>,
    max_size: u32,
    times: Times,
    next_ticket: u64,
}

/// A queued state that was taken back before the sender saw it.
struct Replaced {
    ticket: u64,
    deadline: Instant,
    superseded: u32,
}

impl Publisher {
    /// Position among the sender's channels.
    pub fn channel(&self) -> usize {
        self.channel
    }

    /// Largest state, bytes.
    pub fn max_size(&self) -> usize {
        self.max_size as usize
    }

    /// Gives the states published from here on another deadline and expiry. One that waits and is
    /// superseded hands on the deadline that it got.
    ///
    /// # Errors
    /// [`SetupError::TooShort`]; nothing is changed.
    pub fn set_times(&mut self, deadline: Duration, expiry: Duration) -> Result<(), SetupError> {
        self.times.change(self.channel, deadline, expiry)
    }

    /// Publishes a state: `fill` writes it to the front of the buffer it is given (what is in there
    /// is an older state or zeros) and returns its length, which is cut to the buffer's. This is the
    /// one copy on the sending side, and where a security handler works: what `fill` has sealed stays as it is for the
    /// whole transfer cycle.
    ///
    /// A state that still waits in the slot is superseded: this one inherits its deadline and gets
    /// an expiry of its own (first paper, 7.4.1).
    pub fn publish(&mut self, now: Instant, fill: impl FnOnce(&mut [u8]) -> usize) -> Published {
        let mut replaced = None;
        if self.held.is_none() {
            replaced = self.take_back();
        }
        // One of the two buffers is always here or in the slot. A third is made only if a sender
        // was dropped together with the buffer it held.
        let buffer = self
            .held
            .get_or_insert_with(|| StateBuffer::new(self.max_size));
        // Filled where it lies, so that it is not lost if `fill` panics.
        buffer.len = fill(&mut buffer.data).min(buffer.data.len());
        let filled = self.held.take();
        if replaced.is_none() {
            replaced = self.take_back();
        }
        self.queue(now, filled, replaced)
    }

    /// Takes the slot's buffer as the held one; what it queued is replaced.
    fn take_back(&mut self) -> Option<Replaced> {
        let mut buffer = self.slot.take()?;
        let replaced = buffer.queued.then_some(Replaced {
            ticket: buffer.ticket,
            deadline: buffer.deadline,
            superseded: buffer.superseded,
        });
        buffer.queued = false;
        self.held = Some(buffer);
        replaced
    }

    fn queue(
        &mut self,
        now: Instant,
        filled: Option<Box<StateBuffer>>,
        replaced: Option<Replaced>,
    ) -> Published {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let superseded = replaced.as_ref().map(|r| r.ticket);
        if let Some(mut buffer) = filled {
            let inherited = replaced
                .as_ref()
                .map_or(Instant::FAR_FUTURE, |r| r.deadline);
            buffer.queued = true;
            buffer.ticket = ticket;
            buffer.superseded = replaced.map_or(0, |r| r.superseded.saturating_add(1));
            buffer.published_at = now;
            buffer.deadline = inherited.min(now + self.times.deadline);
            buffer.expires_at = now + self.times.expiry;
            if let Some(back) = self.slot.swap(Some(buffer)) {
                self.held = Some(back);
            }
            self.slot.note_queued(ticket);
        }
        self.dirty.mark(self.channel);
        Published { ticket, superseded }
    }
}

/// The two ends of a channel's slot: the publisher, and what the sender keeps.
pub(crate) fn pair(
    channel: usize,
    dirty: &Arc<DirtySet>,
    max_size: u32,
    times: Times,
) -> (Publisher, Arc<Slot>) {
    let slot = Arc::new(Slot::default());
    slot.swap(Some(StateBuffer::new(max_size)));
    let publisher = Publisher {
        channel,
        slot: Arc::clone(&slot),
        dirty: Arc::clone(dirty),
        held: Some(StateBuffer::new(max_size)),
        max_size,
        times,
        next_ticket: 0,
    };
    (publisher, slot)
}

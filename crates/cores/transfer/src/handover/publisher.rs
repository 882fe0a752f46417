//! The application's end of a sending channel.

use super::{Chain, Outgoing, Slot};
use crate::place::ChannelPlace;
use crate::setup::{SenderChannel, SetupError, Times};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bumpless_atomic_box::{DirtySet, Growing};
use bumpless_base::{Duration, Instant, Pieces, Revision};

/// So many bytes of a state that is published in pieces are copied before its first packet may leave; each further piece
/// is twice as long as the one before (T-52). *Copying is faster than sending, so the sender does not run dry, and it is
/// woken a few times only.*
const FIRST_PIECE: usize = 32 * 1024;

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
/// Publishing never waits: of the channel's buffers the sender holds at most half. The driver
/// must be woken afterwards so that it calls `Sender::handle_published`.
pub struct Publisher {
    channel: ChannelPlace,
    slot: Arc<Slot>,
    dirty: Arc<DirtySet>,
    /// The buffers that lie neither in the slot nor at the sender.
    held: Chain,
    /// One for each buffer.
    ends: Vec<End>,
    max_size: u32,
    waiting_max: usize,
    times: Times,
    next_ticket: u64,
}

/// Where the bytes of a buffer are written.
struct End {
    write: Growing,
    /// Which state lies there, if that is known.
    revision: Option<Revision>,
}

/// A queued state that was taken back before the sender saw it.
struct Replaced {
    ticket: u64,
    deadline: Instant,
    superseded: u32,
}

impl Publisher {
    /// The channel's place in the sender.
    pub fn channel(&self) -> ChannelPlace {
        self.channel
    }

    /// Largest state, bytes.
    pub fn max_size(&self) -> usize {
        self.max_size as usize
    }

    /// The number that the next state gets.
    pub fn next_ticket(&self) -> u64 {
        self.next_ticket
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
    /// Where as many states wait in the slot as may, the last one is superseded: this one inherits its deadline and gets
    /// an expiry of its own (first paper, 7.4.1).
    pub fn publish(&mut self, now: Instant, fill: impl FnOnce(&mut [u8]) -> usize) -> Published {
        let replaced = self.make_room();
        let at = self.take_back();
        let mut len = 0;
        if let Some(end) = self.ends.get_mut(at) {
            end.revision = None;
            // Filled where it lies, so that it is not lost if `fill` panics.
            len = fill(end.write.rest()).min(self.max_size as usize);
            end.write.grow(usize::MAX);
        }
        self.queue(now, len, replaced)
    }

    /// Publishes the state that `pieces` copies. Where the buffer holds an earlier one of the same owner, only what has
    /// changed since is copied. Else the first packets of a large state may leave while the rest is copied: for that
    /// the driver must be woken each time that `wake` is called, and afterwards. A state that is larger than the channel's
    /// largest one is published as an empty one.
    ///
    /// Should `pieces` panic, a state that was begun is not finished, and fails by its deadline.
    pub fn publish_pieces(
        &mut self,
        now: Instant,
        pieces: &dyn Pieces,
        mut wake: impl FnMut(),
    ) -> Published {
        let (size, revision) = (pieces.size(), pieces.revision());
        if size > self.max_size as usize {
            return self.publish(now, |_| 0);
        }
        let replaced = self.make_room();
        let at = self.take_back();
        let held = self.ends.get_mut(at).and_then(|end| end.revision.take());
        let held = held.filter(|held| revision.is_some_and(|it| it.of == held.of));
        let mut piece = match held {
            Some(_) => size,
            None if size <= 2 * FIRST_PIECE => size,
            None => FIRST_PIECE,
        };
        self.copy(at, pieces, (0, piece), held);
        let published = self.queue(now, size, replaced);
        let mut from = piece;
        while from < size {
            wake();
            piece = (2 * piece).min(size - from);
            self.copy(at, pieces, (from, piece), held);
            self.dirty.mark(self.channel.0);
            from += piece;
        }
        if let Some(end) = self.ends.get_mut(at) {
            end.revision = revision;
        }
        published
    }

    /// Copies a piece, which begins where the one before ended, and hands it over.
    fn copy(
        &mut self,
        at: usize,
        pieces: &dyn Pieces,
        (from, len): (usize, usize),
        held: Option<Revision>,
    ) {
        if let Some(end) = self.ends.get_mut(at)
            && let Some(piece) = end.write.rest().get_mut(..len)
        {
            pieces.copy(from, piece, held);
            end.write.grow(len);
        }
    }

    /// Sees to it that a buffer is here, if need be that of the state that waits last.
    fn make_room(&mut self) -> Option<Replaced> {
        if !self.held.is_empty() {
            return None;
        }
        let mut waiting = self.slot.take();
        if !waiting.waits() {
            self.held = waiting;
            return None;
        }
        let replaced = self.withdraw_last(&mut waiting);
        if !waiting.is_empty() {
            self.held.extend(self.slot.swap(waiting));
        }
        replaced
    }

    /// Takes the last of the states that wait out and makes its buffer the next one to fill.
    fn withdraw_last(&mut self, waiting: &mut Chain) -> Option<Replaced> {
        let mut last = waiting.take_last()?;
        last.queued = false;
        let replaced = Replaced {
            ticket: last.ticket,
            deadline: last.deadline,
            superseded: last.superseded,
        };
        self.held.put_first(last);
        Some(replaced)
    }

    /// Takes the bytes of the first buffer that is here back from their reader; returns whose end writes them.
    fn take_back(&mut self) -> usize {
        // One is always here or was in the slot. Another is made only if a sender was dropped together with what it held.
        if self.held.is_empty() {
            let (buffer, end) = buffer(self.max_size);
            self.held.put_first(buffer);
            self.ends.push(end);
        }
        let first = self.held.first_mut();
        let of = |first: &mut Outgoing| {
            let mut ends = self.ends.iter_mut();
            ends.position(|end| end.write.restart(&mut first.grown))
        };
        first.and_then(of).unwrap_or_default()
    }

    /// Queues the first buffer that is here, with a state of `len` bytes.
    fn queue(&mut self, now: Instant, len: usize, mut replaced: Option<Replaced>) -> Published {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if let Some(mut state) = self.held.take_first() {
            let mut waiting = self.slot.take();
            if !waiting.waits() {
                self.held.extend(core::mem::take(&mut waiting));
            } else if waiting.len() >= self.waiting_max {
                replaced = self.withdraw_last(&mut waiting).or(replaced);
            }
            let inherited = replaced
                .as_ref()
                .map_or(Instant::FAR_FUTURE, |it| it.deadline);
            state.len = len;
            state.queued = true;
            state.ticket = ticket;
            state.superseded = replaced
                .as_ref()
                .map_or(0, |it| it.superseded.saturating_add(1));
            state.published_at = now;
            state.deadline = inherited.min(now + self.times.deadline);
            state.expires_at = now + self.times.expiry;
            waiting.put_last(state);
            self.held.extend(self.slot.swap(waiting));
            self.slot.note_queued(ticket);
        }
        self.dirty.mark(self.channel.0);
        Published {
            ticket,
            superseded: replaced.map(|it| it.ticket),
        }
    }
}

fn buffer(max_size: u32) -> (Box<Outgoing>, End) {
    let (buffer, write) = Outgoing::new(max_size);
    let end = End {
        write,
        revision: None,
    };
    (buffer, end)
}

/// The two ends of a channel's slot: the publisher, and what the sender keeps.
pub(crate) fn pair(
    channel: ChannelPlace,
    dirty: &Arc<DirtySet>,
    setup: &SenderChannel,
    times: Times,
) -> (Publisher, Arc<Slot>) {
    let waiting_max = setup.unsent.waiting_max() as usize;
    let (mut ends, mut held, mut free) = (Vec::new(), Chain::default(), Chain::default());
    for _ in 0..waiting_max {
        for chain in [&mut held, &mut free] {
            let (buffer, end) = buffer(setup.max_size);
            chain.put_first(buffer);
            ends.push(end);
        }
    }
    let slot = Arc::new(Slot::default());
    slot.swap(free);
    let publisher = Publisher {
        channel,
        slot: Arc::clone(&slot),
        dirty: Arc::clone(dirty),
        held,
        ends,
        max_size: setup.max_size,
        waiting_max,
        times,
        next_ticket: 0,
    };
    (publisher, slot)
}

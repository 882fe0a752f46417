//! The application's end of a receiving channel.

use super::Incoming;
use crate::place::ChannelPlace;
use alloc::boxed::Box;
use alloc::sync::Arc;
use bumpless_atomic_box::AtomicBox;
use bumpless_base::Instant;

/// Where a channel's two buffers pass between receiver and application.
///
/// `newest` holds the newest whole state unless the application looks at it just then; `returned`
/// holds a buffer that the application gave back after a newer state had come. The receiver always
/// has one of the two buffers to write to, except while the application looks at the older of two
/// whole states.
#[derive(Default)]
pub(crate) struct Delivery {
    newest: AtomicBox<Incoming>,
    returned: AtomicBox<Incoming>,
}

impl Delivery {
    /// Makes `complete` the newest state; returns a buffer to write the next one to, if one is free.
    pub fn deliver(&self, complete: Box<Incoming>) -> Option<Box<Incoming>> {
        self.newest.swap(Some(complete)).or_else(|| self.spare())
    }

    /// A buffer that the application has given back.
    pub fn spare(&self) -> Option<Box<Incoming>> {
        self.returned.swap(None)
    }
}

/// Gives an application the newest whole state of a channel. Usable in any thread.
pub struct Subscriber {
    channel: ChannelPlace,
    delivery: Arc<Delivery>,
}

impl Subscriber {
    /// The channel's place in the receiver.
    pub fn channel(&self) -> ChannelPlace {
        self.channel
    }

    /// The newest whole state, again and again, until it expires or a newer one is whole; `None`
    /// if there is none or it has expired at `now`.
    ///
    /// Keep the view short: while it is there and a newer state is whole already, the receiver
    /// has no buffer for the one after that.
    pub fn read(&mut self, now: Instant) -> Option<StateView<'_>> {
        // An expired one goes back as the view is dropped: the receiver needs it as its next spare.
        self.newest().filter(|view| view.expires_at() > now)
    }

    /// The newest whole state, whatever its age; for who judges by something else than the expiry whether it may
    /// be used. Keep the view short, as that of [`read`](Self::read).
    pub fn newest(&mut self) -> Option<StateView<'_>> {
        Some(StateView {
            buffer: Some(self.delivery.newest.swap(None)?),
            delivery: &self.delivery,
        })
    }
}

/// A whole state while an application looks at it. Dropping it hands the buffer back.
pub struct StateView<'a> {
    /// Always there until the view is dropped.
    buffer: Option<Box<Incoming>>,
    delivery: &'a Delivery,
}

impl StateView<'_> {
    /// The state, byte for byte as it was published.
    pub fn data(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| buffer.bytes())
    }
    /// Its transfer cycle.
    pub fn cycle(&self) -> u32 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.cycle)
    }
    /// When its last missing packet came.
    pub fn received_at(&self) -> Instant {
        self.buffer
            .as_ref()
            .map_or(Instant::ZERO, |buffer| buffer.received_at)
    }
    /// It must not be used from this instant on.
    pub fn expires_at(&self) -> Instant {
        self.buffer
            .as_ref()
            .map_or(Instant::ZERO, |buffer| buffer.expires_at)
    }
}

impl Drop for StateView<'_> {
    fn drop(&mut self) {
        let newest = &self.delivery.newest;
        if let Some(newer) = newest.swap(self.buffer.take()) {
            // A newer state came meanwhile and must stay the newest. The receiver has no buffer
            // left with which it could complete another one between these two exchanges.
            self.delivery.returned.swap(newest.swap(Some(newer)));
        }
    }
}

/// The two ends of a channel's delivery, and the buffer with which the receiver starts.
pub(crate) fn pair(
    channel: ChannelPlace,
    max_size: u32,
) -> (Subscriber, Arc<Delivery>, Box<Incoming>) {
    let delivery = Arc::new(Delivery::default());
    delivery.returned.swap(Some(Incoming::new(max_size)));
    let subscriber = Subscriber {
        channel,
        delivery: Arc::clone(&delivery),
    };
    (subscriber, delivery, Incoming::new(max_size))
}

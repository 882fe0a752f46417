//! Handing states between an application's thread and the data plane without locks.
//!
//! Each channel has exactly [`BUFFERS_PER_SIDE`] buffers on each side, at its sender twice as many where it keeps what
//! is unsent ([`Unsent::buffers`](bumpless_base::Unsent::buffers)). A buffer is always owned by one thread or lies where two
//! exchange buffers in one atomic step. The bytes of one on the sending side have two owners while they grow.

mod publisher;
mod slot;
mod subscriber;

pub(crate) use publisher::pair as sending_pair;
pub use publisher::{Published, Publisher};
pub(crate) use slot::{Chain, Incoming, Outgoing, Slot};
pub(crate) use subscriber::{Delivery, pair as receiving_pair};
pub use subscriber::{StateView, Subscriber};

/// Buffers of one state that a channel takes on each side: at its sender, and at its receiver (T-1).
pub const BUFFERS_PER_SIDE: u32 = 2;

#[cfg(all(test, loom))]
mod every_order;
#[cfg(all(test, not(loom)))]
mod tests;

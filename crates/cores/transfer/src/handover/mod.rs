//! Handing states between an application's thread and the data plane without locks.
//!
//! Each channel has exactly [`BUFFERS_PER_SIDE`] buffers on each side. A buffer is always owned by one thread or
//! lies in a [`Slot`], which holds at most one and exchanges it in one atomic step.

mod publisher;
mod slot;
mod subscriber;

pub(crate) use publisher::pair as sending_pair;
pub use publisher::{Published, Publisher};
pub(crate) use slot::{Slot, StateBuffer};
pub(crate) use subscriber::{Delivery, pair as receiving_pair};
pub use subscriber::{StateView, Subscriber};

/// Buffers of one state that a channel takes on each side: at its sender, and at its receiver (T-1).
pub const BUFFERS_PER_SIDE: u32 = 2;

#[cfg(all(test, loom))]
mod every_order;
#[cfg(all(test, not(loom)))]
mod tests;

//! Handing states between an application's thread and the data plane without locks.
//!
//! Each channel has exactly two buffers on each side. A buffer is always owned by one thread or
//! lies in a [`Slot`], which holds at most one and exchanges it in one atomic step.

mod publisher;
mod slot;
mod subscriber;

pub(crate) use publisher::pair as sending_pair;
pub use publisher::{Published, Publisher};
pub(crate) use slot::{Slot, StateBuffer};
pub(crate) use subscriber::{Delivery, pair as receiving_pair};
pub use subscriber::{StateView, Subscriber};

#[cfg(all(test, loom))]
mod every_order;
#[cfg(all(test, not(loom)))]
mod tests;

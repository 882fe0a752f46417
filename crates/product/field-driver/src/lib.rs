//! A field driver: a process that speaks a field bus which a node does not know itself (`spec/field-driver.md`).
//!
//! A driver calls [`Driver::attach`], gets to know what it is for, and answers [`Order`]s until there is no more. The
//! node's side of the messages is here, too: [`message`] holds both.
#![forbid(unsafe_code)]

mod driver;
pub mod message;

pub use driver::{Answers, Driver, Setup};
pub use message::{Direction, Fault, Order, Outcome, Point, Quality, Value, ValueKind};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the clock of all times in messages: CLOCK_BOOTTIME, which all processes of a host share.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

//! A field driver: a process that speaks a field bus which a node does not know itself (`spec/field-driver.md`).
//!
//! A driver calls [`Driver::attach`], gets to know what it is for, and answers [`Order`]s until there is no more. The
//! node's side of the messages is here, too: [`message`] holds both.
#![forbid(unsafe_code)]

mod driver;
pub mod message;

pub use driver::{Answers, Driver, Setup};
pub use message::{Direction, Fault, Order, Outcome, Point, Quality, Value, ValueKind};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the clock of all times in messages: CLOCK_BOOTTIME, which all processes of a host share.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Keeps what this process knows, such as a password, out of core dumps and from other processes of its user. A node gives
/// its drivers no room for core dumps, which a host that hands them to a program of its own does not look at.
///
/// # Errors
/// The system's.
pub fn keep_secret() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn what_is_kept_secret_is_in_no_core_dump() {
        super::keep_secret().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}

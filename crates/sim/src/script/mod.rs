//! What goes wrong in a world and when: drawn by the seed, or written by hand.

mod fault;
mod storm;

pub use self::fault::{Class, End, Fault, Junk, PathFault, Paths, Timed};
pub use self::storm::storm;

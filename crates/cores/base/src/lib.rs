//! Time, identifiers, serial numbers, counters and bounded containers shared by every layer.
//!
//! Everything here is `no_std`. Containers take their memory when they are built and never grow,
//! so that a core built from them allocates nothing after start.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bitset;
pub mod counter;
pub mod distribution;
pub mod frame;
pub mod heap;
pub mod id;
pub mod pacing;
pub mod permit;
pub mod pieces;
pub mod probing;
pub mod processors;
pub mod queue;
pub mod random;
pub mod role;
pub mod serial;
pub mod table;
pub mod time;
pub mod unsent;

pub use bitset::BitSet;
pub use counter::{Counter, Counters};
pub use distribution::Distribution;
pub use heap::IndexedHeap;
pub use id::{Candidate, ChannelId, Epoch, LinkId, LinkSet, MAX_LINKS, NodeId, PeerId};
pub use permit::{Permit, ProgramStanding, ResumeFrom, TransferOutcome};
pub use pieces::{Pieces, Revision};
pub use processors::Processors;
pub use queue::BoundedQueue;
pub use random::Random;
pub use role::Role;
pub use serial::{Serial16, Serial32};
pub use table::{Table, TableIndex};
pub use time::{Duration, Instant};
pub use unsent::Unsent;

//! What the threads of one node share: atomics and rings, so that the data plane waits for nobody.
//!
//! | what | written by | read by |
//! |---|---|---|
//! | [`GroupGate`] | data plane | executors |
//! | [`ApplicationPort`] | both | both |
//! | [`Recorder`], [`Records`] | each thread its own | the log's thread |
//!
//! States themselves pass through `bumpless-transfer`. A crate of its own, and small, so that each
//! protocol can be run in every order that its threads can take (`tests/every_order.rs`).
#![forbid(unsafe_code)]

mod gate;
mod port;
mod records;
mod sync;

pub use bumpless_base::{Permit, TransferOutcome};
pub use gate::GroupGate;
pub use port::{ApplicationPort, StateLife, Word, end_alone};
pub use records::{Entrance, Recorder, Records, Ring};

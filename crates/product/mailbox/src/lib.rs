//! What the threads of one node share: atomics and rings, so that the data plane waits for nobody.
//!
//! | what | written by | read by |
//! |---|---|---|
//! | [`PublishedPermit`] | data plane | executors |
//! | [`ApplicationMailbox`] | both | both |
//! | [`Rendezvous`] | executors | executors |
//! | [`Recorder`], [`Records`] | each thread its own | the log's thread |
//!
//! States themselves pass through `bumpless-transfer`. A crate of its own, and small, so that each
//! protocol can be run in every order that its threads can take (`tests/every_order.rs`).
#![forbid(unsafe_code)]

mod application_mailbox;
mod published_permit;
mod records;
mod rendezvous;
mod resume_order;
mod sync;

pub use application_mailbox::{ApplicationMailbox, MemberStatus, StateLife, end_simplex};
pub use bumpless_base::{Permit, TransferOutcome};
pub use published_permit::PublishedPermit;
pub use records::{Entrance, Recorder, Records, Ring};
pub use rendezvous::{Rendezvous, Stage};
pub use resume_order::ResumeOrder;

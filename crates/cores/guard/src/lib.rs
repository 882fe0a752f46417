//! Reception under load: what a frame is for, what its budget allows, in which order it is worked off.
//!
//! `spec/reception.md` has the clauses (V-1, V-2, ...). The design is that of chapter 5 of "Real-Time Aware IP-Networking for
//! Resource-Constrained Embedded Devices"; the sections named in this crate are that chapter's. A [`Guard`] stands where frames come
//! off the wire: on bare metal in the interrupt, on Linux in the driver's hook. It looks at a frame's header, says whether the
//! frame is worth its buffer, and keeps what is by priority for the one task that works it off. A [`mitigation::Mitigation`] decides when
//! the network may interrupt at all.
//!
//! | module | owns |
//! |---|---|
//! | `frame` | what a frame is for, from its header alone |
//! | `flow` | what is asked of a guard: flows with priority, period, capacity, queue |
//! | `table` | from what a frame is for to its flow, in constant time |
//! | `server` | the deferrable server: so many frames in a period |
//! | `intake` | the server over all frames, and its change to polling |
//! | `waiting` | frames that wait, by priority, the highest known at once |
//! | `guard` | a frame's way through these |
//! | `metric` | earliness, packets in a slice, fill of a queue |
//! | `mitigation` | when the network may interrupt: a policy a file |
//!
//! No clock is read here, and after start nothing is allocated.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod flow;
mod frame;
mod guard;
mod intake;
pub mod metric;
pub mod mitigation;
mod server;
mod table;
mod waiting;

pub use flow::{Flow, FlowId, Match, Priority, Rate, Setup, SetupError, Terms};
pub use frame::{MAX_EXTENSIONS, Purpose, Transport, classify};
pub use guard::{Counts, Guard, Refusal, Taken, Verdict};
pub use intake::Mode;
pub use server::DeferrableServer;

//! A yes or a no before commissioning: pure functions from a configuration to what it promises.
//!
//! - [`reliability`]: how often a packet and a state are lost, and the retransmission budget that keeps
//!   this below what is accepted (first paper, 7.2.4, equation 4).
//! - [`transmission`]: what a state costs on the wire, with all headers and its budget.
//! - [`demand`]: the admission test (first paper, 7.2.2), plain and quick.
//! - [`response`]: the longest time that a state of each channel takes.
//! - [`change`]: in which order a running pair can go from one configuration to another.
//! - [`mod@evaluate`]: all of it for a set of channels on several networks, with each of them out of service.
//! - [`variation`]: single changes of a scenario.
//! - [`advice`]: for a no, the smallest single changes that would make it a yes.
//! - [`headroom`]: for a yes, how far each channel may still go.
//! - [`reception`]: what a node is sent by whom, and how many packets of it at most.
//! - [`distance`]: what the way between nodes, reference points and devices permits, and how long a failover takes.
//! - [`pair`]: from a pair's configuration to what each of its nodes may have to send.
//!
//! Nothing here reads a clock, a file or a random number. Times are whole nanoseconds and sums are
//! exact; where something has to be rounded, it is rounded towards a no.
#![forbid(unsafe_code)]

mod acknowledgements;
pub mod advice;
mod begun;
mod blocking;
pub mod change;
pub mod cost;
pub mod demand;
pub mod evaluate;
pub mod headroom;
pub mod input;
mod losses;
pub mod pair;
pub mod reception;
pub mod recovery;
pub mod reliability;
pub mod report;
pub mod resource;
pub mod response;
pub mod rounding;
pub mod transmission;
pub mod variation;

pub use evaluate::{Plan, evaluate};
pub use input::{
    Background, Burst, Channel, Distribution, Fault, Link, Loss, Machine, Packets, Scenario,
};
pub use pair::distance;
pub use pair::{PairPlan, Verdict, plan};

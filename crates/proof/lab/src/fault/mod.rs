//! Faults as a driver: a link around a real link that loses, cuts, doubles, reorders and spoils
//! packets as it is told while it runs. Nothing above it knows that it is there.
//!
//! A [`FaultControl`] listens on a Unix socket for a [`FaultPlan`] and stores it where the links of
//! the process look; [`apply`] is the other end of that socket. The data path reads atomics only:
//! it neither blocks nor allocates.

mod bench;
mod control;
mod link;
mod plan;
mod state;
#[cfg(test)]
mod tests;

pub use bench::FaultBench;
pub use control::{FaultControl, apply};
pub use link::FaultyLink;
pub use plan::{Cut, FaultPlan, LinkFaults, PacketFaults};
pub use state::{FaultState, Injected};

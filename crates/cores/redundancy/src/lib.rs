//! Redundancy roles: heartbeats, sessions, leases, epochs and the witness, without I/O or clock.
//!
//! [`Redundancy`] is the core of one node, [`Witness`] that of a witness process. Two nodes share
//! each group of applications; one of them is primary and writes outputs, the other is backup.
//! A primary may write only while it holds a running promise of its backup or a running lease of
//! the reference point that both have agreed on ([`Permit`]), and a backup takes over only
//! after its own promise has run out and that reference point has leased to it. So one of the two
//! writes at most, whatever is lost, delayed, paused or restarted, as long as clocks drift no more
//! than configured. `spec/redundancy.md` has the clauses (R-1, ...) and the argument.
//!
//! | module | owns |
//! |---|---|
//! | `redundancy`, `orders`, `route`, `transmit` | what a driver tells, routing, what is sent and when |
//! | `partner`, `session`, `liveness`, `presence` | who is at the other end, which links work, when a lost one was there last |
//! | `role`, `decide`, `hand_over` | the role of one group |
//! | `newest` | who holds the newest state |
//! | `simplex` | going on without a partner that is up to date |
//! | `agreement`, `ping` | reference points of one group, leases |
//! | `change`, `change_orders` | changing the configuration together |
//! | `witness` | the other side of a lease |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod change;
mod change_orders;
mod event;
mod id;
mod liveness;
mod orders;
mod outgoing;
mod partner;
mod ping;
mod presence;
mod redundancy;
mod role;
mod route;
mod session;
mod setup;
mod transmit;
mod witness;

pub use bumpless_base::Permit;
pub use bumpless_wire::Role;
pub use change::{Configurations, PrepareRefused, WithdrawRefused};
pub use event::{
    Event, InForce, RedundancyCause, RedundancyLevel, RoleCause, SwitchoverRefused, WaitCause,
};
pub use id::{GroupId, GroupPlace, ReferenceId};
pub use outgoing::Outgoing;
pub use redundancy::Redundancy;
pub use role::newest::Holding;
pub use role::status::{Standing, Status, Weakness, Weaknesses};
pub use setup::{
    GroupSetup, MAX_PARTNERS, MAX_REFERENCES, PartnerSetup, ReferenceKind, Setup, SetupError,
    Timing,
};
pub use transmit::MAX_MESSAGE_LEN;
pub use witness::{Witness, WitnessSetup};

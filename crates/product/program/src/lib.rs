//! A control program in Rust that a Bumpless pair runs in a process of its own (`spec/sidecar.md`).
//!
//! Implement [`Program`] and call [`run`] from `main`. All that a program may keep from one cycle to the next
//! is its [`State`](Program::State), made with [`state!`]; time is the host's ([`Cycle`]). Then it goes on
//! on another computer as if nothing had happened.
//!
//! [`layout`] and [`Shared`] are for both sides of the memory, the host's included.

pub mod layout;
mod program;
mod serve;
mod shared;
mod state;
mod track;

pub use program::{Cycle, Program};
pub use serve::run;
pub use shared::{Areas, Misfit, Shared};
pub use state::Plain;

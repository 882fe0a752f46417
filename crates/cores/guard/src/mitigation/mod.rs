//! When the network may interrupt, and when its driver may run: policies over one interface (5.2.2).
//!
//! A policy learns what happens through the calls of [`Mitigation`] and answers with [`Gates`]. Another policy is another file.

mod budget;
mod burst;
mod hysteresis;
mod policy;
mod queue;
mod slack;

pub use budget::Budget;
pub use burst::Burst;
pub use hysteresis::Hysteresis;
pub use policy::{Gates, Mitigation, Unmitigated};
pub use queue::Queue;
pub use slack::{Slack, SlackSettings};

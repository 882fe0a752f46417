//! What seals and opens the states of an application in its own thread (spec/security.md, N-60 and further).

mod cost;
mod guard;
mod guards;
mod health;
mod keys;

pub use cost::{StateCost, state_cost};
pub use guard::{StateGuard, Times};
pub use guards::{StateGuards, key_problems};
pub use health::Healths;
pub use keys::{ChannelKeys, StateRings};

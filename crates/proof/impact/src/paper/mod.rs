//! The dissertation's figures by the model, and what its text says of each.

mod claim;
mod driver;
mod lateness;
mod mitigation;
mod moderation;

pub use claim::{Claim, Part, Picture};
pub(crate) use driver::limits;
pub use driver::{core_latencies, driver_with_flows};
pub use lateness::lateness;
pub use mitigation::{Sweep, hand_on, mitigations, sweep};
pub use moderation::moderation;

/// Everything that the model alone decides, in the order of the figures: the same on every machine.
pub fn all() -> Vec<Part> {
    let mut parts = vec![lateness(), moderation()];
    parts.extend([mitigations(), hand_on(), driver_with_flows()]);
    parts
}

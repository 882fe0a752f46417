//! whole: what the backup can read is, byte for byte, one state that a primary published.

use super::{Delivered, Published, Verdict};

/// The checker.
pub struct Whole;

impl Whole {
    /// `origin` is the publication whose bytes were delivered.
    pub fn delivered(&self, delivered: &Delivered, origin: Option<Published>) -> Verdict {
        match origin {
            None => Err(format!(
                "application {} of node {} can read {} bytes (transfer cycle {}) that nobody published",
                delivered.application, delivered.node, delivered.len, delivered.transfer_cycle
            )),
            Some(origin) if origin.node == delivered.node => Err(format!(
                "application {} of node {} has received its own state of cycle {}",
                delivered.application, delivered.node, origin.cycle
            )),
            Some(_) => Ok(()),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Ledger;

    #[test]
    fn a_state_that_nobody_published_and_ones_own_are_found() {
        let mut ledger = Ledger::new(1);
        for cycle in 0..10_000 {
            ledger.publish(Published {
                cycle,
                digest: cycle * 7,
                ..Published::default()
            });
        }
        let delivered = |node, digest| Delivered {
            node,
            digest,
            ..Delivered::default()
        };
        let judge = |seen: Delivered| Whole.delivered(&seen, ledger.origin(&seen));
        assert!(judge(delivered(1, 9_999 * 7)).is_ok());
        assert!(judge(delivered(1, 5_000 * 7)).is_ok());
        assert!(judge(delivered(1, 5_000 * 7 + 1)).is_err());
        assert!(judge(delivered(0, 9_999 * 7)).is_err());
    }
}

//! fresh: no state lies ready after it has expired.
//!
//! A receiver does not know how long a packet was under way, so a state may be taken for fresh by
//! that much longer (T-33): by the transit of its quickest packet.

use super::{Delivered, Published, Verdict};

/// Roundings to whole microseconds on the way.
const ROUNDING: u64 = 2_000;

/// The checker.
pub struct Fresh {
    expiry: Vec<u64>,
    drift_ppm: u32,
}

impl Fresh {
    /// States of each application may be used this long, by clocks of this drift.
    pub fn new(expiry: Vec<u64>, drift_ppm: u32) -> Self {
        Self { expiry, drift_ppm }
    }

    /// A state lies ready.
    pub fn delivered(&self, delivered: &Delivered, origin: &Published) -> Verdict {
        let expiry = self.expiry[delivered.application];
        let by_clocks = expiry / 1_000_000 * u64::from(self.drift_ppm) * 2;
        let most = (expiry + by_clocks + ROUNDING).saturating_add(delivered.transit);
        let age = delivered.at.saturating_sub(origin.at);
        if age > most {
            return Err(format!(
                "application {} of node {} can read cycle {} at an age of {} us; it expired at {} us, \
                 and its quickest packet took {} us",
                delivered.application,
                delivered.node,
                origin.cycle,
                age / 1000,
                expiry / 1000,
                delivered.transit / 1000
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_when_it_is_older_than_expiry_transit_and_drift_explain() {
        let fresh = Fresh::new(vec![50_000_000], 500);
        let age = |at, transit| {
            let delivered = Delivered {
                at,
                transit,
                ..Delivered::default()
            };
            fresh.delivered(&delivered, &Published::default())
        };
        assert!(age(50_000_000, 0).is_ok());
        assert!(age(50_060_000, 0).is_err());
        assert!(age(58_000_000, 8_000_000).is_ok());
        assert!(age(58_100_000, 8_000_000).is_err());
    }
}

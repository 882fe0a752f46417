//! fresh: no state lies ready after it has expired.
//!
//! A receiver does not know how long a packet was under way, so a state may be taken for fresh by
//! that much longer (T-33): by the transit of its quickest packet.

use super::{Delivered, Exemption, Published, Tally, Verdict};

/// Roundings to whole microseconds on the way.
const ROUNDING: u64 = 2_000;

/// The checker.
pub struct Fresh {
    expiry: Vec<u64>,
    drift_ppm: u32,
    tally: Tally,
}

impl Fresh {
    /// States of each application may be used this long, by clocks of this drift.
    pub fn new(expiry: Vec<u64>, drift_ppm: u32, tally: &Tally) -> Self {
        let tally = tally.clone();
        Self {
            expiry,
            drift_ppm,
            tally,
        }
    }

    /// A state lies ready.
    pub fn delivered(&self, delivered: &Delivered, origin: &Published) -> Verdict {
        let expiry = self.expiry[delivered.application];
        let by_clocks = expiry / 1_000_000 * u64::from(self.drift_ppm) * 2;
        let known = expiry + by_clocks + ROUNDING;
        let age = delivered.at.saturating_sub(origin.at);
        if age > known.saturating_add(delivered.transit) {
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
        if age > expiry {
            self.tally.count(match delivered.transit {
                _ if age <= known => Exemption::ClocksDiffer,
                u64::MAX => Exemption::TransitUnknown,
                _ => Exemption::InTransit,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_older_than_expiry_transit_and_drift_explain_is_found() {
        let fresh = Fresh::new(vec![50_000_000], 500, &Tally::default());
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

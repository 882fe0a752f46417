//! Who seals with keys that no session has given, and how often.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// From this frame on it is told.
const MANY: u32 = 8;
/// Addresses that are counted.
const MOST: usize = 64;

/// The frames of each address.
#[derive(Debug, Default)]
pub struct Keyless(BTreeMap<IpAddr, u32>);

impl Keyless {
    /// Another frame has come `from` there. Whether it is to be told: with each, since a sentence that is not said again is
    /// over (L-90).
    pub fn note(&mut self, from: IpAddr) -> bool {
        let Self(counts) = self;
        if !counts.contains_key(&from) && counts.len() >= MOST {
            // Who sends from ever other addresses is to leave room for who has one.
            let least = counts.iter().min_by_key(|(_, count)| **count);
            if let Some(least) = least.map(|(address, _)| *address) {
                counts.remove(&least);
            }
        }
        let count = counts.entry(from).or_default();
        *count = count.saturating_add(1);
        *count >= MANY
    }

    /// There is a session with whoever is there.
    pub fn forget(&mut self, at: IpAddr) {
        self.0.remove(&at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4((0x0A00_0000 + number).into())
    }

    #[test]
    fn who_goes_on_without_a_session_is_told_of_for_as_long_as_it_does() {
        let mut keyless = Keyless::default();
        let told: Vec<_> = (0..100).map(|_| keyless.note(address(1))).collect();
        assert!(told[..7].iter().all(|told| !told) && told[7..].iter().all(|&told| told));
        keyless.forget(address(1));
        assert!(!keyless.note(address(1)));
    }

    #[test]
    fn who_sends_from_ever_other_addresses_takes_no_place_of_who_has_one() {
        let mut keyless = Keyless::default();
        for _ in 0..8 {
            keyless.note(address(1));
        }
        for number in 2..10_000 {
            assert!(!keyless.note(address(number)));
        }
        assert!(keyless.note(address(1)) && keyless.0.len() == MOST);
    }
}

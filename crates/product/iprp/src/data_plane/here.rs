//! Whether the destination of a packet is an address of this host still.

use std::net::IpAddr;

use bumpless_base::{Duration, Instant};
use bumpless_capture::OwnAddresses;

/// Addresses of which it is known.
const KNOWN: usize = 64;
/// For how long what the kernel has said is good.
const GOOD: Duration = Duration::from_millis(250);

struct Known {
    address: IpAddr,
    is_own: bool,
    until: Instant,
}

/// What the kernel has said, so that it is not asked for each packet.
pub struct Here<A = OwnAddresses> {
    asked: A,
    known: Vec<Known>,
    /// Which is forgotten next.
    next: usize,
}

/// Who is asked.
pub trait Says {
    /// Whether this is an address of the host; `None`: it cannot be told.
    fn is_own(&mut self, address: IpAddr) -> Option<bool>;
}

impl Says for OwnAddresses {
    fn is_own(&mut self, address: IpAddr) -> Option<bool> {
        self.has(address).ok()
    }
}

impl<A: Says> Here<A> {
    /// Nothing is known yet.
    pub fn new(asked: A) -> Self {
        Self {
            asked,
            known: Vec::with_capacity(KNOWN),
            next: 0,
        }
    }

    /// Whether `address` is one of this host's. A packet for another one would leave by the host's routes, with the address of its
    /// sender as the source.
    pub fn has(&mut self, now: Instant, address: IpAddr) -> bool {
        let known = self.known.iter_mut().find(|it| it.address == address);
        if let Some(known) = known {
            if now >= known.until {
                // What cannot be told is as it was.
                known.is_own = self.asked.is_own(address).unwrap_or(known.is_own);
                known.until = now + GOOD;
            }
            return known.is_own;
        }
        let is_own = self.asked.is_own(address).unwrap_or(false);
        let known = Known {
            address,
            is_own,
            until: now + GOOD,
        };
        match self.known.len() < KNOWN {
            true => self.known.push(known),
            false => {
                self.known[self.next] = known;
                self.next = (self.next + 1) % KNOWN;
            }
        }
        is_own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which addresses there are, how often it was asked, and whether it says so.
    struct Kernel(Vec<IpAddr>, usize, bool);

    impl Says for Kernel {
        fn is_own(&mut self, address: IpAddr) -> Option<bool> {
            self.1 += 1;
            self.2.then(|| self.0.contains(&address))
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn an_address_that_goes_is_known_to_have_gone_a_quarter_of_a_second_later() {
        let [own, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let mut here = Here::new(Kernel(vec![own], 0, true));
        for ms in 0..250 {
            assert!(here.has(at(ms), own) && !here.has(at(ms), other));
        }
        assert_eq!(here.asked.1, 2, "not for each packet");
        here.asked.0.clear();
        assert!(!here.has(at(250), own));
        here.asked.0.push(own);
        assert!(here.has(at(500), own));
        // A kernel that does not tell.
        here.asked.2 = false;
        assert!(here.has(at(1_000), own));
        assert!(!here.has(at(1_000), IpAddr::from([10, 0, 0, 3])));
    }

    #[test]
    fn ever_other_addresses_take_no_more_memory_and_are_told_apart() {
        let mut here = Here::new(Kernel(vec![[10, 0, 0, 9].into()], 0, true));
        for number in 0..=255 {
            let address = IpAddr::from([10, 0, 0, number]);
            assert_eq!(here.has(at(1), address), number == 9);
        }
        assert_eq!((here.known.len(), here.known.capacity()), (KNOWN, KNOWN));
        assert!(here.has(at(2), [10, 0, 0, 9].into()));
    }
}

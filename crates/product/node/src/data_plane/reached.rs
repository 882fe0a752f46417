//! Whom what this node sends on a network has reached of late.

use bumpless_base::{Duration, Instant};

use super::addresses::{Addresses, Correspondent};

/// For so long what has arrived there speaks for what is sent now. Heartbeats are answered many times in it, on the slowest networks too.
const SPAN: Duration = Duration::from_secs(2);

/// Until when each correspondent counts as reached, from the last of their answers to something that was sent on this network: hearing
/// somebody says nothing of the other direction.
#[derive(Debug)]
pub struct Reached {
    partners: Box<[Instant]>,
    references: Box<[Instant]>,
}

impl Reached {
    /// Nobody of those at `addresses`.
    pub fn new(addresses: &Addresses) -> Self {
        Self {
            partners: vec![Instant::ZERO; addresses.partners.len()].into(),
            references: vec![Instant::ZERO; addresses.references.len()].into(),
        }
    }

    /// `whom` has answered what was sent at `sent_at` on this network; zero: nothing. An answer from the future is none.
    pub fn handle_answer(&mut self, whom: Correspondent, sent_at: Instant, now: Instant) {
        let until = match whom {
            Correspondent::Partner(peer) => self.partners.get_mut(usize::from(peer.0)),
            Correspondent::Reference(at) => self.references.get_mut(usize::from(at)),
        };
        if let Some(until) = until.filter(|_| (Instant::from_nanos(1)..=now).contains(&sent_at)) {
            *until = (*until).max(sent_at + SPAN);
        }
    }

    /// Whether what is sent to `whom` now reaches them, as far as can be known.
    pub fn is_reached(&self, whom: Correspondent, now: Instant) -> bool {
        let until = match whom {
            Correspondent::Partner(peer) => self.partners.get(usize::from(peer.0)),
            Correspondent::Reference(at) => self.references.get(usize::from(at)),
        };
        until.is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::PeerId;

    use super::*;

    #[test]
    fn whoever_has_answered_is_reached_for_two_seconds_from_what_was_answered() {
        let addresses = Addresses {
            nodes: Vec::new(),
            partners: vec![None; 2],
            references: vec![None],
        };
        let mut reached = Reached::new(&addresses);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let (first, second) = (
            Correspondent::Partner(PeerId(0)),
            Correspondent::Partner(PeerId(1)),
        );
        let witness = Correspondent::Reference(0);
        for whom in [first, second, witness] {
            reached.handle_answer(whom, at(0), at(0));
            assert!(!reached.is_reached(whom, at(0)));
        }
        reached.handle_answer(first, at(100), at(150));
        // An answer that comes late takes nothing back.
        reached.handle_answer(first, at(50), at(160));
        assert!(reached.is_reached(first, at(2099)) && !reached.is_reached(first, at(2100)));
        assert!(!reached.is_reached(second, at(200)) && !reached.is_reached(witness, at(200)));
        reached.handle_answer(witness, at(300), at(299));
        assert!(!reached.is_reached(witness, at(300)), "not sent yet");
        reached.handle_answer(witness, at(300), at(300));
        assert!(reached.is_reached(witness, at(400)));
        let stranger = Correspondent::Partner(PeerId(2));
        reached.handle_answer(stranger, at(1), at(2));
        assert!(!reached.is_reached(stranger, at(2)));
    }
}

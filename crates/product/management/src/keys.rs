//! The secrets that are shared with one partner: a new one is opened with before anybody seals with it, and the one
//! before is opened with for a while after (`spec/management.md`, M-20 to M-23).

use std::time::{Duration, Instant};

use crate::session::SessionSecret;

/// How long packets that were sealed with the secret before are still opened. Longer than any of them is on its way.
pub const RETIRED_AFTER: Duration = Duration::from_secs(5);

/// What packets with a partner are to be opened and sealed with.
#[derive(Debug, PartialEq, Eq)]
pub struct Ring {
    /// The first one seals, if any does.
    pub secrets: Vec<SessionSecret>,
    /// Whether it does: the partner is known to open with it.
    pub seals: bool,
}

/// Most that are kept of those that sessions gave that died half-way, and of those that are over soon.
const MOST: usize = 6;
/// Most secrets that are opened with at a time: these, the current one and the candidate.
pub const SECRETS_MAX: usize = 2 * MOST + 2;

/// The secrets shared with one partner.
#[derive(Debug, Default)]
pub struct Keys {
    /// Agreed upon; the partner has not said yet that it opens with it.
    candidate: Option<SessionSecret>,
    current: Option<SessionSecret>,
    /// Candidates whose sessions ended before the partner said so here. It may have heard it from here, and seal with one.
    abandoned: Vec<SessionSecret>,
    /// Those of before the current one, the last one first, and since when the partner seals with a later one.
    before: Vec<(SessionSecret, Option<Instant>)>,
}

impl Keys {
    /// A session has given `secret`: what to open with before the partner is told to seal with it.
    pub fn agreed(&mut self, secret: SessionSecret) -> Ring {
        if let Some(abandoned) = self.candidate.replace(secret) {
            self.abandoned.insert(0, abandoned);
        }
        self.abandoned.truncate(MOST);
        self.ring()
    }

    /// The partner opens with the secret that was agreed upon last. `None`: it has said so before.
    pub fn ready(&mut self) -> Option<Ring> {
        let candidate = self.candidate.take()?;
        let earlier = self
            .abandoned
            .drain(..)
            .chain(self.current.replace(candidate));
        let earlier = earlier.map(|secret| (secret, None));
        let before = earlier.chain(std::mem::take(&mut self.before));
        self.before = before.take(MOST).collect();
        Some(self.ring())
    }

    /// The partner seals with the current secret: those of before are over soon.
    pub fn sealing(&mut self, now: Instant) {
        for (_, since) in &mut self.before {
            since.get_or_insert(now);
        }
    }

    /// When [`Keys::retire`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        let since = self.before.iter().filter_map(|&(_, since)| since);
        since.min().map(|since| since + RETIRED_AFTER)
    }

    /// What is left when some of before are over. `None`: none is.
    pub fn retire(&mut self, now: Instant) -> Option<Ring> {
        self.due().filter(|&at| at <= now)?;
        let lasts = |since: Option<Instant>| since.is_none_or(|since| now < since + RETIRED_AFTER);
        self.before.retain(|&(_, since)| lasts(since));
        Some(self.ring())
    }

    /// Whether packets are sealed.
    pub const fn seal(&self) -> bool {
        self.current.is_some()
    }

    fn ring(&self) -> Ring {
        let before = self.before.iter().map(|(secret, _)| secret);
        let secrets = self.current.iter().chain(&self.candidate);
        let secrets = secrets.chain(&self.abandoned).chain(before);
        Ring {
            secrets: secrets.cloned().collect(),
            seals: self.current.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::Zeroizing;

    fn secret(byte: u8) -> SessionSecret {
        Zeroizing::new([byte; 32])
    }

    fn bytes(ring: &Ring) -> (Vec<u8>, bool) {
        (ring.secrets.iter().map(|it| it[0]).collect(), ring.seals)
    }

    #[test]
    fn nobody_seals_with_what_the_other_may_not_open() {
        let mut keys = Keys::default();
        assert_eq!(bytes(&keys.agreed(secret(1))), (vec![1], false));
        assert_eq!(bytes(&keys.ready().unwrap()), (vec![1], true));
        assert_eq!(bytes(&keys.agreed(secret(2))), (vec![1, 2], true));
        assert_eq!(bytes(&keys.ready().unwrap()), (vec![2, 1], true));
        assert_eq!(keys.ready(), None, "said twice");
    }

    #[test]
    fn the_secret_before_opens_until_shortly_after_the_partner_seals_with_the_next() {
        let (mut keys, now) = (Keys::default(), Instant::now());
        for byte in [1, 2] {
            keys.agreed(secret(byte));
            keys.ready();
        }
        let never = now + RETIRED_AFTER * 1000;
        assert_eq!(
            keys.retire(never),
            None,
            "the partner may seal with it still"
        );
        keys.sealing(now);
        keys.sealing(never);
        assert_eq!(keys.retire(now), None);
        let late = now + RETIRED_AFTER;
        assert_eq!(bytes(&keys.retire(late).unwrap()), (vec![2], true));
        assert_eq!((keys.due(), keys.retire(late)), (None, None));
    }

    #[test]
    fn what_the_partner_may_seal_with_opens_however_many_sessions_die_half_way() {
        let mut keys = Keys::default();
        keys.agreed(secret(1));
        keys.ready();
        keys.agreed(secret(2));
        // The partner may have heard `ready` of any of these.
        assert_eq!(bytes(&keys.agreed(secret(3))), (vec![1, 3, 2], true));
        assert_eq!(bytes(&keys.agreed(secret(4))), (vec![1, 4, 3, 2], true));
        assert_eq!(bytes(&keys.ready().unwrap()), (vec![4, 3, 2, 1], true));
        // It has not said that it seals with 4, and goes on to 5.
        keys.agreed(secret(5));
        assert_eq!(bytes(&keys.ready().unwrap()), (vec![5, 4, 3, 2, 1], true));
    }

    #[test]
    fn what_is_said_of_the_current_secret_takes_none_that_came_later() {
        let (mut keys, now) = (Keys::default(), Instant::now());
        for byte in [1, 2] {
            keys.agreed(secret(byte));
            keys.ready();
        }
        keys.agreed(secret(3));
        keys.agreed(secret(4));
        keys.sealing(now);
        let left = keys.retire(now + RETIRED_AFTER).unwrap();
        assert_eq!(bytes(&left), (vec![2, 4, 3], true));
    }

    #[test]
    fn secrets_are_bounded_whatever_a_partner_does() {
        let mut keys = Keys::default();
        for byte in 0..100 {
            let ring = keys.agreed(secret(byte));
            assert!(ring.secrets.len() <= 2 + 2 * MOST, "{}", ring.secrets.len());
            if byte % 7 == 0 {
                keys.ready();
            }
        }
    }
}

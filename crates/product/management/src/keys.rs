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

/// The secrets shared with one partner.
#[derive(Debug, Default)]
pub struct Keys {
    /// Agreed upon; the partner has not said yet that it opens with it.
    candidate: Option<SessionSecret>,
    current: Option<SessionSecret>,
    /// The one before, and when it is forgotten; `None` as long as the partner may seal with it.
    retiring: Option<(SessionSecret, Option<Instant>)>,
}

impl Keys {
    /// A session has given `secret`: what to open with before the partner is told to seal with it.
    pub fn agreed(&mut self, secret: SessionSecret) -> Ring {
        self.candidate = Some(secret);
        let secrets = [&self.current, &self.candidate].into_iter().flatten();
        let retiring = self.retiring.iter().map(|(secret, _)| secret);
        Ring {
            secrets: secrets.chain(retiring).cloned().collect(),
            seals: self.current.is_some(),
        }
    }

    /// The partner opens with the secret that was agreed upon last. `None`: it has said so before.
    pub fn ready(&mut self) -> Option<Ring> {
        let candidate = self.candidate.take()?;
        let before = self.current.replace(candidate);
        self.retiring = before.map(|before| (before, None));
        Some(self.ring())
    }

    /// The partner seals with the secret that was agreed upon last: the one before is over soon.
    pub const fn sealing(&mut self, now: Instant) {
        if let Some((_, at @ None)) = &mut self.retiring {
            *at = Some(now);
        }
    }

    /// When [`Keys::retire`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        let &(_, since) = self.retiring.as_ref()?;
        Some(since? + RETIRED_AFTER)
    }

    /// What is left when the secret before is over. `None`: it is not, or there is none.
    pub fn retire(&mut self, now: Instant) -> Option<Ring> {
        self.due().filter(|&at| at <= now)?;
        self.retiring = None;
        Some(self.ring())
    }

    /// Whether packets are sealed.
    pub const fn seal(&self) -> bool {
        self.current.is_some()
    }

    fn ring(&self) -> Ring {
        let retiring = self.retiring.iter().map(|(secret, _)| secret);
        let secrets = self.current.iter().chain(&self.candidate).chain(retiring);
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
    fn a_session_that_dies_half_way_takes_nothing_from_the_one_before() {
        let mut keys = Keys::default();
        keys.agreed(secret(1));
        keys.ready();
        keys.agreed(secret(2));
        assert_eq!(bytes(&keys.agreed(secret(3))), (vec![1, 3], true));
        assert_eq!(bytes(&keys.ready().unwrap()), (vec![3, 1], true));
    }
}

//! Which key of a group seals, and which open, at a moment.

use alloc::vec::Vec;

use bumpless_base::{Duration, Instant};

use super::WITHDRAWN_FOR;
use super::grant::{Grant, GrantError, GrantedKey};
use super::key::{GroupKey, Place};

/// A key, and when it is used on this computer's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its place.
    pub place: Place,
    /// The key.
    pub key: GroupKey,
    /// It is sealed with from then on, until the next one is.
    pub seal_from: Instant,
    /// It is sealed with no more from then on.
    pub seal_until: Instant,
    /// It is opened with until then.
    pub open_until: Instant,
    /// The server names it no more, and knows it: it is opened with for a moment, since others may not have heard that.
    pub withdrawn: bool,
}

/// The keys of a group that are here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// In the order of their places.
    keys: Vec<Held>,
    /// The latest that was sealed with. Nobody goes back to an earlier one, unless it was withdrawn.
    sealed: Place,
}

impl Schedule {
    /// The keys that are here, in the order of their places.
    pub fn keys(&self) -> &[Held] {
        &self.keys
    }

    pub(super) const fn keys_mut(&mut self) -> &mut Vec<Held> {
        &mut self.keys
    }

    /// The era of the latest key that is here; 0 without any.
    pub fn era(&self) -> u64 {
        self.keys.last().map_or(0, |key| key.place.era)
    }

    /// The place of what is sealed with at `now`, which a server is told that may not know it any more.
    pub fn place(&self, now: Instant) -> Option<Place> {
        self.sealing(now).map(|key| key.place)
    }

    /// The key that is sealed with at `now`. `None`: there is none, or the time of all is over.
    pub fn sealing(&self, now: Instant) -> Option<&Held> {
        let has_begun = |key: &&Held| key.seal_from <= now || key.place <= self.sealed;
        let mut usable = self.keys.iter().filter(|key| !key.withdrawn);
        let begun = usable.clone().rev().find(has_begun);
        // Whoever has nothing of before need not wait.
        let sealing = begun.or_else(|| usable.next())?;
        // One that is over is sealed with until the next one begins, if there is one.
        let is_last = self.last().is_none_or(|last| last.place <= sealing.place);
        (now < sealing.open_until && !(is_last && now >= sealing.seal_until)).then_some(sealing)
    }

    /// The last key that is to be sealed with.
    fn last(&self) -> Option<&Held> {
        self.keys.iter().rev().find(|key| !key.withdrawn)
    }

    /// The keys that are opened with at `now`, the one that seals first, then the one that is sealed with next. None without
    /// one that seals: then all is over.
    pub fn ring(&self, now: Instant) -> Vec<&Held> {
        let Some(sealing) = self.sealing(now) else {
            return Vec::new();
        };
        let opens = |key: &&Held| now < key.open_until && key.place != sealing.place;
        let others = self.keys.iter().filter(opens);
        let later = others.clone().filter(|key| key.place > sealing.place);
        let earlier = others.filter(|key| key.place < sealing.place);
        core::iter::once(sealing)
            .chain(later)
            .chain(earlier)
            .collect()
    }

    /// When the last key that is here is sealed with no more.
    pub fn ends_at(&self) -> Option<Instant> {
        self.last().map(|key| key.seal_until)
    }

    /// When [`sealing`](Self::sealing) or [`ring`](Self::ring) is another one than at `now`, if nothing is taken over until then.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let times = |key: &Held| [key.seal_from, key.seal_until, key.open_until];
        let times = self.keys.iter().flat_map(times);
        times.filter(|&at| at > now).min()
    }

    /// Follows the time: keys that are not opened with any more are given up.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(place) = self.sealing(now).map(|key| key.place) {
            self.sealed = self.sealed.max(place);
        }
        self.keys.retain(|key| now < key.open_until);
    }

    /// Takes over at `now` what a server said at `said`.
    ///
    /// # Errors
    /// It is malformed, or said by a server that does not know what is here: everything is as it was.
    pub fn take(&mut self, grant: &Grant, said: Instant, now: Instant) -> Result<(), GrantError> {
        grant.check()?;
        self.handle_timeout(now);
        self.follows(grant)?;
        let kept_until = now + grant.withdrawn_for;
        let mut keys: Vec<Held> = grant.keys.iter().map(|key| held(key, said)).collect();
        let named = keys.len();
        for mut known in core::mem::take(&mut self.keys) {
            // An identifier stands for one key.
            let same = |key: &Held| key.place == known.place || key.key.id() == known.key.id();
            if keys[..named].iter().any(same) {
                continue;
            }
            known.seal_until = known.seal_until.min(kept_until);
            known.open_until = known.open_until.min(kept_until);
            // Who has begun an era without the keys of the one before knows nothing of when they are used.
            known.withdrawn = grant
                .keys
                .iter()
                .any(|key| key.place.era == known.place.era);
            keys.push(known);
        }
        keys.sort_unstable_by_key(|key| key.place);
        self.keys = keys;
        self.handle_timeout(now);
        Ok(())
    }

    /// Whether `grant` is of a server that knows what is here, or of one that has begun an era since.
    fn follows(&self, grant: &Grant) -> Result<(), GrantError> {
        let place = |last: Option<Place>| last.unwrap_or_default();
        let here = place(self.keys.last().map(|key| key.place));
        let said = place(grant.keys.last().map(|key| key.place));
        if said.era < here.era {
            return Err(GrantError::Earlier {
                said: said.era,
                here: here.era,
            });
        }
        if said.era == here.era && said.token < here.token {
            return Err(GrantError::Behind {
                said: said.token,
                here: here.token,
            });
        }
        let differs = |known: &&Held| {
            let mut said = grant.keys.iter();
            said.any(|key| key.place == known.place && key.key != known.key)
        };
        match self.keys.iter().find(differs) {
            Some(known) => Err(GrantError::OtherKey(known.place)),
            None => Ok(()),
        }
    }

    /// The same for others, at `now`. `None`: there is nothing that is sealed with.
    pub fn grant(&self, now: Instant) -> Option<Grant> {
        self.sealing(now)?;
        let named = |key: &&Held| now < key.open_until && !key.withdrawn;
        let granted = self.keys.iter().filter(named).map(|key| GrantedKey {
            place: key.place,
            key: key.key.clone(),
            seals_in: key.seal_from.since(now).min(key.seal_until.since(now)),
            seals_for: key.seal_until.since(now),
            opens_for: key.open_until.since(now),
        });
        let keys: Vec<_> = granted.collect();
        let first = keys.first()?;
        // Where nothing has begun, others have what it follows on, and this server has not.
        let withdrawn_for = WITHDRAWN_FOR + first.seals_in;
        Some(Grant {
            keys,
            withdrawn_for,
        })
    }

    /// All of it happens earlier by `span`.
    pub(super) fn hasten(&mut self, span: Duration) {
        for key in &mut self.keys {
            key.seal_from = key.seal_from.before(span);
            key.seal_until = key.seal_until.before(span);
            key.open_until = key.open_until.before(span);
        }
    }
}

fn held(key: &GrantedKey, said: Instant) -> Held {
    Held {
        place: key.place,
        key: key.key.clone(),
        seal_from: said + key.seals_in,
        seal_until: said + key.seals_for,
        open_until: said + key.opens_for,
        withdrawn: false,
    }
}

//! Making a group's keys: in time, and before their time.

use bumpless_base::{Duration, Instant};

use super::grant::{Grant, GrantError};
use super::key::{GroupKey, Place};
use super::schedule::{Held, Schedule};
use super::{CUT_SHORT, FRESH_NOTICE, FUTURE_MAX, NOTICE, OVERLAP_MAX};

/// How long each key is used, and how many are given in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a key is sealed with.
    pub lifetime: Duration,
    /// How many keys are given before they are sealed with: for so many lifetimes, members go on without a server. From 1
    /// to [`FUTURE_MAX`].
    pub future: usize,
}

impl Terms {
    /// How long a key is opened with after it was sealed with last.
    fn overlap(self) -> Duration {
        self.lifetime.min(OVERLAP_MAX)
    }

    fn future(self) -> usize {
        self.future.clamp(1, FUTURE_MAX)
    }
}

/// What is stored of an [`Issuer`] beside its grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The era of the keys that it makes.
    pub era: u64,
    /// The highest number that was given to a key.
    pub last: u64,
    /// Whether keys are to be rolled that are not yet.
    pub rolls_again: bool,
}

/// How long a server that does not know how late it is lets members tell it.
const LEARNS_FOR: Duration = Duration::from_secs(60);

/// Makes the keys of a group.
#[derive(Clone, Debug)]
pub struct Issuer {
    terms: Terms,
    schedule: Schedule,
    /// Of the keys that it makes.
    era: u64,
    /// The highest number that was given to a key.
    last: u64,
    /// Until then members may know better than it which key is sealed with.
    learns_until: Instant,
    /// The first key of the last roll is sealed with from then on.
    rolls_at: Instant,
    /// Keys are rolled again then.
    rolls_again: bool,
}

impl Issuer {
    /// Makes keys of the era of `numbers` from here on, after those of `schedule`, if any. Before
    /// [`refill`](Self::refill) there are no others.
    pub fn new(terms: Terms, schedule: Schedule, numbers: Numbers) -> Self {
        let latest = schedule.keys().last().map(|key| key.place);
        let latest = latest.unwrap_or_default();
        Self {
            terms,
            schedule,
            era: numbers.era.max(latest.era),
            last: numbers.last.max(latest.token),
            learns_until: Instant::ZERO,
            rolls_at: Instant::ZERO,
            rolls_again: numbers.rolls_again,
        }
    }

    /// Goes on with what an earlier process of the server had stored. `since`: when that was, on the clock of `now`;
    /// `None` if this cannot be told: then no time has passed, and members are believed for a while which key it is.
    ///
    /// # Errors
    /// What was stored contradicts itself.
    pub fn restore(
        terms: Terms,
        stored: &Grant,
        numbers: Numbers,
        since: Option<Instant>,
        now: Instant,
    ) -> Result<Self, GrantError> {
        let mut schedule = Schedule::default();
        schedule.take(stored, since.unwrap_or(now), now)?;
        let mut issuer = Self::new(terms, schedule, numbers);
        if since.is_none() {
            issuer.learns_until = now + LEARNS_FOR.min(terms.lifetime);
        }
        Ok(issuer)
    }

    /// What is to be stored with its grant.
    pub const fn numbers(&self) -> Numbers {
        Numbers {
            era: self.era,
            last: self.last,
            rolls_again: self.rolls_again,
        }
    }

    /// The keys and when they are used.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What holds.
    pub const fn terms(&self) -> Terms {
        self.terms
    }

    /// Keys that are made from here on are used on other terms.
    pub const fn set_terms(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// What members are told at `now`.
    pub fn grant(&self, now: Instant) -> Option<Grant> {
        self.schedule.grant(now)
    }

    /// When [`refill`](Self::refill) has something to do.
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let again = self.rolls_again.then_some(self.rolls_at.max(now));
        again
            .into_iter()
            .chain(self.schedule.next_change(now))
            .min()
    }

    /// Follows the time, and makes the keys that are missing, each with `draw`, which gives a key whose identifier no other
    /// has. Returns whether any was made: to be stored before members are told. Without one from `draw`, what is there stays.
    pub fn refill(&mut self, draw: &mut dyn FnMut() -> Option<GroupKey>, now: Instant) -> bool {
        self.schedule.handle_timeout(now);
        let mut made = self.rolls_again && now >= self.rolls_at && self.replace(draw, now);
        while self.is_short(now) {
            let Some(key) = draw() else {
                break;
            };
            self.push(key, now);
            made = true;
        }
        made
    }

    fn is_short(&self, now: Instant) -> bool {
        let sealing = self.schedule.place(now);
        let keys = self.schedule.keys().iter();
        let future = keys.filter(|key| sealing.is_some_and(|place| key.place > place));
        // A key of its own says that a server leads which did not before.
        future.count() < self.terms.future() || self.schedule.era() != self.era
    }

    fn push(&mut self, key: GroupKey, now: Instant) {
        // Whose state is lost may have members with keys. What this one has made before is over.
        let notice = match self.last {
            0 => FRESH_NOTICE,
            _ => Duration::ZERO,
        };
        self.last += 1;
        let place = Place {
            era: self.era,
            token: self.last,
        };
        let before = self.schedule.keys().last().map(|key| key.seal_until);
        let seal_from = before.unwrap_or(now + notice).max(now);
        let seal_until = seal_from + self.terms.lifetime;
        self.schedule.keys_mut().push(Held {
            place,
            key,
            seal_from,
            seal_until,
            open_until: seal_until + self.terms.overlap(),
            withdrawn: false,
        });
    }

    /// Gives up all keys: what was given in advance is not used, and others take the place of the one that seals, after a
    /// moment in which members are told. While such a moment lasts, this is done at its end: the key before would last longer
    /// and longer otherwise. As [`refill`](Self::refill) besides; `false` too if there is nothing from `draw`, then everything is
    /// as it was.
    pub fn roll(&mut self, draw: &mut dyn FnMut() -> Option<GroupKey>, now: Instant) -> bool {
        if now < self.rolls_at {
            self.rolls_again = true;
            return false;
        }
        let replaced = self.replace(draw, now);
        if replaced {
            self.refill(draw, now);
        }
        replaced
    }

    fn replace(&mut self, draw: &mut dyn FnMut() -> Option<GroupKey>, now: Instant) -> bool {
        self.schedule.handle_timeout(now);
        let Some(first) = draw() else {
            return false;
        };
        let over_at = now + NOTICE;
        if let Some(place) = self.schedule.place(now) {
            let keys = self.schedule.keys_mut();
            keys.retain(|key| key.place <= place);
            for key in keys {
                // Whoever takes it over for the first time would wait for it otherwise.
                key.seal_from = key.seal_from.min(now);
                key.open_until = key.open_until.min(over_at + CUT_SHORT);
                if key.place == place {
                    (key.seal_until, key.open_until) = (over_at, over_at + CUT_SHORT);
                }
            }
        }
        self.push(first, now);
        (self.rolls_at, self.rolls_again) = (over_at, false);
        true
    }

    /// A member seals with the key at `place`. If it is ahead of a server that may be late, so is the server from here on.
    /// Returns whether this changes anything.
    pub fn catch_up(&mut self, place: Place, now: Instant) -> bool {
        let is_ahead = self.schedule.place(now).is_none_or(|own| own < place);
        let mut keys = self.schedule.keys().iter();
        let Some(key) = keys.find(|key| key.place == place) else {
            return false;
        };
        if !is_ahead || now >= self.learns_until {
            return false;
        }
        let span = key.seal_from.since(now);
        self.schedule.hasten(span);
        self.schedule.handle_timeout(now);
        span > Duration::ZERO
    }
}

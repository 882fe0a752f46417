//! New keys, and the numbers with which they begin.

use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_net_linux::random;
use bumpless_secure::RingSuite;
use bumpless_secure::group::{GroupKey, Numbers, Schedule};
use zeroize::Zeroizing;

/// Tries to draw a key with an identifier of its own: two in a row fail once in many thousands.
const DRAWS: usize = 1000;

/// The numbers of keys that another server made.
pub fn seen(schedule: &Schedule) -> Numbers {
    let last = schedule
        .keys()
        .last()
        .map(|it| it.place)
        .unwrap_or_default();
    Numbers {
        era: last.era,
        last: last.token,
        rolls_again: false,
    }
}

/// The numbers with which a server begins that did not make the keys before, of which it may know the numbers and the era.
pub fn fresh(before: Option<(Numbers, u64)>) -> Numbers {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = since.map_or(1, |since| (since.as_millis() as u64).max(1));
    let (numbers, era) = before.unwrap_or_default();
    let latest = numbers.era.max(era);
    Numbers {
        // Later than any that was begun before on a computer with the time; later than those that are known in any case.
        era: milliseconds.max(latest + 1),
        last: numbers.last,
        rolls_again: false,
    }
}

/// Draws keys, no two of which have one identifier.
pub struct Drawer(Vec<u16>);

impl Drawer {
    /// For keys beside those of `schedule`.
    pub fn new(schedule: &Schedule) -> Self {
        Self(schedule.keys().iter().map(|it| it.key.id()).collect())
    }

    /// One more; `None`: the system gives no random numbers.
    pub fn draw(&mut self) -> Option<GroupKey> {
        for _ in 0..DRAWS {
            let mut bytes = Zeroizing::new([0; 32]);
            random::fill(&mut bytes).ok()?;
            let key = GroupKey::new::<RingSuite>(bytes);
            if !self.0.contains(&key.id()) {
                self.0.push(key.id());
                return Some(key);
            }
        }
        None
    }
}

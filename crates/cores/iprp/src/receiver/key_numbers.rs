//! Which of a receiver's keys is in use, and which past ones are valid still.

use bumpless_base::{Duration, Instant};

/// Past keys that may be valid: three that have ended by themselves, and as many as a receiver may restart meanwhile.
const PAST: usize = 7;

/// The number of the present key, and until when those before are valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyNumbers {
    present: u32,
    /// When the next one is due.
    next_at: Instant,
    /// Until when `present - 1`, `present - 2` and so on are valid.
    past: [Instant; PAST],
    /// The present number when the process began.
    first: u32,
}

impl KeyNumbers {
    /// `present` is the first one of this process. Those before were an earlier process's: they are valid for `grace`.
    pub(crate) fn new(now: Instant, present: u32, lifetime: Duration, grace: Duration) -> Self {
        Self {
            present,
            next_at: now + lifetime,
            past: [now + grace; PAST],
            first: present,
        }
    }

    pub(crate) const fn present(&self) -> u32 {
        self.present
    }

    pub(crate) const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The next key. The one before stays valid for `grace`.
    pub(crate) fn roll(&mut self, now: Instant, lifetime: Duration, grace: Duration) {
        self.present = self.present.wrapping_add(1);
        self.next_at = now + lifetime;
        self.past.rotate_right(1);
        self.past[0] = now + grace;
    }

    /// The number of the valid key that has these low bits.
    #[inline]
    pub(crate) fn valid(&self, now: Instant, low_bits: u8) -> Option<u32> {
        let back = (self.present as u8).wrapping_sub(low_bits) & 15;
        if back == 0 {
            return Some(self.present);
        }
        let until = self.past.get(usize::from(back) - 1)?;
        (now <= *until).then(|| self.present.wrapping_sub(u32::from(back)))
    }

    /// Whether an earlier process may have given `number` to senders.
    pub(crate) const fn is_of_earlier_process(&self, number: u32) -> bool {
        (number.wrapping_sub(self.first) as i32) < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(60);
    const GRACE: Duration = Duration::from_secs(90);

    #[test]
    fn past_keys_are_valid_for_a_while_and_seven_of_them_at_most() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut keys = KeyNumbers::new(at(0), 16, LIFE, GRACE);
        assert_eq!(keys.valid(at(0), 0), Some(16));
        assert_eq!(keys.valid(at(90), 13), Some(13));
        assert_eq!(
            keys.valid(at(91), 15),
            None,
            "an earlier process's, too old"
        );
        assert_eq!(keys.valid(at(0), 9), Some(9));
        assert_eq!(keys.valid(at(0), 8), None, "the eighth back");
        keys.roll(at(100), LIFE, GRACE);
        keys.roll(at(160), LIFE, GRACE);
        assert_eq!(keys.valid(at(190), 0), Some(16));
        assert_eq!(keys.valid(at(191), 0), None);
        assert_eq!(keys.valid(at(191), 1), Some(17));
        assert_eq!(keys.valid(at(191), 2), Some(18));
        assert_eq!(keys.valid(at(191), 3), None, "not made yet");
    }

    #[test]
    fn numbers_wrap() {
        let mut keys = KeyNumbers::new(Instant::ZERO, u32::MAX, LIFE, GRACE);
        keys.roll(Instant::ZERO, LIFE, GRACE);
        assert_eq!(keys.present(), 0);
        assert_eq!(keys.valid(Instant::ZERO, 15), Some(u32::MAX));
        assert!(keys.is_of_earlier_process(u32::MAX - 1) && !keys.is_of_earlier_process(0));
    }
}

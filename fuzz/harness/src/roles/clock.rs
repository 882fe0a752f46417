//! Clocks that are wrong within bounds.

use crate::input::Input;
use bumpless_base::Instant;

/// A clock with an offset, and a rate that differs from true time by `ppb` parts per billion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    offset: u64,
    ppb: i64,
}

impl Clock {
    /// Rates differ from true time by up to `most_ppm`.
    pub fn decode(input: &mut Input<'_>, most_ppm: i64) -> Self {
        let (offset, rate) = (input.u8(), input.u8() as i8);
        Self {
            offset: 1 + (u64::from(offset) << 40),
            ppb: i64::from(rate.max(-127)) * most_ppm * 1000 / 127,
        }
    }

    /// What the clock shows at true time `t`.
    pub fn local(self, t: u64) -> Instant {
        let t = i128::from(t);
        let shown = i128::from(self.offset) + t + t * i128::from(self.ppb) / 1_000_000_000;
        Instant::from_nanos(u64::try_from(shown).unwrap_or(0))
    }
}

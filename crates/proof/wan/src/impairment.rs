//! What keeps a link from carrying everything.

/// Most Mbit/s: the kernel is told a rate in bytes a second, in four bytes.
pub const RATE_MAX: u32 = 30_000;
/// A loss is so many parts of this.
const WHOLE: f64 = 1_000_000.0;

/// What a link is like in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Packets lost at random, of a million.
    pub loss_millionths: u32,
    /// What it carries at most, Mbit/s, from 1 to [`RATE_MAX`]. `None`: as much as the machine does.
    pub rate_mbit: Option<u32>,
}

impl Impairment {
    /// Whether the link carries everything.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// The share of packets that is lost, percent.
    pub fn loss_percent(self) -> f64 {
        f64::from(self.loss_millionths) * 100.0 / WHOLE
    }
}

/// Millionths of a share in percent. `None`: it is not between 0.0001 and 100.
pub fn millionths(percent: f64) -> Option<u32> {
    let is_share = (0.0001..=100.0).contains(&percent);
    is_share.then(|| (percent / 100.0 * WHOLE).round() as u32)
}

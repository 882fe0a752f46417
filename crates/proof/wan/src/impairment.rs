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

    /// What a link is like with both: the higher loss, and the lower rate.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let rates = [self.rate_mbit, other.rate_mbit].into_iter().flatten();
        Self {
            loss_millionths: self.loss_millionths.max(other.loss_millionths),
            rate_mbit: rates.min(),
        }
    }

    /// The share of packets that is lost, percent.
    pub fn loss_percent(self) -> f64 {
        f64::from(self.loss_millionths) * 100.0 / WHOLE
    }
}

/// What [`millionths`] takes.
pub const LOSSES: &str = "0, or from 0.0001 to 100 in steps of 0.0001";

/// Millionths of a share in percent. `None`: it is not one of [`LOSSES`].
pub fn millionths(percent: f64) -> Option<u32> {
    let millionths = percent / 100.0 * WHOLE;
    let whole = millionths.round();
    // What is written in decimals is not quite that in binary.
    let is_share = (0.0..=WHOLE).contains(&whole) && (millionths - whole).abs() < 1e-6;
    is_share.then_some(whole as u32)
}

/// A loss and a rate as a file tells them, or everything that is wrong with them.
pub fn told(loss_percent: Option<f64>, rate_mbit: Option<u32>) -> Result<Impairment, String> {
    let loss_millionths = millionths(loss_percent.unwrap_or(0.0));
    let is_rate = rate_mbit.is_none_or(|rate| (1..=RATE_MAX).contains(&rate));
    let mut wrong = Vec::new();
    if loss_millionths.is_none() {
        wrong.push(format!("loss_percent is {LOSSES}"));
    }
    if !is_rate {
        wrong.push(format!("rate_mbit is from 1 to {RATE_MAX}"));
    }
    match loss_millionths.filter(|_| is_rate) {
        Some(loss_millionths) => Ok(Impairment {
            loss_millionths,
            rate_mbit,
        }),
        None => Err(wrong.join("; ")),
    }
}

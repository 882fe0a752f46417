//! How often a packet and a state are lost (first paper, 7.2.4).
//!
//! All losses are computed directly, never as one minus a success: down to 1e-300 no digit cancels.

use bumpless_base::Duration;

use crate::input::{Loss, MAX_BUDGET};

/// A year as reliability engineers count it, 8,760 hours.
pub const YEAR: Duration = Duration::from_secs(8_760 * 3_600);

impl Loss {
    /// Probability that a frame of `bytes` bytes is lost: 1 - (1 - BER)^F with F its bits.
    pub fn of_frame(self, bytes: u64) -> f64 {
        match self {
            Self::BitErrors(rate) => -(bytes as f64 * 8.0 * (-rate).ln_1p()).exp_m1(),
            Self::Frames(share) => share,
        }
    }
}

/// Probability that a packet is lost on every one of several networks at once: the product, of which
/// the paper's `p_r = 1 - (1 - p_s^2)` is the case of two equal ones.
pub fn lost_on_all(each: impl IntoIterator<Item = f64>) -> f64 {
    each.into_iter().product()
}

/// Probability that a state of `packets` packets, each of which is lost with probability `p` whenever
/// it is sent, is not whole after `budget` retransmissions: one minus equation 4,
/// the sum over k > R of C(N + k - 1, k) p^k q^N.
///
/// A state without packets is never lost. Ten digits are right, for a million packets too
/// (`tests/probabilities.rs`).
pub fn state_loss(packets: u64, budget: u32, p: f64) -> f64 {
    if packets == 0 || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let n = packets as f64;
    // The term of k = budget + 1, as exponents: factors up to millions and down to 1e-300 meet in it.
    let mut log_term = n * (-p).ln_1p();
    for k in 0..=budget {
        let k = f64::from(k);
        log_term += ((n + k) / (k + 1.0) * p).ln();
    }
    let first = f64::from(budget) + 1.0;
    let mean = n * p / (1.0 - p);
    if mean > first {
        // Most states are lost: what is left over, the sum up to the budget, is the shorter one.
        return 1.0 - success_below(n, budget, p);
    }
    let (mut sum, mut ratio, mut k) = (1.0, 1.0, first);
    // Each term is the one before times (n + k) p / (k + 1), which falls below one here and stays there.
    loop {
        ratio *= (n + k) / (k + 1.0) * p;
        sum += ratio;
        k += 1.0;
        if ratio < sum * 1e-17 {
            break;
        }
    }
    (log_term.exp() * sum).min(1.0)
}

/// Equation 4 itself.
fn success_below(n: f64, budget: u32, p: f64) -> f64 {
    let q_n = n * (-p).ln_1p();
    let mut log_term = q_n;
    let mut sum = q_n.exp();
    for k in 0..budget {
        let k = f64::from(k);
        log_term += ((n + k) / (k + 1.0) * p).ln();
        sum += log_term.exp();
    }
    sum.min(1.0)
}

/// States in a year at one each `period`.
pub fn states_per_year(period: Duration) -> f64 {
    YEAR.as_secs_f64() / period.as_secs_f64()
}

/// The smallest budget with which no more than `accepted` states are lost in a year; `None` if not even
/// [`MAX_BUDGET`] does.
pub fn budget_for(packets: u64, p: f64, period: Duration, accepted: f64) -> Option<u32> {
    let states = states_per_year(period);
    (0..=MAX_BUDGET).find(|&budget| state_loss(packets, budget, p) * states <= accepted)
}

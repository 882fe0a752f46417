//! The back-off of an advertisement to a group (iPRP V-F), in whole numbers: there is no logarithm without std.

use bumpless_base::Duration;

/// `e^25 - 1`.
const REACH: u128 = 72_004_899_336;
/// `ln 2 / 25` as a fraction of 2^32.
const LN_2_BY_25: u128 = 119_081_779;

/// The span below `longest` (`D`) that `uniform` of 2^64 stands for, in a truncated exponential distribution that grows
/// towards `longest` with lambda = 25 / `longest`: `longest / 25 * ln(1 + (e^25 - 1) U)`.
pub(crate) fn back_off(longest: Duration, uniform: u64) -> Duration {
    let x = (1 << 64) + REACH * u128::from(uniform);
    let share = (u128::from(log2(x)) * LN_2_BY_25) >> 32;
    let nanos = (u128::from(longest.as_nanos()) * share) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(longest)
}

/// The logarithm to base 2 of `x / 2^64`, which is at least 1, as a fraction of 2^32: bit by bit, by squaring.
fn log2(x: u128) -> u64 {
    let leading = x.leading_zeros().min(63);
    let mut result = u64::from(63 - leading);
    // Between 1 and 2, as a fraction of 2^63.
    let mut mantissa = ((x << leading) >> 64) as u64;
    for _ in 0..32 {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let carry = (square >> 127) as u64;
        mantissa = (square >> (63 + carry)) as u64;
        result = result << 1 | carry;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_base::Random;

    /// The paper's formula, literally.
    fn paper(longest: f64, uniform: f64) -> f64 {
        let lambda = 25.0 / longest;
        (1.0 + ((lambda * longest).exp() - 1.0) * uniform).ln() / lambda
    }

    #[test]
    fn it_is_the_papers_inverse_of_the_distribution() {
        let longest = Duration::from_secs(10);
        let mut random = Random::new(1);
        let drawn = (0..20_000).map(|_| random.next_u64() >> random.below(60));
        for uniform in drawn.chain([0, 1, u64::MAX / 2, u64::MAX]) {
            let is = back_off(longest, uniform).as_secs_f64();
            let should = paper(10.0, uniform as f64 / 2f64.powi(64));
            assert!(
                (is - should).abs() < 1e-6,
                "{uniform}: {is} instead of {should}"
            );
        }
    }

    #[test]
    fn of_many_receivers_few_send_before_the_first_can_be_acknowledged() {
        let mut random = Random::new(2);
        let mut all: std::vec::Vec<u64> = (0..10_000)
            .map(|_| back_off(Duration::from_secs(10), random.next_u64()).as_millis())
            .collect();
        all.sort_unstable();
        let early = all.iter().filter(|&&at| at < all[0] + 100).count();
        assert!(early < 20, "{early} within 100 ms of the first");
        assert!(all[9_999] <= 10_000);
    }
}

//! Loss probabilities against the same sums in fixed point with 1,200 binary digits.

use bumpless_base::Duration;
use bumpless_plan::Loss;
use bumpless_plan::input::MAX_BUDGET;
use bumpless_plan::reliability::{budget_for, lost_on_all, state_loss, states_per_year};
use num_bigint::BigUint;

/// Binary digits behind the point: 1e-361.
const DIGITS: u32 = 1_200;

/// A number from 0 to a few thousands in fixed point.
#[derive(Clone)]
struct Fixed(BigUint);

impl Fixed {
    fn one() -> Self {
        Self(BigUint::from(1u8) << DIGITS)
    }
    /// Exactly `number`, if it is not below 2^-1074 and has no digit behind the last.
    fn exactly(number: f64) -> Self {
        let bits = number.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i64;
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let shift = exponent - 1075 + i64::from(DIGITS);
        assert!(number > 0.0 && exponent > 0 && shift >= 0, "{number:e}");
        Self(BigUint::from(mantissa) << shift)
    }
    fn times(&self, other: &Self) -> Self {
        Self((&self.0 * &other.0) >> DIGITS)
    }
    fn minus(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }
    fn power(&self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self::one(), self.clone());
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(&square);
            }
            square = square.times(&square);
            exponent >>= 1;
        }
        result
    }
    fn number(&self) -> f64 {
        let bits = self.0.bits();
        let drop = bits.saturating_sub(64);
        let top: u64 = (&self.0 >> drop).try_into().expect("64 digits");
        top as f64 * 2f64.powi(drop as i32 - DIGITS as i32)
    }
}

/// One minus equation 4, as it is written.
fn reference(packets: u64, budget: u32, p: f64) -> f64 {
    let p = Fixed::exactly(p);
    let q = Fixed::one().minus(&p);
    let mut term = q.power(packets);
    let mut success = term.clone();
    for k in 0..u64::from(budget) {
        term = Fixed(term.times(&p).0 * (packets + k) / (k + 1));
        success.0 += &term.0;
    }
    Fixed::one().minus(&success).number()
}

#[test]
fn the_loss_of_a_state_is_right_to_ten_digits_from_1_down_to_1e_103() {
    let mut least = 1.0f64;
    for packets in [1, 2, 10, 35, 690, 3_425, 5_800, 1_000_000] {
        for p in [
            1.2144e-12,
            1.474_767e-12,
            1e-9,
            1.2144e-6,
            1e-4,
            1e-3,
            0.02,
            0.3,
            0.9,
        ] {
            for budget in [0, 1, 2, 3, 5, 8, 10] {
                let expected = reference(packets, budget, p);
                let seen = state_loss(packets, budget, p);
                assert!(seen.is_finite() && (0.0..=1.0).contains(&seen));
                let error = (seen - expected).abs();
                // Near one, what counts is what is left.
                assert!(
                    error <= expected * 1e-10,
                    "{packets} packets, budget {budget}, p {p}: {seen:e} for {expected:e}"
                );
                least = least.min(expected);
            }
        }
    }
    assert!(least < 1e-100, "only down to {least:e}");
}

#[test]
fn the_loss_of_a_frame_does_not_vanish_with_the_smallest_error_rates() {
    for (rate, bytes) in [
        (1e-10, 1518u64),
        (1e-12, 64),
        (1e-17, 1518),
        (1e-30, 9_000),
        (1e-3, 1518),
    ] {
        let q = Fixed::one().minus(&Fixed::exactly(rate));
        let expected = Fixed::one().minus(&q.power(bytes * 8)).number();
        let seen = Loss::BitErrors(rate).of_frame(bytes);
        assert!(
            (seen - expected).abs() <= expected * 1e-13,
            "{rate}: {seen:e} for {expected:e}"
        );
    }
    assert_eq!(Loss::BitErrors(0.0).of_frame(1518), 0.0);
    assert_eq!(Loss::Frames(0.25).of_frame(1518), 0.25);
}

#[test]
fn two_networks_lose_what_both_lose() {
    let one = Loss::BitErrors(1e-10).of_frame(1518);
    let expected = {
        let q = Fixed::one().minus(&Fixed::exactly(one).times(&Fixed::exactly(one)));
        Fixed::one().minus(&q).number()
    };
    let seen = lost_on_all([one, one]);
    assert!(
        (seen - expected).abs() <= expected * 1e-14,
        "{seen:e} for {expected:e}"
    );
}

#[test]
fn no_loss_and_nothing_but_loss_have_their_plain_answers() {
    assert_eq!(state_loss(100, 5, 0.0), 0.0);
    assert_eq!(state_loss(100, 5, 1.0), 1.0);
    assert_eq!(state_loss(0, 0, 0.5), 0.0);
    assert!((state_loss(1, 0, 0.5) - 0.5).abs() < 1e-15);
    assert!((state_loss(1, 1, 0.5) - 0.25).abs() < 1e-15);
}

#[test]
fn a_budget_for_an_accepted_loss_is_the_smallest_that_does() {
    let period = Duration::from_millis(100);
    let p = Loss::BitErrors(1e-10).of_frame(1518);
    for packets in [1, 11, 343, 3_425] {
        for accepted in [1e-12, 1e-6, 1.0, 1e4] {
            let budget = budget_for(packets, p, period, accepted).expect("a hundred is enough");
            let lost = |budget| state_loss(packets, budget, p) * states_per_year(period);
            assert!(lost(budget) <= accepted);
            assert!(budget == 0 || lost(budget - 1) > accepted);
        }
    }
    assert_eq!(
        budget_for(3_425, 0.9, period, 1e-6),
        None,
        "beyond {MAX_BUDGET}"
    );
}

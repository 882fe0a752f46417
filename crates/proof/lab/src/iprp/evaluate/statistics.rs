//! Within which bounds a count of losses lies if networks lose independently of each other.

use crate::iprp::relay::{Burst, Loss};

/// Half of what lies outside a confidence interval of 99 %.
const OUTSIDE: f64 = 0.005;
/// So many standard deviations take that much off at each end of a normal distribution.
const Z: f64 = 2.575_829;
/// Above this many expected ones a binomial distribution is taken for a normal one.
const MANY: f64 = 400.0;

/// The interval in which with 99 % the number of datagrams lies that all networks lose, of `sent` in flows of `each`, if together they lose
/// the share `product`. Bursts on all networks at once make it wider, by as much as the model says.
pub fn interval(sent: usize, each: usize, product: f64, losses: &[Loss]) -> (f64, f64) {
    let bursts: Option<Vec<Burst>> = losses
        .iter()
        .map(|loss| match loss {
            Loss::Bursty(burst) => Some(*burst),
            _ => None,
        })
        .collect();
    let expected = sent as f64 * product;
    match bursts {
        Some(bursts) => {
            let deviation = (expected * spread(&bursts, product, each)).sqrt();
            (
                (expected - Z * deviation).max(0.0),
                expected + Z * deviation,
            )
        }
        None if expected > MANY => {
            let deviation = (expected * (1.0 - product)).sqrt();
            (expected - Z * deviation, expected + Z * deviation)
        }
        None => binomial(sent, product),
    }
}

/// By how much the variance of joint losses is larger than their mean, in a flow of `each` datagrams.
fn spread(bursts: &[Burst], product: f64, each: usize) -> f64 {
    let mut sum = 0.0;
    for lag in 1..each.min(10_000) {
        let both: f64 = bursts
            .iter()
            .map(|burst| {
                let bad = burst.to_bad / (burst.to_bad + burst.to_good);
                let mean = bad * burst.in_bad + (1.0 - bad) * burst.in_good;
                let apart = (burst.in_bad - burst.in_good).powi(2) * bad * (1.0 - bad);
                let memory = (1.0 - burst.to_bad - burst.to_good).powi(lag as i32);
                mean * mean + apart * memory
            })
            .product();
        let beyond = both - product * product;
        if beyond < product * 1e-9 {
            break;
        }
        sum += beyond * (1.0 - lag as f64 / each as f64);
    }
    1.0 - product + 2.0 * sum / product.max(f64::MIN_POSITIVE)
}

/// The smallest and the largest count that are not too unlikely.
fn binomial(sent: usize, share: f64) -> (f64, f64) {
    let mut chance = (1.0 - share).powf(sent as f64);
    let mut below = 0.0;
    let (mut least, mut most) = (None, 0);
    for count in 0..=sent {
        let with = below + chance;
        if least.is_none() && with > OUTSIDE {
            least = Some(count);
        }
        if with >= 1.0 - OUTSIDE || chance < 1e-300 && count as f64 > sent as f64 * share {
            most = count;
            break;
        }
        below = with;
        chance *= (sent - count) as f64 / (count + 1) as f64 * share / (1.0 - share);
    }
    (least.unwrap_or(0) as f64, most as f64)
}

/// How probable it is that figures drawn from one distribution stand above others of it as clearly as `these` stand above `those`, or more
/// so (Mann and Whitney; exact). Nothing is presumed of the distribution: what delays both alike tells them not apart.
pub fn chance_of_ranks(these: &[u64], those: &[u64]) -> f64 {
    let above = |it: &u64| those.iter().filter(|other| it > *other).count();
    let seen: usize = these.iter().map(above).sum();
    let ways = ways_of_ranks(these.len(), those.len());
    let all: i128 = ways.iter().sum();
    let as_clear: i128 = ways.iter().skip(seen).sum();
    as_clear as f64 / all.max(1) as f64
}

/// In how many orders of so many and so many figures the first ones stand above the others so often, from never on: the coefficients of
/// Gauss's binomial. Exact up to 50 of each.
fn ways_of_ranks(these: usize, those: usize) -> Vec<i128> {
    let most = these * those;
    let mut ways = vec![0; most + 1];
    ways[0] = 1;
    for step in 1..=these {
        for at in (those + step..=most).rev() {
            ways[at] -= ways[at - those - step];
        }
        for at in step..=most {
            ways[at] += ways[at - step];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_base::Random;

    const IL: Loss = Loss::Independent(0.05);

    #[test]
    fn intervals_are_those_of_tables() {
        // The distribution of 1,000 with 0.0025: mean 2.5.
        assert_eq!(interval(1_000, 1_000, 0.0025, &[IL, IL]), (0.0, 7.0));
        let (least, most) = interval(100_000, 5_000, 0.0025, &[IL, IL]);
        assert!(
            (least - 210.0).abs() < 4.0 && (most - 291.0).abs() < 4.0,
            "{least} {most}"
        );
        let (low, high) = interval(1_000_000, 5_000, 0.0025, &[IL, IL]);
        assert!(
            (low - 2_371.0).abs() < 2.0 && (high - 2_629.0).abs() < 2.0,
            "{low} {high}"
        );
    }

    #[test]
    fn joint_losses_of_bursty_networks_spread_as_the_model_says() {
        let burst = Burst {
            to_bad: 0.01,
            to_good: 0.19,
            in_good: 0.01,
            in_bad: 0.81,
        };
        let each = 2_000;
        let mut random = Random::new(5);
        let mut joint = || {
            let mut bad = [false; 2];
            (0..each)
                .filter(|_| {
                    let mut lost = [false; 2];
                    for (bad, lost) in bad.iter_mut().zip(&mut lost) {
                        *bad ^= random.chance(if *bad { burst.to_good } else { burst.to_bad });
                        *lost = random.chance(if *bad { burst.in_bad } else { burst.in_good });
                    }
                    lost == [true; 2]
                })
                .count() as f64
        };
        let counts: Vec<f64> = (0..1_500).map(|_| joint()).collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let squares = counts
            .iter()
            .map(|count| (count - mean).powi(2))
            .sum::<f64>();
        let seen = squares / counts.len() as f64 / mean;
        let said = spread(&[burst; 2], 0.0025, each);
        assert!(
            said > 2.0 && (seen / said - 1.0).abs() < 0.2,
            "{seen} beside {said}"
        );
    }

    #[test]
    fn ranks_tell_apart_what_differs_and_nothing_else() {
        // 1, 1, 2, 2, 2, 1, 1 orders of two and three.
        assert_eq!(ways_of_ranks(2, 3), [1, 1, 2, 2, 2, 1, 1]);
        // As many as there are ways to choose 50 of 100.
        let all: i128 = ways_of_ranks(50, 50).iter().sum();
        assert_eq!(all, 100_891_344_545_564_193_334_812_497_256);
        let chance = |these: &[u64], those: &[u64]| chance_of_ranks(these, those);
        assert_eq!(chance(&[1, 2], &[3, 4]), 1.0);
        assert!((chance(&[3, 4], &[1, 2]) - 1.0 / 6.0).abs() < 1e-12);
        let low: Vec<u64> = (0..8).collect();
        let high: Vec<u64> = (100..108).collect();
        assert!(chance(&high, &low) < 0.000_1 && chance(&low, &high) == 1.0);
        // What both have by chance differs as often as is said.
        let mut random = Random::new(9);
        let mut draw = || (0..8).map(|_| random.below(1 << 40)).collect::<Vec<u64>>();
        let outside = (0..20_000).filter(|_| chance(&draw(), &draw()) < 0.01);
        let outside = outside.count();
        assert!((100..=220).contains(&outside), "{outside}");
    }
}

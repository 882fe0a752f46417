//! When packets arrive.

use bumpless_base::{Duration, Instant, Random};

/// A packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When its last bit has arrived.
    pub at: Instant,
    /// Its length in bytes.
    pub len: u32,
}

/// What one stretch of a load is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Equal gaps at so many a second.
    Uniform(f64),
    /// Gaps drawn from an exponential distribution with so many a second on average.
    Poisson(f64),
    /// So many packets at once each `every`, one behind the other by `gap`.
    Bursts {
        /// Packets of a burst.
        packets: u32,
        /// From one burst's beginning to the next.
        every: Duration,
        /// From packet to packet within one.
        gap: Duration,
    },
}

/// A stretch of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// What it is like.
    pub shape: Shape,
    /// How long it lasts.
    pub lasts: Duration,
}

/// A load: stretches one after the other, or what was recorded.
#[derive(Clone, Debug)]
pub struct Load {
    arrivals: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Drawn(Drawn),
    Recorded(std::vec::IntoIter<Arrival>),
}

#[derive(Clone, Debug)]
struct Drawn {
    stretches: std::vec::IntoIter<Stretch>,
    stretch: Option<Stretch>,
    /// When the present stretch began.
    begun: Instant,
    /// Nanoseconds since then, and how many packets it has had.
    offset: f64,
    count: u64,
    random: Random,
    len: u32,
}

impl Load {
    /// Stretches of packets that are `len` bytes long; `seed` draws what is random.
    pub fn new(stretches: Vec<Stretch>, len: u32, seed: u64) -> Self {
        let mut stretches = stretches.into_iter();
        let stretch = stretches.next();
        Self {
            arrivals: Source::Drawn(Drawn {
                stretches,
                stretch,
                begun: Instant::ZERO,
                offset: 0.0,
                count: 0,
                random: Random::new(seed),
                len,
            }),
        }
    }

    /// What was recorded, in its order.
    pub fn recorded(arrivals: Vec<Arrival>) -> Self {
        Self {
            arrivals: Source::Recorded(arrivals.into_iter()),
        }
    }
}

impl Iterator for Load {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match &mut self.arrivals {
            Source::Drawn(drawn) => drawn.next(),
            Source::Recorded(arrivals) => arrivals.next(),
        }
    }
}

impl Drawn {
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let stretch = self.stretch?;
            self.count += 1;
            self.offset = self.place(stretch.shape);
            // At rate zero the place is infinite.
            if self.offset < stretch.lasts.as_nanos() as f64 {
                return Some(Arrival {
                    at: self.begun + Duration::from_nanos(self.offset as u64),
                    len: self.len,
                });
            }
            self.begun += stretch.lasts;
            (self.offset, self.count) = (0.0, 0);
            self.stretch = self.stretches.next();
        }
    }

    /// Where in its stretch the next packet is, nanoseconds.
    fn place(&mut self, shape: Shape) -> f64 {
        match shape {
            Shape::Uniform(rate) => self.count as f64 * 1e9 / rate,
            Shape::Poisson(rate) => {
                // Inverse transform sampling (4.6.1), of a number above zero.
                let drawn = ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                self.offset - drawn.ln() * 1e9 / rate
            }
            Shape::Bursts {
                packets,
                every,
                gap,
            } => {
                let (burst, within) = (
                    (self.count - 1) / u64::from(packets.max(1)),
                    (self.count - 1) % u64::from(packets.max(1)),
                );
                (every * burst + gap * within).as_nanos() as f64
            }
        }
    }
}

/// The rates of a load shaped like a pyramid (5.3): up in equal steps to `peak`, and down again.
pub fn pyramid(peak: f64, steps: u32) -> Vec<f64> {
    let up = (1..=steps).map(|step| peak * f64::from(step) / f64::from(steps));
    let down = (1..steps)
        .rev()
        .map(|step| peak * f64::from(step) / f64::from(steps));
    up.chain(down).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(shape: Shape, lasts: Duration) -> Vec<Arrival> {
        Load::new(vec![Stretch { shape, lasts }], 64, 1).collect()
    }

    #[test]
    fn a_uniform_load_has_equal_gaps_and_its_rate() {
        let arrivals = load(Shape::Uniform(1e4), Duration::from_secs(1));
        assert_eq!(arrivals.len(), 9_999);
        let gap = |pair: &[Arrival]| pair[1].at.since(pair[0].at);
        let even = arrivals
            .windows(2)
            .all(|it| gap(it) == Duration::from_micros(100));
        assert!(even);
        assert_eq!(load(Shape::Uniform(0.0), Duration::from_secs(1)), []);
    }

    #[test]
    fn a_poisson_load_has_its_mean_and_the_variance_of_its_mean() {
        let arrivals = load(Shape::Poisson(1e5), Duration::from_secs(2));
        let mut bins = vec![0f64; 2_000];
        for arrival in &arrivals {
            bins[(arrival.at.as_nanos() / 1_000_000) as usize] += 1.0;
        }
        let mean = bins.iter().sum::<f64>() / 2_000.0;
        let variance = bins.iter().map(|bin| (bin - mean).powi(2)).sum::<f64>() / 2_000.0;
        assert!((mean - 100.0).abs() < 1.5, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.12, "{variance}");
        assert!(arrivals.is_sorted_by_key(|it| it.at));
    }

    #[test]
    fn bursts_come_at_their_beats_and_stretches_one_after_the_other() {
        let shape = Shape::Bursts {
            packets: 3,
            every: Duration::from_millis(10),
            gap: Duration::from_micros(1),
        };
        let lasts = Duration::from_millis(15);
        let stretch = Stretch { shape, lasts };
        let arrivals: Vec<u64> = Load::new(vec![stretch, stretch], 64, 1)
            .map(|it| it.at.as_nanos() / 1_000)
            .collect();
        let first = [0, 1, 2, 10_000, 10_001, 10_002];
        let both: Vec<u64> = first
            .into_iter()
            .chain(first.map(|at| at + 15_000))
            .collect();
        assert_eq!(arrivals, both);
    }
}

//! What arrived of a stream.

use super::report::{Report, Spread};

/// Counts datagrams by their numbers.
#[derive(Clone, Debug)]
pub struct Tally {
    seen: Vec<bool>,
    /// Delays of those that came first, by clocks that need not agree, nanoseconds.
    delays: Vec<i64>,
    highest: Option<u32>,
    doubled: u32,
    reordered: u32,
}

impl Tally {
    /// For a stream of `total` datagrams.
    pub fn new(total: u32) -> Self {
        Self {
            seen: vec![false; total as usize],
            delays: Vec::new(),
            highest: None,
            doubled: 0,
            reordered: 0,
        }
    }

    /// Datagram `number` has come. One beyond the stream's end is none of it.
    pub fn note(&mut self, number: u32, sent_ns: u64, now_ns: u64) {
        let Some(seen) = self.seen.get_mut(number as usize) else {
            return;
        };
        if std::mem::replace(seen, true) {
            self.doubled += 1;
            return;
        }
        self.reordered += u32::from(self.highest.is_some_and(|highest| number < highest));
        self.highest = self.highest.max(Some(number));
        self.delays.push(now_ns.wrapping_sub(sent_ns).cast_signed());
    }

    /// How many datagrams have come, each counted once.
    pub fn arrived(&self) -> u32 {
        self.delays.len() as u32
    }

    /// How many have been sent at least, by the highest number that came.
    pub fn reach(&self) -> u32 {
        self.highest.map_or(0, |highest| highest + 1)
    }

    /// What has come so far, without the networks.
    pub fn report(&self) -> Report {
        Report {
            arrived: self.arrived(),
            doubled: self.doubled,
            reordered: self.reordered,
            spread: self.spread(),
            networks: Vec::new(),
        }
    }

    fn spread(&self) -> Option<Spread> {
        let mut sorted = self.delays.clone();
        sorted.sort_unstable();
        let least = *sorted.first()?;
        // Of a share of the datagrams, the one that took longest.
        let us = |of_100: usize| {
            let at = (sorted.len() * of_100).div_ceil(100).max(1) - 1;
            sorted[at].saturating_sub(least) as f64 / 1e3
        };
        Some(Spread {
            median_us: us(50),
            p99_us: us(99),
            most_us: us(100),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_doubled_and_overtaken_is_told_apart() {
        let mut tally = Tally::new(5);
        for number in [0, 2, 1, 1, 4, 7] {
            tally.note(number, 0, 0);
        }
        let report = tally.report();
        assert_eq!(
            (report.arrived, report.doubled, report.reordered),
            (4, 1, 1)
        );
    }

    #[test]
    fn delays_are_spread_over_the_least_whatever_the_clocks_say() {
        let mut tally = Tally::new(100);
        assert_eq!(tally.report().spread, None);
        for number in 0..100 {
            // The listener's clock is far behind.
            let sent = 1_000_000_000_000 + u64::from(number) * 1_000_000;
            let late = if number == 41 {
                9_000_000
            } else {
                u64::from(number % 2) * 2_000
            };
            tally.note(number, sent, sent + late - 999_000_000_000);
        }
        let spread = tally.report().spread.unwrap();
        assert_eq!(
            (spread.median_us, spread.p99_us, spread.most_us),
            (0.0, 2.0, 9000.0)
        );
    }
}

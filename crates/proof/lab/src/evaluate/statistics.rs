//! The few statistics that the evaluation and the report need.

/// Order statistics of a set of figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderStatistics(Vec<f64>);

impl OrderStatistics {
    /// The distribution of `values`; what is not a number is left out.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        Self(sorted)
    }

    /// How many figures.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest figure that is not below a share `q` of all (nearest rank), `None` if there is
    /// no figure. With few figures the higher ranks coincide with the maximum.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied()
    }

    /// The smallest figure.
    pub fn min(&self) -> Option<f64> {
        self.0.first().copied()
    }

    /// The largest figure.
    pub fn max(&self) -> Option<f64> {
        self.0.last().copied()
    }

    /// The middle.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// Distance from the first to the third quartile, zero if there is no figure.
    pub fn interquartile_range(&self) -> f64 {
        match (self.quantile(0.25), self.quantile(0.75)) {
            (Some(low), Some(high)) => high - low,
            _ => 0.0,
        }
    }

    /// Standard deviation around the mean, zero if there are fewer than two figures.
    pub fn standard_deviation(&self) -> f64 {
        if self.0.len() < 2 {
            return 0.0;
        }
        let n = self.0.len() as f64;
        let mean = self.0.iter().sum::<f64>() / n;
        (self.0.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
    }

    /// All figures in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_figures_that_were_seen() {
        let d = OrderStatistics::new((1..=100).rev().map(f64::from));
        assert_eq!(
            [0.0, 0.5, 0.9, 0.99, 1.0].map(|q| d.quantile(q).unwrap()),
            [1.0, 50.0, 90.0, 99.0, 100.0]
        );
        assert_eq!(d.interquartile_range(), 50.0);
        let three = OrderStatistics::new([3.0, 1.0, f64::NAN, 2.0]);
        assert_eq!(
            (three.median(), three.quantile(0.99), three.len()),
            (Some(2.0), Some(3.0), 3)
        );
        assert_eq!(three.standard_deviation(), 1.0);
    }

    #[test]
    fn nothing_gives_nothing_instead_of_a_panic() {
        let none = OrderStatistics::default();
        assert!(none.is_empty() && none.median().is_none() && none.min().is_none());
        assert_eq!(
            (none.interquartile_range(), none.standard_deviation()),
            (0.0, 0.0)
        );
    }
}

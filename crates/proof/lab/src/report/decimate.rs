//! Thins curves to what a screen can show, so that the report stays small and no peak is lost.

/// Per column of the plot the first, lowest, highest and last point, in order of time.
/// `points` must be in order of their first coordinate.
pub fn decimate(points: &[(f64, f64)], columns: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let span = (last.0 - first.0).max(f64::MIN_POSITIVE);
    let column = |x: f64| ((x - first.0) / span * columns as f64) as usize;
    let mut thin = Vec::new();
    for group in points.chunk_by(|a, b| column(a.0) == column(b.0)) {
        let lowest = position_by(group, |candidate, best| candidate < best);
        let highest = position_by(group, |candidate, best| candidate > best);
        let mut keep = [0, lowest, highest, group.len() - 1];
        keep.sort_unstable();
        let mut previous = None;
        for index in keep {
            if previous != Some(index) {
                thin.push(group[index]);
            }
            previous = Some(index);
        }
    }
    thin
}

fn position_by(group: &[(f64, f64)], better: impl Fn(f64, f64) -> bool) -> usize {
    let mut best = 0;
    for (index, point) in group.iter().enumerate() {
        if better(point.1, group[best].1) {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_peak_survives_and_the_size_is_bounded() {
        let mut points: Vec<_> = (0..100_000).map(|i| (f64::from(i), 0.0)).collect();
        points[54_321].1 = 7.0;
        points[54_322].1 = -7.0;
        let thin = decimate(&points, 500);
        assert!(thin.len() <= 4 * 501, "{}", thin.len());
        assert!(thin.contains(&(54_321.0, 7.0)) && thin.contains(&(54_322.0, -7.0)));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((thin[0].0, thin[thin.len() - 1].0), (0.0, 99_999.0));
    }

    #[test]
    fn few_points_stay_as_they_are() {
        assert_eq!(decimate(&[], 10), []);
        assert_eq!(decimate(&[(1.0, 2.0)], 10), [(1.0, 2.0)]);
        let three = [(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)];
        assert_eq!(decimate(&three, 100), three);
    }
}

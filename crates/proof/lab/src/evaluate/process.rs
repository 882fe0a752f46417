//! Whether the process noticed: levels against the same run computed without faults.

use super::statistics::OrderStatistics;
use super::{Limits, Promise};
use crate::runlog::{Phase, PhaseKind, Run, Sample};

/// Largest distance of any tank's level from the fault-free baseline at each sample in
/// `from_ns..to_ns`, in millimetres. Between two points of the baseline it is interpolated.
pub fn deviations(run: &Run, from_ns: u64, to_ns: u64) -> Vec<(u64, f64)> {
    run.samples
        .iter()
        .filter(|sample| (from_ns..to_ns).contains(&sample.time_ns))
        .filter_map(|sample| {
            let ideal = interpolate(&run.baseline, sample.time_ns)?;
            let farthest = (0..4)
                .map(|i| (sample.levels[i] - ideal[i]).abs())
                .fold(0.0, f64::max);
            Some((sample.time_ns, farthest * 10.0))
        })
        .collect()
}

/// Levels of `line` at `time_ns`; `None` outside of it.
fn interpolate(line: &[Sample], time_ns: u64) -> Option<[f64; 4]> {
    let after = line.partition_point(|sample| sample.time_ns <= time_ns);
    let left = line.get(after.checked_sub(1)?)?;
    let Some(right) = line.get(after) else {
        return (left.time_ns == time_ns).then_some(left.levels);
    };
    let share = (time_ns - left.time_ns) as f64 / (right.time_ns - left.time_ns).max(1) as f64;
    Some(std::array::from_fn(|i| {
        left.levels[i] + share * (right.levels[i] - left.levels[i])
    }))
}

/// In the phase the levels are no farther from the baseline than in normal running, within the
/// noise: the largest distance seen in normal running, plus three standard deviations of that
/// distance, plus a floor for what the computed baseline itself cannot know (the phase between the
/// controller's cycle and the plant's integration step).
pub fn level_unmoved(run: &Run, phase: &Phase, limits: &Limits) -> Promise {
    let noise = run
        .phase(PhaseKind::Normal)
        .map(|normal| distances(run, normal))
        .unwrap_or_default();
    let seen_here = distances(run, phase);
    let allowed =
        noise.max().unwrap_or(0.0) + 3.0 * noise.standard_deviation() + limits.level_floor_mm;
    let promised = format!(
        "levels as without the fault, within the noise of {allowed:.2} mm \
         (normal running's largest distance {:.2} mm + 3 sigma + {:.1} mm)",
        noise.max().unwrap_or(0.0),
        limits.level_floor_mm
    );
    let (held, seen) = match (seen_here.max(), noise.is_empty()) {
        (Some(farthest), false) => (
            farthest <= allowed,
            format!("farthest {farthest:.2} mm from the computed run"),
        ),
        _ => (false, "no samples to compare".into()),
    };
    Promise::in_phase("process", phase, promised, held, seen)
}

fn distances(run: &Run, phase: &Phase) -> OrderStatistics {
    OrderStatistics::new(
        deviations(run, phase.from_ns, phase.to_ns)
            .into_iter()
            .map(|(_, mm)| mm),
    )
}

#[cfg(test)]
mod tests;

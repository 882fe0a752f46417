//! The three steps of the paper, as they are written.

use super::quick::hyperperiod;
use super::{Condition, Refusal, TaskSet, Utilisation};

pub(super) fn admit(set: &TaskSet) -> Result<(), Refusal> {
    let Some(shortest) = set.shortest() else {
        return Ok(());
    };
    let refused = |condition, window: Option<u64>| {
        let demand_ns = window.map(|window| set.load(window));
        Err(Refusal {
            condition,
            window_ns: window,
            demand_ns,
        })
    };
    // (i) Utilisation.
    let utilisation = Utilisation::of(set);
    if utilisation.is_above_one() {
        return refused(Condition::Utilisation, None);
    }
    // (ii) The windows to be tested.
    let longest = if utilisation.is_below_one() {
        set.longest_window(&utilisation)
    } else if set.is_periodic() {
        hyperperiod(set)
    } else {
        None
    };
    let Some(longest) = longest else {
        return refused(Condition::Undecidable, None);
    };
    let mut windows: Vec<u64> = Vec::new();
    for task in &set.tasks {
        let steps = std::iter::successors(Some(task.step_after(0)), |&step| {
            Some(task.step_after(step))
        });
        windows.extend(steps.take_while(|&step| step <= longest));
    }
    windows.sort_unstable();
    windows.dedup();
    // (iii) Demand.
    let tested = windows
        .into_iter()
        .filter(|&window| window >= shortest && window <= longest);
    for window in tested {
        if set.load(window) > u128::from(window) {
            return refused(Condition::Demand, Some(window));
        }
    }
    Ok(())
}

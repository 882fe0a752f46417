//! How much time is left until the deadline of a state that waits for news of its losses.
//!
//! Let a state with deadline D not be done at some instant at which nothing is ready to be sent whose deadline is D or
//! earlier. Go back from there to the last instant before its publication at which nothing of the kind was ready, and
//! let D be y after that. All that was sent since, and all that held the state up, is within the load of a window
//! of y, and done. So at least y - load(y) is left until D; and so at least the smallest such y - load(y), for y
//! from the channel's deadline on.
//!
//! The load of a window depends on the time that is left of others. Those with later deadlines are found first; of the
//! others nothing is assumed.

use super::{TaskSet, Utilisation};

/// Looks at a task after which nothing more is found: some hundredths of a second.
const LOOKS_MAX: u64 = 1_000_000;

/// Sets the time left of every task that is asked about.
pub(super) fn find(set: &mut TaskSet) {
    let Some(longest) = set.tasks.last().map(|task| task.deadline) else {
        return;
    };
    let fixed = set.beyond_utilisation() + u128::from(longest);
    let Some(end) = Utilisation::of(set).windows_filled_by(fixed) else {
        return;
    };
    // Beyond `end` every window has more to spare than the longest deadline.
    let mut least = longest;
    let mut next = Some(end);
    let mut looks = 0;
    for at in (0..set.tasks.len()).rev() {
        let deadline = set.tasks[at].deadline;
        while let Some(window) = next.filter(|&window| window >= deadline) {
            looks += 2 * set.tasks.len() as u64;
            if looks > LOOKS_MAX {
                return;
            }
            let load = set.demand(window);
            let spare = u128::from(window).saturating_sub(load);
            least = least.min(u64::try_from(spare).unwrap_or(u64::MAX));
            // Shorter windows down to this have no less to spare.
            let reach = load
                .saturating_add(u128::from(least))
                .min(u128::from(window - 1));
            next = set.step_before(u64::try_from(reach).unwrap_or(window - 1));
        }
        let task = set.tasks[at];
        if task.blocking.is_some() {
            set.tasks[at].left = least.saturating_sub(set.most_blocking_of(&task));
        }
    }
}

//! The admission test for earliest deadline first with blocking (first paper, 7.2.2, after Zheng and Shin).
//!
//! A set is admitted if, for every window of length t that can end at a deadline, what must be sent in it
//! fits: h(t) + B(t) <= t with h(t) the sum over channels with d <= t of (floor((t - d) / T) + 1) C. The paper
//! writes the count as a ceiling with a plus sign; at t = d it must be one, as it is in its source, not zero.
//!
//! B(t) is what the paper calls the blocking time C_p, with two differences that a real protocol needs: it may
//! differ by channel (a state waits for its own acknowledgement and for the discovery of its own losses, while
//! others use the network), and B(t) is the largest among the channels whose deadline is at most t. Messages that
//! go before every state (heartbeats) count with floor(t / T) + 1 times their cost.
//!
//! A state that waits until it knows of a loss lets others send. So a window may begin while states that were
//! published before it are not done, with retransmissions that fall into it: [`Task::again`]. A state of which at
//! least [`Task::left`] is left until its deadline whenever it waits is in a window of t only if t >= n T +
//! left, where n is the number of whole states of its channel that are: its deadline comes first, and theirs
//! follow it T apart.

mod left;
mod plain;
mod quick;
mod utilisation;

use serde::Serialize;
pub use utilisation::Utilisation;

/// What one channel asks of a resource. All in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Time that a state takes, C.
    pub cost: u64,
    /// Shortest time between two, T; not zero.
    pub period: u64,
    /// Time until which it must have been sent, d; at most the period.
    pub deadline: u64,
    /// What may hold up a state besides states with earlier deadlines; `None`: whether this channel is in
    /// time is not asked here.
    pub blocking: Option<u64>,
    /// Time that a state which waits for news of its losses may still take, at most C.
    pub again: u64,
    /// The least time until the deadline of a state that waits so; zero where nothing is known of it.
    pub left: u64,
    /// Time that a state of it may hold up more urgent ones by what has been handed over of it.
    pub queued: u64,
    /// Time that less urgent states may hold up a state so, all together.
    pub room: u64,
}

impl Task {
    /// Whole states in the longest window of at most `t`.
    fn whole(&self, t: u64) -> u64 {
        t.checked_sub(self.deadline)
            .map_or(0, |spare| spare / self.period + 1)
    }

    /// From which length on a window with `whole` whole states may have one more that waits when it
    /// begins; `None`: never.
    fn joined_by_one(&self, whole: u64) -> Option<u64> {
        let left = self.left.max(1);
        let may = self.again > 0 && left < self.deadline;
        may.then(|| whole.saturating_mul(self.period).saturating_add(left))
    }

    /// What may be queued of a less urgent state of it in a window of `t`, beyond what counts whole there: without
    /// one of these, there may be one that waits and one that is queued.
    fn queued_in(&self, t: u64) -> u64 {
        if self.has_another(t) {
            self.queued
        } else {
            let both = self.queued.saturating_add(self.again);
            both.saturating_sub(self.cost)
        }
    }

    /// What holds it up if so much is queued of all others.
    fn held_up(&self, queued: u64) -> Option<u64> {
        Some(self.blocking?.saturating_add(queued.min(self.room)))
    }

    /// Whether, with as many whole states in a window of `t` as there may be, another one may be published in it.
    fn has_another(&self, t: u64) -> bool {
        t > self.whole(t).saturating_mul(self.period)
    }

    /// What its states send in a window of `t` at most.
    pub(crate) fn demand(&self, t: u64) -> u128 {
        let whole = self.whole(t);
        let joined = self.joined_by_one(whole).is_some_and(|from| from <= t);
        let again = if joined { self.again } else { 0 };
        u128::from(whole) * u128::from(self.cost) + u128::from(again)
    }

    /// The longest window of at most `t` at which more is asked for than in any shorter one.
    fn step_before(&self, t: u64) -> Option<u64> {
        let whole = self.whole(t);
        let joined = self.joined_by_one(whole).filter(|&from| from <= t);
        let another = (self.queued > 0 && self.has_another(t)).then(|| whole * self.period + 1);
        let due = || Some(self.deadline + whole.checked_sub(1)? * self.period);
        joined.max(another).or_else(due)
    }

    /// The shortest window above `t` in which more is asked for.
    pub(crate) fn step_after(&self, t: u64) -> u64 {
        let whole = self.whole(t);
        let begun = whole.saturating_mul(self.period);
        let joined = self.joined_by_one(whole).filter(|&from| from > t);
        let another = Some(begun.saturating_add(1)).filter(|&from| self.queued > 0 && from > t);
        let next = self.deadline.saturating_add(begun);
        [joined, another].into_iter().flatten().fold(next, u64::min)
    }
}

/// Messages that go before every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interference {
    /// Time that one takes, nanoseconds.
    pub cost: u64,
    /// Between two, nanoseconds; not zero.
    pub period: u64,
}

/// Channels that share a resource.
#[derive(Clone, Debug, Default)]
pub struct TaskSet {
    /// By deadline.
    tasks: Vec<Task>,
    /// Position of each in the order that was given.
    given: Vec<usize>,
    interference: Vec<Interference>,
    /// Those of the tasks that are held up longer than each with an earlier deadline, whatever is queued.
    held_up: Vec<Task>,
    /// What may be queued of all.
    queued: u64,
}

/// Why a set is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// First step: more is asked for in the long run than there is.
    Utilisation,
    /// Third step: there is a window in which more must be sent than fits.
    Demand,
    /// So close to full that the windows to be tested have no end.
    Undecidable,
}

impl Condition {
    /// What fails, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Utilisation => "more is asked for in the long run than there is",
            Self::Demand => "there is a window in which more must be sent than fits",
            Self::Undecidable => "so close to full that no window can be said to be the last",
        }
    }
}

/// A no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The step of the test that fails.
    pub condition: Condition,
    /// The shortest window found that is too short for what must be sent in it, nanoseconds from a start in
    /// which all channels publish at once.
    pub window_ns: Option<u64>,
    /// What must be sent in it, and what may block it, nanoseconds.
    pub demand_ns: Option<u128>,
}

/// Windows beyond this length (146 years) are not looked at.
const HORIZON: u64 = 1 << 62;

impl TaskSet {
    /// The set of `tasks` and of `interference`. Tasks with equal deadlines keep their order.
    pub fn new(tasks: &[Task], interference: &[Interference]) -> Self {
        let mut given: Vec<usize> = (0..tasks.len()).collect();
        given.sort_by_key(|&at| tasks[at].deadline);
        // So that sums of them hold.
        let bounded = |task: Task| Task {
            again: task.again.min(task.cost),
            queued: task.queued.min(HORIZON >> 20),
            ..task
        };
        let tasks: Vec<Task> = given.iter().map(|&at| bounded(tasks[at])).collect();
        Self {
            held_up: held_up_most(&tasks),
            queued: tasks.iter().map(|task| task.queued).sum(),
            tasks,
            given,
            interference: interference.to_vec(),
        }
    }

    /// The same set with what follows from it for [`Task::left`], where that counts.
    #[must_use]
    pub fn with_time_left(self) -> Self {
        if self.has_again() {
            self.with_all_time_left()
        } else {
            self
        }
    }

    /// The same, whether it counts in this set or not.
    #[must_use]
    pub(crate) fn with_all_time_left(mut self) -> Self {
        left::find(&mut self);
        self
    }

    /// The tasks, by deadline, each with its position in the order that was given.
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = (usize, Task)> + '_ {
        self.given.iter().copied().zip(self.tasks.iter().copied())
    }

    /// What goes before every state.
    pub fn interference(&self) -> &[Interference] {
        &self.interference
    }

    /// B(t); zero before the first deadline that is asked about.
    ///
    /// What is queued of a less urgent state is part of it only if that state is not one of those that count
    /// whole: another of its channel must be published in the window after them, T apart.
    pub fn blocking(&self, t: u64) -> u64 {
        self.blocking_by(t, self.queued_in(t))
    }

    /// The same if so much is queued.
    fn blocking_by(&self, t: u64, queued: u64) -> u64 {
        let due = self.held_up.iter().take_while(|task| task.deadline <= t);
        let each = due.filter_map(|task| task.held_up(queued - task.queued_in(t)));
        each.max().unwrap_or(0)
    }

    /// What holds up `task`, one of these, in a window of `t`.
    pub fn blocking_of(&self, task: &Task, t: u64) -> u64 {
        let queued = self.queued_in(t) - task.queued_in(t);
        task.held_up(queued).unwrap_or(0)
    }

    /// What may be queued of less urgent states in a window of `t`.
    fn queued_in(&self, t: u64) -> u64 {
        self.tasks.iter().map(|task| task.queued_in(t)).sum()
    }

    /// The largest blocking of any window.
    pub fn most_blocking(&self) -> u64 {
        let each = self.held_up.iter().map(|task| self.most_blocking_of(task));
        each.max().unwrap_or(0)
    }

    /// The largest that holds up `task`, one of these.
    pub(crate) fn most_blocking_of(&self, task: &Task) -> u64 {
        task.held_up(self.queued - task.queued).unwrap_or(0)
    }

    /// The shortest deadline that is asked about; `None`: none is, and every load will do.
    pub fn shortest(&self) -> Option<u64> {
        self.held_up.first().map(|task| task.deadline)
    }

    /// The part of h(t) that states published before the window send.
    pub fn again(&self, t: u64) -> u64 {
        let joined = |task: &&Task| {
            task.joined_by_one(task.whole(t))
                .is_some_and(|from| from <= t)
        };
        let again = self.tasks.iter().filter(joined).map(|task| task.again);
        again.fold(0, u64::saturating_add)
    }

    /// h(t): what must be sent at most in a window of this length.
    pub fn demand(&self, t: u64) -> u128 {
        let states: u128 = self.tasks.iter().map(|task| task.demand(t)).sum();
        let others = self.interference.iter();
        let others = others.map(|other| u128::from(t / other.period + 1) * u128::from(other.cost));
        states + others.sum::<u128>()
    }

    /// h(t) + B(t).
    pub fn load(&self, t: u64) -> u128 {
        self.demand(t) + u128::from(self.blocking(t))
    }

    /// The longest such window that is not shorter than the shortest deadline that is asked about.
    fn window_before(&self, t: u64) -> Option<u64> {
        let last = self.step_before(t)?;
        (last >= self.shortest()?).then_some(last)
    }

    /// The longest window of length at most `t` in which more is asked for than in any shorter one.
    fn step_before(&self, t: u64) -> Option<u64> {
        let steps = self.tasks.iter().filter_map(|task| task.step_before(t));
        steps.max()
    }

    /// A length beyond which no window can be the first that is too short; `None` if there is none below
    /// the horizon. The paper's t_max, with interference.
    fn longest_window(&self, utilisation: &Utilisation) -> Option<u64> {
        let longest = self.tasks.last()?.deadline;
        let fixed = self.beyond_utilisation() + u128::from(self.most_blocking());
        let bound = utilisation.windows_filled_by(fixed)?;
        (bound < HORIZON).then_some(bound.max(longest))
    }

    /// What may be asked for in a window beyond its share of the long run.
    fn beyond_utilisation(&self) -> u128 {
        let per_window = |task: &Task| {
            let spare = u128::from(task.period - task.deadline.min(task.period));
            let whole = (spare * u128::from(task.cost)).div_ceil(u128::from(task.period));
            whole + u128::from(task.again)
        };
        let tasks: u128 = self.tasks.iter().map(per_window).sum();
        let others = self.interference.iter().map(|other| u128::from(other.cost));
        tasks + others.sum::<u128>()
    }

    /// Whether nothing comes on top of whole states.
    fn is_periodic(&self) -> bool {
        self.most_blocking() == 0 && self.interference.is_empty() && !self.has_again()
    }

    /// Whether some state may be in a window although it was published before.
    fn has_again(&self) -> bool {
        self.tasks.iter().any(|task| task.again > 0)
    }

    /// Whether every window is long enough: quick processor-demand analysis (Zhang and Burns 2009).
    ///
    /// # Errors
    /// Which step fails, and where.
    pub fn admit(&self) -> Result<(), Refusal> {
        self.admit_counting().0
    }

    /// As [`admit`](Self::admit), and how many times it looked at a task: what its time depends on.
    pub fn admit_counting(&self) -> (Result<(), Refusal>, u64) {
        quick::admit(self)
    }

    /// Only whether it is admitted: for searches over many sets.
    pub fn is_admitted(&self) -> bool {
        quick::is_admitted(self)
    }

    /// The same by the paper's three steps as they are written: slow and obvious.
    ///
    /// # Errors
    /// Which step fails, and where.
    pub fn admit_plainly(&self) -> Result<(), Refusal> {
        plain::admit(self)
    }
}

/// Of `tasks`, by deadline, those that are held up longer than each before them, or may be.
fn held_up_most(tasks: &[Task]) -> Vec<Task> {
    let mut most: Vec<Task> = Vec::new();
    for task in tasks.iter().filter(|task| task.blocking.is_some()) {
        // One that has less of its own queued, or not always, is held up by more of others.
        let less = |other: &Task| {
            other.blocking >= task.blocking && other.room >= task.room && other.queued == 0
        };
        if !most.iter().any(less) {
            most.push(*task);
        }
    }
    most
}

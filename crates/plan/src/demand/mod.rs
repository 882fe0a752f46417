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
    /// From a window's length on, the blocking: both ascending.
    blocking: Vec<(u64, u64)>,
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
        let tasks: Vec<Task> = given.iter().map(|&at| tasks[at]).collect();
        let mut blocking: Vec<(u64, u64)> = Vec::new();
        for (from, length) in tasks
            .iter()
            .filter_map(|task| Some((task.deadline, task.blocking?)))
        {
            let so_far = blocking.last().map_or(0, |&(_, length)| length);
            if blocking.is_empty() || length > so_far {
                blocking.push((from, length));
            }
        }
        Self {
            tasks,
            given,
            interference: interference.to_vec(),
            blocking,
        }
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
    pub fn blocking(&self, t: u64) -> u64 {
        let after = self.blocking.partition_point(|&(from, _)| from <= t);
        after.checked_sub(1).map_or(0, |at| self.blocking[at].1)
    }

    /// The largest blocking of any window.
    pub fn most_blocking(&self) -> u64 {
        self.blocking.last().map_or(0, |&(_, length)| length)
    }

    /// The shortest deadline that is asked about; `None`: none is, and every load will do.
    pub fn shortest(&self) -> Option<u64> {
        self.blocking.first().map(|&(from, _)| from)
    }

    /// h(t): what must have been sent so long after all channels have published at once.
    pub fn demand(&self, t: u64) -> u128 {
        let due = self.tasks.iter().take_while(|task| task.deadline <= t);
        let states: u128 = due
            .map(|task| u128::from((t - task.deadline) / task.period + 1) * u128::from(task.cost))
            .sum();
        let others = self.interference.iter();
        let others = others.map(|other| u128::from(t / other.period + 1) * u128::from(other.cost));
        states + others.sum::<u128>()
    }

    /// h(t) + B(t).
    pub fn load(&self, t: u64) -> u128 {
        self.demand(t) + u128::from(self.blocking(t))
    }

    /// The longest window of length at most `t` that ends at a deadline, not shorter than the shortest
    /// deadline that is asked about.
    fn window_before(&self, t: u64) -> Option<u64> {
        let due = self.tasks.iter().take_while(|task| task.deadline <= t);
        let last = due
            .map(|task| t - (t - task.deadline) % task.period)
            .max()?;
        (last >= self.shortest()?).then_some(last)
    }

    /// A length beyond which no window can be the first that is too short; `None` if there is none below
    /// the horizon. The paper's t_max, with interference.
    fn longest_window(&self, utilisation: &Utilisation) -> Option<u64> {
        let longest = self.tasks.last()?.deadline;
        let per_window = |task: &Task| {
            let spare = u128::from(task.period - task.deadline.min(task.period));
            (spare * u128::from(task.cost)).div_ceil(u128::from(task.period))
        };
        let tasks: u128 = self.tasks.iter().map(per_window).sum();
        let others: u128 = self
            .interference
            .iter()
            .map(|other| u128::from(other.cost))
            .sum();
        let fixed = tasks + others + u128::from(self.most_blocking());
        let bound = utilisation.windows_filled_by(fixed)?;
        (bound < HORIZON).then_some(bound.max(longest))
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

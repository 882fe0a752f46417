//! How a program has done on this node: what stops it, and when it is tried again (F-29, F-38).

use bumpless_base::{Duration, Instant, ResumeFrom};

use crate::ProgramFaultKind;
use crate::executor::ProgramStanding;

/// After so many cycles an earlier failure counts no more.
const FORGIVEN_AFTER: u64 = 1000;
/// How long a program stays stopped that is tried again: at first, doubled by each further stop, and at most.
const WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What follows a failed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It is started again, and executes in the next cycle.
    Again,
    /// It is stopped here, and a backup that can is to go on.
    HandOver,
    /// It is stopped here, as it was not long ago.
    Stay,
}

/// Whether it has begun from its initial state since it was stopped for longer than its state could be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Anew {
    #[default]
    No,
    Begun,
    /// And has executed since.
    Executed,
}

/// How the program has done on this node.
#[derive(Debug, Default)]
pub(super) struct ProgramRecord {
    /// The cycle that failed last, and when.
    failed: Option<u64>,
    pub failed_at: Instant,
    /// The cycle that failed last by the program's own doing.
    own: Option<u64>,
    /// The cycle in which it was last stopped here.
    pub stopped: Option<u64>,
    /// When it was stopped, and until when what it goes back to may be gone on from, unless nothing has been published.
    pub since: Instant,
    pub usable_until: Instant,
    /// When it was last stopped, and for how long; `None`: for good.
    stopped_at: Instant,
    pause: Option<Duration>,
    /// It is being tried, and has not executed well since.
    trial: bool,
    /// An operator has ordered that it go on, and it has not been tried since.
    ordered: Option<ResumeFrom>,
    anew: Anew,
    /// What the data plane was told.
    pub standing: ProgramStanding,
}

/// Whether a failure in cycle `at` still counts in `cycle`.
fn counts(at: Option<u64>, cycle: u64) -> bool {
    at.is_some_and(|at| (at..at + FORGIVEN_AFTER).contains(&cycle))
}

impl ProgramRecord {
    /// The execution of `cycle` has failed.
    pub fn failed(&mut self, cycle: u64, kind: ProgramFaultKind, now: Instant) -> Reaction {
        let own = kind.is_the_programs_own();
        let for_good = own && counts(self.own, cycle);
        if own {
            self.own = Some(cycle);
        }
        if !counts(self.stopped, cycle) {
            self.anew = Anew::No;
        }
        let again = !self.is_second(cycle);
        (self.failed, self.failed_at) = (Some(cycle), now);
        match again {
            true => Reaction::Again,
            false => self.stop(cycle, for_good, now),
        }
    }

    /// Whether a failure in `cycle` would be one too many.
    pub fn is_second(&self, cycle: u64) -> bool {
        counts(self.failed, cycle)
    }

    /// It is stopped in `cycle`, or goes on being stopped after it was tried.
    pub fn stop(&mut self, cycle: u64, for_good: bool, now: Instant) -> Reaction {
        let stays = counts(self.stopped, cycle);
        let longer = self.pause.filter(|_| stays);
        let longer = longer.map_or(WAIT, |pause| (pause * 2).min(WAIT_MAX));
        self.pause = (!for_good).then_some(longer);
        (self.stopped, self.stopped_at) = (Some(cycle), now);
        match stays {
            true => Reaction::Stay,
            false => Reaction::HandOver,
        }
    }

    /// For how long it was stopped; `None`: for good.
    pub fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// An operator has ordered that it go on.
    pub fn order(&mut self, from: ResumeFrom) {
        self.ordered = Some(from);
    }

    /// Whether it is to be tried again at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        let due = |pause| now >= self.stopped_at + pause;
        self.ordered.is_some() || self.pause.is_some_and(due)
    }

    /// Whether it may be tried from its initial state, where nobody may go on from the one that it went back to;
    /// `by_itself`: whether it may without an order.
    pub fn may_begin_anew(&self, by_itself: bool) -> bool {
        match self.ordered {
            Some(from) => from == ResumeFrom::StateOrInitial,
            None => by_itself && self.anew != Anew::Executed,
        }
    }

    /// It is tried again.
    pub fn begin_trial(&mut self) {
        self.trial = true;
        self.ordered = None;
    }

    /// Whether it is being tried and has not executed well since.
    pub fn is_trial(&self) -> bool {
        self.trial
    }

    /// It is to be tried from its initial state. What happened before happened before its first cycle.
    pub fn begin_anew(&mut self) {
        for cycle in [&mut self.failed, &mut self.own, &mut self.stopped] {
            *cycle = cycle.map(|_| 0);
        }
        self.anew = Anew::Begun;
    }

    /// It is not tried any more. Returns whether that had been ordered.
    pub fn give_up(&mut self) -> bool {
        self.pause = None;
        self.ordered.take().is_some()
    }

    /// An execution has ended well.
    pub fn executed(&mut self) {
        (self.trial, self.ordered) = (false, None);
        if self.anew == Anew::Begun {
            self.anew = Anew::Executed;
        }
    }

    /// Whether this node is known not to be able to run the program.
    pub fn is_unfit(&self) -> bool {
        self.standing != ProgramStanding::Runs
    }
}

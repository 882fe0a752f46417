//! What field devices accepted, counted: no judgement, but what a test or a user wants to know of a run.

use bumpless_base::Epoch;

/// A stretch of true time, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From here on.
    pub from: u64,
    /// To here.
    pub until: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            from: 0,
            until: u64::MAX,
        }
    }
}

/// What was seen of the outputs of one application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many were accepted.
    pub accepted: u64,
    /// The longest time between two of them, or to the end, nanoseconds.
    pub longest_gap: u64,
    /// The epoch of the last one.
    pub epoch: Epoch,
    last: Option<u64>,
}

/// Counts within a window.
pub struct Outputs {
    window: Window,
    seen: Vec<Seen>,
}

impl Outputs {
    /// Of `applications` within `window`.
    pub fn new(window: Window, applications: usize) -> Self {
        Self {
            window,
            seen: vec![Seen::default(); applications],
        }
    }

    /// An output was accepted.
    pub fn accepted(&mut self, application: usize, epoch: Epoch, at: u64) {
        let seen = &mut self.seen[application];
        if at >= self.window.from && seen.last.is_none_or(|last| last < self.window.until) {
            seen.lasts(self.window, at);
            seen.accepted += u64::from(at < self.window.until);
            seen.epoch = epoch;
        }
        seen.last = Some(at);
    }

    /// An application begins to write outputs, or ceases to: what lies between is no gap.
    pub fn expect(&mut self, application: usize) {
        self.seen[application].last = None;
    }

    /// What was seen until `end`, by application.
    pub fn until(&self, end: u64) -> Vec<Seen> {
        let mut seen = self.seen.clone();
        for seen in &mut seen {
            if seen.last.is_some_and(|last| last < self.window.until) && end >= self.window.from {
                seen.lasts(self.window, end.min(self.window.until));
            }
        }
        seen
    }
}

impl Seen {
    /// There was nothing from the last one until `at`.
    fn lasts(&mut self, window: Window, at: u64) {
        if let Some(last) = self.last {
            let gap = at.saturating_sub(last.max(window.from));
            self.longest_gap = self.longest_gap.max(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_the_longest_gap_count_within_the_window_to_its_end() {
        let seen = |from, until, times: &[u64], end| {
            let mut outputs = Outputs::new(Window { from, until }, 1);
            times
                .iter()
                .for_each(|&at| outputs.accepted(0, Epoch(1), at));
            let seen = outputs.until(end)[0];
            (seen.accepted, seen.longest_gap)
        };
        let times = [10, 20, 50, 60, 65];
        assert_eq!(seen(0, 1_000, &times, 70), (5, 30));
        assert_eq!(seen(0, 1_000, &times, 100), (5, 35));
        assert_eq!(seen(45, 1_000, &times, 70), (3, 10));
        assert_eq!(seen(0, 30, &times, 100), (2, 30), "one that lasts on");
        assert_eq!(seen(52, 55, &times, 100), (0, 8));
        assert_eq!(seen(100, 200, &times, 150), (0, 50));
        assert_eq!(seen(0, 1_000, &[], 100), (0, 0));
    }

    #[test]
    fn what_an_application_does_not_write_while_it_does_not_run_is_no_gap() {
        let mut outputs = Outputs::new(Window::default(), 1);
        outputs.accepted(0, Epoch(1), 10);
        outputs.expect(0);
        outputs.accepted(0, Epoch(1), 90);
        assert_eq!(outputs.until(100)[0].longest_gap, 10);
    }
}

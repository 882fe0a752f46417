//! When states are published.

use bumpless_base::Random;
use bumpless_plan::Scenario;

/// When each channel publishes first, and how often.
#[derive(Clone, Debug)]
pub struct Start {
    /// By channel, nanoseconds from the beginning.
    pub first: Vec<u64>,
    /// When heartbeats begin.
    pub heartbeats: u64,
    /// Longer than the period by up to so many thousandths of it, drawn each time.
    pub late: u64,
    /// Nothing is published after this.
    pub end: u64,
}

impl Start {
    /// Channel by channel at any time within its period.
    pub fn anyhow(scenario: &Scenario, random: &mut Random, late: u64, end: u64) -> Self {
        let periods = scenario
            .channels
            .iter()
            .map(|channel| channel.period.as_nanos());
        Self {
            first: periods.map(|period| random.below(period)).collect(),
            heartbeats: random.below(2_000_000),
            late,
            end,
        }
    }

    /// Everything at once for a window of length `window`, just when what is less urgent has been handed over;
    /// `victim`'s last state within the window has the last deadline in it, so that it comes after all others.
    pub fn at_once(scenario: &Scenario, victim: Option<usize>, window: u64) -> Self {
        let lead = scenario.machine.jitter_ns + 1;
        let period = |at: usize| scenario.channels[at].period.as_nanos();
        let deadline = |at: usize| scenario.channels[at].deadline.as_nanos();
        let all = 0..scenario.channels.len();
        let longest = all.clone().max_by_key(|&at| deadline(at));
        let first = all.map(|at| {
            if deadline(at) > window
                || (victim != Some(at) && victim.is_none() && longest == Some(at))
            {
                0
            } else if victim == Some(at) {
                lead + (window - deadline(at)) % period(at) + 1
            } else {
                lead
            }
        });
        let first: Vec<u64> = first.collect();
        let longest = (0..first.len()).map(period).max().unwrap_or(0);
        Self {
            first,
            heartbeats: lead,
            late: 0,
            end: lead + window + longest,
        }
    }

    /// When a window of length `window` of [`Self::at_once`] ends.
    pub fn last_deadline(&self, scenario: &Scenario, window: u64) -> u64 {
        scenario.machine.jitter_ns + 2 + window
    }

    /// Everything later by so much, but for what never comes.
    pub fn later(&mut self, by: u64) {
        for first in &mut self.first {
            *first = first.saturating_add(by);
        }
        self.heartbeats += by;
        self.end += by;
    }
}

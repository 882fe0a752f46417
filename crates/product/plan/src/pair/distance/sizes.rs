//! The shortest times with which a pair over a distance is a yes.

use super::super::verdict;
use super::{Config, Distance, Duration, distances};
use crate::Machine;
use crate::pair::Verdict;

/// Attempts until times fit. Each makes what is too short a quarter longer, or as long as its refusal asks for.
const ATTEMPTS: usize = 60;
/// Shortest start wait, unless the lease asks for more.
const START_WAIT: Duration = Duration::from_millis(1_000);

/// Times of a pair whose applications have the same period and deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// The lease.
    pub lease: Duration,
    /// The start wait.
    pub start_wait: Duration,
    /// Between two cycles.
    pub period: Duration,
    /// From a state's publication to its acknowledgement.
    pub deadline: Duration,
}

impl Sizes {
    /// From this heartbeat and period on, the shortest ones with which the configuration that `text` writes with them is a
    /// yes, whole milliseconds but for the heartbeat.
    ///
    /// # Errors
    /// What is wrong with the configuration apart from these times, or what they do not mend.
    pub fn fit(
        heartbeat: Duration,
        period: Duration,
        text: impl Fn(&Self) -> String,
    ) -> Result<(Self, Config), String> {
        let mut sizes = Self {
            heartbeat,
            lease: whole(heartbeat * 3),
            start_wait: START_WAIT,
            period: whole(period),
            deadline: whole(period / 2),
        };
        let mut reasons = Vec::new();
        for _ in 0..ATTEMPTS {
            let config = Config::parse(&text(&sizes), "sized").map_err(|problems| {
                let problems = problems.iter().map(ToString::to_string);
                problems.collect::<Vec<_>>().join("\n")
            })?;
            let far = distances(&config);
            reasons = far
                .iter()
                .flat_map(|it| &it.refusals)
                .map(|it| it.text.clone())
                .collect();
            if reasons.is_empty() {
                match verdict(&config, Machine::default()) {
                    Verdict::Yes => return Ok((sizes, config)),
                    Verdict::CannotSay => return Err("a network states no bandwidth".to_owned()),
                    Verdict::No => sizes.wait_longer(),
                }
            }
            far.iter().for_each(|distance| sizes.lengthen(distance));
        }
        Err(match reasons.is_empty() {
            true => "no period is long enough for what the networks carry".to_owned(),
            false => reasons.join("\n"),
        })
    }

    fn wait_longer(&mut self) {
        self.deadline = whole(self.deadline * 5 / 4);
        self.period = self.period.max(self.deadline * 2);
    }

    fn lengthen(&mut self, distance: &Distance) {
        self.lease = self.lease.max(whole(distance.least_lease));
        let drift = distance.timing.clock_drift_ppm;
        self.start_wait = self.start_wait.max(whole(self.lease.stretched(drift) * 2));
        for far in &distance.applications {
            self.deadline = self.deadline.max(whole(far.least.deadline));
            // A timeout is shorter than the period.
            let timeout = whole(far.least.timeout * 5 / 4);
            let least = whole(far.least.period).max(timeout);
            self.period = self.period.max(least).max(self.deadline);
        }
    }
}

/// Rounded up to a millisecond.
fn whole(span: Duration) -> Duration {
    Duration::from_millis(span.as_nanos().div_ceil(1_000_000))
}

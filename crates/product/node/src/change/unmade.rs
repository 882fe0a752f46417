//! Applications that did not take the settings of a change, and when they are asked again.

use bumpless_base::{Duration, Instant};
use bumpless_config::Application;
use bumpless_transfer::ChannelPlace;

/// Until the next attempt at settings that an application did not take.
const RETRY: Duration = Duration::from_secs(1);
/// The longest such time where several change together, each of which stands still for a moment in each attempt.
const RETRY_MAX: Duration = Duration::from_secs(64);

/// Applications that are to go on with other settings and do not yet.
#[derive(Default)]
pub struct Unmade(Vec<One>);

/// Applications that change together, or one, each with its place and settings.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The applications.
    pub all: Vec<(ChannelPlace, Application)>,
    /// How long ago the attempt before was, if there was one.
    waited: Duration,
}

impl Attempt {
    /// The first one.
    pub const fn first(all: Vec<(ChannelPlace, Application)>) -> Self {
        let waited = Duration::ZERO;
        Self { all, waited }
    }

    fn wait(&self) -> Duration {
        match self.all.len() {
            1 => RETRY,
            _ => (self.waited * 2).max(RETRY).min(RETRY_MAX),
        }
    }

    fn remedy(&self) -> String {
        let again = match self.all.len() {
            1 => "it is tried again each second",
            _ => "it is tried again, after a second at first and then less and less often",
        };
        format!(
            "{again}, and if that does not help, restart this node while its partner is primary"
        )
    }
}

struct One {
    attempt: Attempt,
    due: Instant,
    /// What status says of it.
    told: String,
}

impl Unmade {
    /// The application in this place goes on, or is there no more.
    pub fn forget(&mut self, place: ChannelPlace) {
        for one in &mut self.0 {
            one.attempt.all.retain(|it| it.0 != place);
        }
        self.0.retain(|one| !one.attempt.all.is_empty());
    }

    /// The applications of `attempt` have taken their settings, or have not. It is tried again only if it was the `last` attempt that
    /// whoever asked for it makes.
    pub fn conclude(
        &mut self,
        attempt: Attempt,
        tuned: &Result<(), String>,
        last: bool,
        now: Instant,
    ) {
        match tuned {
            // Whatever else they were to take before is of an earlier configuration.
            Ok(()) => attempt.all.iter().for_each(|it| self.forget(it.0)),
            Err(error) if last => self.note(attempt, error, now),
            Err(_) => {}
        }
    }

    /// The applications of `attempt` have not taken their settings, by what `error` says: they are due again some time after `now`.
    fn note(&mut self, mut attempt: Attempt, error: &str, now: Instant) {
        attempt.all.iter().for_each(|it| self.forget(it.0));
        attempt.waited = attempt.wait();
        self.0.push(One {
            due: now + attempt.waited,
            told: format!("{error}; {}", attempt.remedy()),
            attempt,
        });
    }

    /// Those whose time has come first; they are forgotten here.
    pub fn take_due(&mut self, now: Instant) -> Option<Attempt> {
        let at = self.0.iter().position(|it| it.due <= now)?;
        Some(self.0.swap_remove(at).attempt)
    }

    /// What status says of each.
    pub fn told(&self) -> Vec<String> {
        self.0.iter().map(|it| it.told.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE20: &str = include_str!("../../../../../examples/table20.toml");

    fn attempt(places: &[usize]) -> Attempt {
        let config = bumpless_config::Config::parse(TABLE20, "table20").unwrap();
        let settings = &config.applications[0];
        Attempt::first(
            places
                .iter()
                .map(|place| (ChannelPlace(*place), settings.clone()))
                .collect(),
        )
    }

    /// After how many seconds each of `attempts` attempts at what is in `places` follows.
    fn waits(places: &[usize], attempts: usize) -> Vec<u64> {
        let (mut unmade, mut now) = (Unmade::default(), Instant::ZERO);
        let mut attempt = attempt(places);
        let wait = |_| {
            unmade.note(attempt.clone(), "why", now);
            let mut seconds = 0;
            attempt = loop {
                seconds += 1;
                now += RETRY;
                if let Some(due) = unmade.take_due(now) {
                    break due;
                }
            };
            seconds
        };
        (0..attempts).map(wait).collect()
    }

    #[test]
    fn one_is_tried_each_second_and_several_less_and_less_often() {
        assert_eq!(waits(&[3], 4), [1; 4]);
        assert_eq!(waits(&[3, 5], 9), [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }

    /// a backup that has changed before it says so does not go back to what a change before has left undone.
    #[test]
    fn who_has_taken_later_settings_is_not_asked_for_earlier_ones() {
        let mut unmade = Unmade::default();
        let failed = Err("why".to_owned());
        unmade.conclude(attempt(&[3, 5]), &failed, true, Instant::ZERO);
        assert_eq!(unmade.told().len(), 1);
        unmade.conclude(attempt(&[3, 7]), &failed, false, Instant::ZERO);
        assert_eq!(unmade.told().len(), 1, "whoever asked comes back to it");
        unmade.conclude(attempt(&[3, 5]), &Ok(()), false, Instant::ZERO);
        assert!(unmade.told().is_empty());
        assert!(unmade.take_due(Instant::FAR_FUTURE).is_none());
    }

    #[test]
    fn who_has_gone_or_was_changed_since_is_not_asked_again() {
        let mut unmade = Unmade::default();
        unmade.note(attempt(&[3, 5]), "why", Instant::ZERO);
        unmade.forget(ChannelPlace(5));
        let left = unmade.take_due(Instant::ZERO + RETRY).unwrap();
        assert_eq!(
            left.all.iter().map(|it| it.0).collect::<Vec<_>>(),
            [ChannelPlace(3)]
        );
        assert!(unmade.told().is_empty());
    }
}

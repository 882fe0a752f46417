//! Applications that did not take the settings of a change, and when they are asked again.

use bumpless_base::{Duration, Instant};
use bumpless_config::Application;

/// Between two attempts at settings that an application did not take.
const RETRY: Duration = Duration::from_secs(1);

/// Applications that are to go on with other settings and do not yet.
#[derive(Default)]
pub struct Unmade(Vec<One>);

struct One {
    place: usize,
    settings: Box<Application>,
    due: Instant,
    /// What status says of it.
    told: String,
}

impl Unmade {
    /// The application in this place goes on, or is there no more.
    pub fn forget(&mut self, place: usize) {
        self.0.retain(|it| it.place != place);
    }

    /// The application in this place has not taken `settings`, by what `error` says: they are due again a second after `now`.
    pub fn note(
        &mut self,
        (place, settings): (usize, Box<Application>),
        error: &str,
        now: Instant,
    ) {
        self.forget(place);
        self.0.push(One {
            place,
            settings,
            due: now + RETRY,
            told: format!(
                "{error}; it is tried again each second, and if that does not help, restart this node while its partner is primary"
            ),
        });
    }

    /// One whose time has come; it is forgotten here.
    pub fn take_due(&mut self, now: Instant) -> Option<(usize, Box<Application>)> {
        let at = self.0.iter().position(|it| it.due <= now)?;
        let it = self.0.swap_remove(at);
        Some((it.place, it.settings))
    }

    /// What status says of each.
    pub fn told(&self) -> Vec<String> {
        self.0.iter().map(|it| it.told.clone()).collect()
    }
}

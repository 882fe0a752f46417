//! Whether this node can have another configuration, as far as its files and its programs say.

use bumpless_config::{Change, Config};

use super::ChangeThread;
use crate::key_file;
use crate::state_security;

impl ChangeThread {
    /// `next`, which was read from `file`, if this node can have it.
    pub(super) fn fit(&self, next: Config, file: &str) -> Result<Config, String> {
        self.with_keys(next)
            .and_then(|next| self.with_states(next, file))
    }

    /// `next`, if the keys are here with which its states are sealed, and the certificates for its field devices.
    fn with_keys(&self, next: Config) -> Result<Config, String> {
        let problems = state_security::key_problems(&next, &self.tools.keys_folder);
        let field = self.tools.running.field().check(&next);
        field.map_err(|error| error.to_string())?;
        match problems.is_empty() {
            true => Ok(next),
            false => Err(key_file::told(&problems)),
        }
    }

    /// `next`, if other versions of programs take over the states of those that run.
    fn with_states(&self, next: Config, file: &str) -> Result<Config, String> {
        let (config, _, places) = self.changer.in_force();
        // What cannot change at all is told with its reasons later.
        let Ok(change) = Change::between(config, &next, file) else {
            return Ok(next);
        };
        let mut problems = Vec::new();
        for tuned in &change.tuned {
            let settings = &next.applications[tuned.to];
            let place = places.of(&settings.name);
            let judged = place.map_or(Ok(()), |place| self.tools.running.judge(place, settings));
            problems.extend(judged.err());
        }
        match problems.is_empty() {
            true => Ok(next),
            false => Err(problems.join("\n")),
        }
    }
}

/// The configuration that is in `text`.
pub(super) fn read(text: &str, file: &str) -> Result<Config, String> {
    Config::parse(text, file).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

//! Whose state a file holds.

use bumpless_base::Instant;
use bumpless_config as config;
use bumpless_controller::retain::{Record, Table};
use bumpless_controller::state::Envelope;

use super::format::StateFile;
use super::way::StateCopy;

/// What the files of one application say besides its states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the pair's name.
    pub pair: u32,
    /// Hash of what its program is.
    pub program: u64,
    /// Its name.
    pub application: String,
    /// What of its states is retained.
    pub retained: Table,
}

impl Identity {
    /// Of the application with these `settings`, of `pair`, which retains these variables.
    pub fn new(pair: u32, settings: &config::Application, retained: Table) -> Self {
        Self {
            pair,
            program: settings.program(),
            application: settings.name.clone(),
            retained,
        }
    }

    /// What the file of `copy` says, written at `now`, when the computer's clock shows `wall_ns` since 1970; `None`
    /// if it is no state. `record`: memory for what is retained of it.
    pub fn file<'a>(
        &'a self,
        copy: &'a StateCopy,
        (now, wall_ns): (Instant, u64),
        record: &'a mut Vec<u8>,
    ) -> Option<StateFile<'a>> {
        let envelope = Envelope::parse(copy.state()).ok()?;
        record.clear();
        self.retained.cut(envelope.application, record);
        let age = now.since(copy.published_at).as_nanos();
        Some(StateFile {
            pair: self.pair,
            program: self.program,
            application: &self.application,
            progress: envelope.progress,
            published_ns: wall_ns.saturating_sub(age),
            state: copy.state(),
            retained: Record::parse(record).unwrap_or_default(),
        })
    }
}

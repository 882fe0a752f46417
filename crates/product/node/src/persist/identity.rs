//! Whose state a file holds.

use std::sync::{Arc, Mutex, PoisonError};

use bumpless_base::Instant;
use bumpless_config as config;
use bumpless_controller::retain::{Record, Table};
use bumpless_controller::state::Envelope;
use bumpless_controller::successor::Before;

use super::format::StateFile;
use super::way::StateCopy;

/// A version of an application's program, as far as files say it.
#[derive(Clone, Debug)]
pub struct Saved {
    /// What tells its states from those of other versions; `None`: the application has one version alone.
    pub told_by: Option<Before>,
    /// Hash of what the program is.
    pub program: u64,
    /// What of its states is retained.
    pub retained: Table,
}

/// The versions of an application's program whose states may come, the newest first. All copies are of the same ones.
#[derive(Clone, Debug, Default)]
pub struct Versions(Arc<Mutex<Vec<Saved>>>);

impl Versions {
    /// States of the one before may come for as long as nodes run different ones.
    const MOST: usize = 2;

    /// From here on states of `version` may come, too.
    pub fn add(&self, version: Saved) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(0, version);
        all.truncate(Self::MOST);
    }

    /// What a file says of the program that has saved `state`, and what is retained of that in `record`: nothing, if it
    /// is of none of the versions.
    fn of(&self, state: &[u8], record: &mut Vec<u8>) -> u64 {
        record.clear();
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |it: &&Saved| it.told_by.is_none_or(|told| told.has_saved(state));
        match all.iter().find(is_its) {
            Some(version) => {
                version.retained.cut(state, record);
                version.program
            }
            None => all.first().map_or(0, |newest| newest.program),
        }
    }
}

/// What the files of one application say besides its states.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Hash of the pair's name.
    pub pair: u32,
    /// Its name.
    pub application: String,
    /// Its program.
    pub versions: Versions,
}

impl Identity {
    /// Of the application with these `settings`, of `pair`, whose program has these `versions`.
    pub fn new(pair: u32, settings: &config::Application, versions: Versions) -> Self {
        Self {
            pair,
            application: settings.name.clone(),
            versions,
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
        let program = self.versions.of(envelope.application, record);
        let age = now.since(copy.published_at).as_nanos();
        Some(StateFile {
            pair: self.pair,
            program,
            application: &self.application,
            progress: envelope.progress,
            published_ns: wall_ns.saturating_sub(age),
            state: copy.state(),
            retained: Record::parse(record).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use bumpless_controller::retain::Retained;

    use super::*;

    fn version(owner: u8, offset: usize) -> Saved {
        let count = Retained {
            name: "COUNT".into(),
            of: "DINT".into(),
            offset,
            len: 1,
        };
        Saved {
            told_by: Some(Before {
                at: 0,
                owner: [owner; 8],
            }),
            program: owner.into(),
            retained: Table::new(vec![count], 40).expect("a table"),
        }
    }

    /// A state in which each byte says where it is.
    fn state(owner: u8) -> Vec<u8> {
        [vec![owner; 8], (8..40).collect()].concat()
    }

    #[test]
    fn what_is_retained_is_cut_where_the_version_that_saved_the_state_has_it() {
        let versions = Versions::default();
        let elsewhere = versions.clone();
        versions.add(version(1, 10));
        let mut record = Vec::new();
        assert_eq!(elsewhere.of(&state(1), &mut record), 1);
        assert_eq!(record.last(), Some(&10));
        versions.add(version(2, 30));
        for (owner, place) in [(2, 30), (1, 10)] {
            assert_eq!(elsewhere.of(&state(owner), &mut record), u64::from(owner));
            assert_eq!(record.last(), Some(&place));
        }
        versions.add(version(3, 20));
        // Of a version that is gone, or that nobody knows, nothing is cut.
        for owner in [1, 9] {
            assert_eq!(elsewhere.of(&state(owner), &mut record), 3);
            assert!(record.is_empty(), "{record:?}");
        }
    }
}

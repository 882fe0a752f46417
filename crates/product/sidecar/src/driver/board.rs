//! How a driver fares, for status.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use bumpless_base::Instant;

/// How a driver fares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverState {
    /// Its process, if it is ready for orders.
    pub pid: Option<u32>,
    /// What it says that it is.
    pub what: String,
    /// How often it was started.
    pub starts: u64,
    /// How often it failed.
    pub failures: u64,
    /// Why it failed last, and when.
    pub last_failure: Option<(String, Instant)>,
    /// What it tells people.
    pub note: String,
}

/// Where it stands; shared between those who know it and those who show it.
#[derive(Clone, Debug, Default)]
pub struct DriverBoard(Arc<Mutex<DriverState>>);

impl DriverBoard {
    fn state(&self) -> MutexGuard<'_, DriverState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it fares at this moment.
    pub fn look(&self) -> DriverState {
        self.state().clone()
    }

    pub(super) fn starts(&self) {
        let mut state = self.state();
        state.starts += 1;
        state.note.clear();
    }

    pub(super) fn runs(&self, pid: u32, what: &str) {
        let mut state = self.state();
        state.pid = Some(pid);
        state.what = cleaned(what);
    }

    pub(super) fn failed(&self, words: &str, at: Instant) {
        let mut state = self.state();
        state.pid = None;
        state.failures += 1;
        state.note.clear();
        state.last_failure = Some((words.to_owned(), at));
    }

    pub(super) fn ended(&self) {
        self.state().pid = None;
    }

    /// Shows what it tells people, unless somebody looks just now; returns whether it could.
    pub(super) fn try_note(&self, text: &str) -> bool {
        let mut state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        state.note = cleaned(text);
        true
    }
}

/// Most characters of a text of a driver that are shown.
const SHOWN: usize = 500;

/// A text of another process as people may see it.
pub(super) fn cleaned(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(SHOWN).collect()
}

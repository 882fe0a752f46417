//! What programs that register ask the guard for.

use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Held, LOOK, State};
use crate::reception::programs::{Flows, Programs, Refusal, Registered};

/// Waits a moment, for programs if these may register.
pub fn serve(programs: &Mutex<Option<Programs>>, state: &Mutex<State>, is_due: bool) {
    let mut programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(programs) = &mut *programs else {
        return thread::sleep(LOOK);
    };
    let mut admission = Admission(state);
    programs.serve(LOOK, &mut admission);
    if is_due {
        programs.look_after(&mut admission);
    }
}

/// What programs ask for.
struct Admission<'a>(&'a Mutex<State>);

impl Admission<'_> {
    /// Does it, unless nothing is guarded any more.
    fn with<T>(&self, work: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.held.as_mut().map(work)
    }
}

impl Flows for Admission<'_> {
    fn admit(&mut self, wanted: Registered) -> Result<u16, (Refusal, String)> {
        let admitted = self.with(|held| held.roster.admit(&mut held.reception, wanted));
        admitted.unwrap_or_else(|| Err((Refusal::Kernel, "the guard ends".to_owned())))
    }

    fn remove(&mut self, place: u16) {
        self.with(|held| held.roster.remove(&mut held.reception, place));
    }

    fn refused(&mut self, refusal: Refusal, sentence: &str) {
        self.with(|held| held.roster.refused(refusal, sentence));
    }
}

//! Going on with other settings, without losing a cycle or the state.

use super::machine::CycleMachine;
use super::{CycleReport, ExecutorSettings, OutputGate, Replication};
use crate::{Application, LoadError};
use bumpless_base::Counters;

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    /// The application came while its node ran: its first output waits for its state, also where outputs
    /// otherwise do not, since a successor that has nothing of it would begin anew after that output.
    pub fn comes_late(&mut self) {
        self.newcomer = true;
    }

    /// Goes on with `settings`, and with `application`, which takes over the state of the one before;
    /// that comes back. To be called between two cycles. The next cycle begins when it would have begun,
    /// the ones after it in the distance of the period in `settings`.
    ///
    /// # Errors
    /// `application` does not take the state: then everything stays as it is, and it comes back.
    pub fn tune(
        &mut self,
        settings: ExecutorSettings,
        mut application: Box<dyn Application>,
    ) -> Result<Box<dyn Application>, (LoadError, Box<dyn Application>)> {
        if self.progress().is_some() {
            let mut state = vec![0; self.application.state_size_max()];
            let len = self.save_whole(&mut state);
            if let Err(error) = application.load(&state[..len]) {
                return Err((error, application));
            }
        }
        self.settings = settings;
        std::mem::swap(&mut self.application, &mut application);
        self.program_exchanged();
        Ok(application)
    }
}

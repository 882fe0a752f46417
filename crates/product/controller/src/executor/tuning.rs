//! Going on with other settings, without losing a cycle or the state.

use super::machine::CycleMachine;
use super::{CycleReport, ExecutorSettings, OutputGate, Replication};
use crate::state::Envelope;
use crate::{Application, LoadError};
use bumpless_base::{Counters, Instant};

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    /// Marks an application that came while its node ran. Its first output waits until its state is safe, even with a commit
    /// that does not wait. Otherwise a successor without that state would begin anew after the output.
    pub fn comes_late(&mut self) {
        self.newcomer = true;
    }

    /// Puts the newest state that is here into `into`, without what executors add: the application's own, or one of the
    /// partner's that has come further; nothing, if there is none.
    pub fn newest_state(&mut self, into: &mut Vec<u8>) {
        let own = self.progress();
        into.clear();
        self.replication()
            .read_latest(Instant::ZERO, &mut |state, _| {
                if let Ok(envelope) = Envelope::parse(state)
                    && Some(envelope.progress) > own
                {
                    into.extend_from_slice(envelope.application);
                }
            });
        if into.is_empty() && own.is_some() {
            into.resize(self.application.state_size_max(), 0);
            let len = self.save_whole(into);
            into.truncate(len);
        }
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
        match self.hand_state_to(&mut *application) {
            Ok(()) => Ok(self.exchange(settings, application)),
            Err(error) => Err((error, application)),
        }
    }

    /// Has `next` take over the state that is here. Nothing changes here: whether it takes the place of the application,
    /// [`exchange`](Self::exchange) says, before the next cycle.
    ///
    /// # Errors
    /// It does not take the state.
    pub fn hand_state_to(&mut self, next: &mut dyn Application) -> Result<(), LoadError> {
        if self.progress().is_none() {
            return Ok(());
        }
        let mut state = vec![0; self.application.state_size_max()];
        let len = self.save_whole(&mut state);
        next.load(&state[..len])
    }

    /// Goes on as [`tune`](Self::tune) does, with an application that has taken over the state
    /// ([`hand_state_to`](Self::hand_state_to)) since the last cycle.
    pub fn exchange(
        &mut self,
        settings: ExecutorSettings,
        mut application: Box<dyn Application>,
    ) -> Box<dyn Application> {
        self.settings = settings;
        std::mem::swap(&mut self.application, &mut application);
        self.program_exchanged();
        application
    }
}

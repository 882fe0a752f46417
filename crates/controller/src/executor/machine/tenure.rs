//! Acting as primary under an epoch: what it goes on from, and what ends it.

use bumpless_base::fault::{Fault, deliberate};
use bumpless_base::{Counters, Epoch, Instant};

use super::{CycleMachine, Phase};
use crate::LoadError;
use crate::executor::handover::load_if_newer;
use crate::executor::{
    CycleReport, FailCause, HoldCause, Outcome, OutputGate, Replication, Resumed,
};
use crate::state::Progress;

/// In which capacity the machine has last run a cycle.
#[derive(Clone, Debug)]
pub(super) enum Tenure {
    Standby,
    Acting(Epoch),
    Failed(FailCause),
}

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    pub(super) fn begin_as_primary(&mut self, now: Instant) {
        if let Tenure::Failed(cause) = &self.tenure {
            self.phase = Phase::Warming(Some(Outcome::Failed(cause.clone())));
            return;
        }
        let Some(permit) = self.gate.permit().filter(|permit| now < permit.until) else {
            self.tenure = Tenure::Standby;
            return self.finish(Outcome::Held(HoldCause::NoPermit), now);
        };
        self.report.epoch = Some(permit.epoch);
        match self.begin_tenure(permit.epoch, now) {
            Ok(()) => self.phase = Phase::Reading(permit),
            Err(error) => self.fail(FailCause::State(error), now),
        }
    }

    pub(super) fn fail(&mut self, cause: FailCause, now: Instant) {
        self.tenure = Tenure::Failed(cause.clone());
        self.set_fit(false);
        self.finish(Outcome::Failed(cause), now);
    }

    /// On the first cycle under a new epoch: goes on from the newest state there is.
    fn begin_tenure(&mut self, epoch: Epoch, now: Instant) -> Result<(), LoadError> {
        self.uninterrupted &= self.taken_up_at >= self.gate.role_since();
        if matches!(self.tenure, Tenure::Acting(held) if held == epoch) {
            return Ok(());
        }
        self.report.resumed = Some(self.load_newest()?);
        self.tenure = Tenure::Acting(epoch);
        self.inputs_valid = false;
        if !self.uninterrupted {
            self.published = None;
        }
        (self.taken_up_at, self.uninterrupted) = (now, true);
        Ok(())
    }

    fn load_newest(&mut self) -> Result<Resumed, LoadError> {
        // What is older than this node's own state is never gone on from, even where that itself is
        // too old.
        let own = self.progress;
        let (application, outputs) = (&mut self.application, &mut self.outputs);
        let own = own.filter(|_| !deliberate(Fault::OlderStateLoaded));
        let mut loaded = Ok(None);
        self.replication.read_latest(&mut |state, _| {
            loaded = load_if_newer(application.as_mut(), outputs, state, own);
        });
        if let Some(progress) = loaded?.filter(|_| !deliberate(Fault::ColdStartWithState)) {
            self.progress = Some(progress);
            self.newcomer = false;
            let Progress { epoch, cycle } = progress;
            return Ok(Resumed::Loaded { epoch, cycle });
        }
        if let Some(Progress { cycle, .. }) = own.filter(|_| self.may_keep()) {
            return Ok(Resumed::Kept { cycle });
        }
        self.progress = None;
        self.application.reset();
        self.outputs.fill(0.0);
        Ok(Resumed::ColdStart)
    }

    /// Whether this node's own state may be gone on from. One from an earlier term in the role is as
    /// old as any other: the partner may have gone on since, unheard. Like a received one, it counts
    /// if it was fresh when the role was taken, however long this thread takes to see that.
    fn may_keep(&self) -> bool {
        let fresh = self.gate.role_since() < self.replication.own_fresh_until();
        self.uninterrupted
            || deliberate(Fault::OwnStateAlwaysKept)
            || (fresh && !self.gate.began_cold())
    }
}

//! Acting as primary under an epoch: what it goes on from, and what ends it.

use bumpless_base::{Counters, Duration, Epoch, Instant};

use super::{CycleMachine, Phase};
use crate::executor::handover::load_if_newer;
use crate::executor::{
    CommitMode, CycleReport, FailCause, HoldCause, Outcome, OutputGate, Replication, Resumed,
};
use crate::state::{Envelope, Progress, progress_of};
use crate::{FieldSample, LoadError};

/// For so long a new primary tries to convert what the version before has left.
const CONVERSION_PATIENCE: Duration = Duration::from_secs(2);

/// In which capacity the machine has last run a cycle.
#[derive(Clone, Debug)]
pub(super) enum Tenure {
    Standby,
    /// The role began without the certainty that this node has the newest state; the field device's answer to the
    /// first copy-in decides.
    Deciding(Epoch),
    Acting(Epoch),
    Failed(FailCause),
}

/// The last output that a device has accepted, as it tells itself.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    epoch: Epoch,
    /// The cycle from which its writer, or a successor, may go on.
    least_cycle: u64,
}

impl Accepted {
    /// What `sample` tells, if the device has accepted anything; with `async` a backup may be a cycle behind.
    fn told(sample: FieldSample, commit: CommitMode) -> Option<Self> {
        let (epoch, cycle) = sample.epoch_seen.zip(sample.cycle_seen)?;
        let least_cycle = cycle.saturating_sub(u64::from(commit == CommitMode::Async));
        (epoch != Epoch(0)).then_some(Self { epoch, least_cycle })
    }

    /// Whether a state that has come so far includes it.
    fn is_in(self, progress: Progress) -> bool {
        (progress.epoch, progress.cycle) >= (self.epoch, self.least_cycle)
    }
}

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    pub(super) fn begin_as_primary(&mut self, now: Instant) {
        if let Tenure::Failed(cause) = self.tenure.clone() {
            match cause {
                FailCause::Program(fault) if self.is_tried_again(&fault, now) => {}
                FailCause::Program(fault) => return self.begin_stopped(fault, now),
                FailCause::State(LoadError::Conversion { .. }) if self.is_converted_again(now) => {}
                cause => {
                    self.phase = Phase::Warming(Some(Outcome::Failed(cause)));
                    return;
                }
            }
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

    /// Whether a state that could not be converted is tried once more: the process that converts may be about to be there again.
    fn is_converted_again(&mut self, now: Instant) -> bool {
        let since = *self.unconverted_since.get_or_insert(now);
        now.since(since) < CONVERSION_PATIENCE
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
        self.inputs_valid = false;
        self.tenure_since = self.gate.role_since();
        if self.gate.began_cold() && !self.uninterrupted {
            self.tenure = Tenure::Deciding(epoch);
            return Ok(());
        }
        self.take_up(epoch, now, &|_| true)
    }

    /// The first copy-in of a tenure that is to be decided: a state that includes everything that the device has
    /// accepted is the newest, whatever nodes and witnesses have forgotten (F-27).
    pub(super) fn decide_tenure(
        &mut self,
        sample: FieldSample,
        now: Instant,
    ) -> Result<(), LoadError> {
        let Tenure::Deciding(epoch) = self.tenure else {
            return Ok(());
        };
        let accepted = Accepted::told(sample, self.settings.commit);
        self.take_up(epoch, now, &|progress| {
            accepted.is_some_and(|accepted| accepted.is_in(progress))
        })
    }

    /// As backup: whether the device has accepted an output later than the newest state that is here. Then somebody
    /// else has a later one, if he lives, and had written the one that the device shows when it first showed it.
    pub(super) fn compare_with_device(&mut self, sample: FieldSample, now: Instant) {
        if sample != self.shown.0 {
            self.shown = (sample, now);
        }
        let mut newest = self.progress;
        let at = self.gate.role_since().min(now);
        self.replication.peek_latest(at, &mut |front| {
            newest = newest.max(progress_of(front));
        });
        self.partner_came_to(newest);
        let accepted = Accepted::told(sample, self.settings.commit);
        let lacks = |accepted: Accepted| !newest.is_some_and(|newest| accepted.is_in(newest));
        let outdated = accepted.is_some_and(lacks);
        let since = outdated.then_some(self.shown.1);
        self.gate.note_compared(since, self.report.started);
    }

    fn take_up(
        &mut self,
        epoch: Epoch,
        now: Instant,
        includes: &dyn Fn(Progress) -> bool,
    ) -> Result<(), LoadError> {
        let resumed = self.load_newest(self.judged_at(now), includes)?;
        self.outlived = false;
        self.unconverted_since = None;
        self.report.resumed = Some(resumed);
        if let (Some(committed), false) =
            (&mut self.committed, matches!(resumed, Resumed::Kept { .. }))
        {
            committed.take(self.application.as_ref(), &self.outputs);
        }
        self.may_run();
        self.gate.note_compared(None, self.report.started);
        self.begun_with = self.report.resumed;
        self.tenure = Tenure::Acting(epoch);
        if !self.uninterrupted {
            self.published = None;
        }
        (self.taken_up_at, self.uninterrupted) = (now, true);
        Ok(())
    }

    /// When a state must be young enough to be gone on from. What was when the role was taken is what it was taken
    /// with, however long this thread takes to see that. In doubt, it was taken with nothing yet.
    fn judged_at(&self, now: Instant) -> Instant {
        match self.tenure {
            Tenure::Deciding(_) => now,
            _ => self.gate.role_since().min(now),
        }
    }

    /// Goes on from the newest state that is young enough at `at`. `includes`: whether a state that has come so far
    /// includes every output that was written.
    fn load_newest(
        &mut self,
        at: Instant,
        includes: &dyn Fn(Progress) -> bool,
    ) -> Result<Resumed, LoadError> {
        // What is older than this node's own state is never gone on from, even where that itself is
        // too old.
        let own = self.progress;
        let (application, outputs) = (&mut self.application, &mut self.outputs);
        let (mut loaded, mut same) = (Ok(None), false);
        self.replication.read_latest(at, &mut |state, _| {
            let received = Envelope::parse(state).ok().map(|state| state.progress);
            same = own.is_some() && own == received;
            loaded = load_if_newer(application.as_mut(), outputs, state, (own, includes));
        });
        if let Some(progress) = loaded? {
            self.progress = Some(progress);
            self.newcomer = false;
            let Progress { epoch, cycle } = progress;
            return Ok(Resumed::Loaded { epoch, cycle });
        }
        // What was taken up from a received state and not executed yet is as young as that.
        let may_keep = (same || self.may_keep(at)) && !self.outlived;
        let kept = own.filter(|&own| may_keep && includes(own));
        if let Some(Progress { cycle, .. }) = kept {
            return Ok(Resumed::Kept { cycle });
        }
        if let Some(Progress { epoch, cycle }) = self.load_restored(at, own) {
            return Ok(Resumed::Restored { epoch, cycle });
        }
        self.begin_anew(own);
        Ok(Resumed::ColdStart)
    }

    /// Where memory has lost everything, what lies on disk is better than the initial state. One that does not fit
    /// after all is not.
    fn load_restored(&mut self, at: Instant, own: Option<Progress>) -> Option<Progress> {
        if own.is_some() {
            return None;
        }
        let (application, outputs) = (&mut self.application, &mut self.outputs);
        let mut loaded = None;
        self.replication.read_restored(at, &mut |state| {
            let includes = &|_: Progress| true;
            let result = load_if_newer(application.as_mut(), outputs, state, (None, includes));
            loaded = result.ok().flatten();
        });
        self.progress = loaded;
        self.newcomer &= loaded.is_none();
        loaded
    }

    /// Whether this node's own state may be gone on from: like a received one, if it was young enough at `at`.
    fn may_keep(&self, at: Instant) -> bool {
        self.uninterrupted || at < self.replication.own_usable_until()
    }
}

//! The order of the steps by which a node changes its applications, without I/O. Whoever drives it takes
//! each step and says what came of it; a daemon does in a thread, a simulation as events.

mod begin;

use std::collections::VecDeque;

use bumpless_base::Instant;
use bumpless_config::Config;
use bumpless_transfer::{ReceiverFactory, SenderFactory};

use super::job::{Begun, Job, LAPSE, Step};
use super::places::Places;
use super::prepared::{Prepared, Workshop};
use crate::admission::Admission;
use crate::build::Parts;
use crate::data_plane::change::{ChangeAnswer, ChangeBoard, ChangeOrder, ChangeRefused};

/// Changes a node's configuration.
pub struct Changer {
    config: Config,
    admission: Admission,
    places: Places,
    pub(super) workshop: Workshop,
    pub(super) prepared: Option<Prepared>,
    pub(super) jobs: VecDeque<Job>,
    /// The first job's step is being taken.
    busy: bool,
    verdict: Option<Result<(), String>>,
}

impl Changer {
    /// Of a node that starts with `config`.
    pub fn new(
        (config, admission): (&Config, Admission),
        parts: Parts,
        (senders, receivers): (SenderFactory, ReceiverFactory),
    ) -> Self {
        Self {
            config: config.clone(),
            admission,
            places: Places::new(config, &parts),
            workshop: Workshop {
                parts,
                senders,
                receivers,
            },
            prepared: None,
            jobs: VecDeque::new(),
            busy: false,
            verdict: None,
        }
    }

    /// The configuration in force, what the plan says of it, and who has which place.
    pub fn in_force(&self) -> (&Config, &Admission, &Places) {
        (&self.config, &self.admission, &self.places)
    }

    /// The fingerprint of the configuration that is prepared or being put into force.
    pub fn next(&self) -> Option<u64> {
        self.prepared.as_ref().map(|prepared| prepared.fingerprint)
    }

    /// Whether `config` is in force, or prepared and not being withdrawn.
    pub fn has(&self, config: &Config) -> bool {
        let fingerprint = config.fingerprint();
        let withdrawn = matches!(
            self.jobs.front(),
            Some(Job::Withdraw | Job::Forget | Job::NotMade | Job::Pause { .. })
        );
        let prepared = self.next() == Some(fingerprint) && !withdrawn;
        prepared || self.config.fingerprint() == fingerprint
    }

    /// In words, what it is about; `None` if nothing.
    pub fn doing(&self) -> Option<&'static str> {
        Some(match self.jobs.front()? {
            Job::Keep | Job::Prepare { .. } => "being prepared",
            Job::Agree { .. } => "prepared here; waits until the partner has it, too",
            Job::Withdraw | Job::Forget | Job::NotMade | Job::Pause { .. } => "being withdrawn",
            Job::MakeLast | Job::TuneBackups { .. } | Job::Switch => "being made",
            Job::Follow => "made here; waits until the partner has made it, too",
            _ => "made; what has gone is being cleared away",
        })
    }

    /// Prepares the change to the configuration `next`, which was read as `text` from `file`. The verdict follows.
    ///
    /// # Errors
    /// Why this cannot be done.
    pub fn apply(&mut self, next: (Config, &str, &str), now: Instant) -> Result<(), String> {
        self.prepare(next)?;
        self.verdict = None;
        self.jobs.push_back(Job::Keep);
        self.jobs.push_back(Job::Prepare { resumed: false });
        self.jobs.push_back(Job::Agree { since: now });
        Ok(())
    }

    /// The node has started, and `next`, read as text from a file, lay beside its configuration.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn resume(&mut self, next: (Config, &str, &str), now: Instant) -> Result<(), String> {
        self.prepare(next)?;
        self.jobs.push_back(Job::Prepare { resumed: true });
        self.jobs.push_back(Job::Agree { since: now });
        Ok(())
    }

    fn prepare(&mut self, next: (Config, &str, &str)) -> Result<(), String> {
        if let Some(doing) = self.doing() {
            return Err(format!(
                "another change is {doing}; wait for its end, or withdraw it"
            ));
        }
        let in_force = (&self.config, &self.places);
        let prepared = Prepared::new(in_force, next, &self.workshop)?;
        if prepared.fingerprint == self.config.fingerprint() {
            return Err("this configuration is in force already".into());
        }
        self.prepared = Some(prepared);
        Ok(())
    }

    /// Gives up what is prepared. The verdict follows.
    ///
    /// # Errors
    /// Why it cannot be given up.
    pub fn withdraw(&mut self) -> Result<(), String> {
        self.verdict = None;
        match self.jobs.front() {
            Some(Job::Agree { .. }) => self.give_up(),
            Some(_) => return Err("the change is being made".into()),
            None => return Err("no change is prepared".into()),
        }
        Ok(())
    }

    pub(super) fn give_up(&mut self) {
        self.jobs.clear();
        self.jobs.push_back(Job::Withdraw);
        self.jobs.push_back(Job::Forget);
    }

    /// What became of [`apply`](Self::apply) or [`withdraw`](Self::withdraw); told once.
    pub fn take_verdict(&mut self) -> Option<Result<(), String>> {
        self.verdict.take()
    }

    /// When to [`poll`](Self::poll) at the latest, if nothing happens before.
    pub fn wakes_at(&self) -> Instant {
        match self.jobs.front() {
            Some(Job::Agree { since }) => *since + LAPSE,
            Some(
                Job::Pause { until: Some(until) }
                | Job::Rest { until: Some(until) }
                | Job::TuneBackups {
                    not_before: until, ..
                },
            ) => *until,
            _ => Instant::FAR_FUTURE,
        }
    }

    /// The next step. `None`: the last one is still being taken, or there is nothing to do until
    /// something happens.
    pub fn poll(&mut self, board: &ChangeBoard, now: Instant) -> Option<Step> {
        loop {
            if self.busy {
                return None;
            }
            let Some(job) = self.jobs.pop_front() else {
                self.prepared = None;
                return None;
            };
            match self.begin(job, board, now) {
                Begun::Step(step) => return Some(step),
                Begun::Waits(job, step) => {
                    self.jobs.push_front(job);
                    self.busy = step.is_some();
                    return step;
                }
                Begun::Over => {}
            }
        }
    }

    /// The step is taken; goes on with the next job.
    fn go_on(&mut self) -> Option<Job> {
        self.busy = false;
        self.jobs.pop_front()
    }

    /// After [`Step::Keep`].
    pub fn kept(&mut self, result: Result<(), String>) {
        self.go_on();
        if let Err(error) = result {
            self.jobs.clear();
            self.prepared = None;
            self.verdict = Some(Err(error));
        }
    }

    /// After [`Step::MakeLast`].
    pub fn made(&mut self, result: Result<(), String>, now: Instant) {
        self.go_on();
        if let Err(error) = result {
            self.jobs.clear();
            let words = format!("the change cannot be made yet: {error}; it is tried again");
            let again = [
                Job::Tell(words),
                Job::Pause { until: None },
                Job::NotMade,
                Job::Agree { since: now },
            ];
            self.jobs.extend(again);
        }
    }

    /// After [`Step::Stop`].
    pub fn stopped(&mut self) {
        self.go_on();
    }

    /// After [`Step::Tune`] and [`Step::TuneTogether`].
    pub fn tuned(&mut self, result: Result<(), String>, now: Instant) {
        match (self.go_on(), result) {
            (Some(Job::TuneBackups { asked, .. }), Ok(())) => {
                if let Some(prepared) = &mut self.prepared {
                    prepared.changed_together(&asked);
                }
            }
            (Some(Job::TuneBackups { attempts, .. }), Err(_)) if attempts > 1 => {
                self.jobs.push_front(Job::TuneBackups {
                    attempts: attempts - 1,
                    not_before: now + begin::RETRY,
                    asked: Vec::new(),
                });
            }
            (_, Err(error)) => self.jobs.push_back(Job::Tell(error)),
            (_, Ok(())) => {}
        }
    }

    /// After [`Step::Order`]. What the data plane gave back is dropped in [`Step::Free`].
    pub fn answered(&mut self, answer: ChangeAnswer, now: Instant) {
        let job = self.go_on();
        match (job, answer.result) {
            (Some(Job::Prepare { resumed }), Ok(())) => self.ready(resumed),
            (Some(Job::Prepare { resumed }), Err(refused)) => {
                self.jobs.clear();
                self.jobs.push_back(Job::Forget);
                self.refuse(resumed, &refused);
            }
            (Some(Job::Withdraw), Ok(())) => self.verdict = Some(Ok(())),
            (Some(Job::Withdraw), Err(refused)) => {
                self.jobs.clear();
                self.jobs.push_back(Job::Agree { since: now });
                self.verdict = Some(Err(refused.to_string()));
            }
            (Some(Job::Switch), result) => self.switched(result),
            (Some(Job::Clear), _) => self.cleared(),
            _ => {}
        }
        if let ChangeOrder::Switch { arrivals: left }
        | ChangeOrder::Dismiss { leavers: left }
        | ChangeOrder::Clear { leavers: left } = answer.order
        {
            self.jobs.push_front(Job::Free(left));
        }
    }

    fn ready(&mut self, resumed: bool) {
        if !resumed {
            self.verdict = Some(Ok(()));
        }
    }

    fn refuse(&mut self, resumed: bool, refused: &ChangeRefused) {
        if resumed {
            let words = format!("what was prepared before the restart was given up: {refused}");
            self.jobs.push_back(Job::Tell(words));
        } else {
            self.verdict = Some(Err(refused.to_string()));
        }
    }

    fn switched(&mut self, result: Result<(), ChangeRefused>) {
        let Some(prepared) = &mut self.prepared else {
            return;
        };
        self.config = prepared.config.clone();
        self.admission = prepared.admission.clone();
        self.places = prepared.places.clone();
        let words = match result {
            Ok(()) => format!(
                "the configuration {:016x} is in force",
                prepared.fingerprint
            ),
            Err(refused) => format!(
                "the configuration {:016x} is in force, but not all of it runs: {refused}; restart this \
                 node",
                prepared.fingerprint
            ),
        };
        self.jobs.push_front(Job::Tell(words));
    }

    fn cleared(&mut self) {
        if let Some(prepared) = &self.prepared {
            prepared
                .leavers
                .iter()
                .for_each(|&place| self.places.leave(place));
        }
        self.prepared = None;
    }
}

#[cfg(test)]
mod tests;

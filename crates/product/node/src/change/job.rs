//! What is left to do in a change, and the steps that are taken for it.

use bumpless_base::{Duration, Instant};
use bumpless_config as config;

use super::prepared::Newcomer;
use crate::data_plane::change::{ChangeOrder, Occupant};

/// After so long without the partner's being ready, a prepared change is withdrawn.
pub(super) const LAPSE: Duration = Duration::from_secs(60);

/// What is to be done next.
pub enum Step {
    /// Put the text beside the configuration's file, so that a restart finds it; then [`kept`](super::Changer::kept).
    Keep(String),
    /// Have the data plane do this; then [`answered`](super::Changer::answered).
    Order(ChangeOrder),
    /// What lies beside the configuration's file takes its place; then [`made`](super::Changer::made).
    MakeLast,
    /// Remove what lies beside the configuration's file.
    Forget,
    /// End the executor of the application at this place, after its cycle; then [`stopped`](super::Changer::stopped).
    Stop(usize),
    /// Have the executor at this place go on with these settings; then [`tuned`](super::Changer::tuned).
    Tune(usize, Box<config::Application>),
    /// Start an executor.
    Start(Box<Newcomer>),
    /// Drop this.
    Free(Vec<(usize, Occupant)>),
    /// The change has ended, or was given up: tell so.
    Tell(String),
}

/// Something to do.
pub(super) enum Job {
    Keep,
    Prepare { resumed: bool },
    Agree { since: Instant },
    Withdraw,
    Forget,
    NotMade,
    Pause { until: Option<Instant> },
    MakeLast,
    Switch,
    Follow,
    Discount,
    Stop(usize),
    Dismiss,
    Tune(usize),
    Retime(usize),
    Start,
    Rest { until: Option<Instant> },
    Clear,
    Free(Vec<(usize, Occupant)>),
    Tell(String),
}

/// What came of beginning a job.
pub(super) enum Begun {
    /// The step is all that there is to the job.
    Step(Step),
    /// The job ends with the answer to the step, or when something happens.
    Waits(Job, Option<Step>),
    Over,
}

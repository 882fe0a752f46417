//! What is left to do in a change, and the steps that are taken for it.

use bumpless_base::{Duration, Instant};
use bumpless_config as config;
use bumpless_transfer::ChannelPlace;

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
    Stop(ChannelPlace),
    /// Have the executor at this place go on with these settings; then [`tuned`](super::Changer::tuned).
    Tune(ChannelPlace, Box<config::Application>),
    /// Have the executors at these places go on with these settings, all before their next cycle, or none; then
    /// [`tuned`](super::Changer::tuned).
    TuneTogether {
        /// The places and settings.
        all: Vec<(ChannelPlace, config::Application)>,
        /// The change does not come back to it: where they do not, that is a weakness, and is tried again beside it.
        last: bool,
    },
    /// Start an executor.
    Start(Box<Newcomer>),
    /// Drop this.
    Free(Vec<(ChannelPlace, Occupant)>),
    /// The change has ended, or was given up: tell so.
    Tell(String),
}

/// Something to do.
pub(super) enum Job {
    Keep,
    Prepare {
        resumed: bool,
    },
    Agree {
        since: Instant,
    },
    Withdraw,
    Forget,
    NotMade,
    Pause {
        until: Option<Instant>,
    },
    MakeLast,
    Switch,
    Follow,
    Discount,
    Stop(ChannelPlace),
    Dismiss,
    Tune(usize),
    /// Those whose partners are primary change together, or the next attempt at it follows.
    TuneBackups {
        attempts: u32,
        not_before: Instant,
        asked: Vec<usize>,
    },
    /// All others that change together do.
    TuneRest,
    Retime(usize),
    Start,
    Rest {
        until: Option<Instant>,
    },
    Clear,
    Free(Vec<(ChannelPlace, Occupant)>),
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

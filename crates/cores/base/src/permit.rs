//! What those who run an application and those who replicate its state have to tell each other.

use crate::{Epoch, Instant};

/// The right to write outputs. Look at it right before each output: it may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The stamp of the outputs.
    pub epoch: Epoch,
    /// No output may leave at or after this instant of this node's clock.
    pub until: Instant,
}

/// Whether an application's program may run on a node, as far as its failures go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProgramStanding {
    /// It may.
    #[default]
    Runs,
    /// It has failed and is stopped; another node may be able to go on.
    StoppedSeeksRelief,
    /// It has failed and is stopped, and was handed over not long ago: it stays where it is.
    Stopped,
}

/// From what a stopped program is to go on that an operator has ordered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumeFrom {
    /// The state that it went back to when it was stopped, if that is young enough (`hot_restart_ms`).
    State,
    /// That state if it is young enough, else its initial one.
    StateOrInitial,
}

/// What became of a published state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferOutcome {
    /// It, or a later one of the same application, is at the backup.
    Safe,
    /// Its transfer was given up, and no later state is at the backup.
    Failed,
    /// Not known yet. A state that a later one superseded is pending until the later one is settled.
    Pending,
}

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

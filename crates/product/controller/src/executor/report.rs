//! What an executor reports about each cycle.

use super::ports::{Role, TransferOutcome};
use crate::retain::Applied;
use crate::state::Progress;
use crate::{FieldError, LoadError, ProgramFault};
use bumpless_base::{Duration, Epoch, Instant};
use std::sync::Arc;

/// What came of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As primary: the outputs were written and accepted.
    Written,
    /// As primary: nothing was written, for this cause. The devices keep their last outputs.
    Held(HoldCause),
    /// As primary: the program has stopped, and the configured safe values were written and accepted.
    SafeValues(ProgramFault),
    /// As primary: the write failed. After a timeout the device may have taken it.
    WriteFailed(FieldError),
    /// As primary: the application has stopped on this node until it loses and regains the role.
    Failed(FailCause),
    /// As backup: the connections are up.
    Warm,
    /// As backup: a device could not be reached.
    Cold(FieldError),
    /// Neither primary nor backup.
    Idle,
}

/// Why outputs were held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldCause {
    /// No right to write at the start of the cycle.
    NoPermit,
    /// The right to write ran out, or changed its epoch, between copy-in and copy-out.
    PermitLost,
    /// An earlier process of this node has written in this epoch (F-26).
    EpochSpent,
    /// The state that the backup should have is not safe, and it was not certain that the backup
    /// would not take over with an older one.
    BackupBehind,
    /// No valid inputs.
    NoInputs(FieldError),
    /// The program failed in this cycle. It goes on from the state before, in the next one.
    Program(ProgramFault),
}

/// Why an application stopped on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailCause {
    /// A field request failed, and the configuration says to stop then.
    Field(FieldError),
    /// The predecessor's state could not be taken over. Going on without it could write outputs
    /// older than the last ones.
    State(LoadError),
    /// The program has failed again. The state before is kept, and a backup that can run it takes over from that.
    Program(ProgramFault),
}

/// With what a primary began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// With the state of the predecessor's cycle `cycle` in epoch `epoch`.
    Loaded {
        /// Epoch of the predecessor.
        epoch: Epoch,
        /// Last cycle in the state.
        cycle: u64,
    },
    /// With its own state from when it was primary before: nothing newer has come, and it has been
    /// primary ever since or the state has not expired.
    Kept {
        /// Last cycle in the state.
        cycle: u64,
    },
    /// With a state that an earlier process of this node has left on disk, since nothing newer is left anywhere: it
    /// may lack outputs that were written later.
    Restored {
        /// Epoch in which the state's cycle ran.
        epoch: Epoch,
        /// Last cycle in the state.
        cycle: u64,
    },
    /// From the initial state.
    ColdStart,
}

/// Where the values of retained variables came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetainedFrom {
    /// A state that was in this node's memory, its own or one of the partner's.
    Memory,
    /// The record that an earlier process of this node has left on disk.
    Disk,
}

/// What an application that began from its initial state has kept of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedReport {
    /// Where the values came from.
    pub from: RetainedFrom,
    /// How far the state had come of which they are.
    pub progress: Progress,
    /// What became of them.
    pub applied: Applied,
}

/// An execution that failed, or before which something was wrong with the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedExecution {
    /// The number that the cycle would have had.
    pub cycle: u64,
    /// Why.
    pub fault: ProgramFault,
    /// What follows.
    pub then: Then,
}

/// What follows a failed execution (F-29, F-38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The program executes again in the next cycle; where no execution had failed, in this one.
    TriedAtOnce,
    /// It is stopped on this node, and tried again after this time.
    TriedAfter(Duration),
    /// It is stopped on this node, and not tried again by itself.
    Stopped,
    /// It is not tried although that was ordered: what it would go on from is too old, and the order does not permit
    /// the initial state.
    NotResumed,
}

/// One cycle, as it was. Instants are this node's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleReport {
    /// The role in which the cycle ran.
    pub role: Role,
    /// Number of the cycle; as backup, of the last one executed here (0: none).
    pub cycle: u64,
    /// Epoch of the permit; `None` without one.
    pub epoch: Option<Epoch>,
    /// The grid point to which the cycle belongs.
    pub scheduled: Instant,
    /// When it started.
    pub started: Instant,
    /// When copy-in ended.
    pub inputs_at: Option<Instant>,
    /// When the state had been handed to the channel.
    pub published_at: Option<Instant>,
    /// Length of the state in bytes, envelope included.
    pub state_bytes: usize,
    /// What became of the state that copy-out had to wait for (`before_output`: this cycle's;
    /// `async`: the one before, or this one if that failed); `None` if there was no reason to wait.
    pub settled: Option<TransferOutcome>,
    /// Time from publishing the state that was first waited for until copy-out knew it to be safe.
    pub transfer_settled_after: Option<Duration>,
    /// The write was asked for although the state that it had to wait for was not safe then either; whether the
    /// device took the outputs stands in `outcome`. Never while no backup was expected.
    pub backup_behind: bool,
    /// When the device had accepted the outputs.
    pub written_at: Option<Instant>,
    /// When the cycle ended.
    pub ended: Instant,
    /// Grid points passed over because the cycle ran into them.
    pub skipped: u64,
    /// In the first cycle as primary: with what it began.
    pub resumed: Option<Resumed>,
    /// It began from the initial state, but for these retained variables.
    pub retained: Option<RetainedReport>,
    /// Field devices that did not answer the last request of the cycle, a bit for each by position.
    pub silent_devices: u64,
    /// The process of a field driver failed; why.
    pub driver_failure: Option<Arc<str>>,
    /// An execution failed in this cycle, something was wrong with the program before it, or it is not tried again as was
    /// said of it.
    pub program_fault: Option<FailedExecution>,
    /// What came of it.
    pub outcome: Outcome,
}

impl CycleReport {
    pub(super) fn new(role: Role, cycle: u64, scheduled: Instant, started: Instant) -> Self {
        Self {
            role,
            cycle,
            epoch: None,
            scheduled,
            started,
            inputs_at: None,
            published_at: None,
            state_bytes: 0,
            settled: None,
            transfer_settled_after: None,
            backup_behind: false,
            written_at: None,
            ended: started,
            skipped: 0,
            resumed: None,
            retained: None,
            silent_devices: 0,
            driver_failure: None,
            program_fault: None,
            outcome: Outcome::Idle,
        }
    }
}

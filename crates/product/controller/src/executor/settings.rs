//! What can be set about an executor.

use std::sync::Arc;

use bumpless_base::{Duration, NodeId};

/// Which state must be safe on the backup before outputs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// The state of the same cycle: the backup is never behind. Adds the transfer time to the
    /// time from input to output.
    BeforeOutput,
    /// The state of the cycle before: the backup is at most one cycle behind, the least that the
    /// paper requires (section 2.2, figure 5). If that state's transfer failed, this cycle's.
    Async,
}

/// What a failed field request does to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The cycle's outputs are held and the next cycle tries again. If inputs failed, the cycle
    /// executes with the last ones.
    Hold,
    /// The application stops on this node until it loses and regains the primary role.
    Fail,
}

/// What becomes of the outputs of a program that has stopped, since it failed and nobody else could go on.
#[derive(Clone, Debug, PartialEq)]
pub enum OnProgramFault {
    /// The devices keep their last outputs.
    Hold,
    /// These are written in each period instead, one for each output.
    Safe(Arc<[f64]>),
}

/// The settings of one executor.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorSettings {
    /// This node, for the stamp on outputs.
    pub writer: NodeId,
    /// Distance of the grid points.
    pub period: Duration,
    /// How long after publishing its state a cycle waits for the backup at most.
    pub deadline: Duration,
    /// How long after it was published a state may be used; the channel's
    /// ([`Replication::own_usable_until`](super::Replication::own_usable_until)).
    pub expiry: Duration,
    /// How long a field request may take.
    pub field_timeout: Duration,
    /// Which state must be safe before copy-out.
    pub commit: CommitMode,
    /// What a failed field request does.
    pub on_failure: OnFailure,
    /// What holds when the program has stopped.
    pub on_program_fault: OnProgramFault,
    /// Whether an application begins anew by itself whose newest state is too old to go on from (`after_hot_restart`).
    pub begins_anew: bool,
}

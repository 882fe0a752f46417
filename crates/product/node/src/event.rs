//! What happens on a node, as plain values that cross a ring to the log.

use bumpless_base::Role;
use bumpless_base::{Duration, Epoch, LinkId, PeerId};

use crate::membership::ApplicationNumber;
use crate::short_text::ShortText;

/// State of a group's redundancy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Redundancy {
    /// Backup synchronised, every link up.
    Ok,
    /// Backup synchronised, something of the redundancy is missing.
    Degraded,
    /// No backup could take over.
    #[default]
    Lost,
}

impl Redundancy {
    /// The word in logs and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Lost => "lost",
        }
    }
}

/// What became of one cycle's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputOutcome {
    /// The field device took them.
    Written,
    /// Not written: no right, no input, or no commit.
    Held,
    /// The field device refused them because of a higher epoch.
    Rejected,
    /// The write failed or came too late.
    Failed,
    /// The field device took the safe values of a program that has stopped.
    // Last: traces of simulated worlds tell outcomes by their order.
    Safe,
}

impl OutputOutcome {
    /// The word in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Safe => "safe",
            Self::Held => "held",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
        }
    }
}

/// One event. Groups are positions in the configuration.
#[derive(Clone, Copy, Debug, Hash)]
pub enum NodeEvent {
    /// The data plane runs.
    Started {
        /// By which partners and witnesses know this start of the process (R-5, W-21).
        session: u64,
    },
    /// An orderly end.
    Stopping,
    /// A group's role on this node changed.
    Role {
        /// The group.
        group: u16,
        /// The role before.
        from: Role,
        /// The role that it took.
        to: Role,
        /// The epoch of the role.
        epoch: Epoch,
        /// Why, in words.
        cause: ShortText,
    },
    /// A group's redundancy changed.
    Redundancy {
        /// The group.
        group: u16,
        /// What it is worth.
        state: Redundancy,
        /// Why, in words.
        cause: ShortText,
    },
    /// A link to a partner came up or went down.
    Link {
        /// The partner.
        partner: PeerId,
        /// The network.
        link: LinkId,
        /// Whether both hear each other on it.
        up: bool,
    },
    /// The transfer of a state ended: with its transfer cycle and the time it took if it is safe,
    /// with a cause if it was given up.
    Transfer {
        /// The application.
        application: ApplicationNumber,
        /// Transfer cycle and time taken, if it is safe.
        completed: Option<(u32, Duration)>,
        /// Why, in words.
        cause: ShortText,
    },
    /// A state came whole.
    Received {
        /// The application.
        application: ApplicationNumber,
        /// The transfer cycle.
        cycle: u32,
    },
    /// A state that was expected did not come in time.
    Overdue {
        /// The application.
        application: ApplicationNumber,
    },
    /// What became of a cycle's outputs.
    Output {
        /// The application.
        application: ApplicationNumber,
        /// The epoch of the role.
        epoch: Epoch,
        /// The application's cycle.
        cycle: u64,
        /// What became of them.
        outcome: OutputOutcome,
        /// Why, in words.
        cause: ShortText,
    },
    /// Cycles were skipped because one ran over them.
    Overrun {
        /// The application.
        application: ApplicationNumber,
        /// How many.
        skipped: u64,
    },
    /// The primary's lease ran out before it was renewed.
    LeaseLapsed {
        /// The group.
        group: u16,
    },
    /// The data-plane thread woke this much later than it asked for, or took so long for a turn.
    Stall {
        /// How much.
        length: Duration,
    },
    /// Something that concerns the whole node, a group or an application, with its own name and cause.
    Notice {
        /// The name of the event.
        name: &'static str,
        /// The group, if it concerns one.
        group: Option<u16>,
        /// The application, if it concerns one.
        application: Option<ApplicationNumber>,
        /// Why, in words.
        cause: ShortText,
    },
}

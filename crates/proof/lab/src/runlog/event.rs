//! Events of a node, as its log has them.

use serde::Deserialize;

/// One line of a node's event log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Event {
    /// When; zero where the log does not say it.
    #[serde(default)]
    pub time_ns: u64,
    /// Name of the node.
    pub node: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferOutcome {
    /// The backup has it whole.
    Safe,
    /// Given up.
    Failed,
}

/// What became of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputOutcome {
    /// The field device took it.
    Written,
    /// The node kept it back.
    Held,
    /// The field device refused it because of its epoch.
    Rejected,
    /// The field device did not answer as it should.
    Failed,
}

/// How redundant a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedundancyState {
    /// A fault of one part is tolerated.
    Ok,
    /// Still redundant, but something is missing.
    Degraded,
    /// There is no backup that could take over.
    Lost,
}

/// What a node reports. Fields that no promise looks at are not read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The process started.
    Started {},
    /// The process ends in order.
    Stopping {},
    /// The process was killed; the demonstration adds this, a killed process logs nothing.
    Gone {},
    /// The role in a group changed.
    Role {
        /// Role before.
        from: String,
        /// Role after: `starting`, `backup`, `primary` or `stopped`.
        to: String,
        /// Epoch in which it holds.
        #[serde(default)]
        epoch: u64,
        /// Why.
        #[serde(default)]
        cause: String,
    },
    /// Redundancy of a group changed.
    Redundancy {
        /// State after.
        state: RedundancyState,
        /// Why.
        #[serde(default)]
        cause: String,
    },
    /// What the node answered when it was asked for its configuration; the demonstration adds this.
    InForce {
        /// Fingerprint of the configuration in force.
        fingerprint: String,
        /// What a change is about, if one is under way.
        #[serde(default)]
        change: Option<String>,
    },
    /// A link to a partner came up or went down.
    Link {
        /// Name of the partner.
        partner: String,
        /// Name of the network.
        link: String,
        /// Whether it works.
        up: bool,
    },
    /// A state's transfer ended (on the primary).
    Transfer {
        /// Transfer cycle; zero for a failed one, of which the log does not say it.
        #[serde(default)]
        cycle: u64,
        /// How it ended.
        outcome: TransferOutcome,
        /// From publication to acknowledgement, in microseconds; zero for a failed one.
        #[serde(default)]
        took_us: f64,
        /// Why it failed.
        #[serde(default)]
        cause: Option<String>,
    },
    /// What became of a cycle's output.
    Output {
        /// Epoch that it carried.
        #[serde(default)]
        epoch: u64,
        /// Cycle.
        cycle: u64,
        /// What became of it.
        outcome: OutputOutcome,
    },
    /// An execution of the program failed.
    ProgramFault {
        /// Cycle, kind and more of it.
        #[serde(default)]
        cause: String,
    },
    /// Cycles that were not started because the one before ran over them.
    Overrun {
        /// How many.
        #[serde(default)]
        skipped: u64,
    },
    /// The data-plane thread woke too late.
    Stall {
        /// How much, in microseconds.
        length_us: f64,
    },
    /// The primary's lease ran out before it was renewed.
    Lease {},
    /// The log could not keep up: this many events are missing from it.
    EventsLost {
        /// How many.
        count: u64,
    },
    /// Anything else.
    #[serde(other)]
    Other,
}

//! What the driver is told: events, causes, and the bounded queue that holds them.

use crate::id::{GroupId, ReferenceId};
use bumpless_base::{BoundedQueue, Counter, Counters, Epoch, LinkId, PeerId};
use bumpless_wire::Role;
use core::fmt;
use core::hash::{Hash, Hasher};

/// Why a group's role changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleCause {
    /// Both nodes started; this one is preferred, or its state is fresher, and the partner agreed.
    Start,
    /// Nobody answered for the configured time and the reference points granted.
    LoneStart,
    /// The partner was silent and the reference point granted: failover.
    PartnerSilent,
    /// The partner handed over: switchover.
    HandedOver,
    /// This node handed over: switchover.
    HandOver,
    /// The partner is primary.
    PartnerIsPrimary,
    /// A higher epoch was seen, at the partner, a witness or a field device.
    HigherEpoch,
    /// The right to write had lapsed, and what the partner or witness knew meanwhile is lost, so
    /// that nobody can exclude that another one wrote.
    LapsedTooLong,
    /// The partner runs another configuration.
    ConfigurationDiffers,
    /// Another node uses this node's name.
    DuplicateNode,
    /// The range of epochs is used up.
    EpochsExhausted,
    /// The newest state is too old to go on from, and the configuration says that the group stops then.
    StateTooOld,
}

/// Why a node that should be primary is not (yet).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitCause {
    /// The partner is silent, and what this node last received is not fresh any more.
    NotSynced,
    /// This reference point does not answer.
    ReferenceSilent(ReferenceId),
    /// This reference point answers, and leases to somebody else.
    ReferenceRefuses(ReferenceId),
    /// This reference point refuses the lease, though nobody holds it: it is longer than the witness allows,
    /// or that has no room.
    LeaseRefused(ReferenceId),
    /// This reference point grants the lease, and its answers come when that has run out.
    ReferenceLate(ReferenceId),
}

/// Why redundancy is lost or degraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedundancyCause {
    /// The partner is not heard, or does not hear this node, on any link.
    PartnerSilent,
    /// No node is primary yet.
    NoPrimary,
    /// The backup has no fresh state of every application.
    BackupNotSynced,
    /// Some application cannot run on the backup: its field device does not answer it.
    BackupUnfit,
    /// Some application cannot run on this node: its field device does not answer.
    FieldSilent,
    /// The partner is heard, and its answers come too late to count.
    AnswersLate,
    /// The partner runs another configuration.
    ConfigurationDiffers,
    /// Another node uses this node's name.
    DuplicateNode,
    /// A link to the partner is down.
    LinkDown(LinkId),
    /// A link to the partner passes short packets only.
    LinkNarrow(LinkId),
    /// A reference point of the group does not answer this node.
    ReferenceSilent(ReferenceId),
    /// A reference point refuses the primary's lease, though nobody holds it: it is longer than the witness
    /// allows, or that has no room.
    LeaseRefused(ReferenceId),
    /// The backup does not reach the agreed reference point and could not take over.
    BackupWithoutReference,
    /// The primary's right to write has lapsed.
    NoPermit,
}

/// How well a fault would be survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedundancyLevel {
    /// Any single fault of a node, network or reference point is survived.
    Ok,
    /// A failure of the primary is survived, some other fault is not.
    Degraded(RedundancyCause),
    /// A failure of the primary stops the process.
    Lost(RedundancyCause),
}

/// Why a switchover was not started or was abandoned. The roles have not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwitchoverRefused {
    /// This node is not a candidate of such a group.
    UnknownGroup,
    /// This node is neither primary nor backup.
    NoRole,
    /// The partner is silent.
    PartnerSilent,
    /// The backup has no fresh state.
    BackupNotSynced,
    /// An application cannot run on the backup.
    BackupUnfit,
    /// A switchover is in progress already.
    InProgress,
    /// The last state did not become safe at the backup in time.
    TimedOut,
}

impl fmt::Display for SwitchoverRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownGroup => "this node is no candidate of such a group; name a group of it, or ask a candidate",
            Self::NoRole => {
                "this node is neither primary nor backup of the group; wait until it has found its role"
            },
            Self::PartnerSilent => "the partner is silent; start it, or mend the networks to it",
            Self::BackupNotSynced => {
                "the backup has no fresh state of every application; wait until its status says synced"
            },
            Self::BackupUnfit => {
                "an application cannot run on the backup; see the backup's status for which one, and why"
            },
            Self::InProgress => "a switchover is in progress already; wait for its end",
            Self::TimedOut => {
                "the last state did not become safe at the backup in time; mend what fails transfers, try again"
            },
        })
    }
}

impl core::error::Error for SwitchoverRefused {}

/// Which of two configurations that differ is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InForce {
    /// This node's: it has a role, and the partner none.
    Ours,
    /// The partner's, which has a role; this node takes none.
    Theirs,
    /// Neither takes a role while the two differ: none has one, or both have.
    Neither,
}

/// What happened. Collected with [`Redundancy::poll_event`](crate::Redundancy::poll_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A group's role on this node changed.
    RoleChanged {
        /// The group.
        group: GroupId,
        /// The role before.
        from: Role,
        /// The role after.
        to: Role,
        /// The epoch of outputs as primary, else the highest known.
        epoch: Epoch,
        /// Why.
        cause: RoleCause,
    },
    /// The primary goes on in a higher epoch, because the partner had tried to take over.
    EpochRaised {
        /// The group.
        group: GroupId,
        /// The epoch of outputs from here on.
        epoch: Epoch,
    },
    /// The level of redundancy or its cause changed.
    Redundancy {
        /// The group.
        group: GroupId,
        /// How well a fault would be survived.
        level: RedundancyLevel,
    },
    /// The primary's right to write ran out before it was renewed; outputs are held.
    LeaseLapsed {
        /// The group.
        group: GroupId,
    },
    /// The primary's right to write is back, in the same epoch.
    LeaseRegained {
        /// The group.
        group: GroupId,
    },
    /// This node should be primary and cannot.
    CannotTakeOver {
        /// The group.
        group: GroupId,
        /// Why.
        cause: WaitCause,
    },
    /// A switchover was ordered: the primary finishes its cycle, makes its last state safe at the
    /// backup, stops writing, and then says [`hand_over_ready`](crate::Redundancy::hand_over_ready).
    HandOverBegun {
        /// The group.
        group: GroupId,
    },
    /// The switchover was abandoned; this node goes on as primary.
    HandOverAborted {
        /// The group.
        group: GroupId,
        /// Why.
        cause: SwitchoverRefused,
    },
    /// A link to a partner works in both directions.
    LinkUp {
        /// The partner.
        peer: PeerId,
        /// The link.
        link: LinkId,
    },
    /// A link to a partner does not work in both directions any more.
    LinkDown {
        /// The partner.
        peer: PeerId,
        /// The link.
        link: LinkId,
    },
    /// The partner is heard and hears this node on some link.
    PartnerHeard {
        /// The partner.
        peer: PeerId,
    },
    /// A link to a partner passes short packets but none of full length, or it passes both again.
    LinkNarrow {
        /// The partner.
        peer: PeerId,
        /// The link.
        link: LinkId,
        /// Short ones only.
        narrow: bool,
    },
    /// No link to the partner works.
    PartnerSilent {
        /// The partner.
        peer: PeerId,
    },
    /// The session with a partner changed: state transfer with it starts over under this tag.
    SessionChanged {
        /// The partner.
        peer: PeerId,
        /// The tag of state transfer, `None` until both know each other.
        tag: Option<u32>,
    },
    /// The partner runs another configuration.
    ConfigurationDiffers {
        /// The partner.
        peer: PeerId,
        /// Whose is in force: a node without a role yields to one that has one.
        in_force: InForce,
    },
    /// Both nodes are ready for the prepared configuration: put it in force on the disk, then call
    /// [`configuration_switched`](crate::Redundancy::configuration_switched).
    ConfigurationDue,
    /// The partner, which decides, has given up the change that is prepared here, too.
    ChangeWithdrawn,
    /// Another process uses this node's name, as a partner has found out by talking to both; this
    /// one does not write while that lasts.
    DuplicateNode,
    /// Two processes use the partner's name, and answer in turn; neither is believed while that
    /// lasts, and heartbeats tell both of it.
    DuplicatePartner {
        /// The partner.
        peer: PeerId,
    },
    /// A reference point stopped answering this node.
    ReferenceLost {
        /// The group.
        group: GroupId,
        /// The reference point.
        reference: ReferenceId,
    },
    /// A reference point answers this node.
    ReferenceHeard {
        /// The group.
        group: GroupId,
        /// The reference point.
        reference: ReferenceId,
    },
    /// The pair agreed on another reference point.
    ReferenceChanged {
        /// The group.
        group: GroupId,
        /// The agreed reference point.
        reference: ReferenceId,
    },
}

/// Where the parts leave events and figures for the driver.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) events: BoundedQueue<Event>,
    pub(crate) counters: Counters,
}

/// What is counted decides nothing, so it is left out.
impl Hash for Outbox {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            events,
            counters: _,
        } = self;
        events.hash(state);
    }
}

impl Outbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            events: BoundedQueue::new(capacity),
            counters: Counters::default(),
        }
    }
    pub(crate) fn event(&mut self, event: Event) {
        if self.events.push(event).is_err() {
            self.counters.count(Counter::EventsLost);
        }
    }
    pub(crate) const fn count(&mut self, counter: Counter) {
        self.counters.count(counter);
    }
}

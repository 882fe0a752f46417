//! What a node is told at start, checked once.

use crate::id::{GroupId, ReferenceId};
use alloc::vec::Vec;
use bumpless_base::{Duration, LinkSet, MAX_LINKS, NodeId};
use bumpless_wire::MAX_GROUPS;
use core::fmt;

/// Most reference points that the groups of one node can name together.
pub const MAX_REFERENCES: usize = 16;
/// Most partner nodes of one node.
pub const MAX_PARTNERS: usize = 32;

/// Times of the redundancy protocol. Both nodes of a pair and its witnesses must agree on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Interval of heartbeats on each link, and of requests to a witness that are not answered.
    pub heartbeat: Duration,
    /// A link is down after this long without a heartbeat. At least two heartbeats.
    pub peer_timeout: Duration,
    /// For how long a promise or a lease of a witness allows output, counted on the holder's clock
    /// from when it asked. Bounds how long a failover takes; must exceed the round trip.
    pub lease: Duration,
    /// Most that any two clocks of the pair and its witnesses may differ in rate, parts per
    /// million. **Hazard**: if clocks drift more, two controllers may write at once.
    pub drift_ppm: u32,
    /// How long a node that knows nothing waits for its partner before it starts alone. Longer
    /// than a lease, so that whatever an earlier incarnation promised has run out.
    pub start_wait: Duration,
    /// How long a switchover may take to make the last states safe, or stay unanswered, before it
    /// is abandoned. At least the longest transfer of an application's state.
    pub hand_over: Duration,
    /// Interval of heartbeats of full length on each link, which show whether packets as long as those of
    /// states pass; zero: none are sent. Not shorter than the heartbeat's.
    pub full_length: Duration,
}

impl Default for Timing {
    /// Heartbeats each 2 ms, lease 10 ms, 500 ppm, start after 1 s, switchover within 1 s, full length each 100 ms.
    fn default() -> Self {
        let heartbeat = Duration::from_millis(2);
        Self {
            heartbeat,
            peer_timeout: heartbeat * 3,
            lease: Duration::from_millis(10),
            drift_ppm: 500,
            start_wait: Duration::from_secs(1),
            hand_over: Duration::from_secs(1),
            full_length: Duration::from_millis(100),
        }
    }
}

impl Timing {
    /// How long a grantor keeps a promise that its holder counts as one lease.
    pub(crate) const fn promise(&self) -> Duration {
        self.lease.stretched(self.drift_ppm)
    }
    /// Interval of echo requests: switches answer them on a slow path.
    pub(crate) fn ping_interval(&self) -> Duration {
        self.lease / 2
    }
    /// For how long an answered echo request counts.
    pub(crate) fn ping_window(&self) -> Duration {
        self.lease * 2
    }
    /// How much earlier or later than a heartbeat after its last round a backup opens the next when it hears
    /// its primary's.
    pub(crate) fn follow_slack(&self) -> Duration {
        self.heartbeat / 8
    }
    /// Shortest time between two rounds of heartbeats or two requests to one witness.
    pub(crate) fn rate_limit(&self) -> Duration {
        self.heartbeat / 8
    }
}

/// What kind of reference point decides when the nodes cannot hear each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// A witness process that leases the primary role to one node at a time.
    Witness,
    /// An address that answers ICMP echo requests. Weaker: it can answer both nodes at once while
    /// they cannot hear each other, and then both write (arXiv 2403.18917).
    Ping,
}

/// A partner node and the links that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartnerSetup {
    /// The partner's position in the configuration's list of nodes.
    pub node: NodeId,
    /// Links on which both nodes have an address.
    pub links: LinkSet,
}

/// One group of applications that have a primary and a backup in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupSetup {
    /// The group's position in the configuration's list of groups, the same on both nodes.
    pub id: GroupId,
    /// The two candidates, the preferred one first.
    pub candidates: [NodeId; 2],
    /// The group's candidates for the agreed reference point, in order of preference.
    pub references: Vec<ReferenceId>,
    /// Must be set if `references` is empty. **Hazard**: two controllers write as soon as they
    /// cannot hear each other.
    pub without_reference: bool,
    /// For how long after the last output a node may go on from the newest state. Until it has passed, a node that
    /// holds nothing leaves the role to whom a witness knows to have had it.
    pub hot_restart: Duration,
    /// A node whose state would be the newest, but is too old to go on from, stops instead of beginning anew.
    pub stop_when_old: bool,
}

/// Everything that a node must know about its pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    /// Hash of the configuration's name; foreign pairs are not heard.
    pub pair: u32,
    /// Hash of the configuration that both nodes must share.
    pub fingerprint: u64,
    /// This node.
    pub node: NodeId,
    /// Times, the same on both nodes.
    pub timing: Timing,
    /// Partners; a [`PeerId`](bumpless_base::PeerId) is a position in this list.
    pub partners: Vec<PartnerSetup>,
    /// Reference points; a [`ReferenceId`] is a position in this list, the same on both nodes.
    pub references: Vec<ReferenceKind>,
    /// Groups of which this node is a candidate.
    pub groups: Vec<GroupSetup>,
}

/// Why a [`Setup`] or a witness's setup is refused. Nothing was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// A time is zero or contradicts another; says which rule is broken.
    Timing(&'static str),
    /// More of something than there may be.
    TooMany {
        /// Partners, reference points or groups.
        what: &'static str,
        /// How many were given.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// A partner is this node itself, or is listed twice.
    Partner(NodeId),
    /// No link leads to this partner.
    NoLink(NodeId),
    /// A group is listed twice.
    GroupTwice(GroupId),
    /// This node is not one of the group's two candidates, or they are the same node.
    NotCandidate(GroupId),
    /// The other candidate of the group is not in the list of partners.
    UnknownPartner(GroupId),
    /// The group names a reference point that does not exist, or names one twice.
    Reference(GroupId, ReferenceId),
    /// The group has no reference point and does not say that this is intended.
    NoReference(GroupId),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timing(rule) => write!(f, "timing: {rule}"),
            Self::TooMany { what, given, most } => {
                write!(f, "{given} {what} given; use at most {most}")
            }
            Self::Partner(n) => write!(
                f,
                "node {}: partner is this node or listed twice; list each other node once",
                n.0
            ),
            Self::NoLink(n) => write!(f, "partner {}: no common link; give both an address", n.0),
            Self::GroupTwice(g) => write!(
                f,
                "group {}: listed twice; give each group an identity of its own",
                g.0
            ),
            Self::NotCandidate(g) => {
                write!(
                    f,
                    "group {}: needs this node and one other as candidates; name both, or leave the group out here",
                    g.0
                )
            }
            Self::UnknownPartner(g) => write!(
                f,
                "group {}: other candidate is no partner; add it to the partners",
                g.0
            ),
            Self::Reference(g, r) => {
                write!(
                    f,
                    "group {}: reference {} unknown or listed twice; name each once, by its position in the list of references",
                    g.0, r.0
                )
            }
            Self::NoReference(g) => write!(
                f,
                "group {}: no reference point; name one, or set without_reference and accept two writers after a split",
                g.0
            ),
        }
    }
}

impl core::error::Error for SetupError {}

impl Timing {
    /// Checks that the times fit each other.
    ///
    /// # Errors
    /// [`SetupError::Timing`] names the first rule that is broken.
    pub fn check(&self) -> Result<(), SetupError> {
        let rules = [
            (
                self.heartbeat >= Duration::from_micros(100),
                "heartbeat must be at least 100 us",
            ),
            (
                self.peer_timeout >= self.heartbeat * 2,
                "peer_timeout must be two heartbeats or more",
            ),
            (
                self.lease >= self.heartbeat * 2,
                "lease must be two heartbeats or more",
            ),
            (
                self.lease <= Duration::from_secs(60),
                "lease must be at most 60 s",
            ),
            (
                self.drift_ppm <= 100_000,
                "drift must be at most 100,000 ppm",
            ),
            (
                self.start_wait >= self.promise() * 2,
                "start_wait must be two leases or more",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(SetupError::Timing(rule)),
            None => Ok(()),
        }
    }
}

impl Setup {
    /// Checks everything that [`Redundancy::new`](crate::Redundancy::new) relies on.
    ///
    /// # Errors
    /// The first [`SetupError`] found.
    pub fn check(&self) -> Result<(), SetupError> {
        self.timing.check()?;
        let bounds = [
            (self.partners.len(), MAX_PARTNERS, "partners"),
            (self.references.len(), MAX_REFERENCES, "reference points"),
            (self.groups.len(), MAX_GROUPS, "groups"),
        ];
        if let Some(&(given, most, what)) = bounds.iter().find(|(n, most, _)| n > most) {
            return Err(SetupError::TooMany { what, given, most });
        }
        for (i, partner) in self.partners.iter().enumerate() {
            let twice = self.partners[..i].iter().any(|p| p.node == partner.node);
            if partner.node == self.node || twice {
                return Err(SetupError::Partner(partner.node));
            }
            if partner
                .links
                .intersection(LinkSet::first(MAX_LINKS))
                .is_empty()
            {
                return Err(SetupError::NoLink(partner.node));
            }
        }
        (0..self.groups.len()).try_for_each(|i| self.check_group(i))
    }

    fn check_group(&self, i: usize) -> Result<(), SetupError> {
        let group = &self.groups[i];
        if self.groups[..i].iter().any(|g| g.id == group.id) {
            return Err(SetupError::GroupTwice(group.id));
        }
        let other = group
            .other(self.node)
            .ok_or(SetupError::NotCandidate(group.id))?;
        if !self.partners.iter().any(|p| p.node == other) {
            return Err(SetupError::UnknownPartner(group.id));
        }
        for (at, &reference) in group.references.iter().enumerate() {
            let unknown = usize::from(reference.0) >= self.references.len();
            if unknown || group.references[..at].contains(&reference) {
                return Err(SetupError::Reference(group.id, reference));
            }
        }
        if group.references.is_empty() && !group.without_reference {
            return Err(SetupError::NoReference(group.id));
        }
        Ok(())
    }
}

impl GroupSetup {
    /// The candidate that is not `node`; `None` unless `node` is one of two different candidates.
    pub(crate) fn other(&self, node: NodeId) -> Option<NodeId> {
        match self.candidates {
            [a, b] if a == node && b != node => Some(b),
            [a, b] if b == node && a != node => Some(a),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SwitchoverRefused;
    use std::string::{String, ToString};

    fn too_many_references() -> SetupError {
        let setup = Setup {
            pair: 1,
            fingerprint: 1,
            node: NodeId(0),
            timing: Timing {
                heartbeat: Duration::from_millis(1),
                peer_timeout: Duration::from_millis(3),
                lease: Duration::from_millis(10),
                drift_ppm: 500,
                start_wait: Duration::from_secs(1),
                hand_over: Duration::from_secs(1),
                full_length: Duration::from_millis(100),
            },
            partners: Vec::new(),
            references: [ReferenceKind::Witness; MAX_REFERENCES + 1].into(),
            groups: Vec::new(),
        };
        setup.check().unwrap_err()
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        let (node, group) = (NodeId(1), GroupId(2));
        let setups = [
            too_many_references(),
            SetupError::Partner(node),
            SetupError::NoLink(node),
            SetupError::GroupTwice(group),
            SetupError::NotCandidate(group),
            SetupError::UnknownPartner(group),
            SetupError::Reference(group, ReferenceId(3)),
            SetupError::NoReference(group),
        ];
        let switchovers = [
            SwitchoverRefused::UnknownGroup,
            SwitchoverRefused::NoRole,
            SwitchoverRefused::PartnerSilent,
            SwitchoverRefused::BackupNotSynced,
            SwitchoverRefused::BackupUnfit,
            SwitchoverRefused::InProgress,
            SwitchoverRefused::TimedOut,
        ];
        let switchovers = switchovers.iter().map(ToString::to_string);
        let all: Vec<String> = setups
            .iter()
            .map(ToString::to_string)
            .chain(switchovers)
            .collect();
        for text in &all {
            assert!(text.contains("; "), "no remedy: {text}");
        }
        assert_eq!(all[0], "17 reference points given; use at most 16");
    }
}

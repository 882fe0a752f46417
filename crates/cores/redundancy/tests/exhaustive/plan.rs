//! What a world consists of, and how much the adversary may do to it.

use std::hash::{Hash, Hasher};

use bumpless_base::{Duration, LinkSet, NodeId};
use bumpless_redundancy::*;

pub const GROUP: GroupId = GroupId(3);
/// The quantum of time: one heartbeat.
pub const QUANTUM: u64 = 1_000_000;

/// What the adversary pays for. Ends of what lasts (a cut, a pause, a node that is down, a datagram
/// that is held back) come when it likes, and cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Fault {
    /// A datagram is lost.
    Loss,
    /// A datagram is held back for any time, and overtaken.
    Delay,
    /// A copy of a datagram arrives later.
    Copy,
    /// A path carries nothing, in one direction or both.
    Cut,
    /// Nothing gets through any more: on all paths, on all to a node, or on all from it.
    Outage,
    /// A node stands still.
    Pause,
    /// A node's process ends, and is started again later with another session.
    Crash,
    /// A witness ends and is started at once without memory.
    WitnessRestart,
    /// A switchover is ordered.
    Order,
    /// States do not reach the partner.
    Transfer,
    /// A state sent long ago reaches the backup.
    LateState,
    /// A node's state expires.
    Expiry,
}

pub const FAULTS: usize = 12;

/// Which pair.
#[derive(Clone, Debug)]
pub struct Plan {
    pub references: Vec<ReferenceKind>,
    pub links: u8,
    pub timing: Timing,
    /// What each clock shows more after one quantum, in nanoseconds: A, B, reference points.
    pub steps: [u64; 4],
}

impl Plan {
    /// Heartbeat 1, link down after 2, lease 3, start and hand-over within 6 quanta.
    pub fn new(references: &[ReferenceKind], links: u8) -> Self {
        let quanta = |n| Duration::from_nanos(n * QUANTUM);
        Self {
            references: references.to_vec(),
            links,
            timing: Timing {
                heartbeat: quanta(1),
                peer_timeout: quanta(2),
                lease: quanta(3),
                drift_ppm: 0,
                start_wait: quanta(6),
                hand_over: quanta(6),
                // They decide nothing here.
                full_length: Duration::ZERO,
            },
            steps: [QUANTUM; 4],
        }
    }

    /// A lease of 7 quanta: a partner is found silent, and a witness grants, while it still runs.
    #[must_use]
    pub fn with_long_lease(mut self) -> Self {
        self.timing.lease = Duration::from_nanos(7 * QUANTUM);
        self.timing.start_wait = Duration::from_nanos(14 * QUANTUM);
        self
    }

    /// Within how many quanta from the last fault the pair must be redundant again: an offer to a
    /// backup that cannot take it stands for four leases, a start takes its time, and what both say after
    /// that is a round on its way. R-48 allows more.
    pub fn heals_within(&self) -> u8 {
        let longest = self.timing.lease * 4 + self.timing.start_wait + self.timing.heartbeat;
        u8::try_from(longest.as_nanos() / QUANTUM).unwrap_or(u8::MAX)
    }

    /// The age from which an instant gives rise to no deadline ahead: nothing adds more than these
    /// spans to an instant that is kept.
    pub fn old(&self) -> u64 {
        let timing = &self.timing;
        let longest = (timing.peer_timeout + timing.lease)
            .max(self.hot_restart())
            .max(timing.hand_over)
            .max(timing.lease * 2);
        longest.as_nanos() + QUANTUM
    }

    /// Longer than a failover takes (C-23), which a deaf primary and `start_wait` make longest.
    pub fn hot_restart(&self) -> Duration {
        self.timing.start_wait * 2
    }

    /// The same in quanta.
    pub fn hot_restart_quanta(&self) -> u64 {
        self.hot_restart().as_nanos() / QUANTUM
    }

    pub fn setup(&self, node: usize) -> Setup {
        let ids = 0..self.references.len();
        Setup {
            pair: 9,
            fingerprint: 77,
            node: NodeId(node as u8),
            timing: self.timing,
            partners: vec![PartnerSetup {
                node: NodeId(1 - node as u8),
                links: LinkSet::first(self.links.into()),
            }],
            references: self.references.clone(),
            groups: vec![GroupSetup {
                id: GROUP,
                candidates: [NodeId(0), NodeId(1)],
                references: ids.map(|r| ReferenceId(r as u8)).collect(),
                without_reference: self.references.is_empty(),
                hot_restart: self.hot_restart(),
                stop_when_old: false,
            }],
        }
    }

    pub fn witness(&self) -> WitnessSetup {
        WitnessSetup {
            max_lease: self.timing.lease,
            drift_ppm: self.timing.drift_ppm,
            capacity: 1,
        }
    }
}

/// How much the adversary has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of all kinds together.
    pub total: u8,
    pub of: [u8; FAULTS],
}

impl Hash for Budget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.total.hash(state);
        // One by one: a slice comes as bytes, of which eight would be taken for a number of another kind.
        self.of.iter().for_each(|left| left.hash(state));
    }
}

impl Budget {
    pub const NOTHING: Self = Self {
        total: 0,
        of: [0; FAULTS],
    };

    /// At most `total` faults, each of any kind.
    pub fn any(total: u8) -> Self {
        Self {
            total,
            of: [total; FAULTS],
        }
    }

    /// At most `total` faults, of these kinds.
    pub fn only(total: u8, kinds: &[Fault]) -> Self {
        let mut budget = Self {
            total,
            ..Self::NOTHING
        };
        kinds
            .iter()
            .for_each(|&kind| budget.of[kind as usize] = total);
        budget
    }

    pub fn affords(&self, fault: Fault) -> bool {
        self.total > 0 && self.of[fault as usize] > 0
    }

    pub fn pay(&mut self, fault: Fault) {
        self.total -= 1;
        self.of[fault as usize] -= 1;
        // What cannot be spent any more makes no difference.
        self.of
            .iter_mut()
            .for_each(|left| *left = (*left).min(self.total));
    }
}

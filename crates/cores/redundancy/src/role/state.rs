//! The role of a group on this node as a sum: each role owns what has a meaning in it alone. What outlasts a role
//! stands beside it in [`Lasting`].

use crate::event::WaitCause;
use crate::id::{ReferenceId, ReferenceSet};
use crate::setup::MAX_REFERENCES;
use bumpless_base::Role;
use bumpless_base::{Epoch, Instant};

/// The role of a group on this node. Transitions take one and make the next.
#[derive(Clone, Debug, Hash)]
// The role is asked for many times in each turn: its tag is a byte of its own.
#[repr(u8)]
pub(crate) enum RoleState {
    /// It has started, or has just left a role, and has not heard who is primary.
    Starting(Candidacy),
    /// It follows a primary, or would take over from one that is silent.
    Backup(Candidacy),
    Primary(Tenure),
    /// It has no part in the group any more, but lets the partner take the role.
    Stopped {
        /// The next round of heartbeats promises the partner not to take over.
        granting: bool,
    },
}

impl Default for RoleState {
    fn default() -> Self {
        Self::Starting(Candidacy::default())
    }
}

/// What a node becomes that leaves its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retreat {
    Starting,
    Backup,
    Stopped,
}

/// What a node that may become primary is about to do.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Candidacy {
    /// The next round of heartbeats promises the partner not to take over.
    pub(crate) granting: bool,
    /// The attempt to take the role by leases that is under way.
    pub(crate) attempt: Option<Attempt>,
    /// Why this node should take the role and does not.
    pub(crate) waiting: Option<WaitCause>,
    pub(crate) switchover: Option<Switchover>,
}

/// An attempt to become primary without the partner.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Attempt {
    pub(crate) since: Instant,
    /// A lone start: it is made without a claim to the newest state.
    pub(crate) lone: bool,
}

/// A primary role, from its beginning to its end.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Tenure {
    /// The role began without the certainty that this node holds the newest state.
    pub(crate) cold: bool,
    /// The partner's incarnation that was last heard while the right was valid.
    pub(crate) incarnation: u64,
    /// Set while the right has run out and is not back.
    pub(crate) lapse: Option<Lapse>,
    pub(crate) simplex: Simplex,
    /// Since when an ordered switchover waits for the driver to say that the last state is safe.
    pub(crate) draining: Option<Instant>,
}

/// The primary's right has run out.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Lapse {
    /// When this node noticed that its right had run out.
    pub(crate) since: Instant,
    /// When the right ended.
    pub(crate) ended: Instant,
    /// Heartbeats have said LAPSED: the partner may rely on it that none of its earlier promises is used any more.
    pub(crate) said: bool,
    /// The partner's incarnation that was last heard before the right ran out.
    pub(crate) incarnation: u64,
    /// The reference points of which the partner may have needed one to take over since the right ran out. That a
    /// later incarnation of the partner agrees on another one says nothing about them.
    pub(crate) mask: ReferenceSet,
    /// By reference point, the witness's incarnation that had this node's epoch on record before the right ran out;
    /// 0 for none.
    pub(crate) witnesses: [u64; MAX_REFERENCES],
}

impl Lapse {
    /// Whether this incarnation of the witness had our epoch on record before.
    pub(crate) fn is_known(&self, reference: ReferenceId, session: u64) -> bool {
        let before = self.witnesses[usize::from(reference.0) % MAX_REFERENCES];
        before != 0 && before == session
    }
}

/// What outlasts a role.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Lasting {
    /// The epoch on this node's outputs, of this primary role or the last one: no later role of anybody may have it
    /// again.
    pub(crate) stamped: Epoch,
    /// The highest epoch known, except an own candidate that was never used: whoever is primary next goes above it.
    pub(crate) observed: Epoch,
    /// The epoch that this node would use next: modulo 2 its own position, so nobody else uses it. Partner and
    /// witnesses answer a request for it later, perhaps in the next attempt; another epoch for each attempt would
    /// drive epochs up.
    pub(crate) candidate: Option<Epoch>,
    /// The partner has promised not to take over before this instant of this node's clock. It promises that to a
    /// candidate, which begins as primary with it.
    pub(crate) promised_right_until: Instant,
    /// Promises and leases asked for at or before this were renounced: their answers may come in the next role.
    pub(crate) rights_since: Instant,
    /// This node has promised not to take over before this, whatever its role was then.
    pub(crate) promised_until: Instant,
    /// Until then an earlier session of the partner may rely on a promise of this node, and no other gets one.
    pub(crate) grant_from: Instant,
    /// When this node last ceased to be primary; later by as long as it has stood still since without a partner. Its
    /// wait before a lone start counts from then.
    pub(crate) resigned_at: Instant,
    /// Number of the last switchover that this node has asked for: by it the partner tells a new request from a
    /// repeated one.
    pub(crate) requests: u32,
    /// Outputs of the last primary role may have left whose state is not safe at the partner. Heartbeats say so
    /// until this node follows a later primary.
    pub(crate) left_ahead: bool,
}

impl Lasting {
    pub(crate) const NOTHING: Self = Self {
        stamped: Epoch(0),
        observed: Epoch(0),
        candidate: None,
        promised_right_until: Instant::ZERO,
        rights_since: Instant::ZERO,
        promised_until: Instant::ZERO,
        grant_from: Instant::ZERO,
        resigned_at: Instant::ZERO,
        requests: 0,
        left_ahead: false,
    };
}

impl RoleState {
    pub(crate) const fn role(&self) -> Role {
        match self {
            Self::Starting(_) => Role::Starting,
            Self::Backup(_) => Role::Backup,
            Self::Primary(_) => Role::Primary,
            Self::Stopped { .. } => Role::Stopped,
        }
    }

    pub(crate) const fn tenure(&self) -> Option<&Tenure> {
        match self {
            Self::Primary(tenure) => Some(tenure),
            _ => None,
        }
    }

    pub(crate) const fn tenure_mut(&mut self) -> Option<&mut Tenure> {
        match self {
            Self::Primary(tenure) => Some(tenure),
            _ => None,
        }
    }

    /// The primary role, while its right has not run out.
    pub(crate) fn in_force(&self) -> Option<&Tenure> {
        self.tenure().filter(|tenure| tenure.lapse.is_none())
    }

    pub(crate) const fn lapse(&self) -> Option<&Lapse> {
        match self {
            Self::Primary(tenure) => tenure.lapse.as_ref(),
            _ => None,
        }
    }

    pub(crate) const fn candidacy(&self) -> Option<&Candidacy> {
        match self {
            Self::Starting(candidacy) | Self::Backup(candidacy) => Some(candidacy),
            _ => None,
        }
    }

    pub(crate) const fn candidacy_mut(&mut self) -> Option<&mut Candidacy> {
        match self {
            Self::Starting(candidacy) | Self::Backup(candidacy) => Some(candidacy),
            _ => None,
        }
    }

    pub(crate) fn attempt(&self) -> Option<Attempt> {
        self.candidacy()?.attempt
    }

    pub(crate) fn switchover(&self) -> Option<Switchover> {
        self.candidacy()?.switchover
    }

    /// Whether the next round of heartbeats promises the partner not to take over.
    pub(crate) fn is_granting(&self) -> bool {
        match self {
            Self::Stopped { granting } => *granting,
            _ => self.candidacy().is_some_and(|candidacy| candidacy.granting),
        }
    }

    /// Whether the next round is to promise the partner not to take over; without effect on a primary.
    pub(crate) const fn set_granting(&mut self, wanted: bool) {
        match self {
            Self::Starting(candidacy) | Self::Backup(candidacy) => candidacy.granting = wanted,
            Self::Stopped { granting } => *granting = wanted,
            Self::Primary(_) => {}
        }
    }

    /// It has heard a primary.
    pub(crate) fn following(self) -> Self {
        match self {
            Self::Starting(candidacy) => Self::Backup(candidacy),
            other => other,
        }
    }

    /// It leaves its role, and is about to do nothing yet.
    pub(crate) fn resigned(self, to: Retreat) -> Self {
        let waiting = self.candidacy().and_then(|candidacy| candidacy.waiting);
        let candidacy = Candidacy {
            waiting,
            ..Candidacy::default()
        };
        match to {
            Retreat::Stopped => Self::Stopped { granting: false },
            Retreat::Backup => Self::Backup(candidacy),
            Retreat::Starting => Self::Starting(candidacy),
        }
    }
}

/// What a primary says of its partner's state, and who has heard it.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Simplex {
    /// The partner's state may be older than the last output.
    pub(super) ahead: bool,
    /// Since when this node says so without a break; what a witness granted earlier does not count.
    pub(super) since: Instant,
    /// Send time of the first heartbeats that said so.
    pub(super) said_at: Option<Instant>,
    /// The partner has received one of these heartbeats.
    pub(super) heard: bool,
    /// Outputs may have left whose state is not safe at the partner: in this role, or, as far as this node
    /// knows at its beginning, before it.
    pub(super) written: bool,
}

impl Simplex {
    pub(crate) const fn is_ahead(&self) -> bool {
        self.ahead
    }

    /// Outputs may have left whose state is not safe at the partner.
    pub(crate) const fn has_written(&self) -> bool {
        self.written
    }

    /// A primary role begins at `now`: what the partner may hold is not known to be safe there.
    pub(crate) const fn at_beginning(now: Instant) -> Self {
        Self {
            ahead: true,
            since: now,
            said_at: None,
            heard: false,
            written: true,
        }
    }
}

/// What is left to do of a switchover by a node that is not primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Switchover {
    /// This node asks the primary for the role, since then.
    Requested(Instant),
    /// This node was primary and has renounced; until then it offers its successor this epoch.
    Offered(Instant, Epoch),
}

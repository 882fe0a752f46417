//! The role of one group on this node: what it knows, what it promised, what it may do.
//!
//! [`state`] has the roles and what belongs to each; [`decide`] when one ends and the next begins, for a
//! [`primary`] and for a [`secondary`]. [`promises`] gives promises and states them, [`on_heartbeat`] takes what
//! partner and witnesses report. Clauses.

use crate::event::{Event, Outbox, RedundancyLevel, RoleCause};
use crate::id::GroupId;
use crate::role::agreement::Agreement;
use crate::role::newest::Newest;
use crate::role::state::{Lasting, RoleState};
use crate::setup::{GroupSetup, Timing};
use bumpless_base::{Candidate, Counter, Duration, Epoch, Instant, PeerId, Permit};
use bumpless_wire::{GroupEntry, Role};

pub(crate) mod agreement;
mod decide;
pub(crate) mod hand_over;
mod lone_start;
pub(crate) mod newest;
mod on_heartbeat;
mod primary;
mod promises;
pub(crate) mod request;
mod secondary;
pub(crate) mod simplex;
pub(crate) mod state;
pub(crate) mod status;

/// What a group sees of its surroundings at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) timing: &'a Timing,
    pub(crate) now: Instant,
    /// The partner is heard and hears us on some link.
    pub(crate) reachable: bool,
    pub(crate) unreachable_since: Instant,
    /// The partner's adopted session, 0 for none.
    pub(crate) session: u64,
    /// There is proof that two processes use the partner's name.
    pub(crate) duplicate_partner: bool,
    /// Another process uses this node's name.
    pub(crate) duplicate_self: bool,
    /// The partner runs another configuration.
    pub(crate) conflict: Option<Conflict>,
    /// The partner is heard and answers, but too late for any link to be up.
    pub(crate) late: bool,
}

/// A partner with another configuration, as one of its groups sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conflict {
    /// It has a role already, so its configuration is in force there.
    pub(crate) established: bool,
}

/// The partner, as this group knows it from its present session.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Counterpart {
    /// What it said last.
    pub(crate) entry: Option<GroupEntry>,
    /// Send time of this node's latest heartbeat that the partner had received when it said that.
    pub(crate) heard: Instant,
    /// When its session was adopted.
    pub(crate) since: Instant,
    /// Its last request of a switchover that was acted upon.
    pub(crate) served: Option<u32>,
}

/// What was set up for a group.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Terms {
    pub(crate) id: GroupId,
    pub(crate) peer: PeerId,
    /// Which of the two candidates this node is.
    pub(crate) index: Candidate,
    /// For how long after the last output a node may go on from the newest state.
    pub(crate) hot_restart: Duration,
    /// This node stops, rather than begin anew, when its state has become too old to go on from.
    pub(crate) stop_when_old: bool,
    pub(crate) started: Instant,
    /// Before this, an earlier incarnation of this node may still be bound by a promise, or hold
    /// a right; the new one neither promises nor takes.
    pub(crate) quiet_until: Instant,
}

/// The state machine of one group.
#[derive(Clone, Debug, Hash)]
pub(crate) struct RoleMachine {
    pub(crate) terms: Terms,
    pub(crate) state: RoleState,
    pub(crate) lasting: Lasting,
    /// Why the role is what it is; for people.
    pub(crate) cause: Option<RoleCause>,
    pub(crate) newest: Newest,
    pub(crate) counterpart: Counterpart,
    pub(crate) agreement: Agreement,
    pub(crate) level: Option<RedundancyLevel>,
    /// Something changed that the partner should hear at once.
    pub(crate) urgent: bool,
}

impl RoleMachine {
    pub(crate) fn new(
        setup: &GroupSetup,
        peer: PeerId,
        index: Candidate,
        agreement: Agreement,
        (timing, now): (&Timing, Instant),
    ) -> Self {
        Self {
            terms: Terms {
                id: setup.id,
                peer,
                index,
                hot_restart: setup.hot_restart,
                stop_when_old: setup.stop_when_old,
                started: now,
                quiet_until: now + timing.promise(),
            },
            state: RoleState::default(),
            lasting: Lasting::NOTHING,
            cause: None,
            newest: Newest::default(),
            counterpart: Counterpart {
                entry: None,
                heard: Instant::ZERO,
                since: now,
                served: None,
            },
            agreement,
            level: None,
            urgent: false,
        }
    }

    pub(crate) const fn role(&self) -> Role {
        self.state.role()
    }

    /// One role becomes the next, and the partner and the driver are told.
    #[cold]
    fn transit(
        &mut self,
        next: impl FnOnce(RoleState) -> RoleState,
        cause: RoleCause,
        out: &mut Outbox,
    ) {
        let from = self.role();
        self.state = next(core::mem::take(&mut self.state));
        self.cause = Some(cause);
        self.urgent = true;
        let to = self.role();
        if from == to {
            return;
        }
        out.count(Counter::RoleChanges);
        let epoch = match to {
            Role::Primary => self.lasting.stamped,
            _ => self.lasting.observed,
        };
        out.event(Event::RoleChanged {
            group: self.terms.id,
            from,
            to,
            epoch,
            cause,
        });
    }

    /// Whether the present role of primary began without the certainty that this node holds the newest state. Who is
    /// not primary has no such certainty.
    pub(crate) fn is_cold(&self) -> bool {
        self.state.tenure().is_none_or(|tenure| tenure.cold)
    }

    /// Until when this node may write if it is primary: the later end of the partner's promise and of the leases
    /// of its mask.
    pub(crate) fn right_until(&self) -> Instant {
        self.lasting
            .promised_right_until
            .max(self.agreement.lease_until(self.agreement.mask()))
    }

    pub(crate) fn permit(&self) -> Option<Permit> {
        self.state.in_force().map(|_| Permit {
            epoch: self.lasting.stamped,
            until: self.right_until(),
        })
    }

    /// Why this node may not have the primary role at all. Who has a role does not lose it to a partner that
    /// comes with another configuration.
    pub(crate) fn barred(&self, s: &Surroundings<'_>) -> Option<RoleCause> {
        if s.duplicate_self {
            return Some(RoleCause::DuplicateNode);
        }
        let newcomer = self.role() == Role::Starting;
        let yields = |conflict: Conflict| newcomer || conflict.established;
        let conflict = s.conflict.filter(|&conflict| yields(conflict));
        conflict.map(|_| RoleCause::ConfigurationDiffers)
    }

    /// Whether this node is the backup of a primary that it hears: its heartbeats answer the primary's, which
    /// then holds a promise that is as young as can be, and one wake-up serves both.
    pub(crate) fn follows(&self, s: &Surroundings<'_>) -> bool {
        let partner = self.counterpart.entry.filter(|_| s.reachable);
        self.role() == Role::Backup && partner.is_some_and(|partner| partner.role == Role::Primary)
    }

    /// Learns of an epoch that somebody uses or has on record.
    pub(crate) fn observe(&mut self, epoch: Epoch) {
        if Some(epoch) == self.lasting.candidate || epoch <= self.lasting.observed {
            return;
        }
        self.lasting.observed = epoch;
        if self
            .lasting
            .candidate
            .is_some_and(|candidate| candidate <= epoch)
        {
            self.lasting.candidate = None;
        }
    }

    /// A witness that refuses a lease has `epoch` on record. If that is the one that this node would use, or
    /// uses, an earlier process of it has asked for it there: it would be refused for ever.
    fn notice_spent(&mut self, epoch: Epoch) {
        if Some(epoch) == self.lasting.candidate {
            self.lasting.candidate = None;
            self.observe(epoch);
        } else if self.state.in_force().is_some() && epoch == self.lasting.stamped {
            // The next one is the partner's, and whoever knows of it goes above it.
            self.observe(Epoch(epoch.0.saturating_add(1)));
            self.urgent = true;
        }
    }

    /// The epoch to use next; `None` when the range is used up.
    pub(crate) fn next_epoch(&mut self) -> Option<Epoch> {
        self.lasting.candidate = self
            .lasting
            .candidate
            .or(self.lasting.observed.next_for(self.terms.index, 2));
        self.lasting.candidate
    }

    /// The highest epoch that is known or that this node wants on record at the partner. Who asks
    /// the reference points wants it on record there: a primary that hears of it would go above it
    /// each time, and this node above the primary, without end.
    pub(crate) fn stated_epoch(&self) -> Epoch {
        let attempts = self.state.attempt().is_some();
        let candidate = self.lasting.candidate.filter(|_| !attempts);
        self.lasting.observed.max(candidate.unwrap_or_default())
    }
}

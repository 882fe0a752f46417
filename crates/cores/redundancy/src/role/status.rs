//! What the status command shows of a group, and the level of its redundancy.

use crate::event::{Event, Outbox, RedundancyCause, RedundancyLevel, RoleCause, WaitCause};
use crate::id::{GroupId, ReferenceId};
use crate::role::{RoleMachine, Surroundings};
use crate::setup::{ReferenceKind, Timing};
use bumpless_base::{Epoch, Instant, LinkId, LinkSet, PeerId, Permit};
use bumpless_wire::{GroupFlags, Role};

/// A weakness that stays although everything works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weakness {
    /// No reference point: two controllers write as soon as they cannot hear each other.
    NoReference,
    /// The agreed reference point only answers echo requests: it can answer both sides of a split.
    ReferenceIsPing,
    /// A single reference point is configured; after its loss the primary's failure is survived
    /// only once it is back.
    SingleReference,
    /// A single link leads to the partner.
    SingleLink,
}

/// A set of weaknesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weaknesses(u8);

impl Weaknesses {
    const ALL: [Weakness; 4] = [
        Weakness::NoReference,
        Weakness::ReferenceIsPing,
        Weakness::SingleReference,
        Weakness::SingleLink,
    ];
    fn add(&mut self, weakness: Weakness, on: bool) {
        self.0 |= u8::from(on) << weakness as u8;
    }
    /// Whether `weakness` is in the set.
    pub fn contains(self, weakness: Weakness) -> bool {
        self.0 & (1 << weakness as u8) != 0
    }
    /// The members.
    pub fn iter(self) -> impl Iterator<Item = Weakness> {
        Self::ALL.into_iter().filter(move |&w| self.contains(w))
    }
}

/// A group at one moment, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The group.
    pub group: GroupId,
    /// The role on this node.
    pub role: Role,
    /// Why the role changed last; `None` since the start.
    pub cause: Option<RoleCause>,
    /// Stamp of outputs if primary, else the highest epoch known.
    pub epoch: Epoch,
    /// The right to write, if it is valid at the moment.
    pub permit: Option<Permit>,
    /// Why this node should be primary and is not.
    pub waiting: Option<WaitCause>,
    /// Whether this node holds a fresh state of every application.
    pub synced: bool,
    /// The partner.
    pub peer: PeerId,
    /// Whether the partner is heard and hears this node.
    pub partner_reachable: bool,
    /// The partner's role as it said last.
    pub partner_role: Option<Role>,
    /// Whether the partner said that it is synced.
    pub partner_synced: bool,
    /// Links to the partner that work in both directions.
    pub links_up: LinkSet,
    /// The reference point that the pair has agreed on, as far as this node knows.
    pub reference: Option<ReferenceId>,
    /// Its kind.
    pub reference_kind: Option<ReferenceKind>,
    /// As primary: whether the partner has accepted the choice. As backup: `true` once accepted.
    pub reference_settled: bool,
    /// A switchover is in progress: the primary drains.
    pub handing_over: bool,
    /// Weaknesses of the configuration.
    pub weaknesses: Weaknesses,
    /// How well a fault would be survived.
    pub redundancy: RedundancyLevel,
}

/// A group at one moment, for its driver. The fields mean what those of [`Status`] mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The role on this node.
    pub role: Role,
    /// Stamp of outputs if primary, else the highest epoch known.
    pub epoch: Epoch,
    /// Whether this node holds a fresh state of every application.
    pub synced: bool,
    /// Whether the partner is heard and hears this node.
    pub partner_reachable: bool,
    /// The partner's role as it said last.
    pub partner_role: Option<Role>,
    /// The reference point that the pair has agreed on, as far as this node knows.
    pub reference: Option<ReferenceId>,
    /// The right to write outputs, as [`Redundancy::output_permit`](crate::Redundancy::output_permit) tells it.
    pub permit: Option<Permit>,
    /// As [`Redundancy::is_simplex`](crate::Redundancy::is_simplex) tells it.
    pub simplex: bool,
}

/// The links of the partner as the group's level needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinksView {
    pub(crate) all: LinkSet,
    pub(crate) up: LinkSet,
    pub(crate) narrow: LinkSet,
}

impl LinksView {
    fn first_down(self) -> Option<LinkId> {
        self.all.iter().find(|&link| !self.up.contains(link))
    }
}

impl RoleMachine {
    pub(crate) fn standing(&self, partner_reachable: bool, now: Instant) -> Standing {
        Standing {
            role: self.role(),
            epoch: match self.role() {
                Role::Primary => self.lasting.stamped,
                _ => self.lasting.observed,
            },
            synced: self.synced(now),
            partner_reachable,
            partner_role: self.counterpart.entry.map(|partner| partner.role),
            reference: self.agreement.current(),
            permit: self.permit(),
            simplex: self.is_simplex(),
        }
    }

    pub(crate) fn status(&self, peer: PeerId, links: LinksView, s: &Surroundings<'_>) -> Status {
        let primary = self.role() == Role::Primary;
        let (stated, _) = self.agreement.stated(primary);
        let partner = self.counterpart.entry;
        let standing = self.standing(s.reachable, s.now);
        Status {
            group: self.terms.id,
            role: standing.role,
            cause: self.cause,
            epoch: standing.epoch,
            permit: standing.permit.filter(|permit| s.now < permit.until),
            waiting: self
                .state
                .candidacy()
                .and_then(|candidacy| candidacy.waiting),
            synced: standing.synced,
            peer,
            partner_reachable: standing.partner_reachable,
            partner_role: standing.partner_role,
            partner_synced: partner.is_some_and(|p| p.flags.contains(GroupFlags::SYNCED)),
            links_up: links.up,
            reference: standing.reference,
            reference_kind: self
                .agreement
                .current()
                .and_then(|r| self.agreement.kind(r)),
            reference_settled: if primary {
                self.agreement.is_settled()
            } else {
                stated != bumpless_wire::NO_REFERENCE
            },
            handing_over: self.is_draining(),
            weaknesses: self.weaknesses(links),
            redundancy: self.redundancy(links, s),
        }
    }

    fn weaknesses(&self, links: LinksView) -> Weaknesses {
        let members = self.agreement.members();
        let kind = self
            .agreement
            .current()
            .and_then(|r| self.agreement.kind(r));
        let only_pings = members.iter().all(|(_, k)| *k == ReferenceKind::Ping);
        let ping = kind.map_or(only_pings, |k| k == ReferenceKind::Ping);
        let mut set = Weaknesses::default();
        set.add(Weakness::NoReference, members.is_empty());
        set.add(Weakness::ReferenceIsPing, !members.is_empty() && ping);
        set.add(Weakness::SingleReference, members.len() == 1);
        set.add(Weakness::SingleLink, links.all.len() == 1);
        set
    }

    pub(crate) fn redundancy(&self, links: LinksView, s: &Surroundings<'_>) -> RedundancyLevel {
        if let Some(cause) = self.loss(s) {
            return RedundancyLevel::Lost(cause);
        }
        let partner_reaches = self.role() != Role::Primary
            || self
                .counterpart
                .entry
                .is_some_and(|p| p.flags.contains(GroupFlags::ELIGIBLE));
        let silent = self.silent_reference(s.timing, s.now);
        if !self.newest.holding.fit {
            RedundancyLevel::Degraded(RedundancyCause::FieldSilent)
        } else if let Some(link) = links.first_down() {
            RedundancyLevel::Degraded(RedundancyCause::LinkDown(link))
        } else if let Some(link) = links.narrow.iter().next() {
            RedundancyLevel::Degraded(RedundancyCause::LinkNarrow(link))
        } else if let Some(reference) = silent {
            RedundancyLevel::Degraded(RedundancyCause::ReferenceSilent(reference))
        } else if let Some(reference) = self.refusing_reference() {
            RedundancyLevel::Degraded(RedundancyCause::LeaseRefused(reference))
        } else if !partner_reaches {
            RedundancyLevel::Degraded(RedundancyCause::BackupWithoutReference)
        } else {
            RedundancyLevel::Ok
        }
    }

    fn loss(&self, s: &Surroundings<'_>) -> Option<RedundancyCause> {
        if s.duplicate_self {
            return Some(RedundancyCause::DuplicateNode);
        }
        if s.conflict.is_some() {
            return Some(RedundancyCause::ConfigurationDiffers);
        }
        let Some(partner) = self.counterpart.entry.filter(|_| s.reachable) else {
            return Some(match s.late {
                true => RedundancyCause::AnswersLate,
                false => RedundancyCause::PartnerSilent,
            });
        };
        let backup_unfit = match self.role() {
            Role::Primary => partner.flags.contains(GroupFlags::UNFIT),
            _ => !self.newest.holding.fit,
        };
        let backup_synced = match (self.role(), partner.role) {
            (Role::Primary, Role::Backup) => partner.flags.contains(GroupFlags::SYNCED),
            (Role::Backup, Role::Primary) => self.synced(s.now),
            (Role::Primary, _) | (_, Role::Primary) => false,
            _ => return Some(RedundancyCause::NoPrimary),
        };
        if self.state.lapse().is_some() {
            return Some(RedundancyCause::NoPermit);
        }
        if backup_unfit {
            return Some(match self.newest.holding.fit {
                true => RedundancyCause::BackupUnfit,
                false => RedundancyCause::FieldSilent,
            });
        }
        if !backup_synced {
            return Some(RedundancyCause::BackupNotSynced);
        }
        // The backup would be refused, too.
        let agreed = self.agreement.current();
        let refuses = |r: &ReferenceId| self.is_refused_by(*r);
        agreed.filter(refuses).map(RedundancyCause::LeaseRefused)
    }

    fn silent_reference(&self, timing: &Timing, now: Instant) -> Option<ReferenceId> {
        let mut members = self.agreement.members().iter().map(|(r, _)| *r);
        members.find(|&r| !self.agreement.answers(r, timing, now))
    }

    fn is_refused_by(&self, reference: ReferenceId) -> bool {
        self.role() == Role::Primary && self.agreement.lease(reference).refused
    }

    fn refusing_reference(&self) -> Option<ReferenceId> {
        let mut members = self.agreement.members().iter().map(|(r, _)| *r);
        members.find(|&r| self.is_refused_by(r))
    }

    /// Tells the driver of reference points that fell silent and of another level.
    pub(crate) fn watch(&mut self, links: LinksView, s: &Surroundings<'_>, out: &mut Outbox) {
        let group = self.terms.id;
        for at in 0..self.agreement.members().len() {
            let reference = self.agreement.members()[at].0;
            let silent = !self.agreement.answers(reference, s.timing, s.now);
            let lease = self.agreement.lease_mut(reference);
            if silent && lease.heard {
                lease.heard = false;
                out.event(Event::ReferenceLost { group, reference });
            }
        }
        let level = self.redundancy(links, s);
        if self.level.replace(level) != Some(level) {
            out.event(Event::Redundancy { group, level });
        }
    }
}

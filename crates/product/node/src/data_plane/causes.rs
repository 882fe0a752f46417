//! Causes in words, with their remedies.

use bumpless_base::{LinkId, PeerId, ProgramStanding};
use bumpless_redundancy::{GroupId, RedundancyCause, ReferenceId, RoleCause, WaitCause};
use bumpless_transfer::FailureCause;

use super::DataPlane;
use super::drivers::Drivers;
use super::protection::Mismatch;
use crate::short_text::ShortText;

/// What a link that passes short packets only needs.
pub(super) const NARROW: &str = "mend its MTU, or lower mtu";

impl<D: Drivers> DataPlane<D> {
    pub(super) fn link_name(&self, link: LinkId) -> &str {
        let name = self.titles.links.get(usize::from(link.0));
        name.map_or("?", String::as_str)
    }

    pub(super) fn reference_name(&self, reference: ReferenceId) -> &str {
        self.titles
            .references
            .get(usize::from(reference.0))
            .map_or("?", String::as_str)
    }

    fn refused_lease(&self, reference: ReferenceId) -> ShortText {
        ShortText::of(format_args!(
            "reference point {} refuses the lease: longer than its --longest-lease-ms, or no room",
            self.reference_name(reference)
        ))
    }

    /// The first field device of the group that does not answer this node.
    fn silent_field(&self, group: GroupId) -> ShortText {
        let of_group = |at| self.groups.get(at).is_some_and(|g| g.id == group);
        let mut channels = self.channels.iter().flatten();
        let silent = channels.find(|c| of_group(c.membership.group) && !c.mailbox.status().fit);
        let stopped = silent.filter(|c| c.mailbox.status().program != ProgramStanding::Runs);
        if let Some(note) = stopped.and_then(|c| c.board.program(None)) {
            return ShortText::of(format_args!(
                "a program has failed in cycle {}: {}",
                note.cycle,
                note.cause.as_str()
            ));
        }
        let name = silent.and_then(|c| self.titles.fields.get(c.application));
        let name = name.map_or("a field device", String::as_str);
        ShortText::of(format_args!("{name} does not answer"))
    }

    /// A network on which a partner answers too late, and what that exceeds.
    fn late_answers(&self) -> ShortText {
        let redundancy = &self.cores.redundancy;
        let mut peers = (0..self.titles.partners.len() as u8).map(PeerId);
        let lease = redundancy.timing().lease.as_millis_f64();
        match peers.find_map(|peer| redundancy.late_link(peer)) {
            Some((link, after)) => ShortText::of(format_args!(
                "the partner answers too late, after {:.1} ms on network {}: lease_ms is {lease}",
                after.as_millis_f64(),
                self.link_name(link)
            )),
            None => ShortText::of("the partner answers too late"),
        }
    }

    /// Why nothing is heard of the partner of `group`.
    fn silence(&self, group: GroupId) -> ShortText {
        let mut links = (0..self.ports.len() as u8).map(LinkId);
        match links.find_map(|link| self.mismatch(group, link)) {
            Some(mismatch) => ShortText::of(format_args!("the partner is not heard: {mismatch}")),
            None => ShortText::of("the partner is silent on every network"),
        }
    }

    fn link_down(&self, group: GroupId, link: LinkId) -> ShortText {
        let name = self.link_name(link);
        match self.mismatch(group, link) {
            Some(mismatch) => ShortText::of(format_args!("network {name}: {mismatch}")),
            None => ShortText::of(format_args!("network {name} to the partner is down")),
        }
    }

    /// How what came last on `link` from the partner of `group` differs from what this node can open.
    fn mismatch(&self, group: GroupId, link: LinkId) -> Option<Mismatch> {
        let group = self.groups.iter().find(|it| it.id == group)?;
        let port = self.ports.get(usize::from(link.0))?.as_ref()?;
        port.protection().mismatch(group.peer)
    }

    pub(super) fn wait_cause(&self, cause: WaitCause) -> ShortText {
        match cause {
            WaitCause::NotSynced => {
                ShortText::of("no fresh state of every application was received")
            }
            WaitCause::ReferenceSilent(reference) => ShortText::of(format_args!(
                "reference point {} does not answer",
                self.reference_name(reference)
            )),
            WaitCause::ReferenceRefuses(reference) => ShortText::of(format_args!(
                "reference point {} has leased the role to the partner",
                self.reference_name(reference)
            )),
            WaitCause::LeaseRefused(reference) => self.refused_lease(reference),
            WaitCause::ReferenceLate(reference) => ShortText::of(format_args!(
                "reference point {} answers when the lease that it grants is over; lease_ms must exceed the round trip",
                self.reference_name(reference)
            )),
        }
    }

    pub(super) fn redundancy_cause(&self, group: GroupId, cause: RedundancyCause) -> ShortText {
        match cause {
            RedundancyCause::PartnerSilent => self.silence(group),
            RedundancyCause::NoPrimary => ShortText::of("no node is primary"),
            RedundancyCause::BackupNotSynced => {
                ShortText::of("the backup has no fresh state of every application")
            }
            RedundancyCause::BackupUnfit if self.titles.programs => ShortText::of(
                "an application cannot run on the backup: a field device does not answer it, or its program has failed",
            ),
            RedundancyCause::BackupUnfit => {
                ShortText::of("a field device does not answer the backup")
            }
            RedundancyCause::FieldSilent => self.silent_field(group),
            RedundancyCause::AnswersLate => self.late_answers(),
            RedundancyCause::ConfigurationDiffers => {
                ShortText::of("the partner runs another configuration")
            }
            RedundancyCause::DuplicateNode => {
                ShortText::of("another process uses this node's name")
            }
            RedundancyCause::LinkDown(link) => self.link_down(group, link),
            RedundancyCause::LinkNarrow(link) => ShortText::of(format_args!(
                "network {} passes short packets only: {NARROW}",
                self.link_name(link)
            )),
            RedundancyCause::ReferenceSilent(reference) => ShortText::of(format_args!(
                "reference point {} does not answer",
                self.reference_name(reference)
            )),
            RedundancyCause::LeaseRefused(reference) => self.refused_lease(reference),
            RedundancyCause::BackupWithoutReference => {
                ShortText::of("the backup does not reach the agreed reference point")
            }
            RedundancyCause::NoPermit => ShortText::of("the primary's lease has run out"),
        }
    }
}

pub(super) const fn failure(cause: FailureCause) -> &'static str {
    match cause {
        FailureCause::DeadlineUnreachable => "the deadline could not be met",
        FailureCause::Expired => "the state expired",
        FailureCause::SessionEnded => "no session with the partner",
        FailureCause::Withdrawn => "the channel was withdrawn",
    }
}

pub(super) const fn role_cause(cause: RoleCause) -> &'static str {
    match cause {
        RoleCause::Start => "both nodes started and agreed",
        RoleCause::LoneStart => {
            "nobody answered after the start, and every reference point granted"
        }
        RoleCause::PartnerSilent => "the partner was silent on every network",
        RoleCause::HandedOver => "the partner handed over",
        RoleCause::HandOver => "handed over to the partner",
        RoleCause::PartnerIsPrimary => "the partner is primary",
        RoleCause::HigherEpoch => "a higher epoch was seen",
        RoleCause::LapsedTooLong => "the lease had lapsed and the partner may have written",
        RoleCause::ConfigurationDiffers => "the partner runs another configuration",
        RoleCause::DuplicateNode => "another process uses this node's name",
        RoleCause::EpochsExhausted => "the range of epochs is used up",
        RoleCause::StateTooOld => {
            "the newest state is older than hot_restart_ms; start a node again to begin anew"
        }
    }
}

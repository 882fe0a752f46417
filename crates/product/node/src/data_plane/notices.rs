//! What the cores report, passed on: to the executors' permits and mailboxes, to the log, to status.

use bumpless_base::Role;
use bumpless_base::{Epoch, Instant, LinkId, PeerId};
use bumpless_redundancy::{Event, GroupId, InForce, RedundancyLevel, ReferenceId, RoleCause};
use bumpless_transfer::{FailureCause, ReceiverEvent, SenderEvent};

use super::DataPlane;
use super::causes::{NARROW, failure, role_cause};
use super::drivers::Drivers;
use crate::event::{NodeEvent, Redundancy};
use crate::membership::Membership;
use crate::short_text::ShortText;

impl<D: Drivers> DataPlane<D> {
    /// Drains the cores' events. Sessions come first: a change of session settles open transfers.
    /// Mostly there are none.
    pub(super) fn drain_events(&mut self, now: Instant) {
        while let Some(event) = self.cores.redundancy.poll_event() {
            self.redundancy_event(&event, now);
        }
        while let Some(event) = self.cores.sender.poll_event() {
            self.sender_event(&event, now);
        }
        while let Some(event) = self.cores.receiver.poll_event() {
            self.receiver_event(&event, now);
        }
    }

    fn record(&mut self, now: Instant, event: NodeEvent) {
        self.surroundings.sink.record(now, event);
    }

    fn notice(
        &mut self,
        name: &'static str,
        group: Option<GroupId>,
        cause: ShortText,
        now: Instant,
    ) {
        self.record(
            now,
            NodeEvent::Notice {
                name,
                group: group.map(|group| group.0),
                application: None,
                cause,
            },
        );
    }

    #[inline(never)]
    fn sender_event(&mut self, event: &SenderEvent, now: Instant) {
        match *event {
            SenderEvent::Safe {
                channel,
                ticket,
                cycle,
                took,
            } => {
                let Some(runtime) = &mut self.channels[channel] else {
                    return;
                };
                runtime.mailbox.settle(ticket, true);
                runtime.snapshot.safe += 1;
                runtime.snapshot.last_transfer = Some(took);
                runtime.snapshot.slowest_transfer = runtime.snapshot.slowest_transfer.max(took);
                let application = runtime.application;
                if self.surroundings.log_transfers {
                    let transfer = NodeEvent::Transfer {
                        application,
                        completed: Some((cycle, took)),
                        cause: ShortText::EMPTY,
                    };
                    self.record(now, transfer);
                }
            }
            SenderEvent::Failed {
                channel,
                ticket,
                cause,
            } => {
                let Some(runtime) = &mut self.channels[channel] else {
                    return;
                };
                runtime.mailbox.settle(ticket, false);
                runtime.snapshot.failed += 1;
                let (application, group) = (runtime.application, runtime.membership.group);
                // While no partner is there, every state fails; that redundancy is lost says it all.
                let expected = self.groups[group].snapshot.partner_heard;
                if expected && cause != FailureCause::SessionEnded {
                    let cause = ShortText::of(failure(cause));
                    self.record(
                        now,
                        NodeEvent::Transfer {
                            application,
                            completed: None,
                            cause,
                        },
                    );
                }
            }
            SenderEvent::Superseded { .. } => {}
        }
    }

    #[inline(never)]
    fn receiver_event(&mut self, event: &ReceiverEvent, now: Instant) {
        match *event {
            ReceiverEvent::Updated {
                channel,
                cycle,
                expires_at,
            } => {
                let Some(runtime) = &mut self.channels[channel] else {
                    return;
                };
                runtime.snapshot.received_cycle = Some(cycle);
                runtime.snapshot.received_at = Some(now);
                let (application, Membership { group, member }) =
                    (runtime.application, runtime.membership);
                let redundancy = &mut self.cores.redundancy;
                let last_there = redundancy.last_there(self.groups[group].peer);
                let came_at = last_there.map_or(self.stalls.arrived_since, |at| {
                    at.min(self.stalls.arrived_since)
                });
                let times = (expires_at, came_at);
                self.groups[group].note_received(member, times, redundancy, now);
                if self.surroundings.log_transfers {
                    self.record(now, NodeEvent::Received { application, cycle });
                }
            }
            ReceiverEvent::Overdue { channel } => {
                let Some(runtime) = &self.channels[channel] else {
                    return;
                };
                let (application, group) = (runtime.application, runtime.membership.group);
                let role = self.cores.redundancy.role(self.groups[group].id);
                if role == Some(Role::Backup) {
                    self.record(now, NodeEvent::Overdue { application });
                }
            }
        }
    }

    #[inline(never)]
    fn redundancy_event(&mut self, event: &Event, now: Instant) {
        match *event {
            Event::RoleChanged {
                group,
                from,
                to,
                epoch,
                cause,
            } => {
                self.role_changed(group, (to, cause), now);
                self.tell_role(group, (from, to), (epoch, cause), now);
            }
            Event::Redundancy { group, level } => self.level_changed(group, level, now),
            Event::LeaseLapsed { group } => {
                self.record(now, NodeEvent::LeaseLapsed { group: group.0 })
            }
            Event::LeaseRegained { group } => {
                self.notice("lease_regained", Some(group), ShortText::EMPTY, now);
            }
            Event::EpochRaised { group, epoch } => {
                let cause = ShortText::of(format_args!(
                    "goes on in epoch {epoch}: the partner had tried to take over"
                ));
                self.notice("epoch_raised", Some(group), cause, now);
            }
            Event::CannotTakeOver { group, cause } => {
                let cause = self.wait_cause(cause);
                self.notice("cannot_take_over", Some(group), cause, now);
            }
            Event::HandOverBegun { group } => {
                if let Some(runtime) = self.group(group) {
                    runtime.begin_hand_over();
                }
                self.notice("hand_over_begun", Some(group), ShortText::EMPTY, now);
            }
            Event::HandOverAborted { group, cause } => {
                if let Some(runtime) = self.group(group) {
                    runtime.abort_hand_over();
                }
                self.notice("hand_over_aborted", Some(group), ShortText::of(cause), now);
            }
            Event::ReferenceLost { group, reference } => {
                self.reference(group, reference, "does not answer", now)
            }
            Event::ReferenceHeard { group, reference } => {
                self.reference(group, reference, "answers", now)
            }
            Event::ReferenceChanged { group, reference } => {
                if let Some(runtime) = self.group(group) {
                    runtime.snapshot.reference = Some(reference.0);
                }
                self.reference(group, reference, "is the agreed reference point", now);
            }
            _ => self.partner_event(event, now),
        }
    }

    /// An event of the redundancy core that is of a partner or of this node, not of one group.
    fn partner_event(&mut self, event: &Event, now: Instant) {
        match *event {
            Event::LinkUp { peer, link } => self.link_changed(peer, link, true, now),
            Event::LinkDown { peer, link } => self.link_changed(peer, link, false, now),
            Event::LinkNarrow { peer, link, narrow } => {
                self.link_narrowed(peer, link, narrow, now);
            }
            Event::PartnerHeard { peer } => self.partner_notice("partner_heard", peer, now),
            Event::PartnerSilent { peer } => self.partner_notice("partner_silent", peer, now),
            Event::SessionChanged { peer, tag } => {
                self.cores.sender.set_session(peer, tag, now);
                self.cores.receiver.set_session(peer, tag, now);
            }
            Event::ConfigurationDiffers { peer, in_force } => {
                self.configuration_differs(peer, in_force, now);
            }
            Event::ConfigurationDue => self.surroundings.board.set_due(),
            Event::ChangeWithdrawn => self.surroundings.board.set_withdrawn(),
            Event::DuplicateNode => {
                let cause = ShortText::of(
                    "another process uses this node's name; neither writes: stop one of them",
                );
                self.notice("duplicate_node", None, cause, now);
            }
            Event::DuplicatePartner { peer } => {
                let name = self.partner_name(peer);
                let cause = ShortText::of(format_args!(
                    "two processes run as '{name}' and answer in turn; neither is believed: stop one"
                ));
                self.notice("duplicate_partner", None, cause, now);
            }
            _ => {}
        }
    }

    fn role_changed(&mut self, group: GroupId, (to, cause): (Role, RoleCause), now: Instant) {
        let Some(runtime) = self.groups.iter_mut().find(|runtime| runtime.id == group) else {
            return;
        };
        runtime.snapshot.changed_at = now;
        runtime.snapshot.change_cause = ShortText::of(role_cause(cause));
        let handed_over = cause == RoleCause::HandOver;
        runtime.role_changed(to, handed_over, &mut self.cores.redundancy, now);
    }

    fn tell_role(
        &mut self,
        group: GroupId,
        (from, to): (Role, Role),
        (epoch, cause): (Epoch, RoleCause),
        now: Instant,
    ) {
        let role = NodeEvent::Role {
            group: group.0,
            from,
            to,
            epoch,
            cause: ShortText::of(role_cause(cause)),
        };
        self.record(now, role);
    }

    fn configuration_differs(&mut self, peer: PeerId, in_force: InForce, now: Instant) {
        let name = self.partner_name(peer);
        let (before, after) = match in_force {
            InForce::Ours => (
                "",
                " runs another one and takes no part; this node's is in force",
            ),
            InForce::Theirs => (
                "that of ",
                " is in force; this node takes no part: give it the same one",
            ),
            InForce::Neither => (
                "",
                " runs another one; neither takes a role: give both the same one",
            ),
        };
        let cause = ShortText::of(format_args!("{before}{name}{after}"));
        self.notice("configuration_differs", None, cause, now);
    }

    fn partner_name(&self, peer: PeerId) -> &str {
        let name = self.titles.partners.get(usize::from(peer.0));
        name.map_or("?", String::as_str)
    }

    fn group(&mut self, id: GroupId) -> Option<&mut super::group::GroupRuntime> {
        self.groups.iter_mut().find(|group| group.id == id)
    }

    fn link_changed(&mut self, peer: PeerId, link: LinkId, up: bool, now: Instant) {
        let at = usize::from(peer.0) * self.ports.len() + usize::from(link.0);
        if let Some(snapshot) = self.link_snapshots.get_mut(at) {
            snapshot.up = up;
            snapshot.came_up |= up;
        }
        self.tell_link_health(peer, now);
        self.record(
            now,
            NodeEvent::Link {
                partner: peer,
                link,
                up,
            },
        );
    }

    /// States go over links that are up, of which each channel prefers those that pass packets of full length.
    fn tell_link_health(&mut self, peer: PeerId, now: Instant) {
        let links = self.ports.len();
        let first = usize::from(peer.0) * links;
        let Some(states) = self.link_snapshots.get(first..first + links) else {
            return;
        };
        let sender = &mut self.cores.sender;
        for (link, state) in (0..).map(LinkId).zip(states) {
            sender.set_link_narrow(peer, link, state.narrow);
            sender.set_link_healthy(peer, link, state.up, now);
        }
        self.note_carriers();
    }

    /// Notes which links carry states, for status: their states and the channels that there are say so.
    pub(super) fn note_carriers(&mut self) {
        let links = self.ports.len().max(1);
        let sender = &self.cores.sender;
        for (at, state) in self.link_snapshots.iter_mut().enumerate() {
            let (peer, link) = (PeerId((at / links) as u8), LinkId((at % links) as u8));
            state.carries = state.up && sender.carries(peer, link);
        }
    }

    fn link_narrowed(&mut self, peer: PeerId, link: LinkId, narrow: bool, now: Instant) {
        let at = usize::from(peer.0) * self.ports.len() + usize::from(link.0);
        if let Some(snapshot) = self.link_snapshots.get_mut(at) {
            snapshot.narrow = narrow;
        }
        self.tell_link_health(peer, now);
        let network = self.link_name(link);
        let (passes, remedy) = match narrow {
            true => ("short packets only: ", NARROW),
            false => ("packets of full length again", ""),
        };
        let cause = ShortText::of(format_args!("network {network} passes {passes}{remedy}"));
        self.notice("link_narrow", None, cause, now);
    }

    pub(super) fn level_changed(&mut self, group: GroupId, level: RedundancyLevel, now: Instant) {
        let (state, cause) = match level {
            RedundancyLevel::Ok => (Redundancy::Ok, ShortText::EMPTY),
            RedundancyLevel::Degraded(cause) => {
                (Redundancy::Degraded, self.redundancy_cause(group, cause))
            }
            RedundancyLevel::Lost(cause) => (Redundancy::Lost, self.redundancy_cause(group, cause)),
        };
        if let Some(runtime) = self.group(group) {
            runtime.level = Some(level);
            runtime.snapshot.redundancy = state;
            runtime.snapshot.cause = cause;
        }
        self.record(
            now,
            NodeEvent::Redundancy {
                group: group.0,
                state,
                cause,
            },
        );
    }

    fn partner_notice(&mut self, name: &'static str, peer: PeerId, now: Instant) {
        let cause = ShortText::of(self.partner_name(peer));
        self.notice(name, None, cause, now);
    }

    fn reference(&mut self, group: GroupId, reference: ReferenceId, what: &str, now: Instant) {
        let cause = ShortText::of(format_args!("{} {what}", self.reference_name(reference)));
        self.notice("reference", Some(group), cause, now);
    }
}

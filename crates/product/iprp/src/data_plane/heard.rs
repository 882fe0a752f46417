//! What the control plane says: messages of other hosts, and what has changed on this one.

use std::net::IpAddr;

use bumpless_base::Instant;
use bumpless_iprp::{MAX_MESSAGE, MessageError, Origin, PeerId, group_of_message};

use super::DataPlane;
use super::modes::mode_of;
use crate::closed::Kind;
use crate::exchange::{ToControl, ToData};
use crate::groups::MEMBER;
use crate::snapshot::Snapshot;

impl DataPlane {
    /// What the other thread says.
    pub(super) fn hear(&mut self, now: Instant, told: ToData) {
        match told {
            ToData::Message {
                peer,
                addresses,
                kind,
                message,
            } => self.take(now, peer, &addresses, kind, &message),
            ToData::Monitored(monitored, modes) => {
                // It was checked before it was sent here.
                let _ = self.receiver.set_monitored(&monitored);
                self.modes = modes;
                let all: Vec<_> = self
                    .sender
                    .sessions()
                    .map(|it| (it.session, it.scope()))
                    .collect();
                for (session, scope) in all {
                    self.sender.set_mode(session, mode_of(&self.modes, &scope));
                }
            }
            ToData::Disown(peer, addresses) => {
                self.sender.disown(peer);
                self.receiver.disown(peer, &addresses);
            }
            ToData::Members(members) => {
                self.tell(ToControl::MembersKnown(members.number));
                self.members.become_these(now, members.all);
            }
            ToData::Groups(sending, receiving) => {
                // They were checked before they were sent here.
                let _ = self.sender.set_groups(sending);
                let _ = self.receiver.set_groups(receiving);
            }
            ToData::Snapshot => {
                let cores = (&self.sender, &self.receiver);
                let attached = &self.attached;
                let segmentations = attached.ports.segmentations();
                let ways = (attached.room, segmentations, attached.coalesces);
                let taken =
                    Snapshot::take(now, cores, (&self.passed, &self.watch, &self.unheard), ways);
                self.tell(ToControl::Snapshot(Box::new(taken)));
            }
            ToData::Stop | ToData::Attached(_) => {}
        }
    }

    /// A message of a process that has the key. It may speak for each address that its host says it has.
    fn take(
        &mut self,
        now: Instant,
        peer: PeerId,
        addresses: &[IpAddr],
        kind: Kind,
        message: &[u8],
    ) {
        let mut result = Err(MessageError::NotTheirs);
        for &address in addresses {
            let origin = Origin { peer, address };
            result = match kind {
                Kind::ForSender => self.take_advertisement(now, origin, message),
                _ => self.receiver.handle_message(now, origin, message),
            };
            if !matches!(result, Err(MessageError::NotTheirs)) {
                break;
            }
        }
        // Members hear of all sessions of their group.
        let is_nothing = peer == MEMBER && result == Err(MessageError::Unknown);
        if let Err(error) = result
            && !is_nothing
        {
            self.tell(ToControl::Refused(addresses.to_vec(), error));
        }
    }

    fn take_advertisement(
        &mut self,
        now: Instant,
        from: Origin,
        message: &[u8],
    ) -> Result<(), MessageError> {
        let mut answer = [0; MAX_MESSAGE];
        let len = self
            .sender
            .handle_message(now, from, message, &mut answer)?;
        if len > 0 {
            // It keeps other members from advertising, too.
            if let Some(group) = group_of_message(message) {
                self.tell(ToControl::Spread {
                    group,
                    message: answer[..len].to_vec(),
                });
            }
            self.tell(ToControl::Send {
                to: from.address,
                kind: Kind::ForReceiver,
                message: answer[..len].to_vec(),
            });
        }
        Ok(())
    }
}

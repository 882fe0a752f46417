//! Groups: messages to all their members, and of which ones programs of this host are members.

use std::net::{IpAddr, SocketAddr};

use bumpless_base::Instant;
use bumpless_secure::Refusal;
use serde_json::json;

use super::troubles::Of;
use super::{ControlPlane, TICK};
use crate::closed::{self, Refused};
use crate::exchange::ToData;
use crate::groups::GroupKeys;
use crate::members::Members;

impl ControlPlane {
    /// Says something to all members of a group, on every network.
    pub fn spread(&mut self, group: IpAddr, message: &[u8]) {
        let own = self.attachments.iter().map(|it| closed::Card {
            ind: it.ind,
            address: it.address,
        });
        let own: Vec<_> = own.collect();
        let Some(frame) = self.groups.seal(group, &own, message) else {
            return;
        };
        let to = SocketAddr::new(group, self.config.host.control_port);
        let carries = |card: &usize| own[*card].address.is_ipv4() == group.is_ipv4();
        for card in (0..own.len()).filter(carries) {
            // A network that takes nothing at present is not the only one.
            let _ = self.ports.control.send(card, &frame, to);
        }
    }

    /// A frame that came for a group.
    pub fn receive_for_group(&mut self, now: Instant, from: SocketAddr, frame: &mut [u8]) {
        match self.groups.open(now, frame) {
            Ok(it) => self.tell(ToData::Message {
                peer: it.peer,
                addresses: it.addresses,
                kind: it.kind,
                message: it.message,
            }),
            // It comes on each network, and on those of groups that are another program's.
            Err(Refused::Repeated | Refused::Own) => {}
            Err(Refused::Envelope(Refusal::UnknownKey(id))) => {
                *self.state.refused.entry("unknown_key".into()).or_default() += 1;
                let from = from.ip();
                let words = format!(
                    "{from} seals for a group with the key {id:04x}, which this host does not have: give all hosts of a group the same file in keys of [[group]]"
                );
                self.trouble(Of::Other, &format!("group key {from}"), &words);
            }
            Err(refused) => self.refuse(from, refused),
        }
    }

    /// Groups have the secrets that were `read` from here on; those that they had open still for four periods of advertisements, as a key for
    /// copies does (I-23).
    ///
    /// # Errors
    /// Two look alike; then nothing changes.
    pub fn renew_groups(&mut self, now: Instant, read: Vec<GroupKeys>) -> Result<(), String> {
        let until = now + self.config.timing.advertise_every * 4;
        if self.groups.renew(read, now, until)? {
            self.tell_of_groups();
        }
        Ok(())
    }

    /// Former secrets of groups whose time has come do not open any more.
    pub fn expire_groups(&mut self, now: Instant) {
        if self.groups.expire(now) {
            self.tell_of_groups();
        }
    }

    fn tell_of_groups(&mut self) {
        let all = || {
            self.groups
                .groups()
                .iter()
                .map(GroupKeys::for_core)
                .collect()
        };
        let (sending, receiving) = (all(), all());
        let former = self.groups.groups().iter().filter(|it| it.opens_former());
        let former: Vec<_> = former.map(|it| it.address().to_string()).collect();
        self.tell(ToData::Groups(sending, receiving));
        let about = "former secrets";
        let words = format!(
            "what is sealed with a former secret is opened still, for four times advertise_every_ms since keys were read again, of group {}",
            former.join(" and ")
        );
        match former.is_empty() {
            true => {
                self.no_trouble(about);
                let words = "former secrets of groups are not opened any more";
                self.log.say("groups", json!({"former": []}), words);
            }
            false => self.trouble(Of::Host, about, &words),
        }
    }

    /// Looks of which groups programs of this host are members, every tenth of a second.
    pub fn follow_members(&mut self, now: Instant) {
        if now.since(self.state.members_looked) < TICK {
            return;
        }
        self.state.members_looked = now;
        if let Some(members) = self.look_for_members() {
            self.tell(ToData::Members(members));
        }
    }

    /// What the data plane is to know of members from here on, if that has changed.
    pub fn look_for_members(&mut self) -> Option<Members> {
        let (members, result) = self.members.look(&self.attachments);
        match result {
            Ok(()) => self.no_trouble("members"),
            Err(words) => self.trouble(Of::Host, "members", &words),
        }
        members
    }
}

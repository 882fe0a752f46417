//! What a group's hosts share: its secrets, and control messages that go to all of them (`spec/iprp-daemon.md`, L-60 and
//! further).

use std::net::IpAddr;

use bumpless_base::Instant;
use bumpless_iprp::{Group, PeerId, group_of_message};
use bumpless_secure::{Keyring, KeyringError, Refusal, RingSuite, Sealer, Secret, Suite};
use bumpless_wire::EnvelopeHeader;
use zeroize::Zeroizing;

use crate::closed::{Card, Channel, Frame, Kind, Received, Refused};

/// Who speaks for a group: any of its members.
pub const MEMBER: PeerId = PeerId(u32::MAX);

/// Processes of a group whose messages are told apart at once.
const OPENED: usize = 64;

/// A group's secrets. One file may stand for several groups: what is derived of it differs.
pub struct GroupKeys {
    address: IpAddr,
    secrets: Vec<Zeroizing<[u8; 32]>>,
}

impl GroupKeys {
    /// Those of the group at `address`, out of what its hosts share.
    pub fn new(address: IpAddr, ring: &Keyring<RingSuite>) -> Self {
        let (v4, v6);
        let octets: &[u8] = match address {
            IpAddr::V4(address) => {
                v4 = address.octets();
                &v4
            }
            IpAddr::V6(address) => {
                v6 = address.octets();
                &v6
            }
        };
        let info: [&[u8]; 3] = [b"bumpless iprp group secret", RingSuite::NAME, octets];
        Self {
            address,
            secrets: ring.derived_each(&info),
        }
    }

    /// The group's address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// As a core takes it.
    pub fn for_core(&self) -> Group {
        Group {
            address: self.address,
            secrets: self.secrets(),
        }
    }

    fn secrets(&self) -> Vec<Secret> {
        let secrets = self.secrets.iter().map(|bytes| Secret::new(**bytes));
        secrets.collect()
    }
}

/// Messages to all members of a group, sealed with its secret. They repeat no challenge, as nobody knows all members; of each
/// process that is known a message is taken once.
pub struct GroupChannels {
    all: Vec<(IpAddr, Channel)>,
    sealer: Sealer,
    own: u64,
}

impl GroupChannels {
    /// Those of these groups. `origin` is random, another one at each start.
    ///
    /// # Errors
    /// Two secrets of one group look alike.
    pub fn new(groups: &[GroupKeys], origin: u64, now: Instant) -> Result<Self, KeyringError> {
        let channel = |group: &GroupKeys| {
            let ring = Keyring::new(group.secrets())?;
            Ok((group.address, Channel::new(ring, true, OPENED, now)))
        };
        Ok(Self {
            all: groups.iter().map(channel).collect::<Result<_, _>>()?,
            sealer: Sealer::new(0, origin),
            own: origin,
        })
    }

    /// The frame with `message` for the receivers of all members of `group`; `None` for no group of this host.
    pub fn seal(&mut self, group: IpAddr, cards: &[Card], message: &[u8]) -> Option<Vec<u8>> {
        let (_, channel) = self.all.iter_mut().find(|(address, _)| *address == group)?;
        let frame = Frame {
            kind: Kind::ForReceiver,
            challenge: 0,
            echo: 0,
            cards: cards.to_vec(),
            message,
        };
        let mut bytes = vec![0; EnvelopeHeader::LEN];
        frame.write(&mut bytes);
        bytes.extend([0; EnvelopeHeader::TAG_LEN]);
        channel.seal(&mut self.sealer, &mut bytes).ok()?;
        Some(bytes)
    }

    /// What a frame says that came for a group.
    ///
    /// # Errors
    /// Why it says nothing.
    pub fn open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Received, Refused> {
        let header = EnvelopeHeader::parse(datagram)
            .map_err(|error| Refused::Envelope(Refusal::Wire(error)))?;
        if header.origin == self.own {
            return Err(Refused::Own);
        }
        let mut all = self.all.iter_mut();
        let known = all.find(|(_, channel)| channel.has(header.key));
        let unknown = Refused::Envelope(Refusal::UnknownKey(header.key));
        let (group, channel) = known.ok_or(unknown)?;
        let frame = match channel.open(datagram, now) {
            Ok(bytes) => Frame::read(bytes)?,
            Err(Refusal::Replayed) => return Err(Refused::Repeated),
            Err(refusal) => return Err(Refused::Envelope(refusal)),
        };
        let is_of_group = group_of_message(frame.message) == Some(*group);
        if frame.kind != Kind::ForReceiver || !is_of_group {
            return Err(Refused::Malformed);
        }
        Ok(Received {
            peer: MEMBER,
            kind: frame.kind,
            addresses: frame.cards.iter().map(|card| card.address).collect(),
            message: frame.message.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledgement for this group of UDP to port 9, by hand (I-20).
    fn acknowledgement(group: IpAddr) -> Vec<u8> {
        let mut bytes = vec![1, 2, 17, 0, 0, 9];
        let source = match group {
            IpAddr::V4(group) => {
                bytes.push(4);
                bytes.extend(group.octets());
                vec![4, 10, 0, 0, 1]
            }
            IpAddr::V6(group) => {
                bytes.push(6);
                bytes.extend(group.octets());
                [vec![6, 0xFD], vec![0; 14], vec![1]].concat()
            }
        };
        bytes.extend(source);
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0]);
        bytes
    }

    const ALL: [IpAddr; 4] = [
        IpAddr::V4(std::net::Ipv4Addr::new(239, 0, 0, 1)),
        IpAddr::V4(std::net::Ipv4Addr::new(239, 0, 0, 2)),
        IpAddr::V6(std::net::Ipv6Addr::new(0xFF05, 0, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(std::net::Ipv6Addr::new(0xFF35, 0, 0, 0, 0, 0, 0, 1)),
    ];

    fn groups() -> Vec<GroupKeys> {
        let ring = Keyring::new(vec![Secret::new([5; 32])]).unwrap();
        let group = |address: IpAddr| GroupKeys::new(address, &ring);
        ALL.map(group).into()
    }

    fn member(origin: u64) -> GroupChannels {
        GroupChannels::new(&groups(), origin, Instant::ZERO).unwrap()
    }

    #[test]
    fn a_message_for_a_group_is_taken_once_and_for_that_group_alone() {
        for (other, group) in [(ALL[0], ALL[1]), (ALL[2], ALL[3]), (ALL[1], ALL[2])] {
            is_taken_once(group, other);
        }
    }

    fn is_taken_once(group: IpAddr, other: IpAddr) {
        let (mut sender, mut receiver) = (member(1), member(2));
        let message = acknowledgement(group);
        let frame = sender.seal(group, &[], &message).unwrap();
        let opened = receiver.open(Instant::ZERO, &mut frame.clone()).unwrap();
        assert_eq!((opened.peer, opened.message), (MEMBER, message.clone()));
        let again = receiver.open(Instant::ZERO, &mut frame.clone());
        assert_eq!(again, Err(Refused::Repeated));
        assert_eq!(
            sender.open(Instant::ZERO, &mut frame.clone()),
            Err(Refused::Own)
        );
        // Sealed for another group, though out of the same file.
        let mut frame = sender.seal(other, &[], &message).unwrap();
        let refused = receiver.open(Instant::ZERO, &mut frame);
        assert_eq!(refused, Err(Refused::Malformed));
        let mut forged = sender.seal(group, &[], &message).unwrap();
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(
            receiver.open(Instant::ZERO, &mut forged),
            Err(Refused::Envelope(Refusal::Forged))
        );
        assert_eq!(
            sender.seal(IpAddr::from([239, 0, 0, 3]), &[], &message),
            None
        );
    }
}

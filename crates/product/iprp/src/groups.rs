//! What a group's hosts share: its secrets, and control messages that go to all of them (`spec/iprp-daemon.md`, L-60 and
//! further).

use std::net::IpAddr;

use bumpless_base::Instant;
use bumpless_iprp::{Group, PeerId, Receiver, group_of_message};
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
    /// Secrets that the files have had before, which open until then.
    former: Vec<(Instant, Zeroizing<[u8; 32]>)>,
}

/// Secrets of a group that open at once.
const SECRETS_MAX: usize = 4;

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
            former: Vec::new(),
        }
    }

    /// These in place of `before`, whose secrets open until `until` where the files do not have them any more and there is room.
    fn in_place_of(mut self, before: &Self, until: Instant) -> Self {
        let is_gone = |secret: &Zeroizing<[u8; 32]>| !self.secrets.contains(secret);
        let gone = before.secrets.iter().filter(|it| is_gone(it));
        let gone = gone.map(|it| (until, it.clone()));
        let earlier = before.former.iter().filter(|(_, it)| is_gone(it));
        let former: Vec<_> = gone.chain(earlier.cloned()).collect();
        let room = SECRETS_MAX.saturating_sub(self.secrets.len());
        self.former = former.into_iter().take(room).collect();
        self
    }

    /// Former secrets whose time has come do not open any more; whether there was one.
    fn expire(&mut self, now: Instant) -> bool {
        let before = self.former.len();
        self.former.retain(|(until, _)| *until > now);
        self.former.len() < before
    }

    /// Whether a secret opens that the files do not have any more.
    pub const fn opens_former(&self) -> bool {
        !self.former.is_empty()
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
        let former = self.former.iter().map(|(_, bytes)| bytes);
        let all = self.secrets.iter().chain(former);
        all.map(|bytes| Secret::new(**bytes)).collect()
    }
}

/// Messages to all members of a group, sealed with its secret. They repeat no challenge, as nobody knows all members; of each
/// process that is known a message is taken once.
pub struct GroupChannels {
    groups: Vec<GroupKeys>,
    all: Vec<(IpAddr, Channel)>,
    sealer: Sealer,
    own: u64,
}

impl GroupChannels {
    /// Those of these groups. `origin` is random, another one at each start.
    ///
    /// # Errors
    /// Two secrets of one group look alike.
    pub fn new(groups: Vec<GroupKeys>, origin: u64, now: Instant) -> Result<Self, KeyringError> {
        let channel = |group: &GroupKeys| {
            let ring = Keyring::new(group.secrets())?;
            Ok((group.address, Channel::new(ring, true, OPENED, now)))
        };
        Ok(Self {
            all: groups.iter().map(channel).collect::<Result<_, _>>()?,
            groups,
            sealer: Sealer::new(0, origin),
            own: origin,
        })
    }

    /// The groups with their secrets.
    pub fn groups(&self) -> &[GroupKeys] {
        &self.groups
    }

    /// The same groups have the secrets in `read` from here on; those that they had open until `until`. Whether anything is
    /// another one.
    ///
    /// # Errors
    /// Two secrets look alike; then nothing changes.
    pub fn renew(
        &mut self,
        read: Vec<GroupKeys>,
        now: Instant,
        until: Instant,
    ) -> Result<bool, String> {
        let before = |group: &GroupKeys| {
            let mut all = self.groups.iter();
            all.find(|it| it.address == group.address)
        };
        let same = |group: &GroupKeys| before(group).is_some_and(|it| it.secrets == group.secrets);
        if read.iter().all(same) {
            return Ok(false);
        }
        let groups: Vec<_> = read
            .into_iter()
            .map(|group| match before(&group) {
                Some(before) => group.in_place_of(before, until),
                None => group,
            })
            .collect();
        // The data plane has no way back.
        let of_cores = groups.iter().map(GroupKeys::for_core).collect();
        Receiver::<RingSuite>::check_groups(of_cores).map_err(|error| error.to_string())?;
        self.take(groups, now).map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// Former secrets whose time has come do not open any more; whether there was one.
    pub fn expire(&mut self, now: Instant) -> bool {
        let expired = self
            .groups
            .iter_mut()
            .filter_map(|it| it.expire(now).then_some(()));
        if expired.count() == 0 {
            return false;
        }
        let groups = std::mem::take(&mut self.groups);
        // Fewer secrets cannot look alike where more did not.
        self.take(groups, now).is_ok()
    }

    /// What is known of processes stays: what they have said is not taken again.
    fn take(&mut self, groups: Vec<GroupKeys>, now: Instant) -> Result<(), KeyringError> {
        let rings = groups.iter().map(|it| Keyring::new(it.secrets()));
        let rings: Vec<_> = rings.collect::<Result<_, _>>()?;
        for (group, ring) in groups.iter().zip(rings) {
            let mut all = self.all.iter_mut();
            if let Some((_, channel)) = all.find(|(address, _)| *address == group.address) {
                channel.set_keys(ring, now);
            }
        }
        self.groups = groups;
        Ok(())
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
        GroupChannels::new(groups(), origin, Instant::ZERO).unwrap()
    }

    /// The same groups with secrets of these files.
    fn read(files: &[u8]) -> Vec<GroupKeys> {
        let secrets = files.iter().map(|it| Secret::new([*it; 32]));
        let ring = Keyring::new(secrets.collect()).unwrap();
        ALL.map(|address| GroupKeys::new(address, &ring)).into()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + bumpless_base::Duration::from_secs(seconds)
    }

    #[test]
    fn a_former_secret_opens_until_its_time_has_come_and_what_was_said_is_not_taken_again() {
        let (mut slow, mut quick) = (member(1), member(2));
        let message = acknowledgement(ALL[2]);
        let first = slow.seal(ALL[2], &[], &message).unwrap();
        assert!(quick.open(at(1), &mut first.clone()).is_ok());
        assert_eq!(quick.renew(read(&[5]), at(1), at(9)), Ok(false), "the same");
        assert_eq!(quick.renew(read(&[6]), at(1), at(9)), Ok(true));
        assert!(quick.groups().iter().all(GroupKeys::opens_former));
        let again = quick.open(at(2), &mut first.clone());
        assert_eq!(again, Err(Refused::Repeated));
        let second = slow.seal(ALL[2], &[], &message).unwrap();
        assert!(quick.open(at(2), &mut second.clone()).is_ok());
        // Who has not read the file again does not have what is sealed from here on.
        let third = quick.seal(ALL[2], &[], &message).unwrap();
        let unknown = |it: &Result<Received, Refused>| {
            matches!(it, Err(Refused::Envelope(Refusal::UnknownKey(_))))
        };
        assert!(unknown(&slow.open(at(2), &mut third.clone())));
        assert!(!quick.expire(at(8)));
        assert!(quick.expire(at(9)) && !quick.expire(at(9)));
        assert!(!quick.groups().iter().any(GroupKeys::opens_former));
        let late = slow.seal(ALL[2], &[], &message).unwrap();
        assert!(unknown(&quick.open(at(9), &mut late.clone())));
        assert_eq!(slow.renew(read(&[6, 7]), at(10), at(19)), Ok(true));
        let third = quick.seal(ALL[2], &[], &message).unwrap();
        assert!(slow.open(at(10), &mut third.clone()).is_ok());
        // Four open at most, those of the files first.
        for file in 20..30 {
            assert_eq!(slow.renew(read(&[file, 7]), at(11), at(19)), Ok(true));
            let secrets = slow.groups()[0].for_core().secrets;
            assert!(secrets.len() <= SECRETS_MAX);
        }
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

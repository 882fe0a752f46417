//! With which keys frames of which host are sealed and opened.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bumpless_base::{Instant, LinkId};
use bumpless_management::SECRETS_MAX;
use bumpless_secure::{
    Destination, Keyring, Opener, Refusal, RingSuite, Route, SealError, Sealer, SealingKey, Secret,
};
use bumpless_wire::EnvelopeHeader;

use super::HostId;

/// What is sealed for iPRP opens nowhere else, though the secret may be a pair's, too.
pub const PLACE: u32 = 0x6950_5250;
/// Processes whose keys are at hand: of all hosts that share a secret, and of one host, with each secret that is opened with.
const OPENED_SHARED: usize = 256;
const OPENED_EACH: usize = 4 + SECRETS_MAX;

/// Addresses at which one host has shown itself that are kept: it may call from ever others.
const SHOWN_MAX: usize = 16;

/// With whom the secret of all hosts is shared.
const ALL: HostId = HostId(0);

/// The keys that are shared with one host, or with all.
pub struct Channel {
    ring: Keyring<RingSuite>,
    sealing: SealingKey<RingSuite>,
    opener: Opener<RingSuite>,
    /// Whether the other end is known to open with the first key.
    seals: bool,
}

impl Channel {
    /// One with these keys, which tells `opened` processes apart.
    pub fn new(ring: Keyring<RingSuite>, seals: bool, opened: usize, now: Instant) -> Self {
        let route = Route {
            from: Some(0),
            to: 0,
            link: None,
            place: PLACE,
        };
        Self {
            ring,
            sealing: SealingKey::default(),
            opener: Opener::new(route, opened, now),
            seals,
        }
    }

    /// Whether a key has this identifier.
    pub fn has(&self, key: u16) -> bool {
        self.ring.contains(key)
    }

    /// These keys in place of those before, of which the first one seals. Who has sealed with one that is there still stays known.
    pub fn set_keys(&mut self, ring: Keyring<RingSuite>, now: Instant) {
        self.opener.set_keys(&ring, now);
        (self.ring, self.sealing) = (ring, SealingKey::default());
    }

    /// Makes an envelope of `bytes`, which have room around what is sealed.
    pub fn seal(&mut self, sealer: &mut Sealer, bytes: &mut [u8]) -> Result<(), SealError> {
        let destination = Destination {
            to: 0,
            link: LinkId(0),
            place: PLACE,
        };
        sealer.seal((&self.ring, &mut self.sealing), destination, bytes)
    }

    /// Opens an envelope.
    ///
    /// # Errors
    /// Why it does not open.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8], now: Instant) -> Result<&'a [u8], Refusal> {
        self.opener.open(&self.ring, datagram, now)
    }
}

/// The channels to all hosts.
pub struct Channels {
    /// All have one secret.
    shared: bool,
    all: BTreeMap<HostId, Channel>,
    /// Whose key has an identifier.
    by_key: BTreeMap<u16, HostId>,
    /// At which address a host has shown itself in a session.
    shown_at: BTreeMap<IpAddr, HostId>,
}

impl Channels {
    /// One secret that all hosts have.
    pub fn shared(ring: Keyring<RingSuite>, now: Instant) -> Self {
        let channel = Channel::new(ring, true, OPENED_SHARED, now);
        Self {
            shared: true,
            all: BTreeMap::from([(ALL, channel)]),
            by_key: BTreeMap::new(),
            shown_at: BTreeMap::new(),
        }
    }

    /// One with each host, which are given later.
    pub const fn each() -> Self {
        Self {
            shared: false,
            all: BTreeMap::new(),
            by_key: BTreeMap::new(),
            shown_at: BTreeMap::new(),
        }
    }

    /// Whether all hosts have one secret.
    pub const fn is_shared(&self) -> bool {
        self.shared
    }

    /// The host that has shown itself at `address`.
    pub fn shown_at(&self, address: IpAddr) -> Option<HostId> {
        match self.shared {
            true => Some(ALL),
            false => self.shown_at.get(&address).copied(),
        }
    }

    /// What comes from `host`, which has shown itself at `address`, is opened with `secrets` from here on, and if `seals`,
    /// what leaves for it is sealed with the first one. `false`: by chance one looks like another host's, and nothing
    /// has changed.
    pub fn set(
        &mut self,
        now: Instant,
        (host, address): (HostId, IpAddr),
        secrets: Vec<Secret>,
        seals: bool,
    ) -> bool {
        let Ok(ring) = Keyring::new(secrets) else {
            return false;
        };
        let is_anothers = |id: u16| self.by_key.get(&id).is_some_and(|other| *other != host);
        if ring.identifiers().any(is_anothers) {
            return false;
        }
        self.by_key.retain(|_, other| *other != host);
        self.by_key.extend(ring.identifiers().map(|id| (id, host)));
        let theirs = self.shown_at.iter().filter(|(_, other)| **other == host);
        let theirs: Vec<_> = theirs.map(|(at, _)| *at).collect();
        if theirs.len() >= SHOWN_MAX && !theirs.contains(&address) {
            self.shown_at.remove(&theirs[0]);
        }
        self.shown_at.insert(address, host);
        match self.all.get_mut(&host) {
            Some(channel) => {
                channel.set_keys(ring, now);
                channel.seals = seals;
            }
            None => {
                let channel = Channel::new(ring, seals, OPENED_EACH, now);
                self.all.insert(host, channel);
            }
        }
        true
    }

    /// Nothing of `host` is opened from here on, and nothing is sealed for it.
    pub fn forget(&mut self, host: HostId) {
        self.all.remove(&host);
        self.by_key.retain(|_, other| *other != host);
        self.shown_at.retain(|_, other| *other != host);
    }

    /// Makes an envelope for `host` of `bytes`, which have room around what is sealed. `None`: it has no key.
    pub fn seal(
        &mut self,
        host: HostId,
        sealer: &mut Sealer,
        bytes: &mut [u8],
    ) -> Option<Result<(), SealError>> {
        let channel = self.all.get_mut(&host).filter(|channel| channel.seals)?;
        Some(channel.seal(sealer, bytes))
    }

    /// Opens an envelope; whose it is, and what was sealed.
    ///
    /// # Errors
    /// Why it does not open.
    pub fn open<'a>(
        &mut self,
        now: Instant,
        header: &EnvelopeHeader,
        datagram: &'a mut [u8],
    ) -> Result<(HostId, &'a [u8]), Refusal> {
        let host = match self.shared {
            true => Some(ALL),
            false => self.by_key.get(&header.key).copied(),
        };
        let unknown = Refusal::UnknownKey(header.key);
        let host = host.ok_or(unknown)?;
        let channel = self.all.get_mut(&host).ok_or(unknown)?;
        let opened = channel.open(datagram, now)?;
        Ok((host, opened))
    }
}

//! Keys of receivers and groups: what they are derived from, and which are valid.

use crate::setup::{Group, SetupError};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bumpless_secure::{Secret, Suite};
use core::marker::PhantomData;
use core::net::IpAddr;
use zeroize::Zeroizing;

/// What the keys of one sender's process are derived from.
pub(crate) type Material = Zeroizing<[u8; 32]>;

/// Bits of a tag that prove for which sender it was made.
const PROOF_BITS: u32 = 24;

/// What a receiver derives its keys from.
pub(crate) struct Root<S> {
    secret: Secret,
    suite: PhantomData<S>,
}

impl<S: Suite> Root<S> {
    pub(crate) const fn new(secret: Secret) -> Self {
        Self {
            secret,
            suite: PhantomData,
        }
    }

    /// The tag for a process of the sender at `source`: `nonce`, which no other process gets, and a proof of the address.
    pub(crate) fn tag(&self, source: IpAddr, nonce: u64) -> u64 {
        let nonce = nonce << PROOF_BITS;
        nonce | self.proof(source, nonce)
    }

    /// Whether `tag` was made for a process of the sender at `source`.
    pub(crate) fn is_tag_of(&self, tag: u64, source: IpAddr) -> bool {
        let nonce = tag >> PROOF_BITS << PROOF_BITS;
        tag == nonce | self.proof(source, nonce)
    }

    fn proof(&self, source: IpAddr, nonce: u64) -> u64 {
        let address = address_bytes(source);
        let info: [&[u8]; 4] = [
            b"bumpless iprp tag",
            S::NAME,
            &address,
            &nonce.to_be_bytes(),
        ];
        let derived = self.secret.derive::<S>(&info);
        let &[a, b, c, ..] = &*derived;
        u64::from(u32::from_be_bytes([0, a, b, c]))
    }

    /// The key `number` for the process that has `tag`.
    pub(crate) fn material(&self, number: u32, tag: u64) -> Material {
        self.secret.derive::<S>(&[
            b"bumpless iprp key",
            S::NAME,
            &number.to_be_bytes(),
            &tag.to_be_bytes(),
        ])
    }
}

/// The key that packets are sealed with.
pub(crate) fn data_key<S: Suite>(material: &Material) -> S::Key {
    S::key(&Zeroizing::new(S::derive(
        material,
        &[b"bumpless iprp data", S::NAME],
    )))
}

/// The key that a receiver's process seals its answers with. `boot` is random for each.
pub(crate) fn answer_key<S: Suite>(material: &Material, boot: u64) -> S::Key {
    S::key(&Zeroizing::new(S::derive(
        material,
        &[b"bumpless iprp answer", S::NAME, &boot.to_be_bytes()],
    )))
}

fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

struct GroupSecret {
    address: IpAddr,
    id: u16,
    secret: Secret,
}

/// Secrets of groups.
pub(crate) struct Groups<S> {
    secrets: Box<[GroupSecret]>,
    suite: PhantomData<S>,
}

impl<S: Suite> Groups<S> {
    /// The secrets of `groups`, those that seal first.
    fn new(groups: Vec<Group>) -> Self {
        let of = |group: Group| {
            let address = group.address;
            group.secrets.into_iter().map(move |secret| {
                let derived = secret.derive::<S>(&[b"bumpless iprp group identifier", S::NAME]);
                let id = u16::from_be_bytes([derived[0], derived[1]]);
                GroupSecret {
                    address,
                    id,
                    secret,
                }
            })
        };
        Self {
            secrets: groups.into_iter().flat_map(of).collect(),
            suite: PhantomData,
        }
    }

    /// The same, if all of them can be told apart.
    pub(crate) fn told_apart(groups: Vec<Group>) -> Result<Self, SetupError> {
        let groups = Self::new(groups);
        match groups.with_same_identifiers() {
            Some(address) => Err(SetupError::GroupSecrets(address)),
            None => Ok(groups),
        }
    }

    /// A group two of whose secrets could not be told apart.
    fn with_same_identifiers(&self) -> Option<IpAddr> {
        let mut ids: Vec<(u16, IpAddr)> =
            self.secrets.iter().map(|it| (it.id, it.address)).collect();
        ids.sort_unstable();
        let pair = ids.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
        Some(pair[1].1)
    }

    /// Whether `address` is one of the groups.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.secrets.iter().any(|secret| secret.address == address)
    }

    /// The tag and the key of what `process` seals for the group `address`.
    pub(crate) fn sealing(&self, address: IpAddr, process: u64) -> Option<(u64, Material)> {
        let secret = self.secrets.iter().find(|it| it.address == address)?;
        let tag = u64::from(secret.id) << 48 | process >> 16;
        Some((tag, Self::derive(secret, tag)))
    }

    /// The group and the key of what is sealed with `tag`.
    pub(crate) fn opening(&self, tag: u64) -> Option<(IpAddr, Material)> {
        let id = (tag >> 48) as u16;
        let secret = self.secrets.iter().find(|secret| secret.id == id)?;
        Some((secret.address, Self::derive(secret, tag)))
    }

    fn derive(secret: &GroupSecret, tag: u64) -> Material {
        let info: [&[u8]; 3] = [b"bumpless iprp group key", S::NAME, &tag.to_be_bytes()];
        secret.secret.derive::<S>(&info)
    }
}

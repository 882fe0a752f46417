//! Secrets, their identifiers, and which of them are in use.

use crate::suite::Suite;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bumpless_wire::EnvelopeHeader;
use core::fmt;
use core::marker::PhantomData;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// What the holders of a key share: 32 random bytes. Overwritten when dropped, and shown nowhere.
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Bytes that derive from it for the purpose that `info` names ([`Suite::derive`]): a secret of another use.
    pub fn derive<S: Suite>(&self, info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(S::derive(&self.0, info))
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why secrets cannot be used together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyringError {
    /// There is none.
    Empty,
    /// Two have the same identifier, which chance gives to one pair of 65,536: make another one.
    SameIdentifier(u16),
}

impl fmt::Display for KeyringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no key: name at least one"),
            Self::SameIdentifier(id) => write!(
                f,
                "two keys have the identifier {id:04x}: they are the same key, or make one of them anew"
            ),
        }
    }
}

impl core::error::Error for KeyringError {}

/// The identifier of a secret (N-4).
pub(crate) fn identifier<S: Suite>(secret: &[u8; 32]) -> u16 {
    let derived = Zeroizing::new(S::derive(secret, &[b"bumpless identifier", S::NAME]));
    u16::from_be_bytes([derived[0], derived[1]])
}

struct Entry {
    id: u16,
    secret: Secret,
}

/// The secrets with which packets may be sealed and opened. The first one seals. All of them open:
/// earlier ones still, later ones already, so that secrets change without a gap (N-4).
pub struct Keyring<S> {
    sealing: Entry,
    others: Box<[Entry]>,
    suite: PhantomData<S>,
}

impl<S: Suite> Keyring<S> {
    /// A ring of these, the one that seals first.
    ///
    /// # Errors
    /// [`KeyringError`] says what is wrong with them.
    pub fn new(secrets: Vec<Secret>) -> Result<Self, KeyringError> {
        let with_id = |secret: Secret| {
            let id = identifier::<S>(&secret.0);
            Entry { id, secret }
        };
        let mut entries = secrets.into_iter().map(with_id);
        let sealing = entries.next().ok_or(KeyringError::Empty)?;
        let others: Box<[Entry]> = entries.collect();
        let mut ids: Vec<u16> = others.iter().map(|entry| entry.id).collect();
        ids.push(sealing.id);
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(KeyringError::SameIdentifier(pair[0]));
        }
        Ok(Self {
            sealing,
            others,
            suite: PhantomData,
        })
    }

    /// The identifier of the secret that seals.
    pub const fn sealing(&self) -> u16 {
        self.sealing.id
    }

    /// Whether a secret has this identifier.
    pub fn contains(&self, id: u16) -> bool {
        self.entries().any(|entry| entry.id == id)
    }

    /// The identifiers of all, the one that seals first.
    pub fn identifiers(&self) -> impl Iterator<Item = u16> {
        self.entries().map(|entry| entry.id)
    }

    /// Bytes that derive from each secret for what `info` names, the one that seals first: secrets of another use.
    pub fn derived_each(&self, info: &[&[u8]]) -> Vec<Zeroizing<[u8; 32]>> {
        self.entries()
            .map(|entry| entry.secret.derive::<S>(info))
            .collect()
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        core::iter::once(&self.sealing).chain(&self.others)
    }

    /// The key for packets with `header`, and all others of the sender's process and generation; `None` without the
    /// secret.
    pub(crate) fn opening_key(&self, header: &EnvelopeHeader) -> Option<S::Key> {
        let entry = self.entries().find(|entry| entry.id == header.key)?;
        Some(Self::derive(entry, header))
    }

    /// As [`opening_key`](Self::opening_key), of the secret that seals.
    pub(crate) fn sealing_key(&self, header: &EnvelopeHeader) -> S::Key {
        Self::derive(&self.sealing, header)
    }

    /// 32 bytes of the secret `id` for what `info` names; `None` without the secret.
    pub(crate) fn derived(&self, id: u16, info: &[&[u8]]) -> Option<Zeroizing<[u8; 32]>> {
        let entry = self.entries().find(|entry| entry.id == id)?;
        Some(Zeroizing::new(S::derive(&entry.secret.0, info)))
    }

    fn derive(entry: &Entry, header: &EnvelopeHeader) -> S::Key {
        let info: [&[u8]; 5] = [
            b"bumpless packets",
            S::NAME,
            &[header.from],
            &header.origin.to_be_bytes(),
            &generation(header.counter).to_be_bytes(),
        ];
        let bytes = Zeroizing::new(S::derive(&entry.secret.0, &info));
        S::key(&bytes)
    }
}

impl<S: Suite> fmt::Debug for Keyring<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.entries().map(|entry| entry.id);
        f.debug_list().entries(ids).finish()
    }
}

/// The lowest counter of a generation.
pub(crate) const fn first_of(generation: u32) -> u64 {
    (generation as u64) << 24
}

/// A process takes another key after 2^24 packets, long before AES-GCM's limits on what one key may protect
/// (RFC 9001, B.1: 2^28 packets of at most 2 kB).
pub(crate) const fn generation(counter: u64) -> u32 {
    (counter >> 24) as u32
}

/// The place and the counter; no two packets of a key have the same counter.
pub(crate) fn nonce(place: u32, counter: u64) -> crate::Nonce {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&place.to_be_bytes());
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce
}

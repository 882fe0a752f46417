//! Keys of states: each for at most 256 of one origin.

use super::{Method, StateHeader, StateSuite};
use crate::keys::Keyring;
use crate::suite::{Nonce, Suite, Tag};
use zeroize::Zeroizing;

/// A key takes 2^8 states of at most 2^32 bytes: 2^36 blocks, with which who sees all of them tells AES-GCM from randomness
/// with a probability of less than 2^-56.
pub(super) const fn generation(counter: u64) -> u64 {
    counter >> 8
}

/// A key that is ready for use.
pub(super) enum StateKey<S: StateSuite> {
    Aes(<S::Aes as Suite>::Key),
    ChaCha(<S::ChaCha as Suite>::Key),
}

impl<S: StateSuite> StateKey<S> {
    /// The key for a state with `header`. `None`: the secret is not among `keys`, or none is needed.
    pub(super) fn derive(keys: &Keyring<S::Aes>, header: &StateHeader) -> Option<Self> {
        let name = match header.method {
            Method::Checksum => return None,
            Method::Authenticated => b"authenticated".as_slice(),
            Method::Aes256Gcm => <S::Aes as Suite>::NAME,
            Method::ChaCha20Poly1305 => <S::ChaCha as Suite>::NAME,
        };
        let info: [&[u8]; 6] = [
            b"bumpless states",
            name,
            &header.way.channel.to_be_bytes(),
            &[header.way.from],
            &header.origin.to_be_bytes(),
            &generation(header.counter).to_be_bytes(),
        ];
        let bytes: Zeroizing<[u8; 32]> = keys.derived(header.key, &info)?;
        Some(match header.method {
            Method::Aes256Gcm => Self::Aes(S::Aes::key(&bytes)),
            _ => Self::ChaCha(S::ChaCha::key(&bytes)),
        })
    }

    pub(super) fn seal(&self, nonce: Nonce, front: &[u8], body: &mut [u8]) -> Tag {
        match self {
            Self::Aes(key) => S::Aes::seal(key, nonce, front, body),
            Self::ChaCha(key) => S::ChaCha::seal(key, nonce, front, body),
        }
    }

    /// `body` ends with the tag.
    pub(super) fn open(&self, nonce: Nonce, front: &[u8], body: &mut [u8]) -> bool {
        match self {
            Self::Aes(key) => S::Aes::open(key, nonce, front, body),
            Self::ChaCha(key) => S::ChaCha::open(key, nonce, front, body),
        }
    }
}

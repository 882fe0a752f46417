//! Sealing states.

use super::key::{StateKey, generation};
use super::{Method, StateHeader, StateSuite, StateWay};
use crate::keys::{Keyring, nonce};
use core::fmt;

/// Why a state cannot be sealed. It must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSealError {
    /// There is no secret to seal with.
    NoKey,
    /// The buffer has no room for the state and what seals it.
    NoRoom,
}

impl fmt::Display for StateSealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKey => "no secret is agreed on with the partner yet",
            Self::NoRoom => "the buffer has no room for what seals the state",
        })
    }
}

impl core::error::Error for StateSealError {}

/// Seals the states of one channel.
pub struct StateSealer<S: StateSuite> {
    /// Of the state that was sealed last, but for its secret.
    header: StateHeader,
    /// The key in use, with its secret's identifier and its generation.
    key: Option<((u16, u64), StateKey<S>)>,
}

impl<S: StateSuite> StateSealer<S> {
    /// A sealer of the states of `way`. **`origin` must be random for each sealer**: two with the same one would use the
    /// same keys for different states, which breaks the cipher.
    pub const fn new(method: Method, way: StateWay, origin: u64) -> Self {
        let header = StateHeader {
            method,
            key: 0,
            way,
            origin,
            counter: 0,
            published_ns: 0,
        };
        Self { header, key: None }
    }

    /// Where in a channel's buffer the state belongs. Empty if there is no room.
    pub fn room(buffer: &mut [u8]) -> &mut [u8] {
        let end = buffer.len().saturating_sub(StateHeader::TAIL_LEN);
        buffer.get_mut(StateHeader::LEN..end).unwrap_or_default()
    }

    /// Seals the state of `len` bytes in `buffer`, which lies where [`room`](Self::room) says, with the secret of `keys`
    /// that seals. Its first `clear` bytes stay readable. `published_ns` is the time if times are compared, else 0.
    /// Returns the length of all.
    ///
    /// # Errors
    /// [`StateSealError`].
    pub fn seal(
        &mut self,
        keys: Option<&Keyring<S::Aes>>,
        (len, clear): (usize, usize),
        published_ns: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StateSealError> {
        let sealed_len = StateHeader::OVERHEAD + len;
        let sealed = buffer.get_mut(..sealed_len).ok_or(StateSealError::NoRoom)?;
        let mut header = StateHeader {
            counter: self.header.counter + 1,
            published_ns,
            ..self.header
        };
        if header.method.takes_key() {
            let keys = keys.ok_or(StateSealError::NoKey)?;
            header.key = keys.sealing();
            self.make_key_ready(keys, &header);
        }
        let (all, tail) = sealed.split_at_mut(StateHeader::LEN + len);
        all[..StateHeader::LEN].copy_from_slice(&header.encode());
        let nonce = nonce(0, header.counter);
        let tag = match (&self.key, header.method) {
            (_, Method::Checksum) => {
                let mut tag = [0; StateHeader::TAIL_LEN];
                tag[..8].copy_from_slice(&S::checksum(all).to_be_bytes());
                tag
            }
            (None, _) => return Err(StateSealError::NoKey),
            (Some((_, key)), Method::Authenticated) => key.seal(nonce, all, &mut []),
            (Some((_, key)), _) => {
                let (front, body) = all.split_at_mut(StateHeader::LEN + clear.min(len));
                key.seal(nonce, front, body)
            }
        };
        tail.copy_from_slice(&tag);
        self.header.counter = header.counter;
        Ok(sealed_len)
    }

    fn make_key_ready(&mut self, keys: &Keyring<S::Aes>, header: &StateHeader) {
        let of = (header.key, generation(header.counter));
        if self.key.as_ref().is_none_or(|known| known.0 != of) {
            let key = StateKey::derive(keys, header);
            self.key = key.map(|key| (of, key));
        }
    }

    /// Forgets the derived key. Call it when a secret goes out of use: a later secret may by chance have the same identifier.
    pub fn forget_keys(&mut self) {
        self.key = None;
    }
}

impl<S: StateSuite> fmt::Debug for StateSealer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateSealer")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

//! Making envelopes.

use crate::keys::{Keyring, generation, nonce};
use crate::suite::Suite;
use bumpless_base::LinkId;
use bumpless_wire::EnvelopeHeader;
use bumpless_wire::envelope::MAX_COUNTER;
use core::fmt;

/// Why a datagram cannot be sealed. It must not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The process has sealed 2^48 packets, nine years' worth of a million in a second.
    Exhausted,
    /// The datagram is shorter than an envelope without a message.
    NoRoom,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exhausted => "all packet numbers of this process are used up: start it anew",
            Self::NoRoom => "the datagram has no room for what protects it",
        })
    }
}

impl core::error::Error for SealError {}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// To whom: a node's number, or `envelope::WITNESS`.
    pub to: u8,
    /// On which link.
    pub link: LinkId,
    /// As [`Route::place`](crate::Route::place).
    pub place: u32,
}

/// Seals what one origin sends.
pub struct Sealer<S: Suite> {
    /// Of the packet that is sealed next, but for addressee and link.
    header: EnvelopeHeader,
    key: S::Key,
}

impl<S: Suite> Sealer<S> {
    /// A sealer with the first secret of `keys`, for what `from` sends. **`origin` must be random for each sealer**, whoever
    /// makes it and whenever: two with the same one would use the same keys for different
    /// packets, which breaks the cipher.
    pub fn new(keys: &Keyring<S>, from: u8, origin: u64) -> Self {
        let mut header = EnvelopeHeader {
            key: 0,
            from,
            to: 0,
            link: LinkId(0),
            origin,
            counter: 0,
        };
        let key = keys.sealing_key(&mut header);
        Self { header, key }
    }

    /// Goes on with the secret of `keys` that seals, which may be another.
    pub fn set_keys(&mut self, keys: &Keyring<S>) {
        self.key = keys.sealing_key(&mut self.header);
    }

    /// Goes on with this packet number, which must be above all before. For tests of what comes after years.
    #[doc(hidden)]
    pub fn skip_to(&mut self, keys: &Keyring<S>, counter: u64) {
        debug_assert!(counter >= self.header.counter);
        self.header.counter = counter;
        self.set_keys(keys);
    }

    /// Makes an envelope of `datagram`, in which the message lies between [`EnvelopeHeader::LEN`] bytes before it and
    /// [`EnvelopeHeader::TAG_LEN`] bytes after it, with room for both.
    ///
    /// # Errors
    /// [`SealError`]; `datagram` is as it was then.
    pub fn seal(
        &mut self,
        keys: &Keyring<S>,
        Destination { to, link, place }: Destination,
        datagram: &mut [u8],
    ) -> Result<(), SealError> {
        let counter = self.header.counter;
        if counter > MAX_COUNTER {
            return Err(SealError::Exhausted);
        }
        let (front, rest) = datagram
            .split_first_chunk_mut::<{ EnvelopeHeader::LEN }>()
            .ok_or(SealError::NoRoom)?;
        let (message, tag) = rest
            .split_last_chunk_mut::<{ EnvelopeHeader::TAG_LEN }>()
            .ok_or(SealError::NoRoom)?;
        let header = EnvelopeHeader {
            to,
            link,
            ..self.header
        };
        *front = header.encode();
        *tag = S::seal(&self.key, nonce(place, counter), front, message);
        self.header.counter += 1;
        if generation(self.header.counter) != generation(counter) {
            self.set_keys(keys);
        }
        Ok(())
    }
}

impl<S: Suite> fmt::Debug for Sealer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

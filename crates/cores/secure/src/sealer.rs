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

/// The key with which one correspondent is written to. Derived when it is first needed, and again when the secret that
/// seals or the generation is another.
pub struct SealingKey<S: Suite> {
    /// Identifier of the secret, and the generation.
    of: Option<(u16, u32)>,
    key: S::Key,
}

impl<S: Suite> Default for SealingKey<S> {
    fn default() -> Self {
        Self {
            of: None,
            key: S::key(&[0; 32]),
        }
    }
}

impl<S: Suite> fmt::Debug for SealingKey<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey")
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// Seals what one origin sends, to whomever and with whatever secrets.
#[derive(Debug)]
pub struct Sealer {
    /// Of the packet that is sealed next, but for its key, addressee and link.
    header: EnvelopeHeader,
}

impl Sealer {
    /// A sealer of what `from` sends. **`origin` must be random for each sealer**, whoever makes it and whenever: two with
    /// the same one would use the same keys for different packets, which breaks the cipher.
    pub const fn new(from: u8, origin: u64) -> Self {
        Self {
            header: EnvelopeHeader {
                key: 0,
                from,
                to: 0,
                link: LinkId(0),
                origin,
                counter: 0,
            },
        }
    }

    /// Goes on with this packet number, which must be above all before. For tests of what comes after years.
    #[doc(hidden)]
    pub fn skip_to(&mut self, counter: u64) {
        debug_assert!(counter >= self.header.counter);
        self.header.counter = counter;
    }

    /// Makes an envelope of `datagram`, in which the message lies between [`EnvelopeHeader::LEN`] bytes before it and
    /// [`EnvelopeHeader::TAG_LEN`] bytes after it, with room for both. The secret of `keys` that seals does so; `key` is
    /// kept for the next one with the same ring, and made anew (`Default`) with another.
    ///
    /// # Errors
    /// [`SealError`]; `datagram` is as it was then.
    pub fn seal<S: Suite>(
        &mut self,
        (keys, key): (&Keyring<S>, &mut SealingKey<S>),
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
            key: keys.sealing(),
            to,
            link,
            ..self.header
        };
        let of = Some((header.key, generation(counter)));
        if key.of != of {
            *key = SealingKey {
                of,
                key: keys.sealing_key(&header),
            };
        }
        *front = header.encode();
        *tag = S::seal(&key.key, nonce(place, counter), front, message);
        self.header.counter += 1;
        Ok(())
    }
}

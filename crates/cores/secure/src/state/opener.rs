//! Opening states.

use super::key::StateKey;
use super::replay::{Replay, Seen};
use super::{Method, StateHeader, StateRefusal, StateSuite, StateWay};
use crate::keys::{Keyring, nonce};
use core::fmt;
use core::marker::PhantomData;

/// How states must be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// By this method and no other.
    Only(Method),
    /// Enciphered, by whichever method was fast for who sealed.
    AnyCipher,
}

impl Expected {
    const fn includes(self, method: Method) -> bool {
        match self {
            Self::Only(only) => only.number() == method.number(),
            Self::AnyCipher => matches!(method, Method::Aes256Gcm | Method::ChaCha20Poly1305),
        }
    }
}

/// Opens the states of one channel.
pub struct StateOpener<S: StateSuite> {
    expected: Expected,
    way: StateWay,
    replay: Replay,
    seen: Seen,
    suite: PhantomData<fn() -> S>,
}

impl<S: StateSuite> StateOpener<S> {
    /// An opener of the states of `way`.
    pub fn new(expected: Expected, way: StateWay, replay: Replay) -> Self {
        Self {
            expected,
            way,
            replay,
            seen: Seen::default(),
            suite: PhantomData,
        }
    }

    /// By what a state that comes again shows, from here on.
    pub const fn set_replay(&mut self, replay: Replay) {
        self.replay = replay;
    }

    /// Whether `sealed` could be opened, as far as its header tells: everything but its proof.
    ///
    /// # Errors
    /// [`StateRefusal`].
    pub fn inspect(
        &self,
        keys: Option<&Keyring<S::Aes>>,
        sealed: &[u8],
        now_ns: u64,
    ) -> Result<StateHeader, StateRefusal> {
        let header = StateHeader::parse(sealed)?;
        if !self.expected.includes(header.method) {
            return Err(StateRefusal::OtherMethod);
        }
        if header.way != self.way {
            return Err(StateRefusal::Misdirected);
        }
        let has_key = keys.is_some_and(|keys| keys.contains(header.key));
        if header.method.takes_key() && !has_key {
            return Err(StateRefusal::UnknownKey(header.key));
        }
        self.seen.check(self.replay, &header, now_ns)?;
        Ok(header)
    }

    /// Opens `sealed`, of which the first `clear` bytes of the state are readable, when the computer's clock shows
    /// `now_ns`. What is enciphered is deciphered in `room`, which must be as long as `sealed`; the rest is
    /// used where it lies. Returns the state.
    ///
    /// # Errors
    /// [`StateRefusal`]; nothing has changed but `room`.
    pub fn open<'a>(
        &mut self,
        keys: Option<&Keyring<S::Aes>>,
        (sealed, clear): (&'a [u8], usize),
        now_ns: u64,
        room: &'a mut [u8],
    ) -> Result<&'a [u8], StateRefusal> {
        let header = self.inspect(keys, sealed, now_ns)?;
        let (all, tail) = sealed.split_at(sealed.len() - StateHeader::TAIL_LEN);
        let state = &all[StateHeader::LEN..];
        let key = keys.and_then(|keys| StateKey::<S>::derive(keys, &header));
        let nonce = nonce(0, header.counter);
        let opened = match (key, header.method) {
            (_, Method::Checksum) => {
                let (sequence, zeros) = tail.split_at(8);
                let right = sequence == S::checksum(all).to_be_bytes();
                if !right || zeros != [0; 8] {
                    return Err(StateRefusal::Damaged);
                }
                state
            }
            (None, _) => return Err(StateRefusal::UnknownKey(header.key)),
            (Some(key), Method::Authenticated) => {
                let mut tag = [0; StateHeader::TAIL_LEN];
                tag.copy_from_slice(tail);
                if !key.open(nonce, all, &mut tag) {
                    return Err(StateRefusal::Forged);
                }
                state
            }
            (Some(key), _) => {
                let clear = clear.min(state.len());
                let front = &all[..StateHeader::LEN + clear];
                let enough = room.get_mut(..state.len() + StateHeader::TAIL_LEN);
                // Room that is too small opens nothing.
                let room = enough.ok_or(StateRefusal::NotSealed)?;
                room.copy_from_slice(&sealed[StateHeader::LEN..]);
                if !key.open(nonce, front, &mut room[clear..]) {
                    return Err(StateRefusal::Forged);
                }
                &room[..state.len()]
            }
        };
        self.seen.note(&header);
        Ok(opened)
    }
}

impl<S: StateSuite> fmt::Debug for StateOpener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateOpener")
            .field("expected", &self.expected)
            .field("way", &self.way)
            .field("replay", &self.replay)
            .finish_non_exhaustive()
    }
}

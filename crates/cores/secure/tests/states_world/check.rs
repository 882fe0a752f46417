//! The model: which states may open, by what an observer has seen sealed and opened.

use std::collections::{BTreeSet, VecDeque};

use bumpless_secure::state::{Expected, Method, Replay, StateHeader, StateWay};

use crate::world::CLEAR;

/// A clock may be so much ahead of another one (N-65).
const AHEAD_NS: u64 = 1_000_000_000;
/// Processes that a reader remembers as past (N-65).
const PAST: usize = 16;

/// A state as it was sealed.
#[derive(Clone)]
pub struct Sealed {
    pub way: StateWay,
    pub bytes: Vec<u8>,
    pub plain: Vec<u8>,
    pub method: Method,
    /// Which secret; `None`: none.
    pub secret: Option<u8>,
    /// By which process of its node, of all there ever were, and as the which of it.
    pub process: u32,
    pub number: u64,
    /// By the clock of who sealed it, if times are compared.
    pub at: u64,
}

/// What one reader has opened.
#[derive(Default)]
pub struct Reader {
    newest: Option<(u32, u64)>,
    newest_at: u64,
    past: VecDeque<u32>,
}

/// What is asked of states.
pub struct Asked {
    pub expected: Expected,
    pub replay: Replay,
}

impl Asked {
    fn takes(&self, method: Method) -> bool {
        match self.expected {
            Expected::Only(only) => only == method,
            Expected::AnyCipher => is_cipher(method),
        }
    }
}

pub const fn is_cipher(method: Method) -> bool {
    matches!(method, Method::Aes256Gcm | Method::ChaCha20Poly1305)
}

/// The word of the checker, and what it says.
pub type Verdict = Result<(), String>;

impl Reader {
    /// Whether the state that was `sealed` may be opened now; if not, which checker forbids it.
    fn may(
        &self,
        sealed: &Sealed,
        asked: &Asked,
        (secrets, now): (&[u8], u64),
    ) -> Result<(), &'static str> {
        if !asked.takes(sealed.method) {
            return Err("asked: it is sealed in another way");
        }
        if sealed.secret.is_some_and(|it| !secrets.contains(&it)) {
            return Err("counts: its secret is no more");
        }
        if asked.replay == Replay::None {
            return Ok(());
        }
        let older = self
            .newest
            .is_some_and(|(process, number)| process == sealed.process && sealed.number < number);
        let past = asked.replay != Replay::Counter && self.past.contains(&sealed.process);
        if older || past {
            return Err("forward: a later one was opened");
        }
        let Replay::Timestamp { max_age } = asked.replay else {
            return Ok(());
        };
        let newest_is_real = self.newest_at <= now + AHEAD_NS;
        if sealed.at > now + AHEAD_NS {
            return Err("timely: it is from the future");
        }
        if newest_is_real && sealed.at < self.newest_at {
            return Err("timely: one of a later time was opened");
        }
        match now.saturating_sub(sealed.at) > max_age.as_nanos() {
            true => Err("timely: it is too old"),
            false => Ok(()),
        }
    }

    fn note(&mut self, sealed: &Sealed) {
        if let Some((process, _)) = self.newest.filter(|it| it.0 != sealed.process) {
            self.past.push_back(process);
            if self.past.len() > PAST {
                self.past.pop_front();
            }
        }
        self.newest = Some((sealed.process, sealed.number));
        self.newest_at = sealed.at;
    }

    /// `offered` has been opened as `opened`, or was refused, where states of `way` are expected. `record` is all that
    /// was ever sealed.
    pub fn judge(
        &mut self,
        (way, offered): (StateWay, &[u8]),
        opened: Result<&[u8], &str>,
        (asked, record): (&Asked, &[Sealed]),
        present: (&[u8], u64),
    ) -> Verdict {
        let sealed = record
            .iter()
            .find(|it| it.way == way && it.bytes == offered);
        let (sealed, opened) = match (sealed, opened) {
            (None, Ok(_)) => return Err("genuine: what opens was not sealed for it".into()),
            (None, Err(_)) => return Ok(()),
            (Some(sealed), opened) => (sealed, opened),
        };
        match (self.may(sealed, asked, present), opened) {
            (Err(checker), Ok(_)) => Err(format!("{checker}, and it opens")),
            (Ok(()), Err(why)) => Err(format!("opens: what may open does not: {why}")),
            (Ok(()), Ok(plain)) if plain != sealed.plain => {
                Err("whole: it opens as something else".into())
            }
            (Ok(()), Ok(_)) => {
                self.note(sealed);
                Ok(())
            }
            (Err(_), Err(_)) => Ok(()),
        }
    }
}

/// That no two states share key and nonce, as far as it shows outside: in headers, and in what was added to the state.
#[derive(Default)]
pub struct Apart {
    places: BTreeSet<(Option<u8>, u8, u16, u8, u64, u64)>,
    streams: BTreeSet<[u8; 16]>,
}

impl Apart {
    pub fn judge(&mut self, sealed: &Sealed) -> Verdict {
        let header = StateHeader::parse(&sealed.bytes).expect("what was sealed has a header");
        let place = (
            sealed.secret,
            sealed.bytes[1],
            header.way.channel,
            header.way.from,
            header.origin,
            header.counter,
        );
        if !self.places.insert(place) {
            return Err("apart: two states of one origin have one number".into());
        }
        if !is_cipher(sealed.method) {
            return Ok(());
        }
        let body = &sealed.bytes[StateHeader::LEN + CLEAR..];
        let plain = &sealed.plain[CLEAR..];
        let stream = std::array::from_fn(|at| body[at] ^ plain[at]);
        match self.streams.insert(stream) {
            true => Ok(()),
            false => Err("apart: two states are enciphered alike".into()),
        }
    }
}

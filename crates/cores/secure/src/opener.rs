//! Opening envelopes.

use crate::keys::{Keyring, first_of, generation, nonce};
use crate::suite::Suite;
use crate::window::Window;
use alloc::boxed::Box;
use bumpless_base::{Duration, Instant, LinkId};
use bumpless_wire::{EnvelopeHeader, WireError};
use core::fmt;

/// How often an unknown process is tried at most, and how many trials may follow each other at once. Each takes some
/// microseconds, and whoever knows a sender's address can ask for them: so they take some hundredths of a processor.
const TRIAL_INTERVAL: Duration = Duration::from_micros(100);
const TRIALS_AT_ONCE: u64 = 64;

/// Why a datagram was not opened. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no envelope, or an impossible one.
    Wire(WireError),
    /// It is a message without an envelope.
    Unprotected,
    /// It is sealed with a secret that this node does not have.
    UnknownKey(u16),
    /// It says that it is from somebody else, for somebody else, or for another link.
    Misdirected,
    /// Nobody with the secret has made it.
    Forged,
    /// It has come before, or so much later than others that this cannot be told.
    Replayed,
    /// It is of an unknown process, of which too many were tried of late.
    TooManyUnknown,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => error.fmt(f),
            Self::Unprotected => f.write_str(
                "the message is not protected: configure the same security on all nodes",
            ),
            Self::UnknownKey(id) => write!(
                f,
                "the message is sealed with the key {id:04x}, which this node does not have: give all nodes the same keys"
            ),
            Self::Misdirected => f.write_str(
                "the message is for another node or network: look for crossed cables and for who repeats packets",
            ),
            Self::Forged => f.write_str("nobody who has the key has made the message"),
            Self::Replayed => f.write_str("the message has come before"),
            Self::TooManyUnknown => {
                f.write_str("too many messages of unknown processes have come of late")
            }
        }
    }
}

impl core::error::Error for Refusal {}

/// One process of the sender. Its keys come in generations: packets may overtake each other where one ends, and the
/// next one is ready before it is needed, since a flood of unknown processes must not keep it out.
struct Known<S: Suite> {
    /// Its secret and origin. `None`: nobody, and the keys open nothing.
    id: Option<(u16, u64)>,
    /// Who it says that it is.
    from: u8,
    /// The generation of the middle one of its keys, which opened last.
    generation: u32,
    keys: [S::Key; 3],
    /// Which of its counters have been seen.
    seen: Window,
    /// When it last opened something.
    used: Instant,
}

/// What envelopes must say of their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Who sends: a node's number, or `envelope::WITNESS`. `None`: any holder of the key.
    pub from: Option<u8>,
    /// For whom it is.
    pub to: u8,
    /// The link. `None`: any. A sender has an origin on each.
    pub link: Option<LinkId>,
    /// Where the one of both is who has no number of its own: the [`place`](crate::place) of a witness, 0 between nodes.
    pub place: u32,
}

impl Route {
    fn is_of(&self, header: &EnvelopeHeader) -> bool {
        self.from.is_none_or(|from| from == header.from)
            && self.to == header.to
            && self.link.is_none_or(|link| link == header.link)
    }
}

/// Opens what comes on one way.
pub struct Opener<S: Suite> {
    route: Route,
    known: Box<[Known<S>]>,
    /// Where the process is that opened something last.
    last: usize,
    /// Where the process is that was confirmed last.
    present: Option<usize>,
    trials: Trials,
}

impl<S: Suite> Opener<S> {
    /// An opener for what comes on `route`. It keeps what it knows of so many processes, at least one. All memory is
    /// taken here.
    pub fn new(route: Route, processes: usize, now: Instant) -> Self {
        let nobody = |_| Known {
            id: None,
            from: 0,
            generation: 0,
            keys: [(); 3].map(|()| S::key(&[0; 32])),
            seen: Window::new(),
            used: Instant::ZERO,
        };
        Self {
            route,
            known: (0..processes.max(1)).map(nobody).collect(),
            last: 0,
            present: None,
            trials: Trials { full_at: now },
        }
    }

    /// Opens `datagram` where it lies. Returns the message.
    ///
    /// # Errors
    /// [`Refusal`] says what is wrong. `datagram` has any content then.
    pub fn open<'a>(
        &mut self,
        keys: &Keyring<S>,
        datagram: &'a mut [u8],
        now: Instant,
    ) -> Result<&'a [u8], Refusal> {
        if !EnvelopeHeader::is_one(datagram) {
            let parsed = bumpless_wire::parse(datagram);
            return Err(parsed.map_or_else(Refusal::Wire, |_| Refusal::Unprotected));
        }
        let header = EnvelopeHeader::parse(datagram).map_err(Refusal::Wire)?;
        if !self.route.is_of(&header) {
            return Err(Refusal::Misdirected);
        }
        if !keys.contains(header.key) {
            return Err(Refusal::UnknownKey(header.key));
        }
        let (front, sealed) = datagram.split_at_mut(EnvelopeHeader::LEN);
        let place = self.place_of(&header);
        match place.filter(|&place| self.known[place].key(&header).is_some()) {
            Some(at) => {
                let route = self.route.place;
                self.known[at].open((keys, route), &header, front, sealed, now)?;
                self.last = at;
            }
            None => self.last = self.try_unknown(keys, place, &header, front, sealed, now)?,
        }
        let message = sealed.len() - EnvelopeHeader::TAG_LEN;
        Ok(&sealed[..message])
    }

    /// What was opened last proves that its sender is there at present. Its process is not forgotten for others until
    /// this is said of another one, if more than one fits: who repeats packets of earlier processes cannot
    /// make room of it (N-7).
    pub const fn confirm(&mut self) {
        self.present = Some(self.last);
    }

    /// What comes is opened with `keys` from now on.
    ///
    /// The process that was confirmed last, and the one that opened something last, are expected to go on with either of the first two, and
    /// what they open is ready: a flood of unknown processes, of which only some are tried, must not keep out a known one that changes
    /// its secret. Who repeats a packet of an earlier process has that one open last, and nothing else.
    /// Processes that seal with none of `keys` are forgotten, so that a secret that has by chance the identifier of an
    /// earlier one does not meet what was derived of that.
    pub fn set_keys(&mut self, keys: &Keyring<S>, now: Instant) {
        // Where there is room for one alone, it is for the confirmed one.
        let there = [Some(self.last), self.present];
        let of = |at: Option<usize>| {
            let known = self.known.get(at?)?;
            let (_, origin) = known.id?;
            Some((origin, (known.from, first_of(known.generation))))
        };
        for (origin, from) in there.map(of).into_iter().flatten() {
            for key in keys.identifiers().take(2) {
                self.expect(keys, (key, origin), from, now);
            }
        }
        for (at, known) in self.known.iter_mut().enumerate() {
            if known.id.is_some_and(|(key, _)| !keys.contains(key)) {
                known.id = None;
                self.present = self.present.filter(|&present| present != at);
            }
        }
    }

    /// Makes the keys ready of a process that is there already, if they are not.
    fn expect(
        &mut self,
        keys: &Keyring<S>,
        (key, origin): (u16, u64),
        (from, counter): (u8, u64),
        now: Instant,
    ) {
        let id = Some((key, origin));
        if self.known.iter().any(|known| known.id == id) {
            return;
        }
        let at = self.replaced();
        // With a single place, that one is the process's own until it has gone on.
        if at == self.present.unwrap_or(self.last) {
            return;
        }
        if let Some(known) = self.known.get_mut(at) {
            let header = EnvelopeHeader {
                key,
                from,
                to: 0,
                link: LinkId(0),
                origin,
                counter,
            };
            known.take_in(keys, &header, now);
        }
    }

    /// Where the process of a packet with `header` is, if it is known.
    fn place_of(&self, header: &EnvelopeHeader) -> Option<usize> {
        let id = Some((header.key, header.origin));
        let is_it = |known: &Known<S>| known.id == id;
        // Mostly it is of whom the one before was.
        match self.known.get(self.last).is_some_and(is_it) {
            true => Some(self.last),
            false => self.known.iter().position(is_it),
        }
    }

    /// What opens with the key of a process that is not known makes it known, in the place of the one that has been
    /// silent for longest but for the confirmed one. A known one, at `place`, may have come to a far later generation
    /// unheard. Returns where it is.
    #[cold]
    fn try_unknown(
        &mut self,
        keys: &Keyring<S>,
        place: Option<usize>,
        header: &EnvelopeHeader,
        front: &[u8],
        sealed: &mut [u8],
        now: Instant,
    ) -> Result<usize, Refusal> {
        let known = place.and_then(|place| self.known.get_mut(place));
        if known.is_some_and(|known| generation(header.counter) < known.generation) {
            return Err(Refusal::Replayed);
        }
        if !self.trials.take(now) {
            return Err(Refusal::TooManyUnknown);
        }
        let unknown = Refusal::UnknownKey(header.key);
        let key = keys.opening_key(header).ok_or(unknown)?;
        if !S::open(&key, nonce(self.route.place, header.counter), front, sealed) {
            return Err(Refusal::Forged);
        }
        let at = place.unwrap_or_else(|| self.replaced());
        if let Some(known) = self.known.get_mut(at) {
            known.take_in(keys, header, now);
            known.seen.note(header.counter);
        }
        Ok(at)
    }

    /// Whose place a process that was not known takes.
    fn replaced(&self) -> usize {
        let by_silence = |&at: &usize| {
            let known = &self.known[at];
            let present = self.present == Some(at);
            (present, known.id.is_some(), known.used)
        };
        // There is at least one.
        (0..self.known.len()).min_by_key(by_silence).unwrap_or(0)
    }
}

impl<S: Suite> Known<S> {
    /// Becomes the process of a packet with `header`, of which nothing has been opened yet with the keys that are at hand
    /// from here on.
    fn take_in(&mut self, keys: &Keyring<S>, header: &EnvelopeHeader, now: Instant) {
        self.id = Some((header.key, header.origin));
        self.from = header.from;
        self.seen = Window::new();
        self.set_generation(keys, header);
        self.used = now;
    }

    /// The key for a packet with `header`, if it is at hand.
    fn key(&self, header: &EnvelopeHeader) -> Option<&S::Key> {
        let ahead = (generation(header.counter) + 1).checked_sub(self.generation)?;
        self.keys.get(usize::try_from(ahead).ok()?)
    }

    /// Makes the keys ready about the generation of `header`.
    #[cold]
    fn set_generation(&mut self, keys: &Keyring<S>, header: &EnvelopeHeader) {
        self.generation = generation(header.counter);
        for (before, key) in self.keys.iter_mut().enumerate() {
            let generation = (self.generation + before as u32).saturating_sub(1);
            let counter = first_of(generation);
            let made = keys.opening_key(&EnvelopeHeader { counter, ..*header });
            // The secret is there: with it, a packet has just been opened.
            if let Some(made) = made {
                *key = made;
            }
        }
    }

    fn open(
        &mut self,
        (keys, place): (&Keyring<S>, u32),
        header: &EnvelopeHeader,
        front: &[u8],
        sealed: &mut [u8],
        now: Instant,
    ) -> Result<(), Refusal> {
        if !self.seen.is_new(header.counter) {
            return Err(Refusal::Replayed);
        }
        let key = self.key(header).ok_or(Refusal::Forged)?;
        if !S::open(key, nonce(place, header.counter), front, sealed) {
            return Err(Refusal::Forged);
        }
        if generation(header.counter) > self.generation {
            self.set_generation(keys, header);
        }
        self.seen.note(header.counter);
        self.used = now;
        Ok(())
    }
}

impl<S: Suite> fmt::Debug for Opener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

/// How many unknown processes may be tried.
#[derive(Clone, Copy, Debug)]
struct Trials {
    /// When as many as possible may follow each other again.
    full_at: Instant,
}

impl Trials {
    /// Whether one more may be tried.
    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + TRIAL_INTERVAL;
        let allowed = full_at.since(now) <= TRIAL_INTERVAL * TRIALS_AT_ONCE;
        if allowed {
            self.full_at = full_at;
        }
        allowed
    }
}

//! What protects a witness's messages: an envelope around each, by the keys of the pairs that it serves, or nothing for
//! those that ask in the open.

use bumpless_base::{Counter, Instant, LinkId};
use bumpless_secure::{Destination, Keyring, Opener, Route, Sealer, SealingKey, Suite};
use bumpless_wire::envelope::WITNESS;
use bumpless_wire::{EnvelopeHeader, WitnessReply, WitnessRequest, parse};

use crate::data_plane::protection::counter;

/// Processes of a pair's nodes whose keys are kept: each has one on each of its networks with a witness.
const PROCESSES: usize = 64;

/// How an answer goes back: as the request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the open.
    Open,
    /// Sealed.
    Sealed {
        /// By this key, of all that the witness has.
        key: usize,
        /// For this node.
        to: u8,
        /// On the link that the node calls so.
        link: LinkId,
        /// From this place.
        place: u32,
    },
}

/// Room for the longest answer in an envelope, bytes.
pub const ROOM: usize = WitnessReply::LEN + EnvelopeHeader::OVERHEAD;

/// What protects the messages of a witness.
pub struct Envelopes<S: Suite> {
    keys: Box<[PerKey<S>]>,
    /// Whether requests in the open are heard.
    open: bool,
}

/// A secret of a pair.
pub struct PairKey<S> {
    /// In a ring of its own.
    pub keys: Keyring<S>,
    /// The pair (`bumpless_config::pair_id`): who has the key asks for no other.
    pub pair: u32,
    /// **Must be random** (N-3).
    pub origin: u64,
}

/// A node that agrees on keys in sessions, and has none yet.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Its pair (`bumpless_config::pair_id`): it asks for no other.
    pub pair: u32,
    /// **Must be random** (N-3).
    pub origin: u64,
    /// Where it asks.
    pub places: Vec<u32>,
}

/// What opens requests that come to a place.
type AtPlace<S> = (u32, Opener<S>);

/// One secret, or one node, has a ring of its own: who has another one can use up none of its room.
struct PerKey<S: Suite> {
    /// `None`: not agreed on yet.
    keys: Option<Keyring<S>>,
    pair: u32,
    sealer: Sealer,
    sealing: SealingKey<S>,
    /// By place.
    openers: Box<[AtPlace<S>]>,
}

impl<S: Suite> PerKey<S> {
    /// What opens, if a key has this identifier.
    fn having(&mut self, id: u16) -> Option<(&Keyring<S>, &mut [AtPlace<S>])> {
        let keys = self.keys.as_ref().filter(|keys| keys.contains(id))?;
        Some((keys, &mut self.openers))
    }
}

/// What opens requests that come to `place`.
fn opener<S: Suite>(place: u32, now: Instant) -> AtPlace<S> {
    let route = Route {
        from: None,
        to: WITNESS,
        link: None,
        place,
    };
    (place, Opener::new(route, PROCESSES, now))
}

impl<S: Suite> Envelopes<S> {
    /// Envelopes by each of `keys` at each of `places`; with `open`, requests in the open are heard, too.
    pub fn new(
        keys: impl IntoIterator<Item = PairKey<S>>,
        places: &[u32],
        open: bool,
        now: Instant,
    ) -> Self {
        let opener = |&place: &u32| opener(place, now);
        let keys = keys
            .into_iter()
            .map(|PairKey { keys, pair, origin }| PerKey {
                sealer: Sealer::new(WITNESS, origin),
                sealing: SealingKey::default(),
                openers: places.iter().map(opener).collect(),
                keys: Some(keys),
                pair,
            });
        Self {
            keys: keys.collect(),
            open,
        }
    }

    /// Adds nodes whose keys are to come, at the end; returns the position of the first one.
    pub fn expect(&mut self, nodes: impl IntoIterator<Item = Expected>, now: Instant) -> usize {
        let first = self.keys.len();
        let nodes = nodes.into_iter().map(|expected| PerKey {
            keys: None,
            pair: expected.pair,
            sealer: Sealer::new(WITNESS, expected.origin),
            sealing: SealingKey::default(),
            openers: expected
                .places
                .into_iter()
                .map(|place| opener(place, now))
                .collect(),
        });
        let known = std::mem::take(&mut self.keys).into_iter();
        self.keys = known.chain(nodes).collect();
        first
    }

    /// What the one at `at` asks is opened with `keys` from here on, and answered with the first one. Refused, which this
    /// returns as `false`, if another one's key has the same identifier: whose a request is, could not be told then.
    /// Without `keys`, nothing of it is opened any more.
    pub fn set_keys(&mut self, at: usize, keys: Option<Keyring<S>>, now: Instant) -> bool {
        let others = self
            .keys
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != at);
        let others = others.filter_map(|(_, with)| with.keys.as_ref());
        let taken = |id| others.clone().any(|other| other.contains(id));
        let new = keys.as_ref();
        if new.is_some_and(|keys| keys.identifiers().any(taken)) {
            return false;
        }
        let Some(with) = self.keys.get_mut(at) else {
            return false;
        };
        if let Some(keys) = &keys {
            let openers = with.openers.iter_mut();
            openers.for_each(|(_, opener)| opener.set_keys(keys, now));
        }
        with.sealing = SealingKey::default();
        with.keys = keys;
        true
    }

    /// The message in `datagram`, which has come to `place`, and how an answer goes back.
    ///
    /// # Errors
    /// Under what to count its discard.
    pub fn open<'a>(
        &mut self,
        place: u32,
        datagram: &'a mut [u8],
        now: Instant,
    ) -> Result<(Way, &'a [u8]), Counter> {
        if !EnvelopeHeader::is_one(datagram) {
            return match (self.open, parse(datagram)) {
                (_, Err(error)) => Err(error.counter()),
                (true, Ok(_)) => Ok((Way::Open, datagram)),
                (false, Ok(_)) => Err(Counter::DiscardUnprotected),
            };
        }
        let header = EnvelopeHeader::parse(datagram).map_err(|error| error.counter())?;
        let mut keys = self.keys.iter_mut().enumerate();
        let (key, with) = keys
            .find_map(|(at, with)| with.having(header.key).map(|with| (at, with)))
            .ok_or(Counter::DiscardUnknownKey)?;
        let (ring, openers) = with;
        let mut openers = openers.iter_mut();
        let (_, opener) = openers
            .find(|(there, _)| *there == place)
            .ok_or(Counter::DiscardMisdirected)?;
        let message = opener.open(ring, datagram, now);
        let way = Way::Sealed {
            key,
            to: header.from,
            link: header.link,
            place,
        };
        message.map(|message| (way, message)).map_err(counter)
    }

    /// Whether who asks in this way may ask so: with the key of a pair for that pair and itself, in the open for a pair
    /// without a key.
    ///
    /// # Errors
    /// Under what to count its discard.
    pub fn permits(&self, way: Way, request: &WitnessRequest) -> Result<(), Counter> {
        let Way::Sealed { key, to, .. } = way else {
            let mut pairs = self.keys.iter().map(|with| with.pair);
            return match pairs.any(|pair| pair == request.pair) {
                true => Err(Counter::DiscardUnprotected),
                false => Ok(()),
            };
        };
        let own = self
            .keys
            .get(key)
            .is_some_and(|with| with.pair == request.pair);
        match own && request.node.0 == to {
            true => Ok(()),
            false => Err(Counter::DiscardWrongNode),
        }
    }

    /// The datagram for an answer of `len` bytes, which lies in `room` after [`EnvelopeHeader::LEN`] bytes. `None`: it
    /// must not go.
    pub fn seal<'a>(&mut self, way: Way, room: &'a mut [u8; ROOM], len: usize) -> Option<&'a [u8]> {
        let Way::Sealed {
            key,
            to,
            link,
            place,
        } = way
        else {
            return room.get(EnvelopeHeader::LEN..EnvelopeHeader::LEN + len);
        };
        let with = self.keys.get_mut(key)?;
        let datagram = room.get_mut(..len + EnvelopeHeader::OVERHEAD)?;
        let there = Destination { to, link, place };
        let sealing = (with.keys.as_ref()?, &mut with.sealing);
        with.sealer.seal(sealing, there, datagram).ok()?;
        Some(datagram)
    }
}

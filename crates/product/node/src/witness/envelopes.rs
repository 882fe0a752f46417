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

/// One secret has a ring of its own: who has another one can use up none of its room.
struct PerKey<S: Suite> {
    keys: Keyring<S>,
    pair: u32,
    sealer: Sealer,
    sealing: SealingKey<S>,
    /// By place.
    openers: Box<[(u32, Opener<S>)]>,
}

impl<S: Suite> Envelopes<S> {
    /// Envelopes by each of `keys` at each of `places`; with `open`, requests in the open are heard, too.
    pub fn new(
        keys: impl IntoIterator<Item = PairKey<S>>,
        places: &[u32],
        open: bool,
        now: Instant,
    ) -> Self {
        let opener = |&place: &u32| {
            let route = Route {
                from: None,
                to: WITNESS,
                link: None,
                place,
            };
            (place, Opener::new(route, PROCESSES, now))
        };
        let keys = keys
            .into_iter()
            .map(|PairKey { keys, pair, origin }| PerKey {
                sealer: Sealer::new(WITNESS, origin),
                sealing: SealingKey::default(),
                openers: places.iter().map(opener).collect(),
                keys,
                pair,
            });
        Self {
            keys: keys.collect(),
            open,
        }
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
            .find(|(_, with)| with.keys.contains(header.key))
            .ok_or(Counter::DiscardUnknownKey)?;
        let mut openers = with.openers.iter_mut();
        let (_, opener) = openers
            .find(|(there, _)| *there == place)
            .ok_or(Counter::DiscardMisdirected)?;
        let message = opener.open(&with.keys, datagram, now);
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
        let sealing = (&with.keys, &mut with.sealing);
        with.sealer.seal(sealing, there, datagram).ok()?;
        Some(datagram)
    }
}

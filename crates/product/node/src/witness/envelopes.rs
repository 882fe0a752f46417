//! What protects a witness's messages: an envelope around each, by the keys of the pairs that it serves, or nothing for
//! those that ask in the open.

use bumpless_base::{Counter, Instant, LinkId};
use bumpless_secure::{Keyring, Opener, Route, Sealer, Suite};
use bumpless_wire::envelope::WITNESS;
use bumpless_wire::{EnvelopeHeader, WitnessReply, parse};

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

/// One secret has a ring of its own: who has another one can use up none of its room.
struct PerKey<S: Suite> {
    keys: Keyring<S>,
    opener: Opener<S>,
    sealer: Sealer<S>,
}

impl<S: Suite> Envelopes<S> {
    /// Envelopes by each of `keys`, with an origin for each that **must be random** (N-3); with `open`, requests in the
    /// open are heard, too.
    pub fn new(
        keys: impl IntoIterator<Item = (Keyring<S>, u64)>,
        open: bool,
        now: Instant,
    ) -> Self {
        let route = Route {
            from: None,
            to: WITNESS,
            link: None,
        };
        let keys = keys.into_iter().map(|(keys, origin)| PerKey {
            opener: Opener::new(route, PROCESSES, now),
            sealer: Sealer::new(&keys, WITNESS, origin),
            keys,
        });
        Self {
            keys: keys.collect(),
            open,
        }
    }

    /// The message in `datagram`, and how an answer goes back.
    ///
    /// # Errors
    /// Under what to count its discard.
    pub fn open<'a>(
        &mut self,
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
        let message = with.opener.open(&with.keys, datagram, now);
        let way = Way::Sealed {
            key,
            to: header.from,
            link: header.link,
        };
        message.map(|message| (way, message)).map_err(counter)
    }

    /// The datagram for an answer of `len` bytes, which lies in `room` after [`EnvelopeHeader::LEN`] bytes. `None`: it
    /// must not go.
    pub fn seal<'a>(&mut self, way: Way, room: &'a mut [u8; ROOM], len: usize) -> Option<&'a [u8]> {
        let Way::Sealed { key, to, link } = way else {
            return room.get(EnvelopeHeader::LEN..EnvelopeHeader::LEN + len);
        };
        let with = self.keys.get_mut(key)?;
        let datagram = room.get_mut(..len + EnvelopeHeader::OVERHEAD)?;
        with.sealer.seal(&with.keys, (to, link), datagram).ok()?;
        Some(datagram)
    }
}

//! What protects messages on one network: an envelope around each, or nothing (spec/security.md).

use std::fmt;
use std::sync::Arc;

use bumpless_base::{Counter, Duration, Instant, LinkId, NodeId, PeerId};
use bumpless_net_linux::Segment;
use bumpless_secure::{
    Destination, Keyring, Opener, Refusal, Route, SealError, Sealer, Suite, place,
};
use bumpless_wire::envelope::WITNESS;
use bumpless_wire::{EnvelopeHeader, MAX_ACK_LEN, MAX_HEARTBEAT_LEN};

use super::addresses::{Addresses, Correspondent};

/// Most packets handed to the kernel in one call: a little under 64 kB of full frames.
pub const BURST: usize = 44;
/// Processes of one correspondent whose keys are kept.
const PROCESSES: usize = 4;
/// A partner that is there and configured otherwise shows it far more often: what it showed is of the past after this.
const MISMATCH_HOLDS: Duration = Duration::from_secs(2);

/// How what a partner sends differs from what this node expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Its messages are not protected, and must be.
    Unprotected,
    /// Its messages are protected, and this node's are not.
    Protected,
    /// It seals with the key of this identifier, which this node does not have.
    UnknownKey(u16),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unprotected => f.write_str(
                "its messages are open and ours protected; give both the same [security]",
            ),
            Self::Protected => f.write_str(
                "its messages are protected and ours open; give both the same [security]",
            ),
            Self::UnknownKey(key) => {
                write!(
                    f,
                    "it seals with key {key:04x}, which is not among ours; give both the same keys"
                )
            }
        }
    }
}

/// What protects messages on one network.
pub struct Protection<S: Suite> {
    /// `None`: nothing.
    envelopes: Option<Envelopes<S>>,
    /// By partner: what is wrong with the message that came last from its address, and when it came.
    mismatches: Box<[Option<(Mismatch, Instant)>]>,
}

/// Whose messages on which network are sealed.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// This node.
    pub node: NodeId,
    /// The network.
    pub link: LinkId,
    /// **Random for each start and each network**, or the cipher is broken (N-3).
    pub origin: u64,
}

impl<S: Suite> Protection<S> {
    /// None, for so many partners.
    pub fn none(partners: usize) -> Self {
        Self {
            envelopes: None,
            mismatches: vec![None; partners].into(),
        }
    }

    /// Envelopes by `keys` around messages of at most `message_max` bytes between `sender` and those with `addresses`.
    /// All memory is taken here.
    pub fn sealed(
        keys: &Arc<Keyring<S>>,
        sender: Sender,
        addresses: &Addresses,
        message_max: u16,
        now: Instant,
    ) -> Self {
        let opener = |from: u8, place: u32| {
            let route = Route {
                from: Some(from),
                to: sender.node.0,
                link: Some(sender.link),
                place,
            };
            Opener::new(route, PROCESSES, now)
        };
        let partners = addresses.nodes.iter().zip(&addresses.partners);
        let partners = partners.map(|(node, there)| there.map(|_| opener(node.0, 0)));
        let places = addresses.references.iter().map(|there| there.map(place));
        let references = places.clone();
        let references = references.map(|place| place.map(|place| opener(WITNESS, place)));
        // Where the configured MTU is small, these may pass all the same (W-6).
        let longest = usize::from(message_max)
            .max(MAX_ACK_LEN)
            .max(MAX_HEARTBEAT_LEN);
        let slot = longest + EnvelopeHeader::OVERHEAD;
        let envelopes = Envelopes {
            keys: Arc::clone(keys),
            sealer: Sealer::new(keys, sender.node.0, sender.origin),
            nodes: addresses.nodes.clone().into(),
            openers: Openers {
                partners: partners.collect(),
                references: references.collect(),
            },
            places: places.map(Option::unwrap_or_default).collect(),
            link: sender.link,
            room: vec![0; BURST * slot].into(),
            slot,
            lens: [0; BURST],
        };
        Self {
            envelopes: Some(envelopes),
            ..Self::none(addresses.nodes.len())
        }
    }

    /// What is wrong with the message that came last from the address of `peer`.
    pub fn mismatch(&self, peer: PeerId) -> Option<Mismatch> {
        let (mismatch, _) = (*self.mismatches.get(usize::from(peer.0))?)?;
        Some(mismatch)
    }

    /// Forgets what was wrong with messages when none has come since for a while: a partner that has gone is not one
    /// that is configured otherwise.
    pub fn forget_mismatches(&mut self, now: Instant) {
        for known in &mut self.mismatches {
            *known = known.filter(|&(_, came)| now.since(came) < MISMATCH_HOLDS);
        }
    }

    /// The message in `datagram`, which has come from the address of `source`.
    ///
    /// # Errors
    /// Under what to count its discard.
    pub fn open<'a>(
        &mut self,
        source: Correspondent,
        datagram: &'a mut [u8],
        now: Instant,
    ) -> Result<&'a [u8], Counter> {
        let opened = match &mut self.envelopes {
            Some(envelopes) => envelopes.open(source, datagram, now),
            None if EnvelopeHeader::is_one(datagram) => {
                Err((Some(Mismatch::Protected), Counter::DiscardProtected))
            }
            None => Ok(&*datagram),
        };
        let mismatch = match &opened {
            Ok(_) => Some(None),
            Err((mismatch, _)) => mismatch.map(|mismatch| Some((mismatch, now))),
        };
        if let (Some(mismatch), Correspondent::Partner(peer)) = (mismatch, source)
            && let Some(known) = self.mismatches.get_mut(usize::from(peer.0))
        {
            *known = mismatch;
        }
        opened.map_err(|(_, counter)| counter)
    }

    /// What was opened last of `source` shows that it is there at present: its process is not forgotten for others.
    pub fn confirm(&mut self, source: Correspondent) {
        let envelopes = self.envelopes.as_mut();
        if let Some(opener) = envelopes.and_then(|envelopes| envelopes.openers.of(source)) {
            opener.confirm();
        }
    }

    /// Seals `messages` for `to`, at most [`BURST`]. `None`: they go as they are.
    ///
    /// # Errors
    /// [`SealError`]: they must not go.
    pub fn seal(
        &mut self,
        to: Correspondent,
        messages: &[Segment<'_>],
    ) -> Result<Option<Sealed<'_>>, SealError> {
        match &mut self.envelopes {
            None => Ok(None),
            Some(envelopes) => envelopes.seal(to, messages).map(Some),
        }
    }
}

/// Sealed datagrams, one in each slot.
pub struct Sealed<'a> {
    room: &'a [u8],
    slot: usize,
    lens: &'a [usize],
}

impl<'a> Sealed<'a> {
    /// The datagrams, in `segments` for several.
    pub fn datagrams<'s>(&self, segments: &'s mut [Segment<'a>]) -> &'s [Segment<'a>] {
        let slots = self.room.chunks(self.slot).zip(self.lens);
        let mut count = 0;
        for (segment, (slot, &len)) in segments.iter_mut().zip(slots) {
            *segment = Segment {
                header: &slot[..len],
                payload: &[],
            };
            count += 1;
        }
        &segments[..count]
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.lens.len()
    }
}

struct Envelopes<S: Suite> {
    keys: Arc<Keyring<S>>,
    sealer: Sealer<S>,
    link: LinkId,
    /// The partners' numbers.
    nodes: Box<[NodeId]>,
    openers: Openers<S>,
    /// Where the witnesses are, by reference point.
    places: Box<[u32]>,
    /// Datagrams of one burst, in slots of one length.
    room: Box<[u8]>,
    slot: usize,
    lens: [usize; BURST],
}

/// What opens the envelopes of each sender.
struct Openers<S: Suite> {
    /// By partner; `None`: not on this network.
    partners: Box<[Option<Opener<S>>]>,
    /// By reference point; `None`: no witness, or on another network.
    references: Box<[Option<Opener<S>>]>,
}

impl<S: Suite> Openers<S> {
    fn of(&mut self, source: Correspondent) -> Option<&mut Opener<S>> {
        let opener = match source {
            Correspondent::Partner(peer) => self.partners.get_mut(usize::from(peer.0)),
            Correspondent::Reference(at) => self.references.get_mut(usize::from(at)),
        };
        opener?.as_mut()
    }
}

impl<S: Suite> Envelopes<S> {
    fn open<'a>(
        &mut self,
        source: Correspondent,
        datagram: &'a mut [u8],
        now: Instant,
    ) -> Result<&'a [u8], (Option<Mismatch>, Counter)> {
        let Some(opener) = self.openers.of(source) else {
            return Err((None, Counter::DiscardUnknownSource));
        };
        let opened = opener.open(&self.keys, datagram, now);
        opened.map_err(|refusal| (mismatch(refusal), counter(refusal)))
    }

    fn destination(&self, to: Correspondent) -> Option<Destination> {
        let (number, place) = match to {
            Correspondent::Partner(peer) => (self.nodes.get(usize::from(peer.0))?.0, 0),
            Correspondent::Reference(at) => (WITNESS, *self.places.get(usize::from(at))?),
        };
        Some(Destination {
            to: number,
            link: self.link,
            place,
        })
    }

    fn seal(
        &mut self,
        to: Correspondent,
        messages: &[Segment<'_>],
    ) -> Result<Sealed<'_>, SealError> {
        let there = self.destination(to).ok_or(SealError::NoRoom)?;
        let slots = self.room.chunks_exact_mut(self.slot).zip(&mut self.lens);
        let mut count = 0;
        for (message, (slot, sealed_len)) in messages.iter().zip(slots) {
            let len = EnvelopeHeader::OVERHEAD + message.len();
            let datagram = slot.get_mut(..len).ok_or(SealError::NoRoom)?;
            let body = &mut datagram[EnvelopeHeader::LEN..];
            let (header, rest) = body.split_at_mut(message.header.len());
            header.copy_from_slice(message.header);
            rest[..message.payload.len()].copy_from_slice(message.payload);
            self.sealer.seal(&self.keys, there, datagram)?;
            *sealed_len = len;
            count += 1;
        }
        Ok(Sealed {
            room: &self.room,
            slot: self.slot,
            lens: &self.lens[..count],
        })
    }
}

/// What `refusal` says of how the sender is configured.
const fn mismatch(refusal: Refusal) -> Option<Mismatch> {
    match refusal {
        Refusal::Unprotected => Some(Mismatch::Unprotected),
        Refusal::UnknownKey(key) => Some(Mismatch::UnknownKey(key)),
        _ => None,
    }
}

/// Under what the discard of what was refused is counted (N-9).
pub const fn counter(refusal: Refusal) -> Counter {
    match refusal {
        Refusal::Wire(error) => error.counter(),
        Refusal::Unprotected => Counter::DiscardUnprotected,
        Refusal::UnknownKey(_) => Counter::DiscardUnknownKey,
        Refusal::Misdirected => Counter::DiscardMisdirected,
        Refusal::Forged => Counter::DiscardForged,
        Refusal::Replayed => Counter::DiscardReplayed,
        Refusal::TooManyUnknown => Counter::DiscardUntried,
    }
}

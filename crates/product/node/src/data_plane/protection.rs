//! What protects messages on one network: an envelope around each, or nothing (spec/security.md).

mod mismatch;

use std::sync::Arc;

use bumpless_base::{Counter, Duration, Instant, LinkId, NodeId, PeerId};
use bumpless_management::SECRETS_MAX;
use bumpless_net_linux::Segment;
use bumpless_secure::{
    Destination, Keyring, Opener, Refusal, Route, SealError, Sealer, SealingKey, Suite, place,
};
use bumpless_wire::envelope::WITNESS;
use bumpless_wire::{EnvelopeHeader, MAX_ACK_LEN, MAX_HEARTBEAT_LEN};

pub use self::mismatch::Mismatch;
use super::addresses::{Addresses, Correspondent};

/// Most packets handed to the kernel in one call: a little under 64 kB of full frames.
pub const BURST: usize = 44;
/// Processes of one correspondent whose keys are kept; one that changes its secret counts with each that is still opened with.
/// What is forgotten of one could be repeated as long as its secret opens.
const PROCESSES: usize = 4 + SECRETS_MAX;
/// A partner that is there and configured otherwise shows it far more often: what it showed is of the past after this.
const MISMATCH_HOLDS: Duration = Duration::from_secs(2);

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
        let mut made = Self::keyless(sender, addresses, message_max, now);
        if let Some(envelopes) = &mut made.envelopes {
            for correspondence in envelopes.correspondences.all() {
                correspondence.set_keys(keys, Use::SealAndOpen, now);
            }
        }
        made
    }

    /// As [`sealed`](Self::sealed), but no key is known yet: nothing is opened and nothing leaves before
    /// [`set_keys`](Self::set_keys).
    pub fn keyless(sender: Sender, addresses: &Addresses, message_max: u16, now: Instant) -> Self {
        // Where the configured MTU is small, these may pass all the same (W-6).
        let longest = usize::from(message_max)
            .max(MAX_ACK_LEN)
            .max(MAX_HEARTBEAT_LEN);
        let slot = longest + EnvelopeHeader::OVERHEAD;
        let envelopes = Envelopes {
            sealer: Sealer::new(sender.node.0, sender.origin),
            correspondences: Correspondences::new(sender, addresses, now),
            room: vec![0; BURST * slot].into(),
            slot,
            lens: [0; BURST],
        };
        Self {
            envelopes: Some(envelopes),
            ..Self::none(addresses.nodes.len())
        }
    }

    /// What is exchanged with `correspondent` from here on is opened with `keys`, and sealed with the first one if `way`
    /// says so. Without envelopes nothing is done.
    pub fn set_keys(
        &mut self,
        correspondent: Correspondent,
        keys: &Arc<Keyring<S>>,
        way: Use,
        now: Instant,
    ) {
        let envelopes = self.envelopes.as_mut();
        let with = envelopes.and_then(|envelopes| envelopes.correspondences.of(correspondent));
        if let Some(correspondence) = with {
            correspondence.set_keys(keys, way, now);
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
        if let Some(with) = envelopes.and_then(|envelopes| envelopes.correspondences.of(source)) {
            with.opener.confirm();
        }
    }

    /// Seals `messages` for `to`, at most [`BURST`]. `None`: they go as they are.
    ///
    /// # Errors
    /// [`Unsealed`]: they must not go.
    pub fn seal(
        &mut self,
        to: Correspondent,
        messages: &[Segment<'_>],
    ) -> Result<Option<Sealed<'_>>, Unsealed> {
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

/// Why messages must not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// There is no key for whom they are yet.
    NoKey,
    /// They cannot be sealed.
    Refused(SealError),
}

impl From<SealError> for Unsealed {
    fn from(error: SealError) -> Self {
        Self::Refused(error)
    }
}

/// What keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Opening only: the correspondent is not known to have them.
    Open,
    /// Both.
    SealAndOpen,
    /// Nothing any more: who has them is not believed.
    Nothing,
}

struct Envelopes<S: Suite> {
    sealer: Sealer,
    correspondences: Correspondences<S>,
    /// Datagrams of one burst, in slots of one length.
    room: Box<[u8]>,
    slot: usize,
    lens: [usize; BURST],
}

/// What protects what is exchanged with one correspondent on one network.
struct Correspondence<S: Suite> {
    /// `None`: none is known yet.
    keys: Option<(Arc<Keyring<S>>, Use)>,
    sealing: SealingKey<S>,
    opener: Opener<S>,
    there: Destination,
}

impl<S: Suite> Correspondence<S> {
    /// What `sender` exchanges with who has this number and place.
    fn new(sender: Sender, (number, place): (u8, u32), now: Instant) -> Self {
        let route = Route {
            from: Some(number),
            to: sender.node.0,
            link: Some(sender.link),
            place,
        };
        Self {
            keys: None,
            sealing: SealingKey::default(),
            opener: Opener::new(route, PROCESSES, now),
            there: Destination {
                to: number,
                link: sender.link,
                place,
            },
        }
    }

    fn set_keys(&mut self, keys: &Arc<Keyring<S>>, way: Use, now: Instant) {
        self.opener.set_keys(keys, now);
        self.sealing = SealingKey::default();
        self.keys = (way != Use::Nothing).then(|| (Arc::clone(keys), way));
    }
}

/// Those with whom a node exchanges messages on one network; `None`: not on this one.
struct Correspondences<S: Suite> {
    /// By partner.
    partners: Box<[Option<Correspondence<S>>]>,
    /// By reference point; `None` too if it is no witness.
    references: Box<[Option<Correspondence<S>>]>,
}

impl<S: Suite> Correspondences<S> {
    fn new(sender: Sender, addresses: &Addresses, now: Instant) -> Self {
        let made = |number_and_place| Correspondence::new(sender, number_and_place, now);
        let partners = addresses.nodes.iter().zip(&addresses.partners);
        let references = addresses.references.iter();
        Self {
            partners: partners
                .map(|(node, there)| there.map(|_| made((node.0, 0))))
                .collect(),
            references: references
                .map(|there| there.map(|there| made((WITNESS, place(there)))))
                .collect(),
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Correspondence<S>> {
        self.partners
            .iter_mut()
            .chain(&mut self.references)
            .flatten()
    }

    fn of(&mut self, correspondent: Correspondent) -> Option<&mut Correspondence<S>> {
        let correspondence = match correspondent {
            Correspondent::Partner(peer) => self.partners.get_mut(usize::from(peer.0)),
            Correspondent::Reference(at) => self.references.get_mut(usize::from(at)),
        };
        correspondence?.as_mut()
    }
}

impl<S: Suite> Envelopes<S> {
    fn open<'a>(
        &mut self,
        source: Correspondent,
        datagram: &'a mut [u8],
        now: Instant,
    ) -> Result<&'a [u8], (Option<Mismatch>, Counter)> {
        let Some(with) = self.correspondences.of(source) else {
            return Err((None, Counter::DiscardUnknownSource));
        };
        let Some((keys, _)) = &with.keys else {
            return Err((None, Counter::DiscardUnknownKey));
        };
        let opened = with.opener.open(keys, datagram, now);
        opened.map_err(|refusal| (mismatch(refusal), counter(refusal)))
    }

    fn seal(
        &mut self,
        to: Correspondent,
        messages: &[Segment<'_>],
    ) -> Result<Sealed<'_>, Unsealed> {
        let with = self.correspondences.of(to).ok_or(SealError::NoRoom)?;
        let Some((keys, Use::SealAndOpen)) = &with.keys else {
            return Err(Unsealed::NoKey);
        };
        let slots = self.room.chunks_exact_mut(self.slot).zip(&mut self.lens);
        let mut count = 0;
        for (message, (slot, sealed_len)) in messages.iter().zip(slots) {
            let len = EnvelopeHeader::OVERHEAD + message.len();
            let datagram = slot.get_mut(..len).ok_or(SealError::NoRoom)?;
            let body = &mut datagram[EnvelopeHeader::LEN..];
            let (header, rest) = body.split_at_mut(message.header.len());
            header.copy_from_slice(message.header);
            rest[..message.payload.len()].copy_from_slice(message.payload);
            let sealing = (&**keys, &mut with.sealing);
            self.sealer.seal(sealing, with.there, datagram)?;
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

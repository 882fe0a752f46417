//! Control messages between hosts that share a key: sealed whole, and taken only if they are of the present.
//!
//! A frame is an envelope (`spec/security.md`, N-1) around a challenge of its sender's, the last challenge that it has seen of the addressee,
//! the sender's addresses by network, and a message. A process that is not known yet is believed when it repeats a challenge of this one's that is
//! some seconds old at most: what was recorded before does not. From then on each of its frames is taken once. Whoever is known
//! is written to on every network that both have, and takes the first copy.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant, LinkId, Random};
use bumpless_iprp::{Ind, MAX_MESSAGE, MAX_NETWORKS, PeerId};
use bumpless_secure::{
    Destination, Keyring, Opener, Refusal, RingSuite, Route, SealError, Sealer, SealingKey,
};
use bumpless_wire::EnvelopeHeader;

/// First byte of what is sealed.
pub const VERSION: u8 = 1;
/// Longest frame.
pub const FRAME_MAX: usize = EnvelopeHeader::OVERHEAD + FIXED + MAX_NETWORKS * 18 + MAX_MESSAGE;
/// Version, kind, two challenges, number of addresses.
const FIXED: usize = 1 + 1 + 8 + 8 + 1;
/// What is sealed for iPRP opens nowhere else, though the secret may be a pair's, too.
const PLACE: u32 = 0x6950_5250;
/// For how long a challenge is given out; it is good for twice that.
const CHALLENGE: Duration = Duration::from_secs(5);
/// Messages that nobody can have taken wait for this long for their addressee to show itself.
const WAIT: Duration = Duration::from_secs(5);
const WAITING_MAX: usize = 1024;
/// Processes that are known at most; the one that was silent for longest is forgotten.
const MEMBERS_MAX: usize = 1024;
/// Processes whose keys are at hand.
const OPENED_MAX: usize = 256;
/// Frames of a process that may overtake each other.
const WINDOW: u64 = 64;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing but its challenges.
    Hello,
    /// The addressee's sender.
    ForSender,
    /// The addressee's receiver.
    ForReceiver,
    /// An answer is asked for, on the same network.
    Ping,
    /// Such an answer.
    Pong,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Hello,
        Self::ForSender,
        Self::ForReceiver,
        Self::Ping,
        Self::Pong,
    ];
}

/// The host's end of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Which network.
    pub ind: Ind,
    /// The address there.
    pub address: IpAddr,
}

/// A frame that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// On which of the host's networks, as numbered at the start.
    pub card: usize,
    /// To which host.
    pub to: IpAddr,
    /// The frame.
    pub bytes: &'a [u8],
}

/// A message that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// From which process.
    pub peer: PeerId,
    /// What it is for.
    pub kind: Kind,
    /// Addresses that its host says it has.
    pub addresses: Vec<IpAddr>,
    /// The message.
    pub message: Vec<u8>,
}

/// Why a frame says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not open.
    Envelope(Refusal),
    /// It is of another version.
    Version(u8),
    /// It does not keep to its format.
    Malformed,
    /// It repeats none of this process's challenges; it was asked to.
    NotFresh,
    /// It has come before, on another network say.
    Repeated,
    /// It is this process's own.
    Own,
}

struct Member {
    peer: PeerId,
    /// What it has told last.
    challenge: u64,
    cards: Vec<Card>,
    /// The highest number of its frames, and which of those before it have come.
    highest: u64,
    seen: u64,
    heard: Instant,
}

struct Waiting {
    to: IpAddr,
    kind: Kind,
    message: Vec<u8>,
    until: Instant,
}

/// What is sent by [`Closed`].
pub type Emit<'a> = &'a mut dyn FnMut(Outgoing<'_>);

/// This process among those that have the key.
pub struct Closed {
    ring: Keyring<RingSuite>,
    sealing: SealingKey<RingSuite>,
    sealer: Sealer,
    opener: Opener<RingSuite>,
    own: u64,
    random: Random,
    /// The present one and the one before.
    challenges: [u64; 2],
    renewed: Instant,
    cards: Vec<Card>,
    members: BTreeMap<u64, Member>,
    /// Which process is the latest one at an address.
    at: BTreeMap<IpAddr, u64>,
    waiting: VecDeque<Waiting>,
    next_peer: u32,
}

impl Closed {
    /// A process with these keys and networks. `origin` and `seed` are random, others at each start.
    pub fn new(
        ring: Keyring<RingSuite>,
        cards: Vec<Card>,
        (origin, seed): (u64, u64),
        now: Instant,
    ) -> Self {
        let route = Route {
            from: Some(0),
            to: 0,
            link: None,
            place: PLACE,
        };
        let mut random = Random::new(seed);
        Self {
            ring,
            sealing: SealingKey::default(),
            sealer: Sealer::new(0, origin),
            opener: Opener::new(route, OPENED_MAX, now),
            own: origin,
            challenges: [random.next_u64().max(1), random.next_u64().max(1)],
            random,
            renewed: now,
            cards,
            members: BTreeMap::new(),
            at: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_peer: 0,
        }
    }

    /// The host's networks are these from here on.
    pub fn set_cards(&mut self, cards: Vec<Card>) {
        self.cards = cards;
    }

    /// Where the host at `address` is on each network that both have: number of this host's card, and address.
    pub fn ways(&self, address: IpAddr) -> Vec<(usize, IpAddr)> {
        let member = self
            .at
            .get(&address)
            .and_then(|origin| self.members.get(origin));
        let Some(member) = member else {
            return Vec::new();
        };
        let cards = self.cards.iter().enumerate();
        cards
            .filter_map(|(number, card)| {
                let mut theirs = member.cards.iter();
                let theirs = theirs.find(|it| it.ind == card.ind)?;
                Some((number, theirs.address))
            })
            .collect()
    }

    /// Sends `message` to the host at `to`, on every network. If it is not known, it is asked to show itself first.
    pub fn send(&mut self, now: Instant, to: IpAddr, kind: Kind, message: &[u8], emit: Emit<'_>) {
        self.wait_with(now, to, kind, message);
        self.send_now(now, to, kind, message, emit);
    }

    /// Sends `message` on one network only.
    pub fn send_on(
        &mut self,
        now: Instant,
        (card, to): (usize, IpAddr),
        kind: Kind,
        message: &[u8],
        emit: Emit<'_>,
    ) {
        let echo = self.echo_for(to);
        if let Ok(bytes) = self.seal(now, kind, echo, message) {
            let bytes = &bytes;
            emit(Outgoing { card, to, bytes });
        }
    }

    fn send_now(&mut self, now: Instant, to: IpAddr, kind: Kind, message: &[u8], emit: Emit<'_>) {
        let ways = self.ways(to);
        let echo = self.echo_for(to);
        let (kind, message) = match ways.is_empty() {
            true => (Kind::Hello, &[][..]),
            false => (kind, message),
        };
        let Ok(bytes) = self.seal(now, kind, echo, message) else {
            return;
        };
        for (card, to) in self.all_ways(ways, to) {
            let bytes = &bytes;
            emit(Outgoing { card, to, bytes });
        }
    }

    /// `ways`, or if there are none every card, to `to`.
    fn all_ways(&self, ways: Vec<(usize, IpAddr)>, to: IpAddr) -> Vec<(usize, IpAddr)> {
        if !ways.is_empty() {
            return ways;
        }
        let cards = self.cards.iter().enumerate();
        let able = cards.filter(|(_, card)| card.address.is_ipv4() == to.is_ipv4());
        able.map(|(number, _)| (number, to)).collect()
    }

    fn echo_for(&self, to: IpAddr) -> u64 {
        let member = self.at.get(&to).and_then(|origin| self.members.get(origin));
        member.map_or(0, |member| member.challenge)
    }

    fn wait_with(&mut self, now: Instant, to: IpAddr, kind: Kind, message: &[u8]) {
        self.waiting.retain(|it| it.until > now);
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting {
            to,
            kind,
            message: message.to_vec(),
            until: now + WAIT,
        });
    }

    fn seal(
        &mut self,
        now: Instant,
        kind: Kind,
        echo: u64,
        message: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        self.renew(now);
        let mut bytes = vec![0; EnvelopeHeader::LEN];
        bytes.extend([VERSION, kind as u8]);
        bytes.extend(self.challenges[0].to_be_bytes());
        bytes.extend(echo.to_be_bytes());
        bytes.push(self.cards.len() as u8);
        for card in &self.cards {
            bytes.push(card.ind.get());
            match card.address {
                IpAddr::V4(v4) => {
                    bytes.push(4);
                    bytes.extend(v4.octets());
                }
                IpAddr::V6(v6) => {
                    bytes.push(16);
                    bytes.extend(v6.octets());
                }
            }
        }
        bytes.extend(message);
        bytes.extend([0; EnvelopeHeader::TAG_LEN]);
        let destination = Destination {
            to: 0,
            link: LinkId(0),
            place: PLACE,
        };
        self.sealer
            .seal((&self.ring, &mut self.sealing), destination, &mut bytes)?;
        Ok(bytes)
    }

    fn renew(&mut self, now: Instant) {
        if now.since(self.renewed) >= CHALLENGE {
            self.challenges = [self.random.next_u64().max(1), self.challenges[0]];
            self.renewed = now;
        }
    }

    /// A frame came on the network `card`, from `from`. What it says, if it says something.
    ///
    /// # Errors
    /// Why it says nothing. It may have been answered.
    pub fn receive(
        &mut self,
        now: Instant,
        (card, from): (usize, SocketAddr),
        datagram: &mut [u8],
        emit: Emit<'_>,
    ) -> Result<Option<Received>, Refused> {
        let wire = |error| Refused::Envelope(Refusal::Wire(error));
        let header = EnvelopeHeader::parse(datagram).map_err(wire)?;
        if header.origin == self.own {
            return Err(Refused::Own);
        }
        let opened = self.opener.open(&self.ring, datagram, now);
        let frame = match opened {
            Ok(bytes) => Frame::read(bytes)?,
            // The same frame on another network.
            Err(Refusal::Replayed) => return Err(Refused::Repeated),
            Err(refusal) => return Err(Refused::Envelope(refusal)),
        };
        self.renew(now);
        let is_fresh = self.challenges.contains(&frame.echo);
        let answer_to = (card, from.ip());
        let is_new = !self.members.contains_key(&header.origin);
        if is_new {
            if !is_fresh {
                self.answer(now, answer_to, frame.challenge, emit);
                return Err(Refused::NotFresh);
            }
            self.introduce(now, header.origin, &frame);
        }
        let Some(member) = self.members.get_mut(&header.origin) else {
            return Err(Refused::NotFresh);
        };
        if !member.note(header.counter) {
            return Err(Refused::Repeated);
        }
        member.heard = now;
        member.challenge = frame.challenge;
        let is_elsewhere = is_new || member.cards != frame.cards;
        member.cards.clone_from(&frame.cards);
        let peer = member.peer;
        if is_elsewhere {
            self.move_to(header.origin, &frame.cards);
            // What was sent to the process that was there before may have been lost with that, too.
            self.flush(now, &frame.cards, emit);
        }
        if frame.kind == Kind::Hello {
            if !is_fresh {
                self.answer(now, answer_to, frame.challenge, emit);
            }
            return Ok(None);
        }
        Ok(Some(Received {
            peer,
            kind: frame.kind,
            addresses: frame.cards.iter().map(|card| card.address).collect(),
            message: frame.message.to_vec(),
        }))
    }

    /// Tells who has sent a frame how to show that it is of the present.
    fn answer(&mut self, now: Instant, (card, to): (usize, IpAddr), echo: u64, emit: Emit<'_>) {
        if let Ok(bytes) = self.seal(now, Kind::Hello, echo, &[]) {
            let bytes = &bytes;
            emit(Outgoing { card, to, bytes });
        }
    }

    fn introduce(&mut self, now: Instant, origin: u64, frame: &Frame<'_>) {
        if self.members.len() == MEMBERS_MAX {
            let by_silence = self.members.iter().min_by_key(|(_, it)| it.heard);
            if let Some(oldest) = by_silence.map(|(origin, _)| *origin) {
                self.members.remove(&oldest);
                self.at.retain(|_, at| *at != oldest);
            }
        }
        self.next_peer = self.next_peer.wrapping_add(1);
        let member = Member {
            peer: PeerId(self.next_peer),
            challenge: frame.challenge,
            cards: frame.cards.clone(),
            highest: 0,
            seen: 0,
            heard: now,
        };
        self.members.insert(origin, member);
    }

    /// A process is at these addresses from here on, and at no other.
    fn move_to(&mut self, origin: u64, cards: &[Card]) {
        self.at.retain(|_, at| *at != origin);
        for card in cards {
            self.at.insert(card.address, origin);
        }
    }

    /// Sends what has waited for the host with these addresses.
    fn flush(&mut self, now: Instant, cards: &[Card], emit: Emit<'_>) {
        let is_theirs = |it: &Waiting| cards.iter().any(|card| card.address == it.to);
        let (theirs, others) = self
            .waiting
            .drain(..)
            .partition::<VecDeque<_>, _>(is_theirs);
        self.waiting = others;
        for it in theirs.into_iter().filter(|it| it.until > now) {
            self.send_now(now, it.to, it.kind, &it.message, emit);
        }
    }
}

impl Member {
    /// Whether a frame with this number has not come yet; from here on it has.
    fn note(&mut self, number: u64) -> bool {
        // Numbers begin at 0, which is written as 1 here.
        let number = number + 1;
        if number > self.highest {
            let ahead = number - self.highest;
            self.seen = if ahead < WINDOW {
                self.seen << ahead
            } else {
                0
            };
            self.seen |= 1;
            self.highest = number;
            return true;
        }
        let behind = self.highest - number;
        if behind >= WINDOW || self.seen >> behind & 1 == 1 {
            return false;
        }
        self.seen |= 1 << behind;
        true
    }
}

struct Frame<'a> {
    kind: Kind,
    challenge: u64,
    echo: u64,
    cards: Vec<Card>,
    message: &'a [u8],
}

impl<'a> Frame<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Refused> {
        let (&version, rest) = bytes.split_first().ok_or(Refused::Malformed)?;
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        Self::read_rest(rest).ok_or(Refused::Malformed)
    }

    fn read_rest(rest: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = rest.split_first()?;
        let (challenge, rest) = rest.split_first_chunk()?;
        let (echo, rest) = rest.split_first_chunk()?;
        let (&count, mut rest) = rest.split_first()?;
        let mut cards = Vec::new();
        for _ in 0..count {
            let (&[ind, len], behind) = rest.split_first_chunk()?;
            let ind = Ind::new(ind)?;
            let address = match len {
                4 => IpAddr::from(*behind.first_chunk::<4>()?),
                16 => IpAddr::from(*behind.first_chunk::<16>()?),
                _ => return None,
            };
            rest = behind.get(usize::from(len)..)?;
            cards.push(Card { ind, address });
        }
        (cards.len() <= MAX_NETWORKS).then_some(())?;
        Some(Self {
            kind: *Kind::ALL.get(usize::from(kind))?,
            challenge: u64::from_be_bytes(*challenge),
            echo: u64::from_be_bytes(*echo),
            cards,
            message: rest,
        })
    }
}

#[cfg(test)]
mod tests;

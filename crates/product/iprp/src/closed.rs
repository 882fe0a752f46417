//! Control messages between hosts that share a key, all one or each two their own: sealed whole, and taken only if they are of
//! the present.
//!
//! A frame is an envelope (`spec/security.md`, N-1) around a challenge of its sender's, the last challenge that it has seen of the addressee,
//! the sender's addresses by network, and a message. A process that is not known yet is believed when it repeats a challenge of this one's that is
//! some seconds old at most: what was recorded before does not. From then on each of its frames is taken once. Whoever is known
//! is written to on every network that both have, and takes the first copy.

mod channel;
mod frame;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant, Random};
use bumpless_iprp::PeerId;
use bumpless_secure::{Refusal, Sealer, Secret};
use bumpless_wire::EnvelopeHeader;

use frame::Unreadable;

pub use channel::{Channel, Channels};
pub use frame::{Card, FRAME_MAX, Frame, Kind, VERSION};

/// For how long a challenge is given out; it is good for twice that.
const CHALLENGE: Duration = Duration::from_secs(5);
/// Messages that nobody can have taken wait for this long for their addressee to show itself.
const WAIT: Duration = Duration::from_secs(5);
const WAITING_MAX: usize = 1024;
/// Processes that are known at most; the one that was silent for longest is forgotten.
const MEMBERS_MAX: usize = 1024;
/// Addresses that are waiting to be called.
const WANTED_MAX: usize = 64;
/// Frames of a process that may overtake each other.
const WINDOW: u64 = 64;

/// A host that has a key of its own with this one, by the name in its certificate; never another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// A host to which something is to be said: if there is no session with it, it is to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// At which address.
    pub to: IpAddr,
    /// On the networks that both have, as far as is known: this host's address and the other's.
    pub ways: Vec<(IpAddr, IpAddr)>,
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

impl From<Unreadable> for Refused {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Version(version) => Self::Version(version),
            Unreadable::Malformed => Self::Malformed,
        }
    }
}

/// A process: of which host, and its origin.
type MemberId = (HostId, u64);

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

/// This process among those that have a key.
pub struct Closed {
    channels: Channels,
    sealer: Sealer,
    own: u64,
    random: Random,
    /// The present one and the one before.
    challenges: [u64; 2],
    renewed: Instant,
    cards: Vec<Card>,
    members: BTreeMap<MemberId, Member>,
    /// Which process is the latest one at an address.
    at: BTreeMap<IpAddr, MemberId>,
    waiting: VecDeque<Waiting>,
    wanted: Vec<Wanted>,
    next_peer: u32,
}

impl Closed {
    /// A process with these keys and networks. `origin` and `seed` are random, others at each start.
    pub fn new(
        channels: Channels,
        cards: Vec<Card>,
        (origin, seed): (u64, u64),
        now: Instant,
    ) -> Self {
        let mut random = Random::new(seed);
        Self {
            channels,
            sealer: Sealer::new(0, origin),
            own: origin,
            challenges: [random.next_u64().max(1), random.next_u64().max(1)],
            random,
            renewed: now,
            cards,
            members: BTreeMap::new(),
            at: BTreeMap::new(),
            waiting: VecDeque::new(),
            wanted: Vec::new(),
            next_peer: 0,
        }
    }

    /// A session with `host` at `address` has given `secrets`: what it sends is opened with them from here on, and if `seals`,
    /// what leaves for it is sealed with the first one. `false`: another session has to give others.
    pub fn set_keys(
        &mut self,
        now: Instant,
        (host, address): (HostId, IpAddr),
        secrets: Vec<Secret>,
        seals: bool,
        emit: Emit<'_>,
    ) -> bool {
        let set = self.channels.set(now, (host, address), secrets, seals);
        if set {
            // Whoever else has said that the address is its own has not shown it.
            self.at
                .retain(|at, (other, _)| *at != address || *other == host);
        }
        if set && seals {
            self.send_now(now, address, Kind::Hello, &[], emit);
        }
        set
    }

    /// `host` is not believed any more. The addresses that it has had.
    pub fn forget_host(&mut self, host: HostId) -> Vec<IpAddr> {
        self.channels.forget(host);
        let theirs = |(_, (other, _)): &(&IpAddr, &MemberId)| *other == host;
        let had = self.at.iter().filter(theirs).map(|(at, _)| *at).collect();
        self.at.retain(|_, (other, _)| *other != host);
        self.members.retain(|(other, _), _| *other != host);
        had
    }

    /// To whom something was to be said since this was asked last.
    pub fn take_wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(&mut self.wanted)
    }

    /// The host's networks are these from here on.
    pub fn set_cards(&mut self, cards: Vec<Card>) {
        self.cards = cards;
    }

    /// Where the host at `address` is on each network that both have: number of this host's card, and address.
    pub fn ways(&self, address: IpAddr) -> Vec<(usize, IpAddr)> {
        let member = self.at.get(&address).and_then(|id| self.members.get(id));
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
        self.want(to);
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
        let host = self.host_at(to);
        if let Some(bytes) = host.and_then(|host| self.seal(now, host, kind, (echo, message))) {
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
        // Without a key with it, it is to be called first.
        let host = self.host_at(to);
        let Some(bytes) = host.and_then(|host| self.seal(now, host, kind, (echo, message))) else {
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
        let member = self.at.get(&to).and_then(|id| self.members.get(id));
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

    /// Whose key is for what goes to `address`.
    fn host_at(&self, address: IpAddr) -> Option<HostId> {
        let member = self.at.get(&address).map(|(host, _)| *host);
        member.or_else(|| self.channels.shown_at(address))
    }

    /// Whoever is at `to` is to be called if there is no session with it.
    fn want(&mut self, to: IpAddr) {
        let is_there = |it: &Wanted| it.to == to;
        let is_full = self.wanted.len() >= WANTED_MAX;
        if self.channels.is_shared() || is_full || self.wanted.iter().any(is_there) {
            return;
        }
        let ways = self.ways(to).into_iter();
        let ways = ways.filter_map(|(card, to)| Some((self.cards.get(card)?.address, to)));
        let ways = ways.collect();
        self.wanted.push(Wanted { to, ways });
    }

    /// `None`: there is no key with that host yet.
    fn seal(
        &mut self,
        now: Instant,
        host: HostId,
        kind: Kind,
        (echo, message): (u64, &[u8]),
    ) -> Option<Vec<u8>> {
        self.renew(now);
        let mut bytes = vec![0; EnvelopeHeader::LEN];
        let frame = Frame {
            kind,
            challenge: self.challenges[0],
            echo,
            cards: self.cards.clone(),
            message,
        };
        frame.write(&mut bytes);
        bytes.extend([0; EnvelopeHeader::TAG_LEN]);
        let sealed = self.channels.seal(host, &mut self.sealer, &mut bytes)?;
        sealed.ok().map(|()| bytes)
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
        let opened = self.channels.open(now, &header, datagram);
        let (host, mut frame) = match opened {
            Ok((host, bytes)) => (host, Frame::read(bytes)?),
            // The same frame on another network.
            Err(Refusal::Replayed) => return Err(Refused::Repeated),
            Err(refusal) => return Err(Refused::Envelope(refusal)),
        };
        let id = (host, header.origin);
        frame.cards.retain(|card| self.may_say(host, card.address));
        self.renew(now);
        let is_fresh = self.challenges.contains(&frame.echo);
        let answer_to = (card, from.ip());
        let is_new = !self.members.contains_key(&id);
        if is_new {
            if !is_fresh {
                self.answer(now, (host, answer_to), frame.challenge, emit);
                return Err(Refused::NotFresh);
            }
            self.introduce(now, id, &frame);
        }
        let Some(member) = self.members.get_mut(&id) else {
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
            self.move_to(id, &frame.cards);
            // What was sent to the process that was there before may have been lost with that, too.
            self.flush(now, &frame.cards, emit);
        }
        if frame.kind == Kind::Hello {
            if !is_fresh {
                self.answer(now, (host, answer_to), frame.challenge, emit);
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

    /// Whether `host` may say that `address` is its own. Who has a key of its own may not say so of an address at which another
    /// host has shown itself, or has been before.
    fn may_say(&self, host: HostId, address: IpAddr) -> bool {
        self.host_at(address).is_none_or(|other| other == host)
    }

    /// Tells who has sent a frame how to show that it is of the present.
    fn answer(
        &mut self,
        now: Instant,
        (host, (card, to)): (HostId, (usize, IpAddr)),
        echo: u64,
        emit: Emit<'_>,
    ) {
        if let Some(bytes) = self.seal(now, host, Kind::Hello, (echo, &[])) {
            let bytes = &bytes;
            emit(Outgoing { card, to, bytes });
        }
    }

    fn introduce(&mut self, now: Instant, id: MemberId, frame: &Frame<'_>) {
        if self.members.len() == MEMBERS_MAX {
            let by_silence = self.members.iter().min_by_key(|(_, it)| it.heard);
            if let Some(oldest) = by_silence.map(|(id, _)| *id) {
                self.members.remove(&oldest);
                self.at.retain(|_, at| *at != oldest);
            }
        }
        self.next_peer = self.next_peer.wrapping_add(1);
        let peer = match self.channels.is_shared() {
            true => PeerId(self.next_peer),
            // A host is the same one after a restart: its certificate says so.
            false => PeerId(id.0.0),
        };
        let member = Member {
            peer,
            challenge: frame.challenge,
            cards: frame.cards.clone(),
            highest: 0,
            seen: 0,
            heard: now,
        };
        self.members.insert(id, member);
    }

    /// A process is at these addresses from here on, and at no other.
    fn move_to(&mut self, id: MemberId, cards: &[Card]) {
        self.at.retain(|_, at| *at != id);
        for card in cards {
            self.at.insert(card.address, id);
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

#[cfg(test)]
mod tests;

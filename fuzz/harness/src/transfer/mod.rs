//! A sender, a receiver and the network between them.
//!
//! The first bytes choose how they are set up (`plan`); each further one is a call, a doing of the
//! network or a step of time (`steps`). Published states are made from their channel and ticket,
//! so that what is read can be told (`ledger`).

mod ledger;
mod plan;
mod steps;

use crate::input::Input;
use bumpless_base::{Duration, Instant, LinkId, PeerId};
use bumpless_transfer::{Publisher, Receiver, ReceiverEvent, Sender, Subscriber};
use bumpless_wire::{DataHeader, MAX_ACK_LEN, Packet, WireVersion, parse, piece};
use ledger::Ledger;
use plan::Plan;

/// Datagrams that the network holds; the oldest is lost when it is full.
const NETWORK: usize = 4096;
/// More packets than any conversation has ready at one instant.
const ENDLESS: usize = 20_000;

/// Holds the conversation that `bytes` describe, then ends all faults.
///
/// # Panics
/// If a promise of `spec/transfer.md` is broken: whole, forward, fresh, bounded, kept promise, every
/// ticket answered once, and that states get through again once the network works.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let plan = Plan::decode(&mut input);
    let mut world = World::new(plan);
    world.settle();
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.heal();
}

struct Datagram {
    to_receiver: bool,
    peer: PeerId,
    link: LinkId,
    bytes: Vec<u8>,
    sent_at: Instant,
}

/// The tags of one peer's session.
#[derive(Clone, Copy)]
struct Session {
    /// What both come to know sooner or later.
    agreed: u32,
    sender: Option<u32>,
    receiver: Option<u32>,
}

struct World {
    plan: Plan,
    now: Instant,
    sender: Sender,
    publishers: Vec<Publisher>,
    receiver: Receiver,
    /// `None` while its application looks at a state.
    subscribers: Vec<Option<Subscriber>>,
    receiver_generation: u32,
    /// Applications that look at a state just now.
    looking: usize,
    sessions: Vec<Session>,
    last_tag: u32,
    network: Vec<Datagram>,
    ledger: Ledger,
}

impl World {
    fn new(plan: Plan) -> Self {
        let (sender, publishers) = plan.sender();
        let (receiver, subscribers) = plan.receiver();
        let none = Session {
            agreed: 0,
            sender: None,
            receiver: None,
        };
        let mut world = Self {
            now: Instant::from_nanos(1_000_000_000),
            sender,
            publishers,
            receiver,
            subscribers: subscribers.into_iter().map(Some).collect(),
            receiver_generation: 0,
            looking: 0,
            sessions: vec![none; plan.peers.len()],
            last_tag: 0,
            network: Vec::new(),
            ledger: Ledger::new(plan.channels.len()),
            plan,
        };
        for peer in 0..world.sessions.len() {
            world.new_session(peer);
            world.adopt(peer, true);
            world.adopt(peer, false);
        }
        world
    }

    fn version(&self, peer: usize) -> WireVersion {
        self.plan.peers[peer].version
    }

    /// Either node has started anew: the old tag never returns.
    fn new_session(&mut self, peer: usize) {
        self.last_tag += 1;
        self.sessions[peer].agreed = self.last_tag;
        // Version 1 has no tag and cannot tell sessions apart (T-28), so nothing of an old one is
        // left in the network, and both learn of the new one at once.
        if self.version(peer) == WireVersion::V1 {
            self.network.retain(|d| usize::from(d.peer.0) != peer);
            self.adopt(peer, true);
            self.adopt(peer, false);
        }
    }

    /// One end learns of the present session.
    fn adopt(&mut self, peer: usize, sender: bool) {
        let tag = Some(self.sessions[peer].agreed);
        self.set_session(peer, sender, tag);
    }

    fn set_session(&mut self, peer: usize, sender: bool, tag: Option<u32>) {
        let id = PeerId(peer as u8);
        if sender {
            self.sessions[peer].sender = tag;
            self.sender.set_session(id, tag, self.now);
        } else {
            self.sessions[peer].receiver = tag;
            self.receiver.set_session(id, tag, self.now);
        }
        self.settle();
    }

    /// Sends what is ready on a link, at most `most` packets.
    fn send(&mut self, link: LinkId, most: usize) -> usize {
        for sent in 0..most {
            let Some(transmit) = self.sender.poll_transmit(link, self.now) else {
                return sent;
            };
            self.check_window();
            let payload = self.sender.payload(&transmit);
            let bytes = [transmit.header(), payload].concat();
            assert_eq!(bytes.len(), transmit.datagram_len());
            let Ok(Packet::Data { header, payload }) = parse(&bytes) else {
                panic!("the sender made what nobody can read: {bytes:02x?}");
            };
            self.check_sent(transmit.channel.0, link, &header, payload);
            self.carry(true, transmit.peer, link, bytes);
        }
        most
    }

    fn check_sent(&self, channel: usize, link: LinkId, header: &DataHeader, payload: &[u8]) {
        let setup = &self.plan.channels[channel];
        let peer = usize::from(setup.peer.0);
        assert_eq!(
            (header.channel, header.version),
            (setup.id, self.version(peer))
        );
        assert!(setup.links.contains(link), "on a link of another channel");
        if header.version == WireVersion::V2 {
            assert_eq!(
                (Some(header.tag), header.link),
                (self.sessions[peer].sender, link)
            );
        }
        let piece = piece(self.plan.peers[peer].payload_size, header.short);
        let offset = header.sequence as usize * usize::from(piece);
        let latest = self
            .ledger
            .may_send(channel, header.total_size, offset, payload);
        let Some(published) = latest else {
            panic!("whole: {header:?} carries no state that waits to be sent");
        };
        assert!(
            header.expiry > Duration::ZERO,
            "fresh: sent without time left"
        );
        assert!(
            self.now + header.expiry <= published + setup.expiry,
            "fresh: {header:?} outlives its state"
        );
    }

    fn carry(&mut self, to_receiver: bool, peer: PeerId, link: LinkId, bytes: Vec<u8>) {
        if self.network.len() == NETWORK {
            self.network.remove(0);
        }
        self.network.push(Datagram {
            to_receiver,
            peer,
            link,
            bytes,
            sent_at: self.now,
        });
    }

    fn deliver(&mut self, datagram: &Datagram) {
        let Datagram { peer, link, .. } = *datagram;
        match parse(&datagram.bytes) {
            Ok(Packet::Data { header, payload }) if datagram.to_receiver => {
                let session = self.sessions[usize::from(peer.0)].receiver;
                let age = self.now.since(datagram.sent_at);
                if let Some(channel) = self.plan.channel_of(peer, header.channel) {
                    let size = self.plan.peers[usize::from(peer.0)].payload_size;
                    self.ledger.arrived(channel, session, &header, size, age);
                }
                self.receiver
                    .handle_data(peer, link, &header, payload, self.now);
            }
            Ok(Packet::Ack(ack)) if !datagram.to_receiver => {
                self.sender.handle_ack(peer, &ack, link, self.now);
            }
            _ => {}
        }
        self.settle();
    }

    /// What a driver does after each call.
    fn settle(&mut self) {
        let mut out = [0; MAX_ACK_LEN];
        let most = self.plan.channels.len() * (bumpless_base::MAX_LINKS + 1);
        let mut acks = 0;
        while let Some(ack) = self.receiver.poll_ack(&mut out) {
            acks += 1;
            assert!(acks <= most, "bounded: acknowledgements");
            assert!(matches!(parse(&out[..ack.len]), Ok(Packet::Ack(_))));
            for link in ack.links.iter() {
                self.carry(false, ack.peer, link, out[..ack.len].to_vec());
            }
        }
        while let Some(event) = self.receiver.poll_event() {
            if let ReceiverEvent::Updated {
                channel,
                cycle,
                expires_at,
            } = event
            {
                assert!(expires_at > self.now, "fresh: delivered when expired");
                let peer = self.plan.channels[channel.0].peer;
                let session = self.sessions[usize::from(peer.0)].receiver;
                self.ledger.updated(channel.0, session, cycle, &self.plan);
            }
        }
        while let Some(event) = self.sender.poll_event() {
            let sessions = &self.sessions;
            let session =
                |channel: usize| sessions[usize::from(self.plan.channels[channel].peer.0)].sender;
            self.ledger
                .told(event, &self.plan, session, self.receiver.counters());
        }
        self.check_window();
    }

    fn check_window(&self) {
        for (at, peer) in self.plan.peers.iter().enumerate() {
            let in_flight = self.sender.in_flight(PeerId(at as u8));
            assert!(
                in_flight <= peer.in_flight_max,
                "bounded: {in_flight} in flight"
            );
        }
    }

    fn publish(&mut self, channel: usize, len: usize) {
        let len = len % (self.plan.channels[channel].max_size as usize + 1);
        let key = self.ledger.next_key();
        let published = self.publishers[channel].publish(self.now, |buffer| {
            assert_eq!(buffer.len(), self.plan.channels[channel].max_size as usize);
            ledger::fill(&mut buffer[..len], key);
            len
        });
        self.ledger
            .published(channel, key, len, published, self.now);
    }

    fn take_published(&mut self) {
        self.sender.handle_published(self.now);
        self.settle();
    }

    /// Time passes; what is due is done.
    fn pass(&mut self, span: Duration) {
        self.now += span;
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        self.settle();
        for due in [self.sender.poll_timeout(), self.receiver.poll_timeout()] {
            assert!(
                due.is_none_or(|due| due > self.now),
                "the clock stands still"
            );
        }
    }

    fn read(&mut self, channel: usize) {
        let Some(subscriber) = &mut self.subscribers[channel] else {
            return;
        };
        if let Some(view) = subscriber.read(self.now) {
            let setup = &self.plan.channels[channel];
            assert!(view.expires_at() > self.now, "fresh: read when expired");
            assert!(view.data().len() <= setup.max_size as usize);
            self.ledger
                .read(channel, &self.plan, view.data(), view.expires_at());
        }
    }

    /// Everything goes back and forth at once until nothing is left.
    fn exchange(&mut self) {
        let mut handled = 0;
        loop {
            for link in 0..self.plan.links {
                self.send(LinkId(link), ENDLESS);
            }
            self.settle();
            if self.network.is_empty() {
                return;
            }
            for datagram in std::mem::take(&mut self.network) {
                self.deliver(&datagram);
                handled += 1;
            }
            assert!(handled < ENDLESS, "bounded: a conversation without end");
        }
    }

    /// Ends all faults and expects the newest state of each channel at the other end.
    fn heal(&mut self) {
        self.network.clear();
        for peer in 0..self.sessions.len() {
            self.new_session(peer);
            self.adopt(peer, true);
            self.adopt(peer, false);
            for link in 0..self.plan.links {
                let id = PeerId(peer as u8);
                self.sender
                    .set_link_healthy(id, LinkId(link), true, self.now);
            }
        }
        self.take_published();
        self.exchange();
        self.pass(Duration::from_secs(10));
        self.exchange();
        for channel in 0..self.plan.channels.len() {
            let size = self.plan.channels[channel].max_size as usize;
            self.publish(channel, size);
        }
        self.take_published();
        for _ in 0..40 {
            self.exchange();
            self.pass(Duration::from_micros(100));
        }
        if !self.plan.hostile {
            for channel in 0..self.plan.channels.len() {
                self.ledger
                    .expect_safe(channel, &self.plan.channels[channel]);
                self.read(channel);
            }
        }
        self.close();
    }

    /// Without a session every ticket is answered (T-4, T-5).
    fn close(&mut self) {
        for peer in 0..self.sessions.len() {
            self.set_session(peer, true, None);
        }
        self.take_published();
        self.ledger.expect_all_answered();
    }
}

//! A small deterministic network between one sender and one receiver: several links, each with
//! bandwidth, delay, loss, duplication, reordering and corruption; a clock that only this moves.
#![allow(dead_code)]

mod plan;
mod state;

use bumpless_base::{Counter, Duration, Instant, LinkId, MAX_LINKS, PeerId, Random};
use bumpless_transfer::*;
use bumpless_wire::{DataHeader, MAX_ACK_LEN, Packet, WireVersion, parse};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use plan::*;
pub use state::*;

pub const PEER: PeerId = PeerId(0);
pub const TAG: u32 = 0x5e55_1001;

pub fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A data packet as it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Instant,
    pub link: usize,
    pub channel: usize,
    pub header: DataHeader,
    pub retransmission: bool,
    pub probe: bool,
    /// How many data packets left before it.
    pub number: usize,
}

enum Message {
    ToReceiver(Vec<u8>),
    ToSender(Vec<u8>),
}

struct Arrival {
    at: Instant,
    order: u64,
    link: usize,
    message: Message,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Arrival {}
impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

pub struct World {
    pub now: Instant,
    pub sender: Sender,
    pub receiver: Receiver,
    pub publishers: Vec<Publisher>,
    pub subscribers: Vec<Subscriber>,
    pub paths: Vec<Path>,
    /// Which data packets to lose besides the paths' random loss.
    pub lose: Box<dyn FnMut(&Sent) -> bool>,
    /// Which acknowledgements to lose, by (number, link).
    pub lose_ack: Box<dyn FnMut(usize, usize) -> bool>,
    pub sent: Vec<Sent>,
    pub acks: usize,
    pub most_acks_per_packet: usize,
    pub events: Vec<(Instant, SenderEvent)>,
    pub received: Vec<(Instant, ReceiverEvent)>,
    free_at: [Instant; MAX_LINKS],
    /// Until when a link's receiver and its sender stand still.
    still_until: [[Instant; 2]; MAX_LINKS],
    has_more: [bool; MAX_LINKS],
    in_flight_max: u32,
    queue: BinaryHeap<Reverse<Arrival>>,
    order: u64,
    pub random: Random,
    plan: Plan,
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let (sender, publishers) = build_sender(&plan);
        let (receiver, subscribers) = build_receiver(&plan);
        let mut world = Self {
            now: Instant::from_nanos(1_000_000_000),
            sender,
            receiver,
            publishers,
            subscribers,
            paths: plan.paths.clone(),
            lose: Box::new(|_| false),
            lose_ack: Box::new(|_, _| false),
            sent: Vec::new(),
            acks: 0,
            most_acks_per_packet: 0,
            events: Vec::new(),
            received: Vec::new(),
            free_at: [Instant::ZERO; MAX_LINKS],
            still_until: [[Instant::ZERO; 2]; MAX_LINKS],
            has_more: [false; MAX_LINKS],
            in_flight_max: plan.in_flight_max,
            queue: BinaryHeap::new(),
            order: 0,
            random: Random::new(plan.seed),
            plan,
        };
        world.set_session(Some(TAG));
        world
    }

    pub fn set_session(&mut self, tag: Option<u32>) {
        self.sender.set_session(PEER, tag, self.now);
        self.receiver.set_session(PEER, tag, self.now);
    }

    /// The sending node starts anew: what it knew is gone.
    pub fn restart_sender(&mut self, tag: u32) {
        let (sender, publishers) = build_sender(&self.plan);
        self.sender = sender;
        self.publishers = publishers;
        self.events.clear();
        self.set_session(Some(tag));
    }

    /// The receiving node starts anew.
    pub fn restart_receiver(&mut self, tag: u32) {
        let (receiver, subscribers) = build_receiver(&self.plan);
        self.receiver = receiver;
        self.subscribers = subscribers;
        self.set_session(Some(tag));
    }

    pub fn publish(&mut self, channel: usize, state: &[u8]) -> Published {
        self.publishers[channel].publish(self.now, |buffer| {
            buffer[..state.len()].copy_from_slice(state);
            state.len()
        })
    }

    pub fn set_healthy(&mut self, link: u8, healthy: bool) {
        self.sender
            .set_link_healthy(PEER, LinkId(link), healthy, self.now);
    }

    /// The newest state of a channel and its cycle, if one can be read.
    pub fn read(&mut self, channel: usize) -> Option<(u32, State)> {
        let view = self.subscribers[channel].read(self.now)?;
        Some((view.cycle(), State(view.data().to_vec())))
    }

    pub fn sent_count(&self, counter: Counter) -> u64 {
        self.sender.counters().get(counter)
    }

    pub fn received_count(&self, counter: Counter) -> u64 {
        self.receiver.counters().get(counter)
    }

    fn send_all(&mut self) {
        if self.sender.has_published() {
            self.sender.handle_published(self.now);
        }
        for link in 0..self.paths.len() {
            self.has_more[link] &= !self.paths[link].blocked;
            while self.takes_at(link) <= self.now && !self.paths[link].blocked {
                let id = LinkId(link as u8);
                let Some(transmit) = self.sender.poll_transmit(id, self.now) else {
                    self.has_more[link] = false;
                    break;
                };
                self.has_more[link] = true;
                assert!(self.sender.in_flight(PEER) <= self.in_flight_max);
                let mut bytes = transmit.header().to_vec();
                bytes.extend_from_slice(self.sender.payload(&transmit));
                assert_eq!(bytes.len(), transmit.datagram_len());
                let bits = (bytes.len() as u64 + 66) * 8;
                let nanos = bits * 1_000_000_000 / self.paths[link].bandwidth;
                self.free_at[link] = self.free_at[link].max(self.now) + Duration::from_nanos(nanos);
                self.note(link, &transmit, bytes);
            }
        }
    }

    /// When the driver takes the next packet: once so much of its queue has left.
    fn takes_at(&self, link: usize) -> Instant {
        let ahead = self.paths[link].ahead.as_nanos();
        Instant::from_nanos(self.free_at[link].as_nanos().saturating_sub(ahead))
    }

    fn note(&mut self, link: usize, transmit: &Transmit, bytes: Vec<u8>) {
        let Ok(Packet::Data { header, .. }) = parse(&bytes) else {
            panic!("the sender made what nobody can parse");
        };
        assert!(header.expiry > Duration::ZERO);
        let sent = Sent {
            at: self.now,
            link,
            channel: transmit.channel.0,
            header,
            retransmission: transmit.retransmission,
            probe: transmit.probe,
            number: self.sent.len(),
        };
        self.sent.push(sent);
        let path = self.paths[link];
        if !(self.lose)(&sent) && path.up && !self.random.chance(path.loss) {
            let at = self.free_at[link] + path.delay;
            self.carry(link, at, bytes, true);
        }
    }

    fn carry(&mut self, link: usize, at: Instant, mut bytes: Vec<u8>, forward: bool) {
        let path = self.paths[link];
        if self.random.chance(path.corrupt) {
            // UDP's checksum keeps bent content away; what is bent here is type, version or session.
            let first = if self.plan.version == WireVersion::V2 {
                8
            } else {
                4
            };
            bytes[self.random.below(first) as usize] ^= 1 << self.random.below(8);
        }
        let copies = 1 + u64::from(self.random.chance(path.duplicate));
        for _ in 0..copies {
            let jitter = Duration::from_nanos(self.random.below(path.jitter.as_nanos() + 1));
            let mut at = at + jitter;
            if path.stall > 0.0 {
                let still = &mut self.still_until[link][usize::from(forward)];
                if self.random.chance(path.stall) {
                    *still = at + us(1000 + self.random.below(2000));
                }
                at = at.max(*still);
            }
            self.order += 1;
            let message = if forward {
                Message::ToReceiver(bytes.clone())
            } else {
                Message::ToSender(bytes.clone())
            };
            self.queue.push(Reverse(Arrival {
                at,
                order: self.order,
                link,
                message,
            }));
        }
    }

    fn send_acks(&mut self) {
        let mut out = [0; MAX_ACK_LEN];
        let mut n = 0;
        while let Some(ack) = self.receiver.poll_ack(&mut out) {
            n += 1;
            self.acks += 1;
            for link in ack.links.iter() {
                let path = self.paths[usize::from(link.0)];
                let lost = (self.lose_ack)(self.acks - 1, link.0.into());
                if !lost && path.up && !self.random.chance(path.ack_loss) {
                    let at = self.now + path.delay;
                    self.carry(link.0.into(), at, out[..ack.len].to_vec(), false);
                }
            }
        }
        self.most_acks_per_packet = self.most_acks_per_packet.max(n);
    }

    fn drain(&mut self) {
        self.send_acks();
        while let Some(event) = self.sender.poll_event() {
            self.events.push((self.now, event));
        }
        while let Some(event) = self.receiver.poll_event() {
            self.received.push((self.now, event));
        }
    }

    pub fn inject(&mut self, link: usize, bytes: &[u8], to_receiver: bool) {
        let message = if to_receiver {
            Message::ToReceiver(bytes.to_vec())
        } else {
            Message::ToSender(bytes.to_vec())
        };
        self.deliver(link, &message);
        self.drain();
    }

    fn deliver(&mut self, link: usize, message: &Message) {
        let link = LinkId(link as u8);
        match message {
            Message::ToReceiver(bytes) => {
                if let Ok(Packet::Data { header, payload }) = parse(bytes) {
                    self.receiver
                        .handle_data(PEER, link, &header, payload, self.now);
                }
            }
            Message::ToSender(bytes) => {
                if let Ok(Packet::Ack(ack)) = parse(bytes) {
                    self.sender.handle_ack(PEER, &ack, link, self.now);
                }
            }
        }
    }

    /// Lets everything happen up to `end`.
    pub fn run_until(&mut self, end: Instant) {
        let mut standstill = 0;
        loop {
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
            self.send_all();
            self.drain();
            let mut next = end;
            if let Some(Reverse(arrival)) = self.queue.peek() {
                next = next.min(arrival.at);
            }
            for due in [self.sender.poll_timeout(), self.receiver.poll_timeout()] {
                next = next.min(due.unwrap_or(end));
            }
            for link in 0..self.paths.len() {
                if self.has_more[link] {
                    next = next.min(self.takes_at(link));
                }
            }
            // What `poll_transmit` gives up may want `handle_timeout` at once, but not for ever.
            standstill = if next > self.now { 0 } else { standstill + 1 };
            assert!(standstill < 20, "the clock stands still");
            self.now = self.now.max(next);
            while self.queue_due() {
                if let Some(Reverse(arrival)) = self.queue.pop() {
                    self.deliver(arrival.link, &arrival.message);
                    self.drain();
                }
            }
            if self.now >= end {
                self.send_all();
                self.drain();
                return;
            }
        }
    }

    fn queue_due(&self) -> bool {
        self.queue
            .peek()
            .is_some_and(|Reverse(arrival)| arrival.at <= self.now)
    }

    pub fn run(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Publishes on channel 0 and runs until its fate is known; returns how long it took.
    pub fn transfer(&mut self, state: &[u8]) -> Option<Duration> {
        let ticket = self.publish(0, state).ticket;
        self.fate(ticket)
    }

    /// Runs until it is known what became of a state of channel 0; how long it took, if it is safe.
    pub fn fate(&mut self, ticket: u64) -> Option<Duration> {
        let end = self.now + Duration::from_secs(20);
        while self.now < end {
            self.run(us(20));
            for (_, event) in self.events.iter().rev() {
                match *event {
                    SenderEvent::Safe {
                        channel: ChannelPlace(0),
                        ticket: t,
                        took,
                        ..
                    } if t == ticket => return Some(took),
                    SenderEvent::Failed {
                        channel: ChannelPlace(0),
                        ticket: t,
                        ..
                    } if t == ticket => return None,
                    _ => {}
                }
            }
        }
        panic!("nothing is known of the state after 20 s");
    }
}

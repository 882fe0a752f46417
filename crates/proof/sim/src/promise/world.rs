//! One sender and one receiver in virtual time: the shipped cores behind the shipped ports.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bumpless_base::{Counters, Duration, Instant, LinkId, LinkSet, PeerId, Random};
use bumpless_node::data_plane::link_port::{LinkPort, SendState};
use bumpless_plan::rounding::nanos;
use bumpless_plan::{Link, Scenario};
use bumpless_transfer::{Publisher, Receiver, Sender, SenderEvent, SetupError, Subscriber};
use bumpless_wire::{MAX_ACK_LEN, Packet, packet_count, parse};

use super::cores;
use super::flood::{Flood, Flooded};
use super::losses::Losses;
use super::start::Start;
use super::wire::{Outbox, Wire};

pub(super) const PEER: PeerId = PeerId(0);
/// Positions of the nodes.
const SENDER: usize = 0;
const RECEIVER: usize = 1;
const TAG: u32 = 0x5e55_1001;
/// When the world begins.
const BEGIN: u64 = 1_000_000_000;
/// Round trips that heartbeats have measured before the first state.
const HEARTBEATS_BEFORE: u32 = 32;

/// How the sender's thread wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// At once.
    Never,
    /// Always as late as it may.
    Always,
    /// As it comes.
    Sometimes,
}

/// What a world is like besides its scenario.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Networks in service.
    pub up: LinkSet,
    /// How late the sender's thread is.
    pub lateness: Lateness,
    /// Whether other traffic is in the way as much as it may.
    pub others: bool,
    /// Whether the round trips that heartbeats have measured before were as long as they may be.
    pub slow_before: bool,
    /// When states are published.
    pub start: Start,
}

/// What came of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Position of the channel.
    pub channel: usize,
    /// When it was published, nanoseconds from the beginning.
    pub published: u64,
    /// From publication to acknowledgement; `None`: it failed.
    pub took: Option<u64>,
}

/// A packet of the watched channel.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The state's number, from 1.
    pub cycle: u32,
    /// When it was handed over, nanoseconds from the beginning.
    pub at: u64,
    /// Whether it fell.
    pub fell: bool,
}

enum Event {
    Publish(usize),
    Heartbeat(usize, usize),
    Data(usize, Vec<u8>),
    Answer(usize, Vec<u8>),
    /// The partner's kernel is done with a packet.
    Through(usize, Vec<u8>),
    /// The own kernel is done with an answer.
    AnswerThrough(usize, Vec<u8>),
}

/// The world.
pub struct World<'a> {
    scenario: &'a Scenario,
    manner: Manner,
    losses: Losses,
    random: Random,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Option<Event>>,
    vacant: Vec<usize>,
    serial: u64,
    turn_at: u64,
    sender: Sender,
    receiver: Receiver,
    publishers: Vec<Publisher>,
    _subscribers: Vec<Subscriber>,
    ports: Vec<LinkPort<Outbox>>,
    wires: Vec<Wire>,
    /// Answers that wait for the sender's thread.
    inbox: Vec<(usize, Vec<u8>)>,
    /// Heartbeats that wait for it.
    beats: Vec<(usize, usize)>,
    /// States that are not answered: channel, ticket, when they were published.
    open: Vec<(usize, u64, u64)>,
    outcomes: Vec<Outcome>,
    counters: Counters,
    free: Vec<Vec<u8>>,
    /// The sender's and the receiver's processor, where they are flooded.
    floods: Option<[Flooded; 2]>,
    /// A channel of which every packet is noted.
    pub watched: Option<usize>,
    /// Its packets.
    pub notes: Vec<Note>,
}

impl<'a> World<'a> {
    /// The world of `scenario`.
    ///
    /// # Errors
    /// What a core refuses.
    pub fn new(
        scenario: &'a Scenario,
        manner: Manner,
        losses: Losses,
        random: Random,
    ) -> Result<Self, SetupError> {
        let (mut sender, publishers) = cores::sender(scenario)?;
        let (mut receiver, subscribers) = cores::receiver(scenario)?;
        let begin = Instant::from_nanos(BEGIN);
        sender.set_session(PEER, Some(TAG), begin);
        receiver.set_session(PEER, Some(TAG), begin);
        for (at, link) in scenario.links.iter().enumerate() {
            let id = LinkId(at as u8);
            sender.set_link_healthy(PEER, id, manner.up.contains(id), begin);
            let known = round_trip(scenario, link, manner.slow_before);
            (0..HEARTBEATS_BEFORE).for_each(|_| sender.set_link_round_trip(PEER, id, known));
        }
        let links = scenario.links.iter();
        let wires = links.map(|link| Wire::new(link, manner.others)).collect();
        let mut world = Self {
            scenario,
            losses,
            random,
            now: BEGIN,
            events: BinaryHeap::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            serial: 0,
            turn_at: u64::MAX,
            sender,
            receiver,
            publishers,
            _subscribers: subscribers,
            ports: cores::ports(scenario, begin),
            wires,
            inbox: Vec::new(),
            beats: Vec::new(),
            open: Vec::new(),
            outcomes: Vec::new(),
            counters: Counters::default(),
            free: Vec::new(),
            floods: None,
            watched: None,
            notes: Vec::new(),
            manner,
        };
        world.plan_first();
        Ok(world)
    }

    /// Both nodes are flooded, as far as they bear it by plan.
    pub fn flooded(mut self, flood: &Flood) -> Self {
        let mut node = || Flooded::new(flood, BEGIN, &mut self.random);
        self.floods = node()
            .zip(node())
            .map(|(sender, receiver)| [sender, receiver]);
        self
    }

    fn plan_first(&mut self) {
        for channel in 0..self.scenario.channels.len() {
            if !self.usable(channel).is_empty() {
                self.plan(
                    BEGIN + self.manner.start.first[channel],
                    Event::Publish(channel),
                );
            }
        }
        for (link, planned) in self.scenario.links.iter().enumerate() {
            if self.manner.up.contains(LinkId(link as u8)) {
                for message in 0..planned.background.len() {
                    let at = BEGIN + self.manner.start.heartbeats;
                    self.plan(at, Event::Heartbeat(link, message));
                }
            }
        }
    }

    fn usable(&self, channel: usize) -> LinkSet {
        self.scenario.channels[channel]
            .links
            .intersection(self.manner.up)
    }

    fn plan(&mut self, at: u64, event: Event) {
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                self.slots.len() - 1
            }
        };
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, slot)));
    }

    /// Has the sender's thread take a turn for something that happens at `at`.
    fn wake(&mut self, at: u64) {
        let most = self.scenario.machine.jitter_ns;
        let late = match self.manner.lateness {
            Lateness::Never => 0,
            Lateness::Always => most,
            Lateness::Sometimes => match self.random.below(3) {
                0 => 0,
                1 => most,
                _ => self.random.below(most + 1),
            },
        };
        self.turn_at = self.turn_at.min(at.saturating_add(late));
    }

    /// Runs until every state is answered, or until `enough` says so of one that was.
    pub fn run(&mut self, mut enough: impl FnMut(&Outcome) -> bool) -> Vec<Outcome> {
        loop {
            let next = self.events.peek().map(|Reverse((at, ..))| *at);
            let next_event = next.unwrap_or(u64::MAX);
            if next_event == u64::MAX && self.turn_at == u64::MAX {
                break;
            }
            let before = self.outcomes.len();
            if next_event <= self.turn_at {
                let Some(Reverse((at, _, slot))) = self.events.pop() else {
                    break;
                };
                self.now = at;
                self.vacant.push(slot);
                if let Some(event) = self.slots[slot].take() {
                    self.happen(event);
                }
            } else {
                self.now = self.turn_at;
                match self.held_up(SENDER) {
                    Some(until) => self.turn_at = until,
                    None => self.turn(),
                }
            }
            let over = self.now > BEGIN + self.manner.start.end && self.open.is_empty();
            if over || self.outcomes[before..].iter().any(&mut enough) {
                break;
            }
        }
        std::mem::take(&mut self.outcomes)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Publish(channel) => self.publish(channel),
            Event::Heartbeat(link, message) => {
                let period = self.scenario.links[link].background[message].period;
                self.plan(
                    self.now + period.as_nanos(),
                    Event::Heartbeat(link, message),
                );
                self.beats.push((link, message));
                self.wake(self.now);
            }
            Event::Data(link, bytes) => match self.arrives(RECEIVER, link) {
                None => self.receive(link, bytes),
                Some(Some(done)) => self.plan(done, Event::Through(link, bytes)),
                Some(None) => self.free.push(bytes),
            },
            Event::Through(link, bytes) => match self.held_up(RECEIVER) {
                None => self.receive(link, bytes),
                Some(until) => self.plan(until, Event::Through(link, bytes)),
            },
            Event::Answer(link, bytes) => match self.arrives(SENDER, link) {
                None => self.answered(link, bytes),
                Some(Some(done)) => self.plan(done, Event::AnswerThrough(link, bytes)),
                Some(None) => self.free.push(bytes),
            },
            Event::AnswerThrough(link, bytes) => self.answered(link, bytes),
        }
    }

    fn answered(&mut self, link: usize, bytes: Vec<u8>) {
        self.inbox.push((link, bytes));
        self.wake(self.now);
    }

    /// A packet comes to a node's interface: when its kernel is done with it, or that it is lost; the outer `None`: at once.
    fn arrives(&mut self, node: usize, link: usize) -> Option<Option<u64>> {
        let floods = self.floods.as_mut()?;
        Some(floods[node].takes(self.now, link))
    }

    /// Until when reception keeps the threads of a node from running; `None`: they run.
    fn held_up(&mut self, node: usize) -> Option<u64> {
        let floods = self.floods.as_mut()?;
        Some(floods[node].free_at(self.now)).filter(|&at| at > self.now)
    }

    fn publish(&mut self, channel: usize) {
        if self.now > BEGIN + self.manner.start.end {
            return;
        }
        let setup = &self.scenario.channels[channel];
        let (size, period) = (setup.size as usize, setup.period.as_nanos());
        let now = self.instant();
        let published = self.publishers[channel].publish(now, |_| size);
        if let Some(superseded) = published.superseded {
            self.close(channel, superseded, None);
        }
        self.open
            .push((channel, published.ticket, self.now - BEGIN));
        let late = self
            .random
            .below(period * self.manner.start.late / 1_000 + 1);
        self.plan(self.now + period + late, Event::Publish(channel));
        self.wake(self.now);
    }

    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn close(&mut self, channel: usize, ticket: u64, took: Option<u64>) {
        let same = |&(c, t, _): &(usize, u64, u64)| (c, t) == (channel, ticket);
        if let Some(at) = self.open.iter().position(same) {
            let (_, _, published) = self.open.swap_remove(at);
            self.outcomes.push(Outcome {
                channel,
                published,
                took,
            });
        }
    }

    /// What the data plane does in a turn, as far as states are concerned.
    fn turn(&mut self) {
        self.turn_at = u64::MAX;
        let now = self.instant();
        for (link, bytes) in std::mem::take(&mut self.inbox) {
            if let Ok(Packet::Ack(ack)) = parse(&bytes) {
                self.sender.handle_ack(PEER, &ack, LinkId(link as u8), now);
            }
            self.free.push(bytes);
        }
        self.sender.handle_timeout(now);
        self.sender.handle_published(now);
        for (link, message) in std::mem::take(&mut self.beats) {
            let planned = &self.scenario.links[link];
            let len = planned.background[message]
                .bytes
                .saturating_sub(planned.frame_overhead);
            let bytes = [0; 1500];
            let len = (len as usize).min(bytes.len());
            let (sender, counters) = (&mut self.sender, &mut self.counters);
            self.ports[link].send_to_partner(PEER, &bytes[..len], now, sender, counters);
        }
        let mut next = self.transmit(now);
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::Safe {
                    channel,
                    ticket,
                    took,
                    ..
                } => self.close(channel.0, ticket, Some(took.as_nanos())),
                SenderEvent::Failed {
                    channel, ticket, ..
                }
                | SenderEvent::Superseded { channel, ticket } => {
                    self.close(channel.0, ticket, None);
                }
            }
        }
        if let Some(due) = self.sender.poll_timeout() {
            next = next.min(due);
        }
        if next != Instant::FAR_FUTURE {
            self.wake(next.as_nanos().max(self.now));
        }
    }

    fn transmit(&mut self, now: Instant) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        for link in 0..self.ports.len() {
            if !self.manner.up.contains(LinkId(link as u8)) {
                continue;
            }
            let port = &mut self.ports[link];
            if let SendState::Paced(at) =
                port.send_states(&mut self.sender, now, &mut self.counters)
            {
                next = next.min(at);
            }
            let outbox = port.receiving().0;
            outbox.free.append(&mut self.free);
            for bytes in std::mem::take(&mut outbox.sent) {
                self.carry(link, bytes);
            }
        }
        next
    }

    fn carry(&mut self, link: usize, bytes: Vec<u8>) {
        let arrival = self.wires[link].carry(bytes.len(), self.now);
        let falls = match parse(&bytes) {
            Ok(Packet::Data { header, .. }) => {
                let falls = self.losses.packet(link, &header);
                if self.watched == Some(usize::from(header.channel.get()) - 1) {
                    self.notes.push(Note {
                        cycle: header.cycle,
                        at: self.now - BEGIN,
                        fell: falls,
                    });
                }
                falls
            }
            // A heartbeat: nobody here waits for it.
            _ => true,
        };
        if falls {
            self.free.push(bytes);
        } else {
            self.plan(arrival, Event::Data(link, bytes));
        }
    }

    fn receive(&mut self, link: usize, bytes: Vec<u8>) {
        let now = self.instant();
        if let Ok(Packet::Data { header, payload }) = parse(&bytes) {
            self.receiver
                .handle_data(PEER, LinkId(link as u8), &header, payload, now);
        }
        self.free.push(bytes);
        self.receiver.handle_timeout(now);
        while self.receiver.poll_event().is_some() {}
        let mut out = [0; MAX_ACK_LEN];
        while let Some(ack) = self.receiver.poll_ack(&mut out) {
            for link in ack.links.intersection(self.manner.up).iter() {
                self.answer(usize::from(link.0), ack.channel.0, &out[..ack.len]);
            }
        }
    }

    fn answer(&mut self, link: usize, channel: usize, bytes: &[u8]) {
        let payload = self.scenario.packets.payload as u16;
        let packets = packet_count(self.scenario.channels[channel].size, payload);
        let falls = match parse(bytes) {
            Ok(Packet::Ack(ack)) => self.losses.answer(link, &ack, packets),
            _ => true,
        };
        if !falls {
            let round_trip = self.scenario.links[link].round_trip.1.as_nanos();
            let at = self.wires[link].answer(self.now, round_trip);
            let mut copy = self.free.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            self.plan(at, Event::Answer(link, copy));
        }
    }
}

/// What a heartbeat on `link` measures.
fn round_trip(scenario: &Scenario, link: &Link, slow: bool) -> Duration {
    if !slow {
        return link.round_trip.1;
    }
    let frame = nanos(link.other_frame.into(), link.bandwidth) as u64;
    link.round_trip.1 + Duration::from_nanos(frame + scenario.machine.jitter_ns)
}

//! A case with both cores of the product in simulated time, on the same networks. Control messages are neither lost nor delayed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{
    FEEDBACK_LEN, Flow, Ind, MAX_MESSAGE, Monitored, Network, Networks, Origin, PeerId, Receiver,
    ReceiverLimits, ReceiverSetup, Replication, Sender, SenderLimits, SenderSetup, SessionId, Side,
    Timing, UDP,
};
use bumpless_secure::{RingSuite, Secret};

use super::case::{AFTER, AWAY, BEFORE, Case, DOWN, Event, FAULT, NETWORKS, TURNS};
use super::judge::Observed;
use super::run::{EVERY, LEN};
use crate::iprp::flow::Came;
use crate::iprp::hosts::address;
use crate::iprp::relay::{Copied, Way};
use crate::iprp::site::PORT;
use crate::iprp::{LabError, impossible};

const DATA_PORT: u16 = 4_761;
/// How long a process takes to begin, and how long one that ends in order still takes copies (L-31).
const BEGIN: Duration = Duration::from_millis(50);
const FAREWELL: Duration = Duration::from_millis(200);
/// Within that time everything is replicated again, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// A copy on its way: when it is due, in which order it left, on which network.
type Waiting = (u64, u64, usize, Vec<u8>);

struct World {
    case: Case,
    seed: u64,
    sender: Option<Sender<RingSuite>>,
    receiver: Option<Receiver<RingSuite>>,
    /// The number of the receiver's last key, which its next process counts on from.
    key_number: u32,
    ways: [Way; NETWORKS],
    waiting: BinaryHeap<Reverse<Waiting>>,
    order: u64,
    seen: Observed,
    /// Something has left as it was since the event.
    was_plain: bool,
}

fn networks(host: usize) -> Result<Networks, LabError> {
    let one = |network: usize| {
        let ind = Ind::new(network as u8).ok_or_else(|| impossible("no such network"))?;
        let address = address(network, host).into();
        Ok(Network { ind, address })
    };
    let all: Result<Vec<_>, LabError> = (0..NETWORKS).map(one).collect();
    Networks::new(&all?).map_err(refused)
}

fn refused(error: impl std::fmt::Debug) -> LabError {
    impossible(format_args!("the core refuses: {error:?}"))
}

fn flow() -> Flow {
    Flow {
        protocol: UDP,
        source: address(0, 0).into(),
        destination: address(0, 1).into(),
        source_port: 40_000,
        destination_port: PORT,
    }
}

fn origin(host: usize) -> Origin {
    Origin {
        peer: PeerId(host as u32),
        address: address(0, host).into(),
    }
}

fn sender(seed: u64) -> Result<Sender<RingSuite>, LabError> {
    let setup = SenderSetup {
        networks: networks(0)?,
        groups: Vec::new(),
        limits: SenderLimits {
            sessions: 8,
            kept_packets: 64,
            kept_len: 1_500,
        },
        seed,
    };
    Sender::new(setup).map_err(refused)
}

fn receiver(seed: u64, key_number: u32, now: Instant) -> Result<Receiver<RingSuite>, LabError> {
    let setup = ReceiverSetup {
        networks: networks(1)?,
        monitored: vec![Monitored {
            protocol: UDP,
            side: Side::Destination,
            first: PORT,
            last: PORT,
        }],
        groups: Vec::new(),
        root: Secret::new([7; 32]),
        key_number,
        timing: Timing::default(),
        limits: ReceiverLimits {
            sessions: 8,
            candidates: 4,
            max_lost: 1_024,
        },
        seed,
    };
    Receiver::new(setup, now).map_err(refused)
}

const fn span(time: std::time::Duration) -> Duration {
    Duration::from_nanos(time.as_nanos() as u64)
}

/// Does it.
///
/// # Errors
/// The cores refuse what they are given.
pub fn observe(case: Case, seed: u64) -> Result<Observed, LabError> {
    let began = Instant::from_nanos(1_000_000_000);
    let event = began + span(BEFORE);
    let mut world = World::begun(case, seed, began)?;
    world.seen.began_ns = event.as_nanos();
    let (mut now, mut end) = (began, event + span(AFTER) + world.takes());
    while now < end {
        world.befall(now, event)?;
        world.send(now);
        if case.event.ends().is_some() && world.seen.again_ns.is_none() {
            end = (now + span(AFTER)).max(end).min(event + PATIENCE);
        }
        now += EVERY;
        world.until(now);
    }
    world.until(now + Duration::from_nanos(case.conditions.longest_ns()) + EVERY);
    Ok(world.seen)
}

impl World {
    /// One in which the stream is replicated.
    fn begun(case: Case, seed: u64, now: Instant) -> Result<Self, LabError> {
        let faults = case.conditions.faults();
        let ways = [0, 1].map(|network: usize| {
            let mut way = Way::of(seed, network);
            way.fault = faults[network];
            way
        });
        let key_number = 5;
        let mut world = Self {
            case,
            seed,
            sender: Some(sender(seed)?),
            receiver: Some(receiver(seed, key_number, now)?),
            key_number,
            ways,
            waiting: BinaryHeap::new(),
            order: 0,
            seen: Observed::default(),
            was_plain: false,
        };
        if let Some(receiver) = &mut world.receiver {
            receiver.handle_monitored(now, &flow());
        }
        world.agree(now);
        if case.event == Event::NumbersEnd
            && let Some(sender) = &mut world.sender
        {
            // The stream comes to their end at the event.
            let left = span(BEFORE).as_nanos() / EVERY.as_nanos();
            sender.skip_to_end(SessionId(0), left as u32);
        }
        Ok(world)
    }

    /// How long the event takes.
    fn takes(&self) -> Duration {
        match (self.case.event, self.case.event.ends()) {
            (Event::Flapping, _) => span(DOWN * TURNS as u32),
            (_, Some((number, true))) => span(AWAY[number]),
            (_, Some((1, false))) => FAREWELL + BEGIN,
            (_, Some(_)) => BEGIN,
            _ => span(FAULT),
        }
    }

    /// What the event does at `now`; it begins at `event`.
    fn befall(&mut self, now: Instant, event: Instant) -> Result<(), LabError> {
        if now < event {
            return Ok(());
        }
        let (passed, takes) = (now.since(event), self.takes());
        let is_over = passed >= takes;
        if let Some((number, is_killed)) = self.case.event.ends() {
            return self.restart(now, (number, is_killed), (passed, is_over));
        }
        let turn = (passed.as_nanos() / span(DOWN).as_nanos()) as usize % NETWORKS;
        for (network, way) in self.ways.iter_mut().enumerate() {
            way.fault.cut = !is_over
                && match self.case.event {
                    Event::Cut => network == 0,
                    Event::Flapping => network == turn,
                    _ => false,
                };
        }
        Ok(())
    }

    fn restart(
        &mut self,
        now: Instant,
        (number, is_killed): (usize, bool),
        (passed, is_over): (Duration, bool),
    ) -> Result<(), LabError> {
        if number == 0 {
            if !is_over {
                self.sender = None;
            } else if self.sender.is_none() {
                self.sender = Some(sender(self.seed + 1)?);
            }
            return Ok(());
        }
        if let Some(receiver) = &mut self.receiver
            && passed == Duration::ZERO
            && !is_killed
        {
            receiver.withdraw();
            self.agree(now);
        }
        let still = if is_killed { Duration::ZERO } else { FAREWELL };
        if !is_over && passed >= still {
            self.receiver = None;
        } else if is_over && self.receiver.is_none() {
            self.receiver = Some(receiver(self.seed + 1, self.key_number + 1, now)?);
        }
        Ok(())
    }

    /// The program sends the next datagram.
    fn send(&mut self, now: Instant) {
        let number = self.seen.datagrams.len() as u32;
        let mut payload = [0; LEN];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        self.seen.datagrams.push((now.as_nanos(), None));
        let (mut copies, mut scratch) = (Vec::new(), [0; 2_048]);
        let replication = match &mut self.sender {
            None => Replication::Unreplicated,
            Some(sender) => sender.replicate(now, &flow(), &payload, &mut scratch, |copy| {
                copies.push((usize::from(copy.ind.get()), copy.bytes.to_vec()));
            }),
        };
        let is_away = self.sender.is_none() || self.receiver.is_none();
        match replication {
            Replication::Copies { count, .. } if count == NETWORKS => {
                if self.was_plain && !is_away {
                    self.seen.again_ns.get_or_insert(now.as_nanos());
                }
            }
            Replication::Copies { .. } => {}
            Replication::Unreplicated => self.pass_plain(now, &payload),
        }
        for (network, bytes) in copies {
            self.transmit(now, network, bytes);
        }
    }

    /// It leaves as it is, on network A, for the other host's program.
    fn pass_plain(&mut self, now: Instant, payload: &[u8]) {
        self.was_plain |= now.as_nanos() >= self.seen.began_ns;
        if !self.ways[0].fault.cut {
            self.deliver(now, payload);
            if let Some(receiver) = &mut self.receiver {
                receiver.handle_monitored(now, &flow());
            }
        }
    }

    fn deliver(&mut self, now: Instant, payload: &[u8]) {
        let number = payload.first_chunk().map(|it| u32::from_be_bytes(*it));
        let of = number.and_then(|number| self.seen.datagrams.get_mut(number as usize));
        if let Some((sent_ns, came)) = of {
            let came = came.get_or_insert(Came {
                sent_ns: *sent_ns,
                came_ns: now.as_nanos(),
                times: 0,
            });
            came.times += 1;
        }
    }

    fn transmit(&mut self, now: Instant, network: usize, bytes: Vec<u8>) {
        let long = |at: usize| {
            let found = bytes.get(at..).and_then(|it| it.first_chunk());
            found.map_or(0, |it| u32::from_be_bytes(*it))
        };
        let process = u64::from(long(2)) << 32 | u64::from(long(6));
        let (space, number) = (long(10), long(14));
        let way = &mut self.ways[network];
        let delay = match way.fault.cut {
            true => None,
            false => way.pass(space, number),
        };
        let came_ns = delay.map(|delay| now.as_nanos() + delay);
        self.seen.copies.push(Copied {
            network,
            process,
            space,
            number,
            left_ns: now.as_nanos(),
            came_ns,
        });
        if let Some(due) = came_ns {
            self.order += 1;
            let waiting = (due, self.order, network, bytes);
            self.waiting.push(Reverse(waiting));
        }
    }

    /// Time goes by.
    fn until(&mut self, end: Instant) {
        while let Some(Reverse(next)) = self.waiting.peek()
            && next.0 < end.as_nanos()
            && let Some(Reverse((due, _, network, bytes))) = self.waiting.pop()
        {
            self.arrive(Instant::from_nanos(due), network, bytes);
        }
        let (mut probes, mut scratch) = (Vec::new(), [0; 2_048]);
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(end);
            while let Some(copy) = sender.poll_transmit(end, &mut scratch) {
                probes.push((usize::from(copy.ind.get()), copy.bytes.to_vec()));
            }
            while sender.poll_event().is_some() {}
        }
        for (network, bytes) in probes {
            self.transmit(end, network, bytes);
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.handle_timeout(end);
            while receiver.poll_event().is_some() {}
            self.key_number = receiver.key_number();
        }
        self.agree(end);
    }

    /// What both have to say to each other.
    fn agree(&mut self, now: Instant) {
        let (mut message, mut answer) = ([0; MAX_MESSAGE], [0; MAX_MESSAGE]);
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        while let Some(outgoing) = receiver.poll_advertisement(now, &mut message) {
            let Some(sender) = &mut self.sender else {
                continue;
            };
            let said = &message[..outgoing.len];
            let answered = sender.handle_message(now, origin(1), said, &mut answer);
            if let Ok(len @ 1..) = answered {
                let _ = receiver.handle_message(now, origin(0), &answer[..len]);
            }
        }
    }

    fn arrive(&mut self, now: Instant, network: usize, mut bytes: Vec<u8>) {
        let from = SocketAddr::from((address(network, 0), DATA_PORT));
        let on = Ind::new(network as u8);
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let came = receiver.handle_data(now, on, from, &mut bytes);
        let came = came.ok().map(|delivery| delivery.payload.to_vec());
        let mut answer = [0; FEEDBACK_LEN];
        while receiver.poll_feedback(&mut answer).is_some() {
            if let Some(sender) = &mut self.sender {
                let _ = sender.handle_feedback(now, &mut answer);
            }
        }
        if let Some(payload) = came {
            self.deliver(now, &payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iprp::torture::case::Place;
    use crate::iprp::torture::judge::judge;

    #[test]
    fn every_promise_is_kept_in_each_cell_of_the_matrix() {
        let cases = Case::all().into_iter();
        for case in cases.filter(|case| case.place == Place::Simulated) {
            for seed in 0..3 {
                let trial = judge(case, 1, &observe(case, seed).unwrap());
                assert!(trial.held, "{} seed {seed}: {:?}", case.id(), trial.wants);
                assert!(trial.sent > 1_000 || case.event.ends().is_some());
            }
        }
    }
}

//! What hosts say to each other, and everything that a driver does for its cores.

use std::net::IpAddr;

use bumpless_base::Duration;
use bumpless_iprp::{FEEDBACK_LEN, Ind, MAX_MESSAGE, Mode, Origin, PeerId, SenderEvent};

use super::{Event, World};
use crate::check::{Datagram, PacketId};
use crate::host::{CANDIDATES, KEPT};
use crate::plan::{FlowPlan, address};

impl World {
    pub(super) fn say(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        let any = (0..self.plan.networks.len()).any(|network| {
            let cuts = &self.plan.networks[network].cuts;
            let is_cut = cuts
                .iter()
                .any(|(from, until)| (*from..*until).contains(&self.now));
            self.hosts[from].on[network] && self.hosts[to].on[network] && !is_cut
        });
        let is_lost = self.is_storm() && self.random.below(100) < self.plan.control_loss;
        if any && !is_lost {
            let event = Event::Control { from, to, bytes };
            self.schedule(self.now + self.plan.control_delay, event);
        }
    }

    pub(super) fn host_at(&self, address_of: IpAddr) -> Option<usize> {
        let all = 0..self.hosts.len();
        all.into_iter()
            .find(|host| address(self.plan.ipv6, *host, 0) == address_of)
    }

    pub(super) fn control(&mut self, from: usize, to: usize, bytes: &[u8]) {
        let origin = Origin {
            peer: PeerId(from as u32),
            address: address(self.plan.ipv6, from, 0),
        };
        if bytes[1] == 2 {
            if let Some(receiver) = &mut self.hosts[to].receiver {
                // Those of a session that was forgotten meanwhile are refused.
                let _ = receiver.handle_message(self.now, origin, bytes);
            }
        } else if let Some(sender) = &mut self.hosts[to].sender {
            let mut answer = [0; MAX_MESSAGE];
            let answered = sender.handle_message(self.now, origin, bytes, &mut answer);
            if let Ok(len) = answered {
                self.note_heard(bytes, &answer[..len]);
            }
            if let Ok(len @ 1..) = answered {
                let is_group = bytes[6] == 4 && bytes[7] >= 224;
                // To whom has advertised, and to all members.
                let is_told = |host: &usize| {
                    *host != to && (*host == from || is_group && self.is_member(*host))
                };
                let told: Vec<_> = (0..self.hosts.len()).filter(is_told).collect();
                for host in told {
                    self.say(to, host, answer[..len].to_vec());
                }
            }
        }
        self.look_after(to);
    }

    /// Everything that a driver does for its cores.
    pub(super) fn look_after(&mut self, index: usize) {
        let now = self.now;
        let mut said = Vec::new();
        let mut sent = Vec::new();
        let host = &mut self.hosts[index];
        if let Some(receiver) = &mut host.receiver {
            receiver.handle_timeout(now);
            let mut message = [0; MAX_MESSAGE];
            while let Some(outgoing) = receiver.poll_advertisement(now, &mut message) {
                said.push((outgoing.to, message[..outgoing.len].to_vec()));
            }
            let mut answer = [0; FEEDBACK_LEN];
            while let Some(feedback) = receiver.poll_feedback(&mut answer) {
                sent.push((feedback.on, feedback.to.ip(), answer.to_vec()));
            }
            while receiver.poll_event().is_some() {}
            assert!(receiver.len() <= 16 + CANDIDATES, "bounded");
            host.key_number = receiver.key_number();
        }
        if let Some(sender) = &mut host.sender {
            sender.handle_timeout(now);
            let mut scratch = [0; 256];
            while let Some(copy) = sender.poll_transmit(now, &mut scratch) {
                sent.push((Some(copy.ind), copy.to, copy.bytes.to_vec()));
            }
            let kept: u32 = sender.sessions().map(|session| session.kept()).sum();
            assert!(kept as usize <= KEPT, "bounded");
            while let Some(event) = sender.poll_event() {
                match event {
                    SenderEvent::Begun { session, scope, .. } => {
                        let mut flows = self.plan.flows.iter();
                        let plan = flows.find(|plan| scope.contains(&plan.flow));
                        sender.set_mode(session, plan.map_or(Mode::Redundant, |plan| plan.mode));
                    }
                    SenderEvent::Moved { .. } => self.moved += 1,
                    SenderEvent::Suspended { .. } => self.suspended += 1,
                    _ => {}
                }
            }
        }
        let wake = host.timeout().max(now + Duration::from_micros(1));
        if wake < host.wake {
            host.wake = wake;
            self.schedule(wake, Event::Wake(index));
        }
        for (to, bytes) in said {
            self.note_offer(index, to, &bytes);
            if let Some(to) = self.host_at(to) {
                self.say(index, to, bytes);
            }
        }
        self.leave(index, sent);
    }

    /// What a host sends besides packets of programs: on which network, where to, its bytes.
    fn leave(&mut self, index: usize, sent: Vec<(Option<Ind>, IpAddr, Vec<u8>)>) {
        let flows = self.flows_of(index);
        for (on, to, bytes) in sent {
            if !bumpless_iprp::is_feedback(&bytes) {
                self.asked.left(self.now, index, &flows, &bytes);
            }
            let network = self
                .network_of(to)
                .or_else(|| on.map(|on| usize::from(on.get()) - 10));
            if let Some(network) = network {
                let packet = self.packet_of(&bytes);
                let datagram = Datagram {
                    bytes,
                    packet,
                    replayed: false,
                    forged: false,
                };
                self.transmit(index, network, to, datagram);
            }
        }
    }

    /// A sender has taken what a receiver says of a flow, and says this to it.
    fn note_heard(&mut self, bytes: &[u8], answer: &[u8]) {
        let [protocol, side, high, low] = bytes[2..6].try_into().expect("a subject");
        let (port, is_source) = (u16::from_be_bytes([high, low]), side == 1);
        let is_it = |plan: &FlowPlan| {
            let flow = &plan.flow;
            let own = [flow.destination_port, flow.source_port][usize::from(is_source)];
            (flow.protocol, own) == (protocol, port)
        };
        let Some(flow) = self.plan.flows.iter().position(is_it) else {
            return;
        };
        let is_group = self.plan.flows[flow].to.is_none();
        if bytes[1] == 3 {
            if !is_group {
                self.asked.withdrawn(flow);
            }
            return;
        }
        // Behind the subject: the period, whether there is an offer, and to which process; behind an answer's subject its own.
        let behind = offer_at(bytes);
        let process = |all: &[u8], at: usize| all.get(at..at + 8).map(<[u8]>::to_vec);
        let is_offered =
            bytes[behind] == 1 && process(bytes, behind + 1) == process(answer, behind - 4);
        if is_offered || is_group {
            let lasts = self.plan.timing.advertise_every * 3;
            self.asked.advertised(self.now, flow, lasts);
        }
    }

    pub(super) fn network_of(&self, to: IpAddr) -> Option<usize> {
        let networks = 0..self.plan.networks.len();
        networks.into_iter().find(|network| {
            (0..self.hosts.len()).any(|host| address(self.plan.ipv6, host, *network) == to)
        })
    }

    /// The packet that leaves again: the one that left before with the same session and number.
    pub(super) fn packet_of(&self, bytes: &[u8]) -> Option<PacketId> {
        match bumpless_iprp::is_feedback(bytes) {
            true => None,
            false => self.left.get(bytes.get(2..18)?).copied(),
        }
    }

    /// An advertisement with a key: which receiver has made which tag (I-21).
    pub(super) fn note_offer(&mut self, host: usize, to: IpAddr, bytes: &[u8]) {
        let flag = offer_at(bytes);
        if bytes[1] == 1 && bytes[flag] == 1 {
            let tag = bytes[flag + 9..flag + 17].try_into().expect("8 bytes");
            if let Some(source) = self.host_at(to) {
                let life = self.hosts[host].life;
                self.check.offered(&life, source, u64::from_be_bytes(tag));
            }
        }
    }
}

/// Where an advertisement says whether it has an offer (I-20).
fn offer_at(bytes: &[u8]) -> usize {
    let address_len = if bytes[6] == 4 { 5 } else { 17 };
    6 + 2 * address_len + 4
}

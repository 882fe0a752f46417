//! The world runs: what is sent arrives, or not, and is judged.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant, Random};
use bumpless_iprp::{
    Discard, FEEDBACK_LEN, Flow, MAX_MESSAGE, Mode, Origin, PeerId, Replication, SenderEvent, TCP,
    UDP,
};

use crate::check::{Checker, Datagram, Must, PacketId};
use crate::host::{CANDIDATES, Host, KEPT, ind};
use crate::plan::{END, FAULTS_UNTIL, Fault, HEALED_AT, Plan, address, at, group};

const DATA_PORT: u16 = 1_001;

enum Event {
    Send(usize),
    Arrive {
        host: usize,
        network: usize,
        from: SocketAddr,
        datagram: Datagram,
    },
    Plain {
        host: usize,
        flow: usize,
    },
    Control {
        from: usize,
        to: usize,
        bytes: Vec<u8>,
    },
    Wake(usize),
    Fault(Fault),
    SenderBack(usize),
    ReceiverBack(usize, bool),
    NetworkBack(usize, usize),
    Attack,
}

struct Sent {
    flow: usize,
    at: Instant,
    copies: usize,
}

pub struct World {
    pub plan: Plan,
    now: Instant,
    random: Random,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    events: BTreeMap<u64, Event>,
    next_event: u64,
    hosts: Vec<Host>,
    pub check: Checker,
    packets: Vec<Sent>,
    /// Which packet left with which key, session and number.
    left: BTreeMap<Vec<u8>, PacketId>,
    /// What an attacker has seen: to whom, on which network.
    recorded: Vec<(usize, usize, Datagram)>,
    pub moved: u64,
    pub suspended: u64,
    pub totals: Totals,
    traces: bool,
}

#[derive(Debug, Default)]
pub struct Totals {
    pub replicated: u64,
    pub plain: u64,
    pub suppressed: u64,
}

impl World {
    pub fn new(plan: Plan, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let now = at(Duration::ZERO);
        let hosts = (0..plan.hosts).map(|index| Host::new(index, &plan, now, &mut random));
        let hosts = hosts.collect();
        let mut world = Self {
            plan,
            now,
            random,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            hosts,
            check: Checker::default(),
            packets: Vec::new(),
            left: BTreeMap::new(),
            recorded: Vec::new(),
            moved: 0,
            suspended: 0,
            totals: Totals::default(),
            traces: std::env::var_os("BUMPLESS_IPRP_SEED").is_some(),
        };
        for flow in 0..world.plan.flows.len() {
            world.schedule(now, Event::Send(flow));
        }
        for (when, fault) in world.plan.faults.clone() {
            world.schedule(when, Event::Fault(fault));
        }
        if let Some(every) = world.plan.attack_every {
            world.schedule(now + every, Event::Attack);
        }
        world
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.next_event += 1;
        self.queue.push(Reverse((at, self.next_event)));
        self.events.insert(self.next_event, event);
    }

    pub fn run(&mut self) -> Result<(), String> {
        while let Some(Reverse((when, id))) = self.queue.pop()
            && when <= at(END)
        {
            self.now = when;
            if let Some(event) = self.events.remove(&id) {
                self.step(event)
                    .map_err(|what| format!("{what}, at {}", when.since(at(Duration::ZERO))))?;
            }
        }
        self.check_end()
    }

    fn is_storm(&self) -> bool {
        self.now < at(FAULTS_UNTIL)
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Send(flow) => self.send(flow),
            Event::Arrive {
                host,
                network,
                from,
                datagram,
            } => self.arrive(host, network, from, datagram)?,
            Event::Plain { host, flow } => {
                let flow = self.plan.flows[flow].flow;
                if let Some(receiver) = &mut self.hosts[host].receiver {
                    receiver.handle_monitored(self.now, &flow);
                }
                self.look_after(host);
            }
            Event::Control { from, to, bytes } => self.control(from, to, &bytes),
            Event::Wake(host) => {
                self.hosts[host].wake = Instant::FAR_FUTURE;
                self.look_after(host);
            }
            Event::Fault(fault) => self.fault(fault),
            Event::SenderBack(host) => {
                let (plan, random) = (&self.plan, &mut self.random);
                self.hosts[host].start_sender(plan, random);
            }
            Event::ReceiverBack(host, keeps_root) => {
                let (plan, random) = (&self.plan, &mut self.random);
                self.hosts[host].start_receiver(plan, self.now, random, keeps_root);
                self.look_after(host);
            }
            Event::NetworkBack(host, network) => self.change_network(host, network, true),
            Event::Attack => self.attack()?,
        }
        Ok(())
    }

    // Applications.

    fn send(&mut self, index: usize) {
        let plan = self.plan.flows[index];
        self.schedule(self.now + plan.every, Event::Send(index));
        if self.now >= plan.pause.0 && self.now < plan.pause.1 {
            return;
        }
        let id = self.packets.len() as PacketId;
        let payload = payload(&plan.flow, id);
        let mut scratch = [0; 256];
        let mut copies = Vec::new();
        let replication = match &mut self.hosts[plan.from].sender {
            Some(sender) => {
                sender.replicate(self.now, &plan.flow, &payload, &mut scratch, |copy| {
                    copies.push((copy.ind, copy.to, copy.bytes.to_vec()));
                })
            }
            None => Replication::Unreplicated,
        };
        let sent = match replication {
            Replication::Copies(count) => {
                assert_eq!(count, copies.len());
                count
            }
            Replication::Unreplicated => 0,
        };
        self.packets.push(Sent {
            flow: index,
            at: self.now,
            copies: sent,
        });
        for (ind, to, bytes) in copies {
            self.left.insert(bytes[2..18].to_vec(), id);
            let datagram = Datagram {
                bytes,
                packet: Some(id),
                replayed: false,
                forged: false,
            };
            self.transmit(plan.from, usize::from(ind.get()) - 10, to, datagram);
        }
        if sent == 0 {
            for host in self.present(index) {
                if let Some(when) = self.carry(plan.from, host, 0) {
                    self.schedule(when, Event::Plain { host, flow: index });
                }
            }
        }
        self.look_after(plan.from);
    }

    fn recipients(&self, flow: usize) -> Vec<usize> {
        let plan = self.plan.flows[flow];
        let all = 0..self.hosts.len();
        match plan.to {
            Some(host) => vec![host],
            None => all.filter(|host| *host != plan.from).collect(),
        }
    }

    /// Those of the recipients that are members of the group at present.
    fn present(&self, flow: usize) -> Vec<usize> {
        let to_group = self.plan.flows[flow].to.is_none();
        let mut hosts = self.recipients(flow);
        hosts.retain(|host| !to_group || self.is_member(*host));
        hosts
    }

    fn is_member(&self, host: usize) -> bool {
        let (from, until) = self.plan.absent[host];
        !(from..until).contains(&self.now)
    }

    // Networks.

    /// When what leaves at `from` arrives at `to`; never, if it is lost.
    fn carry(&mut self, from: usize, to: usize, network: usize) -> Option<Instant> {
        let is_storm = self.is_storm();
        let plan = &self.plan.networks[network];
        let is_cut = plan
            .cuts
            .iter()
            .any(|(from, until)| (*from..*until).contains(&self.now));
        let (loss, delay, jitter) = (plan.loss, plan.delay, plan.jitter);
        let is_on = self.hosts[from].on[network] && self.hosts[to].on[network];
        let is_lost = is_storm && self.random.below(1_000) < loss;
        let late = Duration::from_nanos(self.random.below(jitter.as_nanos().max(1)));
        (is_on && !is_cut && !is_lost).then(|| self.now + delay + late)
    }

    fn transmit(&mut self, from: usize, network: usize, to: IpAddr, datagram: Datagram) {
        let source = SocketAddr::new(address(self.plan.ipv6, from, network), DATA_PORT);
        for host in 0..self.hosts.len() {
            let is_members = to == group(self.plan.ipv6) && host != from && self.is_member(host);
            if !is_members && to != address(self.plan.ipv6, host, network) {
                continue;
            }
            if self.recorded.len() < 4_000 {
                self.recorded.push((host, network, datagram.clone()));
            }
            let twice =
                self.is_storm() && self.random.below(1_000) < self.plan.networks[network].twice;
            for _ in 0..1 + u32::from(twice) {
                if let Some(when) = self.carry(from, host, network) {
                    let datagram = datagram.clone();
                    let event = Event::Arrive {
                        host,
                        network,
                        from: source,
                        datagram,
                    };
                    self.schedule(when, event);
                }
            }
        }
    }

    fn arrive(
        &mut self,
        host: usize,
        network: usize,
        from: SocketAddr,
        datagram: Datagram,
    ) -> Result<(), String> {
        if datagram.is_feedback() {
            let mut bytes = datagram.bytes.clone();
            if let Some(sender) = &mut self.hosts[host].sender {
                let result = sender.handle_feedback(self.now, &mut bytes);
                if datagram.forged && result.is_ok() {
                    return Err("genuine: a forged answer was believed".to_owned());
                }
            }
            self.look_after(host);
            return Ok(());
        }
        let life = self.hosts[host].life;
        let packet = datagram.packet;
        let flow = packet.map_or(0, |packet| self.packets[packet as usize].flow);
        let plan = self.plan.flows[flow];
        let must = self
            .check
            .expect(&life, flow, plan.from, &datagram, self.plan.max_lost);
        let mut bytes = datagram.bytes.clone();
        let on = (self.random.below(4) > 0).then(|| ind(network));
        let Some(receiver) = &mut self.hosts[host].receiver else {
            return Ok(());
        };
        let result = receiver.handle_data(self.now, on, from, &mut bytes);
        if self.traces {
            println!(
                "{} host {host} packet {packet:?} {:?} {} -> {:?} {must:?} replayed {}",
                self.now.since(at(Duration::ZERO)),
                datagram.place(),
                datagram.number(),
                result.as_ref().map(|_| ()),
                datagram.replayed
            );
        }
        let broken = match (&result, must) {
            (Err(_), Must::Deliver) => Some("first copy wins"),
            (Ok(_), Must::Refuse) if packet.is_none() => Some("genuine"),
            (Ok(_), Must::Refuse) => Some("once"),
            _ => None,
        };
        if let Some(broken) = broken {
            return Err(format!(
                "{broken}: host {host}: {result:?}, packet {packet:?} (replayed {}) {:?} number {} of {life:?}",
                datagram.replayed,
                datagram.place(),
                datagram.number(),
            ));
        }
        match (result, packet) {
            (Ok(delivery), Some(packet)) => {
                if delivery.flow != plan.flow || delivery.payload != payload(&plan.flow, packet) {
                    return Err(format!("whole: packet {packet} came as {delivery:?}"));
                }
                self.check.opened(&life, flow, &datagram);
                self.check.deliver(self.now, &life, packet, &datagram)?;
            }
            (Ok(delivery), None) => {
                return Err(format!("genuine: out of nothing came {delivery:?}"));
            }
            (Err(Discard::Probe), _) => {
                // Of which flow is not known outside; any that its host sends.
                for flow in 0..self.plan.flows.len() {
                    self.check.opened_probe(&life, flow, &datagram);
                }
            }
            (Err(Discard::Duplicate), _) => self.check.opened(&life, flow, &datagram),
            (Err(_), _) => self.check.refused += 1,
        }
        self.look_after(host);
        Ok(())
    }

    // Control.

    fn say(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
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

    fn host_at(&self, address_of: IpAddr) -> Option<usize> {
        let all = 0..self.hosts.len();
        all.into_iter()
            .find(|host| address(self.plan.ipv6, *host, 0) == address_of)
    }

    fn control(&mut self, from: usize, to: usize, bytes: &[u8]) {
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
            if let Ok(len @ 1..) = sender.handle_message(self.now, origin, bytes, &mut answer) {
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
    fn look_after(&mut self, index: usize) {
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
                        let flows = self
                            .plan
                            .flows
                            .iter()
                            .find(|plan| scope.contains(&plan.flow));
                        sender.set_mode(session, flows.map_or(Mode::Redundant, |plan| plan.mode));
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
        for (on, to, bytes) in sent {
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

    fn network_of(&self, to: IpAddr) -> Option<usize> {
        let networks = 0..self.plan.networks.len();
        networks.into_iter().find(|network| {
            (0..self.hosts.len()).any(|host| address(self.plan.ipv6, host, *network) == to)
        })
    }

    /// The packet that leaves again: the one that left before with the same session and number.
    fn packet_of(&self, bytes: &[u8]) -> Option<PacketId> {
        match bumpless_iprp::is_feedback(bytes) {
            true => None,
            false => self.left.get(bytes.get(2..18)?).copied(),
        }
    }

    /// An advertisement with a key: which receiver has made which tag (I-21).
    fn note_offer(&mut self, host: usize, to: IpAddr, bytes: &[u8]) {
        let address_len = if bytes[6] == 4 { 5 } else { 17 };
        let flag = 6 + 2 * address_len + 4;
        if bytes[1] == 1 && bytes[flag] == 1 {
            let tag = bytes[flag + 9..flag + 17].try_into().expect("8 bytes");
            if let Some(source) = self.host_at(to) {
                let life = self.hosts[host].life;
                self.check.offered(&life, source, u64::from_be_bytes(tag));
            }
        }
    }

    // Faults.

    fn fault(&mut self, fault: Fault) {
        let now = self.now;
        if self.traces {
            println!("{} {fault:?}", now.since(at(Duration::ZERO)));
        }
        match fault {
            Fault::SenderRestarts(host, gone) => {
                if self.hosts[host].sender.take().is_some() {
                    self.schedule(now + gone, Event::SenderBack(host));
                }
            }
            Fault::ReceiverRestarts(host, gone, keeps_root) => {
                if self.hosts[host].receiver.take().is_some() {
                    self.schedule(now + gone, Event::ReceiverBack(host, keeps_root));
                }
            }
            Fault::ReceiverStops(host, gone) => {
                if let Some(receiver) = &mut self.hosts[host].receiver {
                    receiver.withdraw();
                    self.look_after(host);
                    assert!(
                        self.hosts[host]
                            .receiver
                            .take()
                            .is_some_and(|it| it.is_empty())
                    );
                    self.schedule(now + gone, Event::ReceiverBack(host, false));
                }
            }
            Fault::NetworkLeaves(host, network, gone) => {
                self.change_network(host, network, false);
                self.schedule(now + gone, Event::NetworkBack(host, network));
            }
            Fault::NumbersEnd(host) => {
                if let Some(sender) = &mut self.hosts[host].sender {
                    let all: Vec<_> = sender.sessions().map(|it| it.session).collect();
                    all.into_iter()
                        .for_each(|session| sender.skip_to_end(session));
                }
            }
        }
    }

    fn change_network(&mut self, host: usize, network: usize, is_there: bool) {
        self.hosts[host].on[network] = is_there;
        let networks = self.hosts[host].networks(self.plan.ipv6);
        if let Some(sender) = &mut self.hosts[host].sender {
            sender.set_networks(networks);
        }
        if let Some(receiver) = &mut self.hosts[host].receiver {
            receiver.set_networks(self.now, networks);
        }
        self.look_after(host);
    }

    // An attacker who sees and sends what it likes, and has no key.

    fn attack(&mut self) -> Result<(), String> {
        if let Some(every) = self.plan.attack_every {
            self.schedule(self.now + every, Event::Attack);
        }
        let anyone = SocketAddr::new([192, 0, 2, self.random.below(256) as u8].into(), 7);
        match self.random.below(4) {
            0 => {
                let host = self.random.below(self.hosts.len() as u64) as usize;
                let flow = Flow {
                    source: IpAddr::from([192, 0, 2, self.random.below(256) as u8]),
                    destination: address(false, host, 0),
                    protocol: UDP,
                    source_port: self.random.below(1 << 16) as u16,
                    destination_port: crate::plan::PORT,
                };
                if let Some(receiver) = &mut self.hosts[host].receiver {
                    receiver.handle_monitored(self.now, &flow);
                }
                self.look_after(host);
                Ok(())
            }
            1 => {
                let host = self.random.below(self.hosts.len() as u64) as usize;
                let len = self.random.below(120) as usize;
                let mut bytes: Vec<u8> = (0..len).map(|_| self.random.next_u64() as u8).collect();
                if let Some(first) = bytes.first_mut() {
                    *first = 0x1a;
                }
                self.arrive(host, 0, anyone, forged(bytes))
            }
            _ if self.recorded.is_empty() => Ok(()),
            kind => {
                let which = self.random.below(self.recorded.len() as u64) as usize;
                let (host, network, mut datagram) = self.recorded[which].clone();
                datagram.replayed = true;
                if kind == 2 {
                    let bit = self.random.below(datagram.bytes.len() as u64 * 8) as usize;
                    datagram.bytes[bit / 8] ^= 1 << (bit % 8);
                    datagram = forged(datagram.bytes);
                }
                self.arrive(host, network, anyone, datagram)
            }
        }
    }

    // The end.

    fn check_end(&mut self) -> Result<(), String> {
        let (from, until) = (at(HEALED_AT), at(END).before(Duration::from_millis(200)));
        for index in 0..self.plan.flows.len() {
            let mode = self.plan.flows[index].mode;
            let sent = self.packets.iter().enumerate();
            let late = sent.filter(|(_, it)| it.flow == index && it.at >= from && it.at < until);
            let late: Vec<_> = late.collect();
            let copies = match mode {
                Mode::Standby if self.plan.flows[index].to.is_some() => 1,
                _ => self.plan.networks.len(),
            };
            if let Some((id, it)) = late.iter().find(|(_, it)| it.copies != copies) {
                return Err(format!(
                    "heals: packet {id} of flow {index} left in {} copies",
                    it.copies
                ));
            }
            let ids: BTreeSet<_> = late.iter().map(|(id, _)| *id as PacketId).collect();
            for host in self.recipients(index) {
                let missing = self.check.missing(&ids, host);
                if !missing.is_empty() {
                    return Err(format!(
                        "heals: flow {index}, host {host} lacks {missing:?}"
                    ));
                }
            }
        }
        for host in &self.hosts {
            if let Some(sender) = &host.sender {
                self.totals.replicated += sender.totals().replicated;
                self.totals.plain += sender.totals().unreplicated + sender.totals().suspended;
            }
            if let Some(receiver) = &host.receiver {
                self.totals.suppressed += receiver.totals().suppressed;
            }
        }
        Ok(())
    }
}

fn forged(bytes: Vec<u8>) -> Datagram {
    Datagram {
        bytes,
        packet: None,
        replayed: false,
        forged: true,
    }
}

fn payload(flow: &Flow, id: PacketId) -> Vec<u8> {
    let mut payload = Vec::new();
    if flow.protocol == TCP {
        payload.extend(flow.source_port.to_be_bytes());
        payload.extend(flow.destination_port.to_be_bytes());
    }
    payload.extend(id.to_be_bytes());
    payload.resize(payload.len() + (id % 90) as usize, id as u8);
    payload
}

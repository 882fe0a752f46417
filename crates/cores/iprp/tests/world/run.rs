//! The world runs: applications send, and at the end everything must be as it should be.

mod control;
mod faults;
mod networks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::SocketAddr;

use bumpless_base::{Duration, Instant, Random};
use bumpless_iprp::{Flow, Mode, Replication, TCP};

use crate::asked::Asked;
use crate::check::{Checker, Datagram, PacketId};
use crate::host::Host;
use crate::plan::{FAULTS_UNTIL, Fault, FlowPlan, Plan, at};

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
    pub asked: Asked,
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
        let check = Checker::new(plan.timing.advertise_every * 4);
        let mut world = Self {
            plan,
            now,
            random,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            hosts,
            check,
            asked: Asked::default(),
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
            && when <= at(self.plan.end)
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
            Event::Send(flow) => self.send(flow)?,
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
                self.asked.begin(host, self.flows_of(host).into_iter());
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

    fn send(&mut self, index: usize) -> Result<(), String> {
        let plan = self.plan.flows[index];
        self.schedule(self.now + plan.every, Event::Send(index));
        if self.now >= plan.pause.0 && self.now < plan.pause.1 {
            return Ok(());
        }
        let has_way = self.has_way(&plan);
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
            Replication::Copies { count, .. } => {
                assert_eq!(count, copies.len());
                count
            }
            Replication::Unreplicated => 0,
        };
        // In standby packets that leave again ask as well, and groups are not asked.
        let asks_all = plan.mode == Mode::Redundant && plan.to.is_some();
        if sent > 0 {
            let bytes: Vec<_> = copies.iter().map(|it| it.2.clone()).collect();
            let of = (plan.from, index, asks_all);
            self.asked.in_copies(self.now, of, &bytes)?;
        } else if has_way && asks_all {
            self.asked.plain(self.now, index)?;
        }
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
        Ok(())
    }

    /// Whether there is a session for a flow, with a network on which copies may leave.
    fn has_way(&self, flow: &FlowPlan) -> bool {
        let sessions = self.hosts[flow.from].sender.iter();
        let mut sessions = sessions.flat_map(|it| it.sessions());
        sessions.any(|it| it.scope().contains(&flow.flow) && it.paths().any(|path| path.usable))
    }

    /// Flows that a host sends.
    fn flows_of(&self, host: usize) -> Vec<usize> {
        let all = 0..self.plan.flows.len();
        all.filter(|flow| self.plan.flows[*flow].from == host)
            .collect()
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

    fn check_end(&mut self) -> Result<(), String> {
        let (from, until) = (
            at(self.plan.healed_at),
            at(self.plan.end).before(Duration::from_millis(200)),
        );
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

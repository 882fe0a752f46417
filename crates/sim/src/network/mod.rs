//! The networks: what becomes of each datagram between two ends.

mod path;
mod record;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bumpless_base::Random;
use bumpless_config::{Config, ReferenceKind};

pub use self::path::Path;
use self::path::is_of;
use self::record::Record;
use crate::echo::{endpoint, is_icmp};
use crate::queue::{Queue, What};
use crate::script::{End, Fault, Paths};
use crate::streams::{Purpose, stream};

/// On the way in a sound network: switch and cables, and what it varies by.
const BASE: u64 = 30_000;
const JITTER: u64 = 20_000;
/// A sender's interface queues no longer than this.
const QUEUE: u64 = 20_000_000;

/// A datagram under way.
#[derive(Debug)]
pub struct InFlight {
    /// The network.
    pub network: usize,
    /// Its source address.
    pub source: SocketAddr,
    /// Where it goes.
    pub to: End,
    /// When it was sent.
    pub sent: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What became of a datagram when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is under way.
    Sent,
    /// It is lost.
    Lost,
    /// Its destination is nobody's address.
    Nowhere,
}

/// All networks between all ends.
pub struct Network {
    nodes: usize,
    ends: usize,
    networks: usize,
    /// By network, then end.
    addresses: Vec<Option<SocketAddr>>,
    /// The keys of these addresses, by which they are looked up.
    keys: Vec<u64>,
    /// By network, sender, receiver.
    paths: Vec<Path>,
    sound: Vec<Path>,
    random: Vec<Random>,
    /// Until when each end's interface is busy, by network.
    busy: Vec<u64>,
    /// On their way to nodes, with their arrivals, the next first; by node, then network.
    coming: Vec<VecDeque<(u64, InFlight)>>,
    /// When the first of them arrives, by node; the end of time if there is none.
    next: Vec<u64>,
    /// On their way elsewhere.
    in_flight: Vec<Option<InFlight>>,
    vacant: Vec<u32>,
    record: Record,
    /// Datagrams handed to the networks.
    pub datagrams: u64,
}

impl Network {
    /// The networks of `config`; paths differ a little from each other, by `seed`.
    pub fn new(config: &Config, seed: u64) -> Self {
        let nodes = config.nodes.len();
        let ends = nodes + config.references.len();
        let networks = config.networks.len();
        let mut addresses = Vec::new();
        for network in 0..networks {
            addresses.extend(config.nodes.iter().map(|node| node.addresses[network]));
            addresses.extend(
                config
                    .references
                    .iter()
                    .map(|reference| match reference.kind {
                        _ if usize::from(reference.network.0) != network => None,
                        ReferenceKind::Witness(address) => Some(address),
                        ReferenceKind::Ping(address) => Some(endpoint(address)),
                    }),
            );
        }
        let count = networks * ends * ends;
        let mut random: Vec<_> = (0..count)
            .map(|at| stream(seed, Purpose::Path, at))
            .collect();
        let sound: Vec<_> = (0..count)
            .map(|at| {
                let skew = random[at].below(BASE);
                let bandwidth = config.networks[at / (ends * ends)].bandwidth;
                Path::new(BASE + skew, JITTER, bandwidth)
            })
            .collect();
        Self {
            nodes,
            ends,
            networks,
            keys: addresses.iter().map(|at| at.map_or(0, key)).collect(),
            addresses,
            paths: sound.clone(),
            sound,
            random,
            busy: vec![0; networks * ends],
            coming: (0..nodes * networks).map(|_| VecDeque::new()).collect(),
            next: vec![u64::MAX; nodes],
            in_flight: Vec::new(),
            vacant: Vec::new(),
            record: Record::new(stream(seed, Purpose::Junk, 0)),
            datagrams: 0,
        }
    }

    fn index(&self, end: End) -> usize {
        match end {
            End::Node(node) => node,
            End::Reference(reference) => self.nodes + reference,
        }
    }

    fn end(&self, index: usize) -> End {
        match index.checked_sub(self.nodes) {
            Some(reference) => End::Reference(reference),
            None => End::Node(index),
        }
    }

    /// The address of `end` on `network`.
    pub fn address(&self, network: usize, end: End) -> Option<SocketAddr> {
        self.addresses[network * self.ends + self.index(end)]
    }

    /// Whose address `address` is on `network`.
    pub fn at_address(&self, network: usize, address: SocketAddr) -> Option<End> {
        let (of_network, key) = (network * self.ends, key(address));
        let keys = &self.keys[of_network..][..self.ends];
        let same = |at: &usize| self.addresses[of_network + at] == Some(address);
        let at = (0..self.ends).find(|at| keys[*at] == key && same(at))?;
        Some(self.end(at))
    }

    /// Makes every path sound but for `faults`.
    pub fn set_faults<'a>(&mut self, faults: impl Iterator<Item = &'a Fault>) {
        for (path, sound) in self.paths.iter_mut().zip(&self.sound) {
            path.heal(sound);
        }
        for fault in faults {
            if let Fault::Path { paths, fault } = fault {
                for at in 0..self.paths.len() {
                    if self.concerns(paths, at) {
                        self.paths[at].suffer(fault);
                    }
                }
            }
        }
    }

    fn concerns(&self, paths: &Paths, at: usize) -> bool {
        let square = self.ends * self.ends;
        let (network, from, to) = (at / square, at % square / self.ends, at % self.ends);
        let fits = |wanted: Option<End>, index| wanted.is_none_or(|end| self.index(end) == index);
        paths.network.is_none_or(|wanted| wanted == network)
            && (fits(paths.from, from) && fits(paths.to, to)
                || paths.both && fits(paths.from, to) && fits(paths.to, from))
    }

    /// Sends `bytes` from `from` at `at`, which is now or a little later.
    pub fn send(
        &mut self,
        queue: &mut Queue,
        (network, from, to): (usize, End, SocketAddr),
        at: u64,
        bytes: Vec<u8>,
        free: &mut dyn FnMut(Vec<u8>),
    ) -> Fate {
        self.datagrams += 1;
        let (Some(source), Some(end)) = (self.address(network, from), self.at_address(network, to))
        else {
            free(bytes);
            return Fate::Nowhere;
        };
        let datagram = InFlight {
            network,
            source,
            to: end,
            sent: at,
            bytes,
        };
        self.record.consider(&datagram);
        let (from, to) = (self.index(from), self.index(end));
        let place = (network * self.ends + from) * self.ends + to;
        let leaves = self.serialise(network * self.ends + from, place, datagram.bytes.len(), at);
        match leaves {
            Some(leaves) if !self.is_lost(place, leaves, &datagram.bytes) => {
                self.carry(queue, place, leaves, datagram)
            }
            _ => {
                free(datagram.bytes);
                Fate::Lost
            }
        }
    }

    /// When the datagram has left the sender's interface; `None` if that has no room.
    fn serialise(&mut self, interface: usize, place: usize, len: usize, at: u64) -> Option<u64> {
        let bandwidth = self.paths[place].bandwidth;
        if bandwidth == 0 {
            return Some(at);
        }
        let begins = self.busy[interface].max(at);
        if begins - at > QUEUE {
            return None;
        }
        let bits = (len as u64 + 66) * 8;
        self.busy[interface] = begins + bits * 1_000_000_000 / bandwidth;
        Some(self.busy[interface])
    }

    fn is_lost(&mut self, place: usize, at: u64, bytes: &[u8]) -> bool {
        let (path, random) = (&mut self.paths[place], &mut self.random[place]);
        if path.is_cut(at) {
            return true;
        }
        if let Some((enter, leave)) = path.bursts {
            let turns = random.chance(if path.in_burst { leave } else { enter });
            path.in_burst ^= turns;
            if path.in_burst {
                return true;
            }
        }
        let hit = |&(share, class): &(f64, _)| random.chance(share) && is_of(class, bytes);
        path.losses.iter().any(hit)
    }

    fn carry(&mut self, queue: &mut Queue, place: usize, leaves: u64, mut it: InFlight) -> Fate {
        let (path, random) = (&mut self.paths[place], &mut self.random[place]);
        if path.corrupt != (0.0, 0.0) || path.truncate > 0.0 {
            // One bit turned is one that both frame check sequence and checksum find.
            if random.chance(path.corrupt.0) {
                return Fate::Lost;
            }
            if random.chance(path.corrupt.1) && !it.bytes.is_empty() {
                let bit = random.below(it.bytes.len() as u64 * 8) as usize;
                it.bytes[bit / 8] ^= 1 << (bit % 8);
            }
            if random.chance(path.truncate) {
                let len = random.below(it.bytes.len() as u64) as usize;
                it.bytes.truncate(len);
            }
        }
        let mut arrival = leaves + path.base + random.below(path.jitter);
        if path.reorder.0 > 0.0 && random.chance(path.reorder.0) {
            arrival += random.below(path.reorder.1);
        } else {
            arrival = arrival.max(path.last_arrival);
            path.last_arrival = arrival;
        }
        let copy = (path.duplicate > 0.0 && random.chance(path.duplicate)).then(|| {
            let later = arrival + random.below(2 * JITTER + path.jitter);
            (later, it.copy())
        });
        self.launch(queue, arrival, it);
        if let Some((later, copy)) = copy {
            self.launch(queue, later, copy);
        }
        Fate::Sent
    }

    /// What goes to a node is not among the events: it lies there until the node looks.
    fn launch(&mut self, queue: &mut Queue, arrival: u64, datagram: InFlight) {
        if let End::Node(node) = datagram.to
            && !is_icmp(datagram.source)
        {
            self.next[node] = self.next[node].min(arrival);
            let coming = &mut self.coming[node * self.networks + datagram.network];
            if coming.back().is_none_or(|last| last.0 <= arrival) {
                return coming.push_back((arrival, datagram));
            }
            let place = coming.partition_point(|it| it.0 <= arrival);
            return coming.insert(place, (arrival, datagram));
        }
        let packet = match self.vacant.pop() {
            Some(slot) => {
                self.in_flight[slot as usize] = Some(datagram);
                slot
            }
            None => {
                self.in_flight.push(Some(datagram));
                (self.in_flight.len() - 1) as u32
            }
        };
        queue.push(arrival, What::Arrival { packet });
    }

    /// Puts a datagram on the way that no end has sent.
    pub fn inject(&mut self, queue: &mut Queue, datagram: InFlight) {
        self.datagrams += 1;
        let at = queue.now() + BASE;
        self.launch(queue, at, datagram);
    }

    /// One of the datagrams that were sent to `to` before, if one is on record.
    pub fn recorded(&mut self, network: usize, to: End) -> Option<InFlight> {
        self.record.draw(network, to)
    }

    /// Takes what has arrived at `node` by `now`: each network's in the order of arrival.
    pub fn arrived(&mut self, node: usize, now: u64, mut take: impl FnMut(InFlight)) {
        if now < self.next[node] {
            return;
        }
        let mut next = u64::MAX;
        for coming in &mut self.coming[node * self.networks..][..self.networks] {
            while let Some((_, datagram)) = coming.pop_front_if(|(arrival, _)| *arrival <= now) {
                take(datagram);
            }
            next = coming.front().map_or(next, |front| next.min(front.0));
        }
        self.next[node] = next;
    }

    /// When the next datagram arrives at `node`; the end of time if none is on its way.
    pub fn next_arrival(&self, node: usize) -> u64 {
        self.next[node]
    }

    /// Takes a datagram that has arrived where no node is, or for its ICMP.
    pub fn arrive(&mut self, packet: u32) -> Option<InFlight> {
        let arrived = self.in_flight.get_mut(packet as usize)?.take()?;
        self.vacant.push(packet);
        Some(arrived)
    }

    /// How many networks there are.
    pub fn count(&self) -> usize {
        self.networks
    }
}

/// Tells most addresses apart for less than comparing them costs.
fn key(address: SocketAddr) -> u64 {
    let ip = match address.ip() {
        IpAddr::V4(ip) => u64::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip) as u64,
    };
    ip << 16 ^ u64::from(address.port())
}

impl InFlight {
    fn copy(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            ..*self
        }
    }
}

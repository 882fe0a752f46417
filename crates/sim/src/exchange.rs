//! Where the nodes' drivers and the simulated networks meet: a mailbox for each node and network.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendFailure, SendOutcome};
use bumpless_wire::{Packet, parse};

/// Datagrams passed on by one call of [`Link::receive`].
const BATCH: usize = 64;

/// A datagram that waits for its node.
#[derive(Debug)]
pub struct Arrived {
    /// Its source.
    pub from: SocketAddr,
    /// When it was sent, true time.
    pub sent: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A datagram that its node has sent.
#[derive(Debug)]
pub struct Departed {
    /// Its destination.
    pub to: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Transits that a generation holds at most.
const GENERATION: usize = 1024;

/// How long the quickest packet of each recent cycle was under way until the data plane took it,
/// nanoseconds of true time, by channel, session and cycle.
#[derive(Debug, Default)]
struct Transits {
    /// What was noted last: packets of one cycle come in a row.
    last: ((u16, u32, u32), u64),
    young: BTreeMap<(u16, u32, u32), u64>,
    old: BTreeMap<(u16, u32, u32), u64>,
}

impl Transits {
    fn note(&mut self, key: (u16, u32, u32), took: u64) {
        if self.last.0 == key && took >= self.last.1 {
            return;
        }
        let before = self.old.get(&key).copied().unwrap_or(u64::MAX);
        let quickest = self.young.entry(key).or_insert(before);
        *quickest = (*quickest).min(took);
        self.last = (key, *quickest);
        if self.young.len() > GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// Of whatever session: one may end in the turn in which its last state became whole.
    fn of(&self, channel: u16, cycle: u32) -> Option<u64> {
        let all = (channel, 0, 0)..=(channel, u32::MAX, u32::MAX);
        let both = self.young.range(all.clone()).chain(self.old.range(all));
        both.filter(|((_, _, c), _)| *c == cycle)
            .map(|(_, took)| *took)
            .max()
    }
}

/// What one node has on one network.
#[derive(Debug, Default)]
pub struct Mailbox {
    inbox: VecDeque<Arrived>,
    waiting: usize,
    /// Sent by the node, not yet taken by the network.
    pub outbox: Vec<Departed>,
    /// Bytes that fit into the receive buffer.
    pub capacity: usize,
    /// Whether the node's own interface refuses to send.
    pub unreachable: bool,
}

/// All mailboxes, and buffers for datagrams that go round.
#[derive(Debug, Default)]
pub struct Exchange {
    boxes: Vec<Mailbox>,
    /// For each mailbox's node, by channel.
    transits: Vec<Transits>,
    /// For each node, the tags of its sessions.
    sessions: Vec<Vec<u32>>,
    networks: usize,
    free: Vec<Vec<u8>>,
    now: u64,
}

impl Exchange {
    /// Mailboxes for `nodes` nodes on `networks` networks, each with `capacity` bytes.
    pub fn shared(nodes: usize, networks: usize, capacity: usize) -> Shared {
        let empty = || Mailbox {
            capacity,
            ..Mailbox::default()
        };
        Shared(Arc::new(Mutex::new(Self {
            boxes: (0..nodes * networks).map(|_| empty()).collect(),
            transits: (0..nodes).map(|_| Transits::default()).collect(),
            sessions: vec![Vec::new(); nodes],
            networks,
            free: Vec::new(),
            now: 0,
        })))
    }

    /// The mailbox of `node` on `network`.
    pub fn mailbox(&mut self, node: usize, network: usize) -> &mut Mailbox {
        &mut self.boxes[node * self.networks + network]
    }

    /// Sets the true time of what the drivers do next.
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// An empty buffer.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes a buffer back.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.free.push(buffer);
    }

    /// Puts a datagram where the node finds it; returns whether it fits.
    pub fn deliver(&mut self, node: usize, network: usize, arrived: Arrived) -> bool {
        let mailbox = self.mailbox(node, network);
        let size = footprint(&arrived);
        if mailbox.waiting + size > mailbox.capacity {
            self.recycle(arrived.bytes);
            return false;
        }
        mailbox.waiting += size;
        mailbox.inbox.push_back(arrived);
        true
    }

    /// Forgets what waits for `node`: its process has ended.
    pub fn clear(&mut self, node: usize) {
        for network in 0..self.networks {
            let mailbox = self.mailbox(node, network);
            mailbox.waiting = 0;
            let mut lost: Vec<_> = mailbox.inbox.drain(..).map(|a| a.bytes).collect();
            lost.extend(mailbox.outbox.drain(..).map(|d| d.bytes));
            self.free.append(&mut lost);
        }
        self.transits[node] = Transits::default();
        self.sessions[node].clear();
    }

    /// The sessions of `node` are those with these tags: only their packets can be taken.
    pub fn set_sessions(&mut self, node: usize, tags: impl Iterator<Item = u32>) {
        let sessions = &mut self.sessions[node];
        sessions.clear();
        sessions.extend(tags);
    }

    /// The transit of the quickest packet of this cycle, if one was seen.
    pub fn quickest(&self, node: usize, channel: u16, cycle: u32) -> Option<u64> {
        self.transits[node].of(channel, cycle)
    }

    fn note_transit(&mut self, node: usize, arrived: &Arrived) {
        if !arrived.bytes.starts_with(&[0, 1]) {
            return;
        }
        if let Ok(Packet::Data { header, .. }) = parse(&arrived.bytes)
            && self.sessions[node].contains(&header.tag)
        {
            let took = self.now.saturating_sub(arrived.sent);
            let key = (header.channel.get(), header.tag, header.cycle);
            self.transits[node].note(key, took);
        }
    }
}

fn footprint(arrived: &Arrived) -> usize {
    // What the kernel charges a datagram's buffer with besides its bytes.
    arrived.bytes.len() + 1024
}

/// The exchange, held by the world and by every driver.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Exchange>>);

impl Shared {
    /// The exchange. One thread drives a world, so nobody ever waits here.
    pub fn get(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node's driver of one simulated network.
#[derive(Debug)]
pub struct SimLink {
    /// Where everything goes.
    pub exchange: Shared,
    /// The node.
    pub node: usize,
    /// The network.
    pub network: usize,
    /// Its own address there.
    pub local: SocketAddr,
}

impl Link for SimLink {
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let mut exchange = self.exchange.get();
        if exchange.mailbox(self.node, self.network).unreachable {
            return SendOutcome {
                sent: 0,
                failure: Some(SendFailure::Unreachable),
            };
        }
        for packet in packets {
            let mut bytes = exchange.buffer();
            bytes.extend_from_slice(packet.header);
            bytes.extend_from_slice(packet.payload);
            let mailbox = exchange.mailbox(self.node, self.network);
            mailbox.outbox.push(Departed { to, bytes });
        }
        SendOutcome {
            sent: packets.len(),
            failure: None,
        }
    }

    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &[u8])) -> ReceiveOutcome {
        let mut exchange = self.exchange.get();
        let mut datagrams = 0;
        while datagrams < BATCH {
            let mailbox = exchange.mailbox(self.node, self.network);
            let Some(arrived) = mailbox.inbox.pop_front() else {
                break;
            };
            mailbox.waiting -= footprint(&arrived);
            exchange.note_transit(self.node, &arrived);
            sink(arrived.from, &arrived.bytes);
            exchange.recycle(arrived.bytes);
            datagrams += 1;
        }
        ReceiveOutcome {
            datagrams,
            more: datagrams == BATCH,
            failure: None,
        }
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }
}

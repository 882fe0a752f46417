//! Where the nodes' drivers and the simulated networks meet: a mailbox for each node and network.

mod link;

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::mem::take;
use std::net::SocketAddr;
use std::rc::Rc;

use bumpless_config::{Config, Security};
use bumpless_net_linux::Segment;
use bumpless_wire::{Packet, parse, parse_data};

pub use self::link::SimLink;
use crate::check::{Exemption, Genuine, Message, Passed, Verdict, full_payload};
use crate::network::{Datagram, Directory, Parcel, Sent, kind_of};
use crate::readable::message_in;
use crate::script::End;
use crate::transits::Transits;

/// Datagrams passed on by one call of a driver's `receive`.
const BATCH: usize = 64;

/// Datagrams of each kind that are kept for use again: more than fit into the receive buffers of a pair that
/// stands still.
const SPARE: usize = 1 << 14;

/// With this begins a heartbeat (`HType`).
const HEARTBEAT: [u8; 2] = [0x20, 0x01];

/// Empty datagrams, by kind of box.
type Free = [Vec<Parcel>; 2];

thread_local! {
    /// Those of the last world that ended on this thread: memory that was never used before is slow.
    static USED: RefCell<Free> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let free = take(&mut self.free);
        // The thread may be ending, too.
        let _ = USED.try_with(|used| used.replace(free));
    }
}

/// What one node has on one network.
#[derive(Debug, Default)]
pub struct Mailbox {
    inbox: VecDeque<Parcel>,
    waiting: usize,
    /// Sent by the node, not yet taken by the network.
    pub outbox: Vec<Parcel>,
    /// Bytes that fit into the receive buffer.
    pub capacity: usize,
    /// Whether the node's own interface refuses to send.
    pub unreachable: bool,
    /// What its process has taken.
    genuine: Genuine,
}

impl Mailbox {
    /// Whether something has come that the node has not taken.
    pub fn has_waiting(&self) -> bool {
        !self.inbox.is_empty()
    }
}

/// All mailboxes, and the datagrams that go round.
#[derive(Debug)]
pub struct Exchange {
    boxes: Vec<Mailbox>,
    /// For each mailbox's node, by channel.
    transits: Vec<Transits>,
    /// For each node, the tags of its sessions.
    sessions: Vec<Vec<u32>>,
    /// Sequence numbers of echo replies that wait, by node, then reference point.
    echoes: Vec<VecDeque<u16>>,
    networks: usize,
    references: usize,
    free: Free,
    now: u64,
    /// State bytes in a packet.
    payload_size: u16,
    directory: Directory,
    /// What the node whose turn it is has taken of state transfer.
    pub taken: Vec<Passed>,
    /// What it has sent of it.
    pub sent: Vec<Passed>,
    /// What was wrong with what was taken, if anything was.
    pub genuine: Verdict,
    /// What of that is forgiven.
    pub forgiven: Vec<Exemption>,
    /// How many processes each node has had, then each witness.
    processes: Vec<u32>,
    /// Whether messages are protected.
    protected: bool,
    /// Datagrams sent.
    count: u64,
    /// Room for the blocks of acknowledgements.
    blocks: Vec<Blocks>,
    /// Whether somebody wants to know who hears whom.
    pub listening: bool,
    /// By node: when the latest heartbeat was sent that has come while somebody wanted to know.
    heard: Vec<u64>,
}

/// The blocks of an acknowledgement.
type Blocks = Vec<(u32, u32)>;

impl Exchange {
    /// Mailboxes for the nodes of `config` on its networks, each with `capacity` bytes.
    pub fn shared(config: &Config, capacity: usize) -> Shared {
        let (nodes, networks) = (config.nodes.len(), config.networks.len());
        let references = config.references.len();
        let empty = || Mailbox {
            capacity,
            ..Mailbox::default()
        };
        Shared(Rc::new(RefCell::new(Self {
            boxes: (0..nodes * networks).map(|_| empty()).collect(),
            transits: (0..nodes).map(|_| Transits::default()).collect(),
            sessions: vec![Vec::new(); nodes],
            echoes: vec![VecDeque::new(); nodes * references],
            networks,
            references,
            free: USED.take(),
            now: 0,
            payload_size: config.transfer.payload_size,
            directory: Directory::new(config),
            taken: Vec::new(),
            sent: Vec::new(),
            genuine: Ok(()),
            forgiven: Vec::new(),
            processes: vec![1; nodes + references],
            protected: config.security != Security::Open,
            count: 0,
            blocks: Vec::new(),
            listening: false,
            heard: vec![0; nodes],
        })))
    }

    const fn position(&self, node: usize, network: usize) -> usize {
        node * self.networks + network
    }

    /// The mailbox of `node` on `network`.
    pub fn mailbox(&mut self, node: usize, network: usize) -> &mut Mailbox {
        let at = self.position(node, network);
        &mut self.boxes[at]
    }

    /// Exchanges what `node` has sent on `network` for the empty `outbox`; returns whether it is anything.
    pub fn swap_outbox(&mut self, node: usize, network: usize, outbox: &mut Vec<Parcel>) -> bool {
        let sent = &mut self.mailbox(node, network).outbox;
        if sent.is_empty() {
            return false;
        }
        std::mem::swap(sent, outbox);
        true
    }

    /// Sets the true time of what the drivers do next.
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// An empty datagram on `network`.
    pub fn parcel(&mut self, network: usize, source: SocketAddr, target: SocketAddr) -> Parcel {
        let mut parcel = empty(&mut self.free, 0);
        (parcel.network, parcel.source, parcel.target) = (network, source, target);
        parcel.to = self.directory.at_address(network, target);
        parcel
    }

    /// An empty datagram with room for `len` bytes.
    pub fn room(&mut self, len: usize) -> Parcel {
        empty(&mut self.free, len)
    }

    /// Takes a datagram back.
    pub fn recycle(&mut self, parcel: Parcel) {
        // Those that come twice, or from nobody, add to them.
        let free = &mut self.free[kind_of(parcel.bytes.capacity())];
        if free.len() < SPARE {
            free.push(parcel);
        }
    }

    /// Puts a datagram where the node finds it; returns whether it fits.
    pub fn deliver(&mut self, node: usize, parcel: Parcel) -> bool {
        if self.listening && message_in(&parcel.bytes).starts_with(&HEARTBEAT) {
            let partner = self.directory.node_at(parcel.network, parcel.source);
            let heard = &mut self.heard[node];
            *heard = partner.map_or(*heard, |_| parcel.sent.max(*heard));
        }
        let mailbox = self.mailbox(node, parcel.network);
        let size = footprint(&parcel);
        if mailbox.waiting + size > mailbox.capacity {
            self.recycle(parcel);
            return false;
        }
        mailbox.waiting += size;
        mailbox.inbox.push_back(parcel);
        true
    }

    /// When the latest heartbeat was sent that has come to `node`.
    pub fn heard(&self, node: usize) -> u64 {
        self.heard[node]
    }

    /// Puts an echo reply where the node finds it.
    pub fn deliver_echo(&mut self, node: usize, reference: usize, sequence: u16) {
        let echoes = &mut self.echoes[node * self.references + reference];
        if echoes.len() < BATCH {
            echoes.push_back(sequence);
        }
    }

    /// Takes the next echo reply of `reference`.
    pub fn echo(&mut self, node: usize, reference: usize) -> Option<u16> {
        self.echoes[node * self.references + reference].pop_front()
    }

    /// Forgets what waits for `node`: its process has ended.
    pub fn clear(&mut self, node: usize) {
        self.processes[node] += 1;
        for network in 0..self.networks {
            let mailbox = self.mailbox(node, network);
            mailbox.waiting = 0;
            mailbox.genuine = Genuine::default();
            let (inbox, outbox) = (take(&mut mailbox.inbox), take(&mut mailbox.outbox));
            inbox
                .into_iter()
                .chain(outbox)
                .for_each(|parcel| self.recycle(parcel));
        }
        let echoes = &mut self.echoes[node * self.references..][..self.references];
        echoes.iter_mut().for_each(VecDeque::clear);
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

    /// The turn is judged: forgets what it has taken and sent.
    pub fn clear_passed(&mut self) {
        for passed in self.taken.drain(..).chain(self.sent.drain(..)) {
            if let Message::Ack(_, blocks) = passed.message {
                self.blocks.push(blocks);
            }
        }
    }

    /// How the next datagram leaves.
    pub fn sent_as(&mut self, network: usize, from: End, to: Option<End>) -> Option<Sent> {
        self.count += 1;
        let number = self.count;
        let process = self.processes_of(from);
        to.map(|to| Sent {
            number,
            network,
            from,
            process,
            to,
        })
    }

    fn judge_genuine(&mut self, (node, mailbox): (usize, usize), parcel: &Parcel) {
        let processes = self.processes_of_sender(parcel);
        let genuine = &mut self.boxes[mailbox].genuine;
        match genuine.takes(parcel, (parcel.network, End::Node(node)), processes) {
            Ok(forgiven) => self.forgiven.extend(forgiven),
            Err(_) if self.genuine.is_err() => {}
            Err(what) => self.genuine = Err(format!("node {node} {what}")),
        }
    }

    fn judge_refused(&mut self, (node, mailbox): (usize, usize), parcel: &Parcel) {
        let processes = self.processes_of_sender(parcel);
        let genuine = &self.boxes[mailbox].genuine;
        let judged = genuine.refuses(parcel, (parcel.network, End::Node(node)), processes);
        if let (Err(what), true) = (judged, self.genuine.is_ok()) {
            self.genuine = Err(format!("node {node} {what}"));
        }
    }

    /// How many processes the sender of `parcel` has had.
    pub fn processes_of_sender(&self, parcel: &Datagram) -> u32 {
        let from = parcel.sent_as.map(|sent| sent.from);
        from.map_or(0, |from| self.processes_of(from))
    }

    fn processes_of(&self, end: End) -> u32 {
        let nodes = self.processes.len() - self.references;
        match end {
            End::Node(node) => self.processes[node],
            End::Reference(reference) => self.processes[nodes + reference],
        }
    }

    /// The witness at `reference` has another process.
    pub fn witness_starts(&mut self, reference: usize) {
        let nodes = self.processes.len() - self.references;
        self.processes[nodes + reference] += 1;
    }

    fn note_taken(&mut self, node: usize, parcel: &Parcel) {
        let Some(message) = message(message_in(&parcel.bytes), 0, &mut self.blocks) else {
            return;
        };
        // What lost its end on the way is of no use to the receiver, and says nothing of what comes later.
        if let Message::Data(header, payload) = &message
            && self.sessions[node].contains(&header.tag)
            && *payload == full_payload(header, self.payload_size)
        {
            let took = self.now.saturating_sub(parcel.sent);
            let channel = header.channel.get();
            self.transits[node].note(channel, header.tag, header.cycle, took);
        }
        if let Some(partner) = self.directory.node_at(parcel.network, parcel.source) {
            self.taken.push(Passed {
                network: parcel.network,
                partner,
                message,
            });
        }
    }

    fn note_sent(&mut self, network: usize, to: Option<End>, packets: &[Segment<'_>]) {
        let Some(End::Node(partner)) = to else {
            return;
        };
        for packet in packets {
            // Most datagrams are heartbeats.
            let sent = message_in(packet.header);
            if !begins_message(sent) {
                continue;
            }
            if let Some(message) = message(sent, packet.payload.len(), &mut self.blocks) {
                self.sent.push(Passed {
                    network,
                    partner,
                    message,
                });
            }
        }
    }
}

/// An empty datagram with room for `len` bytes, one of `free` if there is one.
fn empty(free: &mut Free, len: usize) -> Parcel {
    match free[kind_of(len)].pop() {
        Some(mut parcel) => {
            parcel.clear();
            parcel
        }
        None => Box::new(Datagram::with_room(len)),
    }
}

/// Whether `bytes` begin like a message of state transfer.
fn begins_message(bytes: &[u8]) -> bool {
    matches!(bytes, [0 | 0x10, 1, ..])
}

/// The message of state transfer that begins with `bytes`, if it is one; `more` bytes follow.
#[inline(always)]
fn message(bytes: &[u8], more: usize, room: &mut Vec<Blocks>) -> Option<Message> {
    // Most are packets of states.
    if let Some((header, payload)) = parse_data(bytes) {
        return Some(Message::Data(header, payload.len() + more));
    }
    let Ok(Packet::Ack(ack)) = parse(bytes) else {
        return None;
    };
    let mut blocks = room.pop().unwrap_or_default();
    blocks.clear();
    blocks.extend(ack.blocks());
    Some(Message::Ack(ack.header, blocks))
}

fn footprint(parcel: &Parcel) -> usize {
    // What the kernel charges a datagram's buffer with besides its bytes.
    parcel.bytes.len() + 1024
}

/// The exchange, held by the world and by every driver.
#[derive(Clone, Debug)]
pub struct Shared(Rc<RefCell<Exchange>>);

impl Shared {
    /// The exchange; to be let go before a driver is called.
    pub fn get(&self) -> RefMut<'_, Exchange> {
        self.0.borrow_mut()
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::{ChannelId, Duration, LinkId};
    use bumpless_net_linux::Link;
    use bumpless_wire::{DataHeader, WireVersion};

    use super::*;
    use crate::size::Size;

    #[test]
    fn a_truncated_packet_says_nothing_of_how_long_a_state_was_under_way() {
        let mut config = Config::clone(&Size::Small.config());
        config.security = Security::Open;
        let exchange = Exchange::shared(&config, 1 << 20);
        let header = DataHeader {
            version: WireVersion::V2,
            tag: 7,
            channel: ChannelId::new(2).expect("not 0"),
            link: LinkId(0),
            retransmission: false,
            short: false,
            cycle: 9,
            sequence: 0,
            total_size: 100,
            expiry: Duration::from_millis(50),
            force_ack: None,
        };
        let mut head = [0; DataHeader::MAX_LEN];
        let len = header.encode(&mut head);
        let partner = config.nodes[0].addresses[0].expect("on network A");
        let local = config.nodes[1].addresses[0].expect("on network A");
        let mut node = SimLink::new(&exchange, (1, 0), local);
        let mut takes = |payload: usize, sent: u64| {
            let mut world = exchange.get();
            let mut parcel = world.parcel(0, partner, node.local);
            parcel.sent = sent;
            parcel.bytes.extend_from_slice(&head[..len]);
            parcel.bytes.resize(len + payload, 0);
            world.set_now(1_000);
            world.set_sessions(1, [7].into_iter());
            assert!(world.deliver(1, parcel));
            drop(world);
            assert_eq!(node.receive(&mut |_, _| ()).datagrams, 1);
            exchange.get().quickest(1, 2, 9)
        };
        assert_eq!(takes(40, 900), None);
        assert_eq!(takes(100, 200), Some(800));
        assert_eq!(takes(99, 900), Some(800));
    }
}

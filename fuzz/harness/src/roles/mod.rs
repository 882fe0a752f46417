//! Two nodes, their reference points and the network between them.
//!
//! The first bytes choose timing, reference points and clocks; each further one is something that
//! happens. A node that is not run is paused: its permit stays where it is, and datagrams wait in
//! its socket. Clocks differ in offset and, within the bound, in rate; the checks are made in true
//! time (`check`).

mod check;
mod clock;
mod steps;

use crate::input::Input;
use bumpless_base::{Duration, LinkId, LinkSet, NodeId, PeerId};
use bumpless_redundancy::{
    GroupId, GroupSetup, MAX_MESSAGE_LEN, Outgoing, PartnerSetup, Redundancy, ReferenceId,
    ReferenceKind, Setup, Timing, Witness, WitnessSetup,
};
use bumpless_wire::{Packet, WitnessReply, parse};
use check::Account;
use clock::Clock;

const GROUP: GroupId = GroupId(3);
const PEER: PeerId = PeerId(0);
const MS: u64 = 1_000_000;
/// Datagrams that the network, or one socket, holds.
const NETWORK: usize = 256;
/// What any two clocks may differ by, and what they differ by at most, parts per million.
const DRIFT_BOUND: u32 = 1100;
const TRUE_DRIFT: i64 = 500;

/// Holds the conversation that `bytes` describe, then ends all faults.
///
/// # Panics
/// If a promise of `spec/redundancy.md` is broken: one writer in true time, epochs grow, a primary
/// promises nothing, tags of transfer never return, bounded, and that the pair heals.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(&mut input);
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.heal();
}

/// Nodes are 0 and 1, then come the reference points.
type End = usize;

#[derive(Clone, Debug)]
enum Message {
    Bytes(Vec<u8>),
    Echo(u16),
}

#[derive(Clone, Debug)]
struct Datagram {
    from: End,
    to: End,
    link: u8,
    message: Message,
}

struct Node {
    core: Option<Redundancy>,
    clock: Clock,
    socket: Vec<Datagram>,
    started: u64,
    /// Says that the last state is safe as soon as a switchover asks for it.
    obliging: bool,
}

struct Reference {
    kind: ReferenceKind,
    witness: Option<Witness>,
    clock: Clock,
}

struct World {
    timing: Timing,
    links: u8,
    /// True time, ns.
    now: u64,
    nodes: [Node; 2],
    references: Vec<Reference>,
    network: Vec<Datagram>,
    /// Heartbeats and requests of earlier, for replay.
    recorded: Vec<Datagram>,
    seeds: u64,
    account: Account,
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let shape = input.u8();
        let mut clock = || Clock::decode(input, TRUE_DRIFT);
        let nodes = [(), ()].map(|()| Node {
            core: None,
            clock: clock(),
            socket: Vec::new(),
            started: 0,
            obliging: true,
        });
        let clocks = [clock(), clock(), clock()];
        let references = usize::from(shape % 4);
        let references = clocks.into_iter().take(references).enumerate();
        let kind = |at: usize| match shape >> 6 == 3 && at > 0 {
            true => ReferenceKind::Ping,
            false => ReferenceKind::Witness,
        };
        let references = references.map(|(at, clock)| Reference {
            kind: kind(at),
            witness: None,
            clock,
        });
        let lease = Duration::from_millis([4, 10][usize::from(shape >> 2 & 1)]);
        let mut world = Self {
            timing: Timing {
                heartbeat: Duration::from_millis(2),
                peer_timeout: Duration::from_millis(6),
                lease,
                drift_ppm: DRIFT_BOUND,
                start_wait: Duration::from_millis(30),
                hand_over: Duration::from_millis(40),
                full_length: Duration::from_millis(100),
            },
            links: 1 + (shape >> 3 & 1),
            now: MS,
            nodes,
            references: references.collect(),
            network: Vec::new(),
            recorded: Vec::new(),
            seeds: 0,
            account: Account::default(),
        };
        // An address can answer both sides of a split, and without any reference point there is
        // nobody to ask: then two may write.
        let witnesses = |r: &Reference| r.kind == ReferenceKind::Witness;
        world.account.judged =
            !world.references.is_empty() && world.references.iter().all(witnesses);
        (0..world.references.len()).for_each(|at| world.start_witness(at));
        if shape & 0x20 == 0 {
            world.live(20, MS, 0);
            world.start(0);
            world.start(1);
            world.live(60, MS, 0);
        }
        world
    }

    fn seed(&mut self) -> u64 {
        self.seeds += 1;
        bumpless_base::random::mix64(self.seeds)
    }

    fn setup(&self, node: End) -> Setup {
        let ids = 0..self.references.len() as u8;
        Setup {
            pair: 9,
            fingerprint: 77,
            node: NodeId(node as u8),
            timing: self.timing,
            partners: vec![PartnerSetup {
                node: NodeId(1 - node as u8),
                links: LinkSet::first(self.links.into()),
            }],
            references: self.references.iter().map(|r| r.kind).collect(),
            groups: vec![GroupSetup {
                id: GROUP,
                candidates: [NodeId(0), NodeId(1)],
                references: ids.map(ReferenceId).collect(),
                without_reference: self.references.is_empty(),
                hot_restart: steps::EXPIRY,
                stop_when_old: false,
            }],
        }
    }

    fn start(&mut self, node: End) {
        let (seed, setup) = (self.seed(), self.setup(node));
        let now = self.nodes[node].clock.local(self.now);
        let core = Redundancy::new(setup, seed, now).expect("a setup that fits");
        self.nodes[node].core = Some(core);
        self.nodes[node].socket.clear();
        self.nodes[node].started = self.now;
        self.account.memory_lost(Some(node));
        self.run_node(node);
    }

    fn start_witness(&mut self, at: usize) {
        let seed = self.seed();
        let reference = &mut self.references[at];
        let setup = WitnessSetup {
            max_lease: Duration::from_millis(10),
            drift_ppm: DRIFT_BOUND,
            capacity: 2,
        };
        let now = reference.clock.local(self.now);
        reference.witness = Witness::new(setup, seed, now).ok();
        assert!(reference.witness.is_some());
        self.account.memory_lost(None);
    }

    /// A node wakes: it takes all that waits in its socket, then looks at what is due.
    fn run_node(&mut self, node: End) {
        for datagram in std::mem::take(&mut self.nodes[node].socket) {
            self.hand_over(node, &datagram);
        }
        let now = self.nodes[node].clock.local(self.now);
        for round in 0.. {
            let Some(core) = &mut self.nodes[node].core else {
                return;
            };
            core.handle_timeout(now);
            self.drain(node);
            let core = self.nodes[node].core.as_ref();
            if core.is_none_or(|core| core.poll_timeout() > now) {
                break;
            }
            assert!(round < 20, "the clock stands still");
        }
        self.check();
    }

    /// The driver hands a datagram to the core.
    fn hand_over(&mut self, node: End, datagram: &Datagram) {
        let now = self.nodes[node].clock.local(self.now);
        let Some(core) = &mut self.nodes[node].core else {
            return;
        };
        let reference = ReferenceId(datagram.from.wrapping_sub(2) as u8);
        match &datagram.message {
            Message::Echo(sequence) => core.handle_ping_reply(reference, *sequence, now),
            Message::Bytes(bytes) => match parse(bytes) {
                Ok(Packet::Heartbeat(heartbeat)) => {
                    core.handle_heartbeat(LinkId(datagram.link), &heartbeat, now);
                }
                Ok(Packet::WitnessReply(reply)) => {
                    core.handle_witness_reply(reference, &reply, now);
                }
                _ => {}
            },
        }
        self.drain(node);
        self.check();
    }

    fn drain(&mut self, node: End) {
        let now = self.nodes[node].clock.local(self.now);
        let mut buffer = [0; MAX_MESSAGE_LEN];
        let mut sent = 0;
        while let Some(core) = &mut self.nodes[node].core
            && let Some(outgoing) = core.poll_transmit(now, &mut buffer)
        {
            sent += 1;
            assert!(sent <= 16, "bounded: messages of one instant");
            self.transmit(node, outgoing, &buffer);
        }
        while let Some(core) = &mut self.nodes[node].core
            && let Some(event) = core.poll_event()
        {
            self.hear(node, &event);
        }
    }

    fn transmit(&mut self, node: End, outgoing: Outgoing, buffer: &[u8]) {
        let (to, link, message) = match outgoing {
            Outgoing::Heartbeat { link, len, .. } => {
                let bytes = buffer[..len].to_vec();
                self.check_promise(node, &bytes);
                (1 - node, link.0, Message::Bytes(bytes))
            }
            Outgoing::Witness { reference, len } => {
                let bytes = buffer[..len].to_vec();
                (2 + usize::from(reference.0), 0, Message::Bytes(bytes))
            }
            Outgoing::Ping {
                reference,
                sequence,
            } => (2 + usize::from(reference.0), 0, Message::Echo(sequence)),
        };
        let link = if to < 2 {
            link
        } else {
            (to - 2) as u8 % self.links
        };
        let datagram = Datagram {
            from: node,
            to,
            link,
            message,
        };
        if self.recorded.len() == NETWORK {
            self.recorded.remove(0);
        }
        self.recorded.push(datagram.clone());
        self.carry(datagram);
    }

    fn carry(&mut self, datagram: Datagram) {
        if self.network.len() == NETWORK {
            self.network.remove(0);
        }
        self.network.push(datagram);
    }

    /// A datagram reaches its end: a socket, or a reference point, which answers at once.
    fn arrive(&mut self, datagram: Datagram) {
        if datagram.to < 2 {
            let node = &mut self.nodes[datagram.to];
            if node.core.is_some() && node.socket.len() < NETWORK {
                node.socket.push(datagram);
            }
            return;
        }
        let reference = &mut self.references[datagram.to - 2];
        let now = reference.clock.local(self.now);
        let (kind, witness) = (reference.kind, &mut reference.witness);
        let answer = match (&datagram.message, witness) {
            (Message::Echo(n), Some(_)) if kind == ReferenceKind::Ping => Some(Message::Echo(*n)),
            (Message::Bytes(bytes), Some(witness)) => match parse(bytes) {
                Ok(Packet::WitnessRequest(request)) => witness
                    .handle_request(&request, now)
                    .map(|reply| encoded(&reply)),
                _ => None,
            },
            _ => None,
        };
        if let Some(message) = answer {
            self.carry(Datagram {
                from: datagram.to,
                to: datagram.from,
                link: datagram.link,
                message,
            });
        }
    }

    /// A stretch of life: in each step time passes, what is on its way arrives unless it is cut, and
    /// the nodes run unless they are paused.
    ///
    /// `faults`: bits 0 to 3 cut from node 0 to 1, from 1 to 0, node 0 and node 1 from the reference
    /// points; bits 4 and 5 pause a node; bit 6 cuts only the first link; bit 7 leaves it to other steps
    /// to say what states are where.
    fn live(&mut self, steps: usize, step: u64, faults: u8) {
        for _ in 0..steps {
            self.now += step;
            for _ in 0..2 {
                for datagram in std::mem::take(&mut self.network) {
                    if !is_cut(&datagram, faults) {
                        self.arrive(datagram);
                    }
                }
            }
            for node in 0..2 {
                if faults >> 4 & (1 << node) == 0 {
                    self.run_node(node);
                    if faults & 0x83 == 0 {
                        self.exchange_states(node);
                    }
                }
            }
            self.check();
        }
    }
}

fn is_cut(datagram: &Datagram, faults: u8) -> bool {
    let node = if datagram.from < 2 {
        datagram.from
    } else {
        datagram.to
    };
    let between = datagram.from < 2 && datagram.to < 2;
    let bit = if between { node } else { 2 + node };
    let spared = faults & 0x40 != 0 && datagram.link != 0;
    faults & (1 << bit) != 0 && !spared
}

fn encoded(reply: &WitnessReply) -> Message {
    let mut out = [0; WitnessReply::LEN];
    let len = reply.encode(&mut out);
    Message::Bytes(out[..len].to_vec())
}

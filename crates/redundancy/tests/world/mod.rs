//! A small seeded world: two nodes, witnesses or addresses that answer echo requests, networks
//! with faults, clocks with offset and drift. One thread, true time, everything from the seed.
//!
//! After every step the checkers look at the permits in true time.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod clock;
pub mod faults;

use bumpless_base::{Duration, Epoch, Instant, LinkId, LinkSet, NodeId, PeerId, Random};
use bumpless_redundancy::*;
use bumpless_wire::{GroupFlags, Packet, WitnessRequest, parse};
use clock::Clock;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

pub const GROUP: GroupId = GroupId(3);
pub const MS: u64 = 1_000_000;
/// How often the application of a primary runs.
const PERIOD: u64 = 4 * MS;

/// What the world consists of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub links: u8,
    pub references: Vec<ReferenceKind>,
    pub timing: Timing,
    /// True drift of each clock lies within plus and minus half of this, parts per million.
    pub true_drift_ppm: u32,
    /// The field device rejects older epochs and says which it has seen.
    pub field_checks_epoch: bool,
    pub lone_start_without: bool,
    /// Wait for the states of the partner to be fresh this long.
    pub expiry: u64,
}

impl Default for Plan {
    fn default() -> Self {
        let start_wait = Duration::from_millis(100);
        Self {
            links: 2,
            references: vec![ReferenceKind::Witness; 2],
            timing: Timing {
                start_wait,
                ..Timing::default()
            },
            true_drift_ppm: 500,
            field_checks_epoch: false,
            lone_start_without: false,
            expiry: 60 * MS,
        }
    }
}

/// Who sends or receives: node 0 or 1, then the reference points.
pub type End = usize;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Datagram {
        from: End,
        link: u8,
        bytes: Vec<u8>,
    },
    Echo {
        reference: u8,
        sequence: u16,
        reply: bool,
        from: End,
    },
    State {
        session: u64,
    },
    Cycle,
    Wake,
    Resume,
}

pub struct Node {
    pub core: Option<Redundancy>,
    pub clock: Clock,
    pub paused: bool,
    held: Vec<What>,
    wake: u64,
    pub events: Vec<(u64, Event)>,
    draining: bool,
    pub fingerprint: u64,
    /// True time of its last start.
    started: u64,
}

pub struct World {
    pub plan: Plan,
    pub now: u64,
    pub random: Random,
    pub nodes: [Node; 2],
    pub witnesses: Vec<Option<Witness>>,
    witness_clocks: Vec<Clock>,
    queue: BinaryHeap<Reverse<(u64, u64, End, What)>>,
    serial: u64,
    /// Directed cuts: (from, to, link).
    pub cuts: HashSet<(End, End, u8)>,
    pub loss: f64,
    pub duplicates: f64,
    pub delay: (u64, u64),
    /// Heartbeats kept for replay.
    pub recorded: Vec<(End, u8, Vec<u8>)>,
    pub record: bool,
    pub violations: Vec<String>,
    written: Epoch,
    /// A node or a witness has lost its memory since `written` was first written in.
    restarted: bool,
    writers: BTreeMap<u32, End>,
    pub last_write: u64,
    pub longest_gap: u64,
}

impl World {
    pub fn new(plan: Plan, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let half = u64::from(plan.true_drift_ppm) * 500;
        let mut clock = || Clock {
            offset: 1 + random.below(1 << 50),
            ppb: random.below(2 * half + 1) as i64 - half as i64,
        };
        let nodes = [(), ()].map(|()| Node {
            core: None,
            clock: clock(),
            paused: false,
            held: Vec::new(),
            wake: u64::MAX,
            events: Vec::new(),
            draining: false,
            fingerprint: 77,
            started: 0,
        });
        let witness_clocks: Vec<_> = plan.references.iter().map(|_| clock()).collect();
        let mut world = Self {
            witnesses: plan.references.iter().map(|_| None).collect(),
            plan,
            now: 0,
            random,
            nodes,
            witness_clocks,
            queue: BinaryHeap::new(),
            serial: 0,
            cuts: HashSet::new(),
            loss: 0.0,
            duplicates: 0.0,
            delay: (50_000, 150_000),
            recorded: Vec::new(),
            record: false,
            violations: Vec::new(),
            written: Epoch(0),
            restarted: false,
            writers: BTreeMap::new(),
            last_write: 0,
            longest_gap: 0,
        };
        for reference in 0..world.witnesses.len() {
            world.start_witness(reference);
        }
        for node in 0..2 {
            world.push(0, node, What::Cycle);
        }
        world
    }

    /// A world whose nodes have settled: node 0 primary, node 1 synced backup.
    pub fn settled(plan: Plan, seed: u64) -> Self {
        let mut world = Self::new(plan, seed);
        // Past the witnesses' quiet period.
        world.run_for(1100 * MS);
        world.start(0);
        world.start(1);
        world.run_for(300 * MS);
        assert_eq!(world.roles(), [Some(Role::Primary), Some(Role::Backup)]);
        assert!(world.is_healed(), "settled");
        world.longest_gap = 0;
        world
    }

    fn setup(&self, node: End) -> Setup {
        let ids = 0..self.plan.references.len();
        Setup {
            pair: 9,
            fingerprint: self.nodes[node].fingerprint,
            node: NodeId(node as u8),
            timing: self.plan.timing,
            partners: vec![PartnerSetup {
                node: NodeId(1 - node as u8),
                links: LinkSet::first(self.plan.links.into()),
            }],
            references: self.plan.references.clone(),
            groups: vec![GroupSetup {
                id: GROUP,
                candidates: [NodeId(0), NodeId(1)],
                references: ids.map(|r| ReferenceId(r as u8)).collect(),
                without_reference: self.plan.references.is_empty(),
            }],
            lone_start_without: self.plan.lone_start_without,
        }
    }

    // What tests do to the world.

    pub fn start(&mut self, node: End) {
        self.restarted = true;
        let seed = self.random.next_u64();
        let now = self.local(node);
        let core = Redundancy::new(self.setup(node), seed, now).unwrap();
        let n = &mut self.nodes[node];
        n.core = Some(core);
        (n.paused, n.draining) = (false, false);
        n.started = self.now;
        n.held.clear();
        self.settle(node);
    }

    pub fn kill(&mut self, node: End) {
        self.nodes[node].core = None;
        self.nodes[node].held.clear();
    }

    pub fn pause(&mut self, node: End, span: u64) {
        if !self.nodes[node].paused && self.nodes[node].core.is_some() {
            self.nodes[node].paused = true;
            self.push(span, node, What::Resume);
        }
    }

    pub fn start_witness(&mut self, reference: usize) {
        self.restarted = true;
        let now = self.witness_clocks[reference].local(self.now);
        let setup = WitnessSetup {
            max_lease: Duration::from_millis(50),
            drift_ppm: self.plan.timing.drift_ppm,
            capacity: 4,
        };
        let seed = self.random.next_u64();
        self.witnesses[reference] = Some(Witness::new(setup, seed, now).unwrap());
    }

    pub fn cut(&mut self, a: End, b: End, link: u8) {
        self.cuts.insert((a, b, link));
        self.cuts.insert((b, a, link));
    }

    /// Cuts every link between the nodes; both still reach their witnesses.
    pub fn split(&mut self) {
        (0..self.plan.links).for_each(|link| self.cut(0, 1, link));
    }

    pub fn cut_reference(&mut self, node: End, reference: usize) {
        self.cut(node, 2 + reference, reference as u8 % self.plan.links);
    }

    pub fn core(&mut self, node: End) -> &mut Redundancy {
        self.nodes[node].core.as_mut().expect("running")
    }

    pub fn local(&self, node: End) -> Instant {
        self.nodes[node].clock.local(self.now)
    }

    pub fn command_switchover(&mut self, node: End) -> Result<(), SwitchoverRefused> {
        let now = self.local(node);
        let result = self.core(node).command_switchover(GROUP, now);
        self.settle(node);
        result
    }

    /// Delivers a datagram at once.
    pub fn inject(&mut self, to: End, from: End, link: u8, bytes: Vec<u8>) {
        self.dispatch(to, What::Datagram { from, link, bytes });
    }

    // What tests look at.

    pub fn roles(&self) -> [Option<Role>; 2] {
        [0, 1].map(|n: usize| {
            self.nodes[n]
                .core
                .as_ref()
                .and_then(|core| core.role(GROUP))
        })
    }

    /// The epoch in which the node may write at present.
    pub fn writes(&self, node: End) -> Option<Epoch> {
        let permit = self.nodes[node].core.as_ref()?.output_permit(GROUP)?;
        (self.local(node) < permit.until).then_some(permit.epoch)
    }

    pub fn status(&self, node: End) -> Status {
        let core = self.nodes[node].core.as_ref().expect("running");
        core.status(GROUP, self.local(node)).unwrap()
    }

    /// One primary with a permit, one synced backup.
    pub fn is_healed(&self) -> bool {
        let primary = (0..2).filter(|&n| self.writes(n).is_some());
        let backup = (0..2).filter(|&n| {
            self.nodes[n].core.is_some()
                && self.status(n).role == Role::Backup
                && self.status(n).synced
        });
        primary.count() == 1 && backup.count() == 1
    }

    pub fn had(&self, node: End, wanted: impl Fn(&Event) -> bool) -> bool {
        self.nodes[node]
            .events
            .iter()
            .any(|(_, event)| wanted(event))
    }

    pub fn expect_no_violation(&self, what: &str) {
        assert!(
            self.violations.is_empty(),
            "{what}: {:?}",
            &self.violations[..1]
        );
    }

    // How it runs.

    pub fn run_for(&mut self, span: u64) {
        let end = self.now + span;
        while let Some(Reverse((at, ..))) = self.queue.peek()
            && *at <= end
        {
            let Some(Reverse((at, _, to, what))) = self.queue.pop() else {
                break;
            };
            self.now = self.now.max(at);
            self.dispatch(to, what);
        }
        self.now = end;
    }

    pub fn run_until(&mut self, most: u64, done: impl Fn(&Self) -> bool) -> u64 {
        let start = self.now;
        while !done(self) && self.now - start < most {
            self.run_for(MS / 10);
        }
        self.now - start
    }

    fn push(&mut self, delay: u64, to: End, what: What) {
        self.serial += 1;
        self.queue
            .push(Reverse((self.now + delay, self.serial, to, what)));
    }

    fn dispatch(&mut self, to: End, what: What) {
        if to >= 2 {
            return self.at_reference(to, what);
        }
        match what {
            What::Resume => self.resume(to),
            What::Cycle => self.cycle(to),
            _ if self.nodes[to].core.is_none() => {}
            _ if self.nodes[to].paused => {
                // A socket buffer has an end.
                if self.nodes[to].held.len() < 200 {
                    self.nodes[to].held.push(what);
                }
            }
            What::Wake if self.nodes[to].wake != self.now => {}
            _ => {
                self.deliver(to, what);
                self.settle(to);
            }
        }
    }

    fn resume(&mut self, node: End) {
        self.nodes[node].paused = false;
        if self.nodes[node].core.is_none() {
            return;
        }
        let held = std::mem::take(&mut self.nodes[node].held);
        for what in held.into_iter().filter(|what| *what != What::Wake) {
            self.deliver(node, what);
            self.settle(node);
        }
        self.deliver(node, What::Wake);
        self.settle(node);
    }

    fn deliver(&mut self, node: End, what: What) {
        let now = self.local(node);
        let expiry = Duration::from_nanos(self.plan.expiry);
        let core = self.core(node);
        match what {
            What::Wake => core.handle_timeout(now),
            What::State { session }
                if session == core.session() && core.role(GROUP) == Some(Role::Backup) =>
            {
                core.set_synced_until(GROUP, Some(now + expiry), now);
            }
            What::Echo {
                reference,
                sequence,
                ..
            } => {
                core.handle_ping_reply(ReferenceId(reference), sequence, now);
            }
            What::Datagram { from, link, bytes } => match parse(&bytes) {
                Ok(Packet::Heartbeat(hb)) => core.handle_heartbeat(LinkId(link), &hb, now),
                Ok(Packet::WitnessReply(reply)) => {
                    core.handle_witness_reply(ReferenceId(from as u8 - 2), &reply, now);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn at_reference(&mut self, to: End, what: What) {
        let reference = to - 2;
        let link = reference as u8 % self.plan.links;
        let now = self.witness_clocks[reference].local(self.now);
        match what {
            What::Datagram { from, bytes, .. } => {
                let Some(witness) = self.witnesses[reference].as_mut() else {
                    return;
                };
                let Ok(Packet::WitnessRequest(request)) = parse(&bytes) else {
                    return;
                };
                if let Some(reply) = witness.handle_request(&request, now) {
                    let mut bytes = [0; bumpless_wire::WitnessReply::LEN];
                    reply.encode(&mut bytes);
                    let bytes = bytes.to_vec();
                    self.send(
                        to,
                        from,
                        link,
                        What::Datagram {
                            from: to,
                            link,
                            bytes,
                        },
                    );
                }
            }
            What::Echo {
                reference,
                sequence,
                from,
                ..
            } if self.witnesses[to - 2].is_some() => {
                let echo = What::Echo {
                    reference,
                    sequence,
                    reply: true,
                    from: to,
                };
                self.send(to, from, link, echo);
            }
            _ => {}
        }
    }

    fn send(&mut self, from: End, to: End, link: u8, what: What) {
        if self.cuts.contains(&(from, to, link)) || self.random.chance(self.loss) {
            return;
        }
        let (low, high) = self.delay;
        let copies = 1 + u8::from(self.random.chance(self.duplicates));
        for _ in 0..copies {
            let delay = low + self.random.below(high - low + 1);
            self.push(delay, to, what.clone());
        }
    }

    /// Drains a node after a call and looks at the world.
    fn settle(&mut self, node: End) {
        let now = self.local(node);
        let mut buffer = [0; MAX_MESSAGE_LEN];
        while let Some(outgoing) = self.core(node).poll_transmit(now, &mut buffer) {
            self.transmit(node, outgoing, &buffer);
        }
        while let Some(event) = self.core(node).poll_event() {
            let at = self.now;
            self.nodes[node].events.push((at, event));
            match event {
                Event::HandOverBegun { .. } => self.nodes[node].draining = true,
                Event::HandOverAborted { .. } => self.nodes[node].draining = false,
                Event::RoleChanged { .. } => self.nodes[node].draining = false,
                _ => {}
            }
        }
        let timeout = self.core(node).poll_timeout();
        let wake = self.nodes[node].clock.true_time(timeout).max(self.now);
        if wake != self.nodes[node].wake || wake == self.now {
            self.nodes[node].wake = wake;
            self.push(wake - self.now, node, What::Wake);
        }
        self.check();
    }

    fn transmit(&mut self, node: End, outgoing: Outgoing, buffer: &[u8]) {
        match outgoing {
            Outgoing::Heartbeat { peer, link, len } => {
                assert_eq!(peer, PeerId(0));
                let bytes = buffer[..len].to_vec();
                self.check_promise(node, &bytes);
                if self.record {
                    self.recorded.push((node, link.0, bytes.clone()));
                }
                let what = What::Datagram {
                    from: node,
                    link: link.0,
                    bytes,
                };
                self.send(node, 1 - node, link.0, what);
            }
            Outgoing::Witness { reference, len } => {
                assert_eq!(len, WitnessRequest::LEN);
                let link = reference.0 % self.plan.links;
                let bytes = buffer[..len].to_vec();
                let what = What::Datagram {
                    from: node,
                    link,
                    bytes,
                };
                self.send(node, 2 + usize::from(reference.0), link, what);
            }
            Outgoing::Ping {
                reference,
                sequence,
            } => {
                let link = reference.0 % self.plan.links;
                let echo = What::Echo {
                    reference: reference.0,
                    sequence,
                    reply: false,
                    from: node,
                };
                self.send(node, 2 + usize::from(reference.0), link, echo);
            }
        }
    }

    /// One cycle of the node's application: write if permitted, replicate.
    fn cycle(&mut self, node: End) {
        let jitter = self.random.below(MS / 5);
        self.push(PERIOD + jitter, node, What::Cycle);
        if self.nodes[node].core.is_none() || self.nodes[node].paused {
            return;
        }
        let Some(epoch) = self.writes(node) else {
            return;
        };
        self.write(node, epoch);
        if self.nodes[node].core.is_none() || self.writes(node).is_none() {
            return;
        }
        let other = 1 - node;
        let tag = |n: &Node| {
            n.core
                .as_ref()
                .and_then(|core| core.transfer_tag(PeerId(0)))
        };
        let (ours, theirs) = (tag(&self.nodes[node]), tag(&self.nodes[other]));
        let link = (0..self.plan.links).find(|&link| {
            !self.cuts.contains(&(node, other, link)) && !self.cuts.contains(&(other, node, link))
        });
        let safe = ours.is_some() && ours == theirs && link.is_some();
        if safe {
            let session = self.core(other).session();
            self.push(self.delay.1, other, What::State { session });
        }
        if self.nodes[node].draining && safe {
            self.nodes[node].draining = false;
            let now = self.local(node);
            self.core(node).hand_over_ready(GROUP, now);
            self.settle(node);
        }
    }

    fn write(&mut self, node: End, epoch: Epoch) {
        if self.plan.field_checks_epoch && epoch < self.written {
            if !self.was_forgotten(node) {
                self.violate(format!(
                    "epochs_grow: node {node} had to be told of {}",
                    self.written
                ));
            }
            let (now, seen) = (self.local(node), self.written);
            self.core(node).observe_epoch(GROUP, seen, now);
            self.settle(node);
            return;
        }
        if self.last_write != 0 {
            self.longest_gap = self.longest_gap.max(self.now - self.last_write);
        }
        self.last_write = self.now;
        if epoch > self.written {
            self.restarted = false;
        }
        if epoch < self.written && self.was_forgotten(node) {
            self.written = epoch;
        }
        if epoch < self.written {
            self.violate(format!(
                "epochs_grow: node {node} writes in {epoch} after {}",
                self.written
            ));
        }
        self.written = self.written.max(epoch);
        let owner = *self.writers.entry(epoch.0).or_insert(node);
        if owner != node {
            self.violate(format!("one_writer: both nodes wrote in epoch {epoch}"));
        }
    }

    /// Who starts without any memory may not know what is remembered nowhere it can look.
    fn was_forgotten(&self, node: End) -> bool {
        let cause = self.status(node).cause;
        self.restarted && matches!(cause, Some(RoleCause::Start | RoleCause::LoneStart))
    }

    fn check(&mut self) {
        if let (Some(a), Some(b)) = (self.writes(0), self.writes(1)) {
            self.violate(format!(
                "one_writer: epochs {a} and {b} may be written at once"
            ));
        }
    }

    /// A primary promises nothing, nor does a node that may be bound by what it forgot.
    fn check_promise(&mut self, node: End, bytes: &[u8]) {
        let Ok(Packet::Heartbeat(heartbeat)) = parse(bytes) else {
            return self.violate("heartbeats can be read".to_string());
        };
        let young = self.now < self.nodes[node].started + self.plan.timing.lease.as_nanos();
        for entry in heartbeat.groups() {
            let granting = entry.flags.contains(GroupFlags::GRANTING);
            if granting && (young || entry.role == Role::Primary) {
                self.violate(format!(
                    "promises: node {node}, {:?}, young: {young}",
                    entry.role
                ));
            }
        }
    }

    fn violate(&mut self, what: String) {
        self.violations
            .push(format!("{what}; at {} us", self.now / 1000));
    }
}

//! A small seeded world: two nodes, witnesses or addresses that answer echo requests, networks
//! with faults, clocks with offset and drift. One thread, true time, everything from the seed.
//!
//! After every step the checkers look at the permits in true time.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod clock;
mod drive;
mod driver;
pub mod faults;

use bumpless_base::{Duration, Epoch, Instant, LinkSet, NodeId, Random};
use bumpless_redundancy::*;
use clock::Clock;
use driver::Cycle;
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
    /// Share of states that do not arrive, whatever the networks do.
    pub transfer_loss: f64,
    /// Wait for the states of the partner to be fresh this long.
    pub expiry: u64,
    /// The driver writes past an unsafe state only when its core says that it is in simplex.
    pub says_simplex: bool,
    /// What the witnesses reckon with.
    pub witness_drift_ppm: u32,
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
            transfer_loss: 0.0,
            expiry: 60 * MS,
            says_simplex: true,
            witness_drift_ppm: 500,
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
    /// A state of the partner's application, whole.
    State {
        tag: u32,
        sent: u64,
        cycle: Cycle,
    },
    /// The partner holds the state of this cycle.
    Safe {
        tag: u32,
        cycle: Cycle,
    },
    /// The output of this cycle has waited long enough for its state.
    Deadline {
        cycle: Cycle,
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
    application: driver::Application,
    /// The configuration that it starts with, and the one that lies beside it.
    pub fingerprint: u64,
    pub next: Option<u64>,
    /// True time of its last start.
    started: u64,
    primary_since: u64,
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
    /// As in the plan, for the moment.
    pub transfer_loss: f64,
    /// Heartbeats kept for replay.
    pub recorded: Vec<(End, u8, Vec<u8>)>,
    pub record: bool,
    pub violations: Vec<String>,
    written: Epoch,
    /// A node or a witness has lost its memory since `written` was first written in.
    restarted: bool,
    written_at: u64,
    writers: BTreeMap<u32, End>,
    pub last_write: u64,
    pub longest_gap: u64,
    /// State behind the last output.
    last_cycle: Cycle,
    pub outputs: u64,
    /// Roles that began with a state and without a hand-over.
    pub warm_starts: u64,
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
            application: driver::Application::default(),
            fingerprint: 77,
            next: None,
            started: 0,
            primary_since: 0,
        });
        let witness_clocks: Vec<_> = plan.references.iter().map(|_| clock()).collect();
        let mut world = Self {
            witnesses: plan.references.iter().map(|_| None).collect(),
            transfer_loss: plan.transfer_loss,
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
            written_at: 0,
            writers: BTreeMap::new(),
            last_write: 0,
            longest_gap: 0,
            last_cycle: Cycle::default(),
            outputs: 0,
            warm_starts: 0,
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
        world.run_for(60 * MS);
        world.start(0);
        world.start(1);
        world.run_for(150 * MS);
        assert_eq!(world.roles(), [Some(Role::Primary), Some(Role::Backup)]);
        assert!(world.is_healed(), "settled");
        world.longest_gap = 0;
        world
    }

    pub fn setup(&self, node: End) -> Setup {
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
                hot_restart: Duration::from_nanos(self.plan.expiry),
                stop_when_old: false,
            }],
        }
    }

    // What tests do to the world.

    /// After a call of a node's core: what it says goes out.
    pub fn act(&mut self, node: End) {
        self.settle(node);
    }

    pub fn start(&mut self, node: End) {
        self.restarted = true;
        let seed = self.random.next_u64();
        let now = self.local(node);
        let mut core = Redundancy::new(self.setup(node), seed, now).unwrap();
        if let Some(next) = self.nodes[node].next {
            core.prepare_configuration(next, true, now).unwrap();
        }
        let n = &mut self.nodes[node];
        n.core = Some(core);
        (n.paused, n.application) = (false, driver::Application::default());
        n.started = self.now;
        n.held.clear();
        self.settle(node);
    }

    /// Starts `node`, on whose disk a state of `epoch` lies that may be gone on from for `usable`.
    pub fn start_with_file(&mut self, node: End, epoch: Epoch, usable: u64) {
        self.start(node);
        let now = self.local(node);
        let core = self.core(node);
        core.restore(GROUP, epoch, now);
        let holding = Holding {
            some_usable_until: Some(now + Duration::from_nanos(usable)),
            ..Holding::NOTHING
        };
        core.set_holding(GROUP, holding, now);
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
            drift_ppm: self.plan.witness_drift_ppm,
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
}

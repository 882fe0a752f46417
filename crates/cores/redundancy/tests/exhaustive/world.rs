//! A world in one state: the shipped machines of two nodes and their witnesses, what is on its way
//! between them, and what an observer remembers.

use super::fold::{CLOCK_SHIFT, FIRST_EPOCH, LOWEST_IDENTITY, Recorder};
use super::plan::{Budget, GROUP, Plan};
use bumpless_base::{Epoch, Instant};
use bumpless_redundancy::*;
use bumpless_wire::{Packet, WitnessReply, WitnessRequest, parse};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Who sends or receives: node 0 or 1, then the reference points.
pub type End = usize;

/// What is on its way.
#[derive(Clone, Debug)]
pub enum Body {
    Heartbeat(Vec<u8>),
    Request(WitnessRequest),
    /// With the session of the process that had asked.
    Reply(WitnessReply, u64),
    Echo {
        sequence: u16,
    },
}

#[derive(Clone, Debug)]
pub struct Datagram {
    pub from: End,
    pub to: End,
    pub link: u8,
    pub body: Arc<Body>,
}

impl Datagram {
    /// What it is, for people.
    pub fn kind(&self) -> String {
        match &*self.body {
            Body::Heartbeat(_) => "heartbeat".to_string(),
            Body::Request(request) => format!("{:?}", request.kind),
            Body::Reply(reply, _) => format!("{:?}, granted: {}", reply.kind, reply.granted),
            Body::Echo { sequence } => format!("echo {sequence}"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    pub core: Option<Arc<Redundancy>>,
    pub incarnation: u8,
    pub paused: bool,
    pub draining: bool,
    /// Its application has published a state in the present sessions of the two.
    pub published: bool,
    /// What it was told last of the state that its application has, made here or received.
    pub holding: Holding,
    /// It is primary in a role that began in doubt, and its application has made no state in it.
    pub undecided: bool,
    /// The field device has been asked meanwhile what it shows; the answer is there at the next turn.
    pub asked: bool,
    /// The sequence number of the next echo request to each reference point.
    pub pings: [u16; 2],
}

/// What an observer remembers, and what it has found wrong.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Who was last seen with a permit: epoch, node, incarnation.
    pub epoch: u32,
    pub writer: (End, u8),
    /// A node or a witness has lost its memory since that epoch was first seen.
    pub forgotten: bool,
    /// Whether what each node holds includes the last output.
    pub fresh: [bool; 2],
    /// When the last output left, if any has.
    pub written: Option<u64>,
    /// Quanta since the last fault ended, as long as the pair is not redundant again.
    pub ailing: u8,
    /// A right that had lapsed has come back at the last step.
    pub regained: bool,
    /// At the last step an epoch was used that is not above the last one.
    pub repeated: bool,
    pub violation: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct World {
    pub plan: Arc<Plan>,
    /// True time in quanta.
    pub time: u64,
    /// Whose turn it is within the quantum: a node's, then that of all reference points.
    pub turn: End,
    pub nodes: [Node; 2],
    /// `None` for an address that answers echo requests.
    pub witnesses: Vec<Option<Arc<Witness>>>,
    pub flight: Vec<Datagram>,
    /// Held back by the adversary.
    pub held: Vec<Datagram>,
    /// Directed cuts: bits of (from, to, link).
    pub cuts: u64,
    pub transfers: bool,
    pub budget: Budget,
    pub seen: Seen,
    /// How many processes have been started.
    pub starts: u64,
}

pub fn path(from: End, to: End, link: u8) -> u64 {
    1 << (from * 16 + to * 4 + usize::from(link))
}

impl World {
    /// Nobody has been started but the reference points.
    pub fn new(plan: Arc<Plan>) -> Self {
        let node = Node {
            core: None,
            incarnation: 0,
            paused: false,
            draining: false,
            published: false,
            holding: Holding::NOTHING,
            undecided: false,
            asked: false,
            pings: [0; 2],
        };
        let mut world = Self {
            witnesses: vec![None; plan.references.len()],
            plan,
            time: 1,
            turn: 0,
            nodes: [node.clone(), node],
            flight: Vec::new(),
            held: Vec::new(),
            cuts: 0,
            transfers: true,
            budget: Budget::NOTHING,
            seen: Seen {
                epoch: FIRST_EPOCH,
                writer: (0, 0),
                forgotten: false,
                fresh: [false; 2],
                written: None,
                ailing: 0,
                regained: false,
                repeated: false,
                violation: None,
            },
            starts: 0,
        };
        (0..world.witnesses.len()).for_each(|at| world.start_witness(at));
        world
    }

    /// What the clock of `end` shows.
    pub fn clock(&self, end: End) -> Instant {
        let step = self.plan.steps[end.min(3)];
        Instant::from_nanos(((end as u64 + 1) << CLOCK_SHIFT) + self.time * step)
    }

    fn seed(&mut self) -> u64 {
        self.starts += 1;
        self.starts << 32 | 0x5EED
    }

    pub fn start(&mut self, node: End) {
        let (seed, now) = (self.seed(), self.clock(node));
        let mut core = Redundancy::new(self.plan.setup(node), seed, now).expect("setup");
        assert!(core.session() >= LOWEST_IDENTITY);
        if self.nodes[node].incarnation == 0 {
            // As a field device would tell, so that epochs lie in their range.
            core.observe_epoch(GROUP, Epoch(FIRST_EPOCH), now);
        }
        let state = &mut self.nodes[node];
        (state.core, state.pings) = (Some(Arc::new(core)), [0; 2]);
        state.incarnation += 1;
        self.end_sessions();
    }

    /// A process has begun or ended: what was sent before is of another session.
    fn end_sessions(&mut self) {
        for node in &mut self.nodes {
            node.published = false;
        }
    }

    pub fn crash(&mut self, node: End) {
        let state = &mut self.nodes[node];
        (state.core, state.paused, state.draining) = (None, false, false);
        state.holding = Holding::NOTHING;
        (state.undecided, state.asked) = (false, false);
        self.seen.fresh[node] = false;
        self.seen.forgotten = true;
        self.end_sessions();
    }

    pub fn start_witness(&mut self, at: usize) {
        if self.plan.references[at] == ReferenceKind::Witness {
            let (seed, now) = (self.seed(), self.clock(2 + at));
            let witness = Witness::new(self.plan.witness(), seed, now).expect("setup");
            assert!(witness.session() >= LOWEST_IDENTITY);
            self.witnesses[at] = Some(Arc::new(witness));
            self.seen.forgotten = true;
        }
    }

    /// The core of a node that is up, to be changed.
    pub fn core(&mut self, node: End) -> &mut Redundancy {
        Arc::make_mut(self.nodes[node].core.as_mut().expect("up"))
    }

    pub fn is_up(&self, node: End) -> bool {
        self.nodes[node].core.is_some()
    }

    pub fn role(&self, node: End) -> Option<Role> {
        self.nodes[node].core.as_ref()?.role(GROUP)
    }

    pub fn status(&self, node: End) -> Option<Status> {
        let core = self.nodes[node].core.as_ref()?;
        core.status(GROUP, self.clock(node))
    }

    /// The epoch in which the node may write at present.
    pub fn permit(&self, node: End) -> Option<Epoch> {
        let permit = self.nodes[node].core.as_ref()?.output_permit(GROUP)?;
        (self.clock(node) < permit.until).then_some(permit.epoch)
    }

    /// One node with a permit, and one synced backup.
    pub fn is_redundant(&self) -> bool {
        let backup = |n| self.role(n) == Some(Role::Backup);
        let synced = |n| self.status(n).is_some_and(|s| s.synced);
        (0..2).any(|n| self.permit(n).is_some() && backup(1 - n) && synced(1 - n))
    }

    /// Quanta since the last output.
    pub fn idle(&self) -> Option<u64> {
        self.seen.written.map(|written| self.time - written)
    }

    /// Nothing is wrong with the world at present.
    pub fn is_steady(&self) -> bool {
        let stands = |node: &Node| node.core.is_some() && !node.paused;
        self.cuts == 0 && self.transfers && self.nodes.iter().all(stands)
    }

    /// What tells this world from others, see `fold`.
    pub fn canonical(&self) -> Vec<u64> {
        let mut r = Recorder::default();
        (self.turn, self.cuts, self.transfers, self.budget).hash(&mut r);
        for node in &self.nodes {
            (&node.core, node.paused, node.draining).hash(&mut r);
            (node.published, node.holding, node.undecided, node.asked).hash(&mut r);
            (node.incarnation == 0).hash(&mut r);
        }
        self.witnesses.hash(&mut r);
        for datagrams in [&self.flight, &self.held] {
            datagrams.len().hash(&mut r);
            datagrams.iter().for_each(|d| self.describe(d, &mut r));
        }
        let seen = &self.seen;
        let (writer, incarnation) = seen.writer;
        let present = self.nodes[writer].incarnation == incarnation;
        (seen.epoch % 2, writer, present, seen.forgotten).hash(&mut r);
        (seen.fresh, seen.ailing, seen.violation.is_some()).hash(&mut r);
        (seen.regained, seen.repeated).hash(&mut r);
        let ended = self.plan.hot_restart_quanta();
        self.idle()
            .map(|idle| idle.min(ended) as usize)
            .hash(&mut r);
        let clocks: Vec<_> = (0..2 + self.witnesses.len())
            .map(|end| self.clock(end))
            .collect();
        let clocks: Vec<_> = clocks.iter().map(|clock| clock.as_nanos()).collect();
        r.fold(&clocks, self.seen.epoch, self.plan.old())
    }

    /// A datagram, without what follows from the rest (tokens) or decides nothing (round trips).
    fn describe(&self, datagram: &Datagram, r: &mut Recorder) {
        (datagram.from, datagram.to, datagram.link).hash(r);
        match &*datagram.body {
            Body::Heartbeat(bytes) => {
                let Ok(Packet::Heartbeat(h)) = parse(bytes) else {
                    panic!("not a heartbeat")
                };
                (h.session, h.challenge, h.echo_session, h.echo_challenge).hash(r);
                (h.sent_at, h.echo_sent_at, h.lease_echo).hash(r);
                h.groups().for_each(|entry| entry.hash(r));
            }
            Body::Request(q) => {
                (
                    q.node,
                    q.session,
                    q.kind,
                    q.epoch,
                    q.sent_at,
                    q.witness_session,
                )
                    .hash(r);
            }
            Body::Reply(a, asked) => {
                // Longer than anything that it is compared with is as good as for ever.
                let silent = u64::from(a.holder_silent_us).min(self.plan.old() / 1000);
                (asked, a.node, a.kind, a.granted, a.old, a.holder, a.epoch).hash(r);
                (a.echo_sent_at, a.witness_session, a.retry_after_us).hash(r);
                r.write_usize(silent as usize);
            }
            Body::Echo { sequence } => {
                let (node, reference) = match datagram.from {
                    from @ 0..2 => (from, datagram.to - 2),
                    from => (datagram.to, from - 2),
                };
                self.nodes[node].pings[reference]
                    .wrapping_sub(*sequence)
                    .hash(r);
            }
        }
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical().hash(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}

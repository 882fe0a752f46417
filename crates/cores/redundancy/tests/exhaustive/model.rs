//! What the adversary may do in each state, and what must hold in all of them.

use super::action::Action;
use super::plan::{Budget, Fault, GROUP, Plan};
use super::world::{End, World, path};
use bumpless_base::Instant;
use bumpless_redundancy::{Holding, ReferenceKind, Role, RoleCause};
use stateright::{Model, Property};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The worlds that follow from some first ones.
pub struct Roles {
    pub first: Vec<World>,
    /// The longest that the pair took to be redundant again, in quanta from the last fault.
    pub longest: AtomicU8,
    /// What happens at this quantum or later is not looked at.
    pub horizon: Option<u64>,
    /// From this quantum on no state is new, unless something grows for ever.
    pub settles_by: u64,
}

impl Roles {
    /// From a pair that has settled, with each node as primary in turn.
    pub fn settled(plan: Plan, budget: Budget) -> Self {
        let mut a = World::new(Arc::new(plan));
        (0..2).for_each(|node| a.start(node));
        let rest = |world: &mut World| (0..3 * 50).for_each(|_| world.turn());
        rest(&mut a);
        assert!(
            a.is_redundant() && a.role(0) == Some(Role::Primary),
            "settled"
        );
        let mut b = a.clone();
        let now = b.clock(0);
        b.core(0).command_switchover(GROUP, now).expect("ready");
        b.settle(0);
        rest(&mut b);
        assert!(
            b.is_redundant() && b.role(1) == Some(Role::Primary),
            "settled"
        );
        let mut first = vec![a, b];
        for world in &mut first {
            world.seen.forgotten = false;
            world.budget = budget;
        }
        Self {
            first,
            longest: AtomicU8::new(0),
            horizon: None,
            settles_by: SHORT_WAYS,
        }
    }

    /// From the start of everything; nodes come up when the adversary likes.
    pub fn cold(plan: Plan, budget: Budget) -> Self {
        let mut world = World::new(Arc::new(plan));
        world.budget = budget;
        Self {
            first: vec![world],
            longest: AtomicU8::new(0),
            horizon: None,
            settles_by: SHORT_WAYS,
        }
    }

    fn node_actions(&self, world: &World, node: End, actions: &mut Vec<Action>) {
        let can = |fault| world.budget.affords(fault);
        if !world.is_up(node) {
            return actions.push(Action::Start);
        }
        if world.nodes[node].paused {
            actions.push(Action::StandStill);
        } else if can(Fault::Pause) {
            actions.push(Action::Pause);
        }
        if can(Fault::Crash) {
            actions.push(Action::Crash);
        }
        if can(Fault::Order) {
            actions.push(Action::OrderSwitchover);
        }
        let synced = world.status(node).is_some_and(|status| status.synced);
        if can(Fault::Expiry) && synced {
            actions.push(Action::Expire);
        }
        if can(Fault::LateState) && !synced && world.may_get_late_state(node) {
            actions.push(Action::LateState);
        }
    }

    fn datagram_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let ours = |to: End| to.min(2) == world.turn;
        for (at, datagram) in world.flight.iter().enumerate() {
            if !ours(datagram.to) {
                continue;
            }
            if world.budget.affords(Fault::Loss) {
                actions.push(Action::Lose(at));
            }
            if world.budget.affords(Fault::Delay) {
                actions.push(Action::HoldBack(at));
            }
            if world.budget.affords(Fault::Copy) {
                actions.push(Action::Copy(at));
            }
        }
        let held = world.held.iter().enumerate();
        actions.extend(
            held.filter(|(_, d)| ours(d.to))
                .map(|(at, _)| Action::Release(at)),
        );
    }

    fn network_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let outages = world.outages();
        let ended = outages.iter().copied().find(|out| world.cuts & out == *out);
        if let Some(outage) = ended {
            actions.push(Action::Mend(outage));
        } else if world.budget.affords(Fault::Outage) {
            actions.extend(outages.into_iter().map(Action::Outage));
        }
        // An outage ends on all its paths at once.
        let whole = |cut: &u64| ended.is_none_or(|outage| outage & cut == 0);
        for cut in world.paths().into_iter().filter(whole) {
            if world.cuts & cut == cut {
                actions.push(Action::Mend(cut));
            } else if world.cuts & cut == 0 && world.budget.affords(Fault::Cut) {
                actions.push(Action::Cut(cut));
            }
        }
        if !world.transfers {
            actions.push(Action::ResumeTransfers);
        } else if world.budget.affords(Fault::Transfer) {
            actions.push(Action::StopTransfers);
        }
    }
}

impl World {
    /// What a cut can concern: each pair of ends on each link, in one direction or both.
    fn paths(&self) -> Vec<u64> {
        let mut paths = Vec::new();
        let mut add = |a, b, link| {
            let (there, back) = (path(a, b, link), path(b, a, link));
            paths.extend([there | back, there, back]);
        };
        (0..self.plan.links).for_each(|link| add(0, 1, link));
        for reference in 0..self.witnesses.len() {
            let link = reference as u8 % self.plan.links;
            (0..2).for_each(|node| add(node, 2 + reference, link));
        }
        paths
    }

    /// What an outage can concern: everything, or all to one node, or all from it.
    fn outages(&self) -> Vec<u64> {
        let ends = 2 + self.witnesses.len();
        let all = (0..ends).flat_map(|a| (0..ends).map(move |b| (a, b)));
        let links = 0..self.plan.links;
        let ways = all.flat_map(|(a, b)| links.clone().map(move |link| (a, b, link)));
        let of = |which: &dyn Fn(End, End) -> bool| {
            let chosen = ways.clone().filter(|&(a, b, _)| which(a, b));
            chosen.fold(0, |mask, (a, b, link)| mask | path(a, b, link))
        };
        let mut outages = vec![of(&|_, _| true)];
        for node in 0..2 {
            outages.extend([of(&|_, to| to == node), of(&|from, _| from == node)]);
        }
        outages
    }

    /// A state that was sent in the present sessions.
    fn may_get_late_state(&self, node: End) -> bool {
        let tag = |n: End| {
            let core = self.nodes[n].core.as_ref()?;
            core.transfer_tag(bumpless_base::PeerId(0))
        };
        let tagged = tag(node).is_some() && tag(node) == tag(1 - node);
        let sent = self.nodes[1 - node].published;
        tagged && sent && self.role(node) == Some(Role::Backup)
    }

    /// What an action means in this world, for people.
    pub fn explain(&self, action: Action) -> String {
        let on_its_way = |at: usize, datagrams: &[super::world::Datagram]| {
            let d = &datagrams[at];
            format!(
                "what {} sent to {}: {}",
                NAMES[d.from],
                NAMES[d.to],
                d.kind()
            )
        };
        match action {
            Action::Lose(at) => format!("lose {}", on_its_way(at, &self.flight)),
            Action::HoldBack(at) => format!("hold back {}", on_its_way(at, &self.flight)),
            Action::Copy(at) => format!("copy {}", on_its_way(at, &self.flight)),
            Action::Release(at) => format!("release {}", on_its_way(at, &self.held)),
            Action::Cut(cut) => format!("cut {}", names_of(cut)),
            Action::Outage(cut) => format!("outage of {}", names_of(cut)),
            Action::Mend(cut) => format!("mend {}", names_of(cut)),
            action => format!("{action:?}"),
        }
    }

    fn act(&mut self, action: Action) {
        let node = self.turn;
        if let Some(fault) = action.fault() {
            self.disturb(fault);
        }
        match action {
            Action::Turn => self.turn(),
            Action::StandStill => self.pass(),
            Action::Pause => {
                self.nodes[node].paused = true;
                self.pass();
            }
            Action::Crash => self.crash(node),
            Action::Start => {
                self.seen.ailing = 0;
                self.start(node);
            }
            Action::Lose(at) => drop(self.flight.remove(at)),
            Action::HoldBack(at) => {
                let datagram = self.flight.remove(at);
                self.held.push(datagram);
            }
            Action::Copy(at) => self.held.push(self.flight[at].clone()),
            Action::Release(at) => {
                self.seen.ailing = 0;
                let datagram = self.held.remove(at);
                self.flight.insert(0, datagram);
            }
            Action::RestartWitness(at) => self.start_witness(at),
            Action::Cut(paths) | Action::Outage(paths) => self.cuts |= paths,
            Action::Mend(cut) => self.cuts &= !cut,
            Action::StopTransfers => self.transfers = false,
            Action::ResumeTransfers => self.transfers = true,
            Action::LateState => self.receive_state(node),
            Action::Expire => self.tell(
                node,
                Holding {
                    fresh_until: None,
                    ..Holding::until(Some(Instant::FAR_FUTURE))
                },
            ),
            Action::OrderSwitchover => {
                let now = self.clock(node);
                let _ = self.core(node).command_switchover(GROUP, now);
                self.settle(node);
            }
        }
    }
}

impl Model for Roles {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        self.first.clone()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Turn);
        self.datagram_actions(world, actions);
        match world.turn {
            2 => {
                let kinds = world.plan.references.iter().enumerate();
                let witnesses = kinds.filter(|(_, k)| **k == ReferenceKind::Witness);
                let can = world.budget.affords(Fault::WitnessRestart);
                let restarts = witnesses.map(|(at, _)| Action::RestartWitness(at));
                actions.extend(restarts.filter(|_| can));
            }
            node => self.node_actions(world, node, actions),
        }
        if world.turn == 0 {
            self.network_actions(world, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        (next.seen.regained, next.seen.repeated) = (false, false);
        next.act(action);
        self.longest.fetch_max(next.seen.ailing, Ordering::Relaxed);
        Some(next)
    }

    fn within_boundary(&self, world: &World) -> bool {
        self.horizon.is_none_or(|horizon| world.time < horizon)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always(ONE_WRITER, |_, w| {
                w.permit(0).is_none() || w.permit(1).is_none()
            }),
            Property::<Self>::always(HISTORY, |_, w| w.seen.violation.is_none()),
            Property::<Self>::always(BOUNDED, |m, w| m.horizon.is_some() || w.time < m.settles_by),
            Property::<Self>::always(HEALS, |_, w| w.seen.ailing <= w.plan.heals_within()),
            Property::<Self>::sometimes("A writes", |_, w| w.permit(0).is_some()),
            Property::<Self>::sometimes("B writes", |_, w| w.permit(1).is_some()),
            Property::<Self>::sometimes("A takes over", |_, w| {
                became(w, 0, RoleCause::PartnerSilent)
            }),
            Property::<Self>::sometimes("B takes over", |_, w| {
                became(w, 1, RoleCause::PartnerSilent)
            }),
            Property::<Self>::sometimes("A is handed the role", |_, w| {
                became(w, 0, RoleCause::HandedOver)
            }),
            Property::<Self>::sometimes("B is handed the role", |_, w| {
                became(w, 1, RoleCause::HandedOver)
            }),
            Property::<Self>::sometimes("a node starts alone", |_, w| {
                (0..2).any(|n| became(w, n, RoleCause::LoneStart))
            }),
            Property::<Self>::sometimes("a node goes on in simplex", |_, w| {
                let simplex = |n: End| {
                    w.nodes[n]
                        .core
                        .as_ref()
                        .is_some_and(|c| c.is_simplex(GROUP))
                };
                (0..2).any(|n| simplex(n) && w.seen.fresh == [n == 0, n == 1])
            }),
            Property::<Self>::sometimes("a right lapses and comes back", |_, w| w.seen.regained),
            Property::<Self>::sometimes("memory is lost and an epoch comes again", |_, w| {
                w.seen.repeated
            }),
            Property::<Self>::sometimes("nobody writes", |_, w| {
                (0..2).all(|n| w.is_up(n) && w.permit(n).is_none())
            }),
        ]
    }
}

const NAMES: [&str; 4] = ["A", "B", "W", "W'"];

fn names_of(cut: u64) -> String {
    let ways = (0..4).flat_map(|a| (0..4).map(move |b| (a, b)));
    let open = ways.filter(|&(a, b)| (0..2).any(|link| cut & path(a, b, link) != 0));
    let names = open.map(|(a, b)| format!("{} to {}", NAMES[a], NAMES[b]));
    names.collect::<Vec<_>>().join(", ")
}

pub const ONE_WRITER: &str = "one writer: two nodes hold a permit at one instant";
pub const HISTORY: &str = "one writer, no bump: what was written stays in order";
pub const BOUNDED: &str = "bounded: nothing grows for ever";
/// Long after every shortest way has come back to a state that was there before, in quanta.
const SHORT_WAYS: u64 = 250;
/// The same of any way: one that leaves a node paused for dozens of quanta takes as many more, and depth first goes it before it
/// knows that a shorter one leads there, too.
pub const ANY_WAYS: u64 = 1000;
pub const HEALS: &str = "heals: redundant again in time";

fn became(world: &World, node: End, cause: RoleCause) -> bool {
    let status = world.status(node);
    world.permit(node).is_some() && status.is_some_and(|s| s.cause == Some(cause))
}

//! Whom an outage cuts off from whom, and what is promised then.

use bumpless_base::Duration;
use bumpless_plan::distance::Gaps;
use bumpless_wan::route::{Ways, nearer};
use bumpless_wan::{NodeId, Step, Topology};
use serde::Serialize;

use super::Options;
use crate::wide::Routing;

/// What is promised of an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promised {
    /// Nobody notices: no application writes nothing for more than two periods (S-14).
    Unnoticed,
    /// The primary is cut off from everybody, who have each other: the gap of its site's end (P-86).
    PrimaryCut,
    /// The backup is cut off from the primary and the witness, and the primary from nobody else: the gap of its site's end.
    BackupCut,
    /// The plan says nothing of it: the checkers alone judge.
    Nothing,
}

impl Promised {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Unnoticed,
        Self::PrimaryCut,
        Self::BackupCut,
        Self::Nothing,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unnoticed => "unnoticed",
            Self::PrimaryCut => "primary-cut",
            Self::BackupCut => "backup-cut",
            Self::Nothing => "nothing",
        }
    }

    /// The longest gap, if one is promised.
    pub fn gap(self, gaps: &Gaps, period: Duration) -> Option<Duration> {
        match self {
            Self::Unnoticed => Some(period * 2),
            Self::PrimaryCut => Some(gaps.unordered),
            Self::BackupCut => Some(gaps.backup),
            Self::Nothing => None,
        }
    }
}

/// What is left of the ways between two ends, there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// All that packets may take.
    Whole,
    /// Some of it, or another way that is not known yet.
    Part,
    /// Nothing.
    Nothing,
}

/// Who speaks with whom. The primary is the left node, as it is once the pair has settled.
const RELATIONS: [(Who, Who); 5] = [
    (Who::Primary, Who::Backup),
    (Who::Primary, Who::Witness),
    (Who::Primary, Who::Field),
    (Who::Backup, Who::Witness),
    (Who::Backup, Who::Field),
];

#[derive(Clone, Copy, Debug)]
enum Who {
    Primary,
    Backup,
    Witness,
    Field,
}

impl Who {
    fn place(self, options: &Options) -> NodeId {
        let places = &options.places;
        match self {
            Self::Primary => places.nodes[0],
            Self::Backup => places.nodes[1],
            Self::Witness => places.witness,
            Self::Field => places.field,
        }
    }
}

/// The ways of one direction.
#[derive(Clone, Debug)]
struct Direction {
    from: NodeId,
    to: NodeId,
    distances: Vec<Option<u32>>,
    /// Links that a packet may take, by number.
    links: Vec<usize>,
    /// What a packet takes at most, microseconds.
    takes_us: u64,
}

/// The ways of all relations, each in both directions.
#[derive(Clone, Debug)]
pub struct Reach {
    relations: Vec<[Direction; 2]>,
}

impl Reach {
    /// Those of a sound network.
    pub fn new(options: &Options) -> Self {
        let topology = &options.topology;
        let direction = |from, to| match options.routing {
            Routing::EqualCost => Direction::by_any(topology, from, to),
            Routing::Fixed | Routing::Daemon { .. } => Direction::by_first(topology, from, to),
        };
        let both = |(one, other): (Who, Who)| {
            let (one, other) = (one.place(options), other.place(options));
            [direction(one, other), direction(other, one)]
        };
        Self {
            relations: RELATIONS.map(both).into(),
        }
    }

    /// There and back, microseconds: between the nodes, to the witness and to field devices from the farther one.
    pub fn round_trips_us(&self) -> [u64; 3] {
        let both = |at: usize| self.relations[at].iter().map(|it| it.takes_us).sum::<u64>();
        [both(0), both(1).max(both(3)), both(2).max(both(4))]
    }

    /// All links that a packet may take.
    pub fn on_ways(&self) -> Vec<usize> {
        let all = self.relations.iter().flatten();
        let mut links: Vec<_> = all.flat_map(|it| it.links.iter().copied()).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// What is promised while `steps` are played, from a sound network to a sound network. Where links lose some or carry so
    /// much a second, and where one state of things follows another, the plan says nothing. And for how long that is so,
    /// nanoseconds.
    pub fn promised(&self, options: &Options, steps: &[Step]) -> (Promised, u64) {
        let topology = &*options.topology;
        let mut is_on_way = vec![false; topology.links().len()];
        self.on_ways()
            .iter()
            .for_each(|&link| is_on_way[link] = true);
        let always = topology.links().iter().zip(&is_on_way);
        let impaired = steps.iter().flat_map(|step| &step.impair);
        if always
            .clone()
            .any(|(link, on)| *on && !link.impairment.is_none())
            || impaired.clone().any(|(link, _)| is_on_way[*link])
        {
            return (Promised::Nothing, 0);
        }
        let mut dead = vec![false; topology.links().len()];
        let mut all = Vec::new();
        for step in steps {
            step.cut.iter().for_each(|&link| dead[link] = true);
            step.heal.iter().for_each(|&link| dead[link] = false);
            let at = u64::try_from(step.at.as_nanos()).unwrap_or(u64::MAX);
            all.push((self.promised_now(topology, options.routing, &dead), at));
        }
        all.dedup_by_key(|it| it.0);
        match &all[..] {
            [(one, _)] => (*one, u64::MAX),
            [(one, from), (Promised::Unnoticed, until)]
            | [
                (Promised::Unnoticed, _),
                (one, from),
                (Promised::Unnoticed, until),
            ] => (*one, until - from),
            [] => (Promised::Unnoticed, 0),
            _ => (Promised::Nothing, 0),
        }
    }

    fn promised_now(&self, topology: &Topology, routing: Routing, dead: &[bool]) -> Promised {
        let left: Vec<Left> = self
            .relations
            .iter()
            .map(|both| {
                let [there, back] = both.each_ref().map(|way| way.left(topology, routing, dead));
                // Of two that can talk in one direction alone the plan says nothing.
                if there == back { there } else { Left::Part }
            })
            .collect();
        let whole = |at: usize| left[at] == Left::Whole;
        let nothing = |at: usize| left[at] == Left::Nothing;
        match () {
            () if (0..5).all(whole) => Promised::Unnoticed,
            () if (0..3).all(nothing) && whole(3) && whole(4) => Promised::PrimaryCut,
            () if nothing(0) && nothing(3) && whole(1) && whole(2) => Promised::BackupCut,
            () => Promised::Nothing,
        }
    }
}

impl Direction {
    /// The way over the first of equal links each time.
    fn by_first(topology: &Topology, from: NodeId, to: NodeId) -> Self {
        let way = Ways::new(topology, to).way(from);
        Self {
            from,
            to,
            distances: Vec::new(),
            takes_us: way.as_ref().map_or(0, |way| way.delay_us(topology)),
            links: way.map_or_else(Vec::new, |way| way.links),
        }
    }

    /// All ways over equal links.
    fn by_any(topology: &Topology, from: NodeId, to: NodeId) -> Self {
        let mut direction = Self {
            from,
            to,
            distances: topology.distances(to),
            links: Vec::new(),
            takes_us: 0,
        };
        // Each node's latest arrival; nodes come in the order of their distance, so all that lead to one came before it.
        let mut latest = vec![None; topology.nodes().len()];
        latest[from.index()] = Some(0u64);
        let mut here = vec![from];
        while !here.is_empty() {
            let mut next = Vec::new();
            for node in here {
                let forwards = topology.node(node).kind.forwards();
                let passes = if forwards { topology.router_us() } else { 0 };
                let leaves = latest[node.index()].unwrap_or(0) + u64::from(passes);
                for link in nearer(topology, &direction.distances, node, to) {
                    let cable = &topology.links()[link];
                    let (other, at) = (cable.other(node), leaves + u64::from(cable.delay_us));
                    direction.links.push(link);
                    let known = &mut latest[other.index()];
                    if known.is_none() {
                        next.push(other);
                    }
                    *known = Some(known.map_or(at, |known: u64| known.max(at)));
                }
            }
            here = next;
        }
        direction.takes_us = latest[to.index()].unwrap_or(0);
        direction
    }

    fn left(&self, topology: &Topology, routing: Routing, dead: &[bool]) -> Left {
        if !self.links.iter().any(|&link| dead[link]) {
            return Left::Whole;
        }
        let reaches = match routing {
            Routing::Fixed => false,
            Routing::EqualCost => self.reaches(topology, dead),
            Routing::Daemon { .. } => {
                let distances = topology.distances_over(self.to, |link| !dead[link]);
                distances[self.from.index()].is_some()
            }
        };
        match reaches {
            true => Left::Part,
            false => Left::Nothing,
        }
    }

    /// Whether one of the ways over equal links is alive.
    fn reaches(&self, topology: &Topology, dead: &[bool]) -> bool {
        let mut seen = vec![false; topology.nodes().len()];
        let mut reached = vec![self.from];
        while let Some(node) = reached.pop() {
            if node == self.to {
                return true;
            }
            for link in nearer(topology, &self.distances, node, self.to).filter(|&it| !dead[it]) {
                let next = topology.links()[link].other(node);
                if !std::mem::replace(&mut seen[next.index()], true) {
                    reached.push(next);
                }
            }
        }
        false
    }
}

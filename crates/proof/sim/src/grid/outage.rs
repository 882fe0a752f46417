//! What dies, drawn from the seed.

use std::collections::VecDeque;
use std::time::Duration;

use bumpless_base::Random;
use bumpless_base::random::mix64;
use bumpless_wan::{Kind as NodeKind, Layer, NodeId, Step, Topology};
use serde::Serialize;

use super::Options;

const MS: u64 = 1_000_000;
/// What lasts as long is as good as the end of a site (P-91).
pub const LASTING: u64 = 1_000 * MS;

/// What kind of thing dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One link.
    Link,
    /// One router.
    Router,
    /// All routers of a loop, and of its chains.
    Loop,
    /// All links of a site.
    Site,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Link, Self::Router, Self::Loop, Self::Site];

    /// The one of `seed`. Each meets each of four seeds in a row, by which it is drawn whether messages are open (S-16).
    pub fn of(seed: u64) -> Self {
        Self::ALL[((seed + seed / 4) % 4) as usize]
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Router => "router",
            Self::Loop => "loop",
            Self::Site => "site",
        }
    }
}

/// One outage.
#[derive(Clone, Debug)]
pub struct Outage {
    /// What kind of thing dies.
    pub kind: Kind,
    /// As people name it.
    pub what: Vec<String>,
    links: Vec<usize>,
    at: u64,
    lasts: u64,
}

impl Outage {
    /// As a script.
    pub fn steps(&self) -> Vec<Step> {
        let cut = Step {
            at: Duration::from_nanos(self.at),
            cut: self.links.clone(),
            ..Step::default()
        };
        let heal = Step {
            at: Duration::from_nanos(self.at + self.lasts),
            heal: self.links.clone(),
            ..Step::default()
        };
        vec![cut, heal]
    }
}

/// What may die.
#[derive(Clone, Debug)]
pub struct Outages {
    /// Links and routers on the pair's ways.
    on_ways: (Vec<usize>, Vec<NodeId>),
    routers: Vec<NodeId>,
    /// Routers apart from the backbone that hang together.
    loops: Vec<Vec<NodeId>>,
    /// Those of them with a router on the pair's ways.
    loops_on_ways: Vec<usize>,
}

impl Outages {
    /// Those of a network with these links on the pair's ways.
    pub fn new(options: &Options, on_ways: Vec<usize>) -> Self {
        let topology = &options.topology;
        let forwards = |node: &NodeId| topology.node(*node).kind.forwards();
        let ends = on_ways.iter().flat_map(|&link| topology.links()[link].ends);
        let mut routers_on_ways: Vec<_> = ends.filter(forwards).collect();
        routers_on_ways.sort_unstable();
        routers_on_ways.dedup();
        let loops = loops(topology);
        let is_on_way = |routers: &[NodeId]| {
            let found = |node: &NodeId| routers_on_ways.binary_search(node).is_ok();
            routers.iter().any(found)
        };
        Self {
            loops_on_ways: (0..loops.len())
                .filter(|&at| is_on_way(&loops[at]))
                .collect(),
            loops,
            routers: topology.places().filter(forwards).collect(),
            on_ways: (on_ways, routers_on_ways),
        }
    }

    /// The outage of `seed`, in a pair that has `settled` (nanoseconds). Three of four are on the pair's ways; half of them last for 1 to 3 s, the others are shorter.
    pub fn draw(&self, options: &Options, seed: u64, settled: u64) -> Outage {
        let topology = &*options.topology;
        let mut random = Random::new(mix64(seed ^ 0x6772_6964));
        let near = random.below(4) > 0;
        let mut one = |count: usize| random.below(count as u64) as usize;
        let name = |node: NodeId| topology.node(node).name.clone();
        let mut kind = Kind::of(seed);
        if kind == Kind::Loop && self.loops.is_empty() {
            kind = Kind::Router;
        }
        let nodes = match kind {
            Kind::Link => Vec::new(),
            Kind::Router => {
                let all = match near && !self.on_ways.1.is_empty() {
                    true => &self.on_ways.1,
                    false => &self.routers,
                };
                all.get(one(all.len())).copied().into_iter().collect()
            }
            Kind::Loop if near && !self.loops_on_ways.is_empty() => {
                self.loops[self.loops_on_ways[one(self.loops_on_ways.len())]].clone()
            }
            Kind::Loop => self.loops[one(self.loops.len())].clone(),
            Kind::Site => {
                let places = &options.places;
                let ends = [places.witness, places.field];
                let all: Vec<_> = places.nodes.iter().copied().chain(ends).collect();
                vec![all[one(all.len())]]
            }
        };
        let mut links: Vec<usize> = nodes
            .iter()
            .flat_map(|&node| topology.links_at(node))
            .copied()
            .collect();
        let mut what: Vec<String> = nodes.iter().map(|&node| name(node)).collect();
        if nodes.is_empty() {
            let link = match near && !self.on_ways.0.is_empty() {
                true => self.on_ways.0[one(self.on_ways.0.len())],
                false => one(topology.links().len()),
            };
            let [first, second] = topology.links()[link].ends.map(name);
            (links, what) = (vec![link], vec![format!("{first}:{second}")]);
        }
        links.sort_unstable();
        links.dedup();
        Outage {
            kind,
            what,
            links,
            at: settled + random.below(200 * MS),
            lasts: match random.chance(0.5) {
                true => LASTING + random.below(2_000 * MS),
                false => MS + random.below(LASTING - MS),
            },
        }
    }
}

/// Routers apart from the backbone, those together that hang together.
fn loops(topology: &Topology) -> Vec<Vec<NodeId>> {
    let is_of_loop = |node: NodeId| matches!(topology.node(node).kind, NodeKind::Router(layer) if layer != Layer::Backbone);
    let mut seen = vec![false; topology.nodes().len()];
    let mut found = Vec::new();
    for first in topology.places().filter(|&node| is_of_loop(node)) {
        if std::mem::replace(&mut seen[first.index()], true) {
            continue;
        }
        let (mut together, mut reached) = (Vec::new(), VecDeque::from([first]));
        while let Some(node) = reached.pop_front() {
            together.push(node);
            for &link in topology.links_at(node) {
                let next = topology.links()[link].other(node);
                if is_of_loop(next) && !std::mem::replace(&mut seen[next.index()], true) {
                    reached.push_back(next);
                }
            }
        }
        found.push(together);
    }
    found
}

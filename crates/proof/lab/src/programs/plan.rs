//! Who takes part, and what dies.

use bumpless_wan::route::Ways;
use bumpless_wan::{Kind, NodeId, Topology};
use serde::{Deserialize, Serialize};

/// What dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outage {
    /// Nothing.
    None,
    /// Both routers of a backbone pair.
    BackbonePair,
    /// Every router of an aggregation loop, and of its chains.
    Loop,
    /// The first control centre: both of its ways carry nothing.
    Centre,
}

impl Outage {
    /// All, in the order in which they happen.
    pub const ALL: [Self; 4] = [Self::None, Self::BackbonePair, Self::Loop, Self::Centre];

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::BackbonePair => "a backbone router pair",
            Self::Loop => "a whole loop",
            Self::Centre => "the primary control centre",
        }
    }
}

/// Who takes part, and what is cut when.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The control centres; the first one is primary.
    pub centres: [NodeId; 2],
    /// The substations, in the order of the network, spread over all of it.
    pub substations: Vec<NodeId>,
    /// Of each outage: what it is, the links that are cut, and the routers that are.
    outages: [(Outage, Vec<usize>, Vec<String>); 4],
}

impl Plan {
    /// So many substations of a generated network: those with one link, since a daemon of iPRP is told of one interface.
    ///
    /// # Errors
    /// The network has too few, or lacks a second centre or what dies.
    pub fn new(topology: &Topology, count: usize, pairs: usize) -> Result<Self, String> {
        let of = |kind: Kind| {
            let hosts = topology.hosts();
            let ends = hosts.filter(move |&host| {
                topology.node(host).kind == kind && topology.links_at(host).len() == 1
            });
            ends.collect::<Vec<_>>()
        };
        let [first, second, ..] = of(Kind::Centre)[..] else {
            return Err("the network has no two control centres; give --centres 2".to_owned());
        };
        let all = of(Kind::Substation);
        if count > all.len() {
            return Err(format!(
                "the network has {} substations with one link, and {count} are asked for; give --substations {}, or more of --backbone-pairs, --loop-pairs or --chain-routers",
                all.len(),
                all.len()
            ));
        }
        if pairs < 2 {
            return Err("with one backbone pair none can die; give --backbone-pairs 3".to_owned());
        }
        let (pair, whole) = ((pairs / 4).max(1), (pairs / 2).max(1));
        let [pair, whole] = [format!("b{pair:02}"), format!("{whole:02}-")];
        let routers = |begins: &[String]| {
            let nodes = topology.nodes().iter().filter(|node| node.kind.forwards());
            let named = nodes.filter(|node| begins.iter().any(|it| node.name.starts_with(it)));
            named.map(|node| node.name.clone()).collect::<Vec<_>>()
        };
        let dead = |names: Vec<String>| {
            let nodes = names.iter().filter_map(|name| topology.find(name));
            let mut links: Vec<_> = nodes
                .flat_map(|node| topology.links_at(node).iter().copied())
                .collect();
            links.sort_unstable();
            links.dedup();
            (links, names)
        };
        let (of_pair, pair) = dead(routers(&[pair]));
        let (of_loop, whole) = dead(routers(&[format!("g{whole}"), format!("c{whole}")]));
        let centre = topology.links_at(first).to_vec();
        Ok(Self {
            centres: [first, second],
            substations: (0..count).map(|it| all[it * all.len() / count]).collect(),
            outages: [
                (Outage::None, Vec::new(), Vec::new()),
                (Outage::BackbonePair, of_pair, pair),
                (Outage::Loop, of_loop, whole),
                (
                    Outage::Centre,
                    centre,
                    vec![topology.node(first).name.clone()],
                ),
            ],
        })
    }

    /// The links that an outage cuts.
    pub fn links(&self, outage: Outage) -> &[usize] {
        let mut all = self.outages.iter();
        all.find(|(it, ..)| *it == outage)
            .map_or(&[], |(_, links, _)| links)
    }

    /// Names of what dies.
    pub fn names(&self, outage: Outage) -> &[String] {
        let mut all = self.outages.iter();
        all.find(|(it, ..)| *it == outage)
            .map_or(&[], |(_, _, names)| names)
    }

    /// For each substation, whether an outage is on its way to a centre or back.
    pub fn reached(&self, topology: &Topology, outage: Outage, centre: NodeId) -> Vec<bool> {
        let cut = self.links(outage);
        let back = Ways::new(topology, centre);
        let through = |node: NodeId| {
            let ways = [Ways::new(topology, node).way(centre), back.way(node)];
            let mut ways = ways.into_iter().flatten();
            ways.any(|way| way.links.iter().any(|link| cut.contains(link)))
        };
        self.substations.iter().map(|&node| through(node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use bumpless_wan::{Shape, generate};

    use super::*;

    #[test]
    fn each_outage_is_on_the_ways_of_some_substations_and_not_of_all() {
        let topology = generate(&Shape::default()).unwrap();
        let plan = Plan::new(&topology, 100, 20).unwrap();
        assert_eq!(plan.substations.len(), 100);
        let count = |outage, centre: usize| {
            let reached = plan.reached(&topology, outage, plan.centres[centre]);
            reached.iter().filter(|it| **it).count()
        };
        for centre in [0, 1] {
            assert_eq!(count(Outage::None, centre), 0);
            assert!((20..60).contains(&count(Outage::BackbonePair, centre)));
            assert_eq!(count(Outage::Loop, centre), 5);
        }
        assert_eq!(count(Outage::Centre, 0), 100);
        assert_eq!(count(Outage::Centre, 1), 0);
        assert_eq!(plan.names(Outage::BackbonePair), ["b05a", "b05b"]);
        assert_eq!(plan.names(Outage::Loop).len(), 15);
    }

    #[test]
    fn a_network_that_is_too_small_is_refused_with_what_would_do() {
        let small = generate(&Shape {
            backbone_pairs: 3,
            ..Shape::default()
        });
        let small = small.unwrap();
        let refused = Plan::new(&small, 100, 3).unwrap_err();
        assert!(refused.contains("--substations 27"), "{refused}");
        assert_eq!(Plan::new(&small, 9, 3).unwrap().substations.len(), 9);
        let one = generate(&Shape {
            centres: 1,
            ..Shape::default()
        });
        let refused = Plan::new(&one.unwrap(), 9, 20).unwrap_err();
        assert!(refused.contains("--centres 2"), "{refused}");
    }
}

//! Ways with the fewest hops (breadth-first search, fifth paper, III-B), and what a packet takes on one.
//!
//! Only routers forward: a way leads through a substation or a control centre only as its first or last node.

use crate::topology::{NodeId, Topology};

/// For each node, the links over which it reaches `to` in the fewest hops, in order; none at `to` itself.
#[derive(Clone, Debug)]
pub struct Ways<'a> {
    topology: &'a Topology,
    to: NodeId,
    distances: Vec<Option<u32>>,
}

impl<'a> Ways<'a> {
    /// All ways to `to`.
    pub fn new(topology: &'a Topology, to: NodeId) -> Self {
        let distances = topology.distances(to);
        Self {
            topology,
            to,
            distances,
        }
    }

    /// Links over which `from` may send what is for the end; more than one are of equal cost.
    pub fn next(&self, from: NodeId) -> impl Iterator<Item = usize> {
        nearer(self.topology, &self.distances, from, self.to)
    }

    /// The way from `from` that takes the first of equal links each time.
    pub fn way(&self, from: NodeId) -> Option<Way> {
        let mut nodes = vec![from];
        let mut links = Vec::new();
        let mut here = from;
        while here != self.to {
            let link = self.next(here).next()?;
            here = self.topology.links()[link].other(here);
            links.push(link);
            nodes.push(here);
        }
        Some(Way { nodes, links })
    }
}

/// Links over which `from` may send what is for `to`, to which each node has so many links to go.
pub fn nearer<'a>(
    topology: &'a Topology,
    distances: &'a [Option<u32>],
    from: NodeId,
    to: NodeId,
) -> impl Iterator<Item = usize> + 'a {
    let here = distances[from.index()];
    let is_nearer = move |next: NodeId| {
        let there = distances[next.index()];
        // A host that is not the end forwards nothing, however near it is.
        let passes = next == to || topology.node(next).kind.forwards();
        passes && matches!((here, there), (Some(here), Some(there)) if there + 1 == here)
    };
    topology
        .links_at(from)
        .iter()
        .copied()
        .filter(move |&link| is_nearer(topology.links()[link].other(from)))
}

/// What a packet takes from one node to another and its answer back, microseconds: there and back may be different ways.
/// `None` if no way leads there.
pub fn round_trip_us(topology: &Topology, from: NodeId, to: NodeId) -> Option<u64> {
    let one_way = |from, to| Some(Ways::new(topology, to).way(from)?.delay_us(topology));
    Some(one_way(from, to)? + one_way(to, from)?)
}

/// A way through the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// All nodes, both ends included.
    pub nodes: Vec<NodeId>,
    /// The links between them.
    pub links: Vec<usize>,
}

impl Way {
    /// Routers on it.
    pub fn routers(&self, topology: &Topology) -> usize {
        let forwards = |&&node: &&NodeId| topology.node(node).kind.forwards();
        self.nodes.iter().filter(forwards).count()
    }

    /// What a packet takes from one end to the other, microseconds: links and routers.
    pub fn delay_us(&self, topology: &Topology) -> u64 {
        let links: u64 = self
            .links
            .iter()
            .map(|&link| u64::from(topology.links()[link].delay_us))
            .sum();
        links + self.routers(topology) as u64 * u64::from(topology.router_us())
    }
}

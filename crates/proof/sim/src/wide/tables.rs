//! Where a node sends what is for an end. There are tables towards the places of ends alone, so that their number does not grow
//! with the network.

use std::sync::Arc;

use bumpless_base::random::mix64;
use bumpless_wan::route::nearer;
use bumpless_wan::{NodeId, Topology};

use super::links::Links;
use super::{Counts, Routing};

/// Towards one place: how many links there are to go from each node.
struct Table {
    to: NodeId,
    /// With every link.
    first: Vec<Option<u32>>,
    /// With those that routers hold for alive, if anybody tells them.
    told: Option<Vec<Option<u32>>>,
}

/// All tables of all nodes.
pub struct Tables {
    topology: Arc<Topology>,
    routing: Routing,
    /// Mixed into the choice between links, as each node of a real network mixes in a number of its own.
    salt: u64,
    all: Vec<Table>,
    /// Links that routers hold for dead.
    held_dead: Vec<bool>,
    /// Links that may be otherwise than routers hold them for.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
}

impl Tables {
    /// Those towards `places`.
    pub fn new(topology: &Arc<Topology>, routing: Routing, places: &[NodeId], salt: u64) -> Self {
        let is_told = matches!(routing, Routing::Daemon { .. });
        let table = |&to: &NodeId| {
            let first = topology.distances(to);
            Table {
                to,
                told: is_told.then(|| first.clone()),
                first,
            }
        };
        Self {
            all: places.iter().map(table).collect(),
            held_dead: vec![false; topology.links().len()],
            changed: Vec::new(),
            is_changed: vec![false; topology.links().len()],
            topology: Arc::clone(topology),
            routing,
            salt,
        }
    }

    /// The place to which table `to` leads.
    pub fn place(&self, to: usize) -> NodeId {
        self.all[to].to
    }

    /// The link over which `node` sends a packet of `flow` that is for the place of table `to`.
    pub fn next(&self, to: usize, node: NodeId, flow: u64) -> Option<usize> {
        let Table { to, first, told } = &self.all[to];
        // No daemon is on a host: it has the routes of the beginning.
        let distances = match told {
            Some(told) if self.topology.node(node).kind.forwards() => told,
            _ => first,
        };
        let mut links =
            nearer(&self.topology, distances, node, *to).filter(|&link| !self.held_dead[link]);
        if self.routing != Routing::EqualCost {
            return links.next();
        }
        let mut all = nearer(&self.topology, distances, node, *to);
        let count = links.count() as u64;
        let hash = mix64(self.salt ^ flow ^ mix64(u64::from(node.0)));
        all.nth(hash.checked_rem(count)? as usize)
    }

    /// These links have changed; how long after that routers find out, if they do.
    pub fn changes(&mut self, links: impl Iterator<Item = (usize, bool)>) -> [Option<u64>; 2] {
        let Routing::Daemon { failure, healing } = self.routing else {
            return [None; 2];
        };
        let mut after = [None; 2];
        for (link, cut) in links {
            // Routers do not talk to hosts, so of their links nobody finds out.
            let ends = self.topology.links()[link].ends;
            if !ends
                .iter()
                .all(|&end| self.topology.node(end).kind.forwards())
            {
                continue;
            }
            if !std::mem::replace(&mut self.is_changed[link], true) {
                self.changed.push(link);
            }
            let found_after = if cut { failure } else { healing };
            after[usize::from(!cut)] = Some(found_after.as_nanos());
        }
        after
    }

    /// Routers take what has been so for long enough, and find their ways anew if that is anything.
    pub fn converge(&mut self, links: &Links, now: u64, counts: &mut Counts) {
        let Routing::Daemon { failure, healing } = self.routing else {
            return;
        };
        let (held_dead, is_changed) = (&mut self.held_dead, &mut self.is_changed);
        let mut differs = false;
        self.changed.retain(|&link| {
            let (cut, since) = links.state(link);
            let after = if cut { failure } else { healing };
            let due = since + after.as_nanos() <= now;
            differs |= due && held_dead[link] != cut;
            held_dead[link] = if due { cut } else { held_dead[link] };
            is_changed[link] = !due;
            !due
        });
        if !differs {
            return;
        }
        counts.converged += 1;
        for table in &mut self.all {
            let alive = |link: usize| !self.held_dead[link];
            table.told = Some(self.topology.distances_over(table.to, alive));
        }
    }
}

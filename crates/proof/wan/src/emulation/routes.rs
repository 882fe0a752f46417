//! The routes of one node to every address of the network, with as few entries as adjacent addresses with one way permit.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use crate::address::Addresses;
use crate::topology::{NodeId, Topology};

/// A routing table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Over which links packets may leave, as places in [`Topology::links_at`]: each link alone, and those that are equally near
    /// to something together.
    pub ways: Vec<Vec<usize>>,
    /// Its entries.
    pub routes: Vec<Route>,
}

/// An entry of a routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The first address that it is for.
    pub first: IpAddr,
    /// How many bits of it count.
    pub prefix: u8,
    /// How packets leave, as a place in [`Table::ways`].
    pub by: usize,
}

/// All routes of `node`: the fewest hops, over the first of equal links or `over_all` of them, as [`crate::route::Ways`] says.
pub fn of(topology: &Topology, addresses: &Addresses, node: NodeId, over_all: bool) -> Table {
    let mut reach = Reach::new(topology, node, over_all);
    let mut blocks: Vec<Block> = topology
        .hosts()
        .filter_map(|host| {
            let address = addresses.host(host)?;
            Some(Block::new(address, 0, reach.by(host)?))
        })
        .collect();
    for (index, link) in topology.links().iter().enumerate() {
        if link.ends.contains(&node) {
            continue;
        }
        // A host forwards nothing to the other end.
        let forwards = |end: &NodeId| topology.node(*end).kind.forwards();
        let ends = link.ends.into_iter();
        let nearest = ends.min_by_key(|end| (!forwards(end), reach.distance(*end)));
        if let Some(by) = nearest.and_then(|end| reach.by(end)) {
            blocks.push(Block::new(addresses.link(index)[0], 1, by));
        }
    }
    blocks.sort_by_key(|block| block.first);
    Table {
        routes: compressed(&blocks),
        ways: reach.ways,
    }
}

/// How far every node is from one, and over which of its links.
struct Reach {
    nodes: Vec<Option<(u32, Vec<usize>)>>,
    ways: Vec<Vec<usize>>,
}

impl Reach {
    fn new(topology: &Topology, from: NodeId, over_all: bool) -> Self {
        let mut nodes: Vec<Option<(u32, Vec<usize>)>> = vec![None; topology.nodes().len()];
        nodes[from.index()] = Some((0, Vec::new()));
        let mut reached = VecDeque::from([from]);
        while let Some(node) = reached.pop_front() {
            let Some((distance, by)) = nodes[node.index()].clone() else {
                continue;
            };
            if node != from && !topology.node(node).kind.forwards() {
                continue;
            }
            for (place, &link) in topology.links_at(node).iter().enumerate() {
                let next = topology.links()[link].other(node);
                let by = if node == from { &[place] } else { &by[..] };
                match &mut nodes[next.index()] {
                    Some((known, all)) if *known == distance + 1 => join(all, by, over_all),
                    Some(_) => {}
                    unknown => {
                        *unknown = Some((distance + 1, by.to_vec()));
                        reached.push_back(next);
                    }
                }
            }
        }
        let alone = 0..topology.links_at(from).len();
        Self {
            nodes,
            ways: alone.map(|place| vec![place]).collect(),
        }
    }

    fn distance(&self, to: NodeId) -> u32 {
        let node = self.nodes[to.index()].as_ref();
        node.map_or(u32::MAX, |(distance, _)| *distance)
    }

    /// How to leave for it, as a place in the ways; none to the node itself.
    fn by(&mut self, to: NodeId) -> Option<usize> {
        let (_, by) = self.nodes[to.index()].as_ref().filter(|it| it.0 > 0)?;
        let known = self.ways.iter().position(|it| it == by);
        Some(known.unwrap_or_else(|| {
            self.ways.push(by.clone());
            self.ways.len() - 1
        }))
    }
}

/// Adds what `by` has to links that are equally near, in order, or keeps the first of all.
fn join(all: &mut Vec<usize>, by: &[usize], over_all: bool) {
    all.extend(by);
    all.sort_unstable();
    all.dedup();
    if !over_all {
        all.truncate(1);
    }
}

/// Adjacent addresses that are reached by the same link.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// In the upper bits, whichever the family.
    first: u128,
    v6: bool,
    /// How many bits of an address count.
    prefix: u8,
    by: usize,
}

impl Block {
    fn new(address: IpAddr, free_bits: u8, by: usize) -> Self {
        let (first, v6, bits) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, false, 32),
            IpAddr::V6(address) => (address.to_bits(), true, 128),
        };
        let prefix = bits - free_bits;
        Self {
            first: masked(first, prefix),
            v6,
            prefix,
            by,
        }
    }

    fn route(&self, prefix: u8, by: usize) -> Route {
        let first = masked(self.first, prefix);
        let first = if self.v6 {
            IpAddr::V6(first.into())
        } else {
            IpAddr::V4(((first >> 96) as u32).into())
        };
        Route { first, prefix, by }
    }
}

fn masked(address: u128, prefix: u8) -> u128 {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix));
    address & mask.unwrap_or(0)
}

/// One route for the link that most blocks take, and one for each aligned part of which all take another one.
fn compressed(blocks: &[Block]) -> Vec<Route> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return Vec::new();
    };
    let mut times = BTreeMap::new();
    for block in blocks {
        *times.entry(block.by).or_insert(0) += 1;
    }
    let most = times
        .iter()
        .max_by_key(|(by, times)| (**times, usize::MAX - **by));
    let usual = most.map_or(first.by, |(by, _)| *by);
    let common = (first.first ^ last.first).leading_zeros() as u8;
    let common = common.min(first.prefix);
    let mut routes = vec![first.route(common, usual)];
    split(blocks, common, usual, &mut routes);
    routes
}

fn split(blocks: &[Block], prefix: u8, usual: usize, routes: &mut Vec<Route>) {
    let Some(first) = blocks.first() else {
        return;
    };
    if blocks.iter().all(|block| block.by == first.by) {
        if first.by != usual {
            routes.push(first.route(prefix, first.by));
        }
        return;
    }
    // Blocks do not overlap, so those that differ have further bits.
    let one = |block: &Block| block.first << prefix >> 127 == 1;
    let middle = blocks.partition_point(|block| !one(block));
    split(&blocks[..middle], prefix + 1, usual, routes);
    split(&blocks[middle..], prefix + 1, usual, routes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Pool;
    use crate::route::Ways;
    use crate::{Shape, generate};

    /// The link by which a routing table sends packets for `to`: of the longest prefix.
    fn looked_up(routes: &[Route], to: IpAddr) -> Option<usize> {
        let to = Block::new(to, 0, 0);
        let fits = |route: &&Route| {
            let first = Block::new(route.first, 0, 0).first;
            masked(to.first, route.prefix) == first
        };
        let best = routes.iter().filter(fits).max_by_key(|route| route.prefix);
        best.map(|route| route.by)
    }

    #[test]
    fn tables_send_to_every_host_as_the_ways_say_in_few_entries() {
        for pool in [Pool::V4, Pool::V6] {
            let topology = generate(&Shape::default()).unwrap();
            let addresses = Addresses::new(&topology, pool).unwrap();
            let tables: Vec<_> = topology
                .places()
                .map(|node| of(&topology, &addresses, node, false))
                .collect();
            let each_alone = |table: &Table| table.ways.iter().all(|way| way.len() == 1);
            assert!(tables.iter().all(each_alone));
            for host in topology.hosts().step_by(7) {
                let ways = Ways::new(&topology, host);
                let to = addresses.host(host).unwrap();
                for node in topology.places().filter(|&node| node != host) {
                    let by = looked_up(&tables[node.index()].routes, to).unwrap();
                    let link = topology.links_at(node)[by];
                    assert_eq!(ways.next(node).next(), Some(link));
                }
            }
            let all: usize = tables.iter().map(|table| table.routes.len()).sum();
            assert!(all < 40_000, "{all} routes");
        }
    }

    #[test]
    fn tables_over_all_equal_links_have_each_of_them() {
        let topology = generate(&Shape::default()).unwrap();
        let addresses = Addresses::new(&topology, Pool::V4).unwrap();
        let tables: Vec<_> = topology
            .places()
            .map(|node| of(&topology, &addresses, node, true))
            .collect();
        let mut several = 0;
        for host in topology.hosts().step_by(7) {
            let ways = Ways::new(&topology, host);
            let to = addresses.host(host).unwrap();
            for node in topology.places().filter(|&node| node != host) {
                let table = &tables[node.index()];
                let by = &table.ways[looked_up(&table.routes, to).unwrap()];
                let links = by.iter().map(|&place| topology.links_at(node)[place]);
                assert!(ways.next(node).eq(links));
                several += usize::from(by.len() > 1);
            }
        }
        assert!(several > 500, "{several} of several links");
    }

    #[test]
    fn every_address_of_a_link_is_reached_without_a_circle() {
        let shape = Shape {
            backbone_pairs: 4,
            ..Shape::default()
        };
        let topology = generate(&shape).unwrap();
        let addresses = Addresses::new(&topology, Pool::V4).unwrap();
        let tables: Vec<_> = topology
            .places()
            .map(|node| of(&topology, &addresses, node, false))
            .collect();
        for (index, link) in topology.links().iter().enumerate() {
            for from in topology.places() {
                let (mut here, mut hops) = (from, 0);
                while !link.ends.contains(&here) {
                    assert!(here == from || topology.node(here).kind.forwards());
                    let to = addresses.link(index)[1];
                    let by = looked_up(&tables[here.index()].routes, to).unwrap();
                    here = topology.links()[topology.links_at(here)[by]].other(here);
                    hops += 1;
                    assert!(hops < 64, "a circle to link {index}");
                }
            }
        }
    }
}

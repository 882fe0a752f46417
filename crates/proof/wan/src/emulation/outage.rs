//! Links that carry nothing. Nobody is told: interfaces stay up, so routes stay, and packets vanish.

use std::fs::File;
use std::io;
use std::thread;

use bumpless_capture::netlink::attributes;

use super::build::{Delays, leaving_us};
use super::place::Running;
use super::{link, namespace};
use crate::topology::{NodeId, Topology};

/// Makes these links lose everything, in both directions.
///
/// # Errors
/// The kernel refuses.
pub fn cut(running: &Running, topology: &Topology, links: &[usize]) -> io::Result<()> {
    each_end(running, topology, links, |_, _, number| {
        namespace::socket()?.transact(link::lose(number).bytes())
    })
}

/// Makes these links carry everything again; those that do are left as they are.
///
/// # Errors
/// The kernel refuses.
pub fn heal(running: &Running, topology: &Topology, links: &[usize]) -> io::Result<()> {
    // Only the ends of these links are asked, not the whole network: other traffic goes on meanwhile.
    let ends = links.iter().flat_map(|&index| topology.links()[index].ends);
    let dead = found(running, topology, ends.collect())?;
    let links: Vec<_> = links
        .iter()
        .copied()
        .filter(|index| dead.contains(index))
        .collect();
    each_end(running, topology, &links, |node, index, number| {
        let socket = namespace::socket()?;
        let delay_us = leaving_us(topology, node, index);
        if running.delays == Delays::Netem && delay_us > 0 {
            return socket.transact(link::delay(number, delay_us).bytes());
        }
        match socket.transact(link::send_at_once(number).bytes()) {
            // Only the other end was cut, by a command that was ended in the middle.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    })
}

/// The links that carry nothing in at least one direction, as the kernel knows them.
///
/// # Errors
/// The kernel does not tell.
pub fn outages(running: &Running, topology: &Topology) -> io::Result<Vec<usize>> {
    found(running, topology, topology.places().collect())
}

/// Those of the links at these nodes.
fn found(running: &Running, topology: &Topology, nodes: Vec<NodeId>) -> io::Result<Vec<usize>> {
    thread::scope(|scope| scope.spawn(|| lost(running, topology, &nodes)).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

fn lost(running: &Running, topology: &Topology, nodes: &[NodeId]) -> io::Result<Vec<usize>> {
    let mut cut = Vec::new();
    for &node in nodes {
        namespace::enter(&File::open(running.namespace(node.index()))?)?;
        namespace::socket()?.dump(link::queues().bytes(), |_, body| {
            let kind = attributes(body, link::QUEUEING_LEN).find(|(kind, _)| *kind == 1);
            let loses =
                kind.is_some_and(|(_, kind)| kind == [link::LOSES.as_bytes(), &[0]].concat());
            let number = body.get(4..8).and_then(|it| it.first_chunk());
            let number = number.map_or(0, |number| u32::from_ne_bytes(*number));
            let place = number.checked_sub(link::number(0));
            let links = topology.links_at(node);
            let index = place.and_then(|place| links.get(place as usize));
            cut.extend(index.filter(|_| loses));
        })?;
    }
    cut.sort_unstable();
    cut.dedup();
    Ok(cut)
}

/// Does `work` in the namespace of both ends of each link: node, link, number of the interface.
fn each_end(
    running: &Running,
    topology: &Topology,
    links: &[usize],
    work: impl Fn(NodeId, usize, u32) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let all = || {
        for &index in links {
            for node in topology.links()[index].ends {
                let at = topology.links_at(node).iter();
                let place = at.take_while(|&&known| known != index).count();
                namespace::enter(&File::open(running.namespace(node.index()))?)?;
                work(node, index, link::number(place))?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| scope.spawn(all).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

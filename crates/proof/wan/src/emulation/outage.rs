//! Links that carry nothing. Nobody is told: interfaces stay up, so routes stay, and packets vanish.

use std::io;

use super::place::Running;
use super::queues::{Queues, each_end, of_links};
use super::{link, namespace};
use crate::topology::{NodeId, Topology};

/// Makes these links lose everything, in both directions.
///
/// # Errors
/// The kernel refuses.
pub fn cut(running: &Running, topology: &Topology, links: &[usize]) -> io::Result<()> {
    each_end(running, topology, links, |end| {
        let slot = Queues::of(end.number)?.slot();
        namespace::socket()?.transact(link::lose(end.number, slot).bytes())
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
    each_end(running, topology, &links, |end| {
        let queues = Queues::of(end.number)?;
        // Else only the other end was cut, by a command that was ended in the middle.
        match queues.loses {
            true => end.restore(running, topology, queues),
            false => Ok(()),
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
    let links = of_links(running, topology, nodes)?.into_iter();
    Ok(links
        .filter_map(|(link, queues)| queues.loses.then_some(link))
        .collect())
}

//! Links that carry nothing. Nobody is told: interfaces stay up, so routes stay, and packets vanish.

use std::io;

use super::place::Running;
use super::queues::{Queues, each_end, ends, of_links};
use crate::topology::Topology;

/// Makes these links lose everything, in both directions.
///
/// # Errors
/// The kernel refuses, or another command changes links for too long.
pub fn cut(running: &Running, topology: &Topology, links: &[usize]) -> io::Result<()> {
    let _alone = running.changing()?;
    each_end(running, &ends(topology, links), |end| {
        let queues = Queues {
            loses: true,
            ..Queues::of(end.number)?
        };
        end.apply(running, topology, queues)
    })
}

/// Makes these links carry everything again; those that do are left as they are.
///
/// # Errors
/// As [`cut`].
pub fn heal(running: &Running, topology: &Topology, links: &[usize]) -> io::Result<()> {
    let _alone = running.changing()?;
    each_end(running, &ends(topology, links), |end| {
        let queues = Queues::of(end.number)?;
        let whole = Queues {
            loses: false,
            ..queues
        };
        match queues.loses {
            true => end.apply(running, topology, whole),
            false => Ok(()),
        }
    })
}

/// The links that carry nothing in at least one direction, as the kernel knows them.
///
/// # Errors
/// The kernel does not tell.
pub fn outages(running: &Running, topology: &Topology) -> io::Result<Vec<usize>> {
    let nodes = topology.places().collect();
    let links = of_links(running, topology, nodes)?.into_iter();
    Ok(links
        .filter_map(|(link, queues)| queues.loses.then_some(link))
        .collect())
}

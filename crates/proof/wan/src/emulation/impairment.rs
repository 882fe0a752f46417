//! Links that carry less than they might: at most so much a second, and not every packet.

use std::fs::File;
use std::io;
use std::thread;

use bumpless_capture::{Loss, lose_incoming, lost_incoming};

use super::place::Running;
use super::queues::{End, Queues, each_end, of_links};
use super::{link, namespace};
use crate::impairment::Impairment;
use crate::topology::{NodeId, Topology};

/// What the name of the table of an interface that loses packets begins with; its number follows.
const TABLE: &str = "bumpless-wan-loss";
/// A bit rate is so many bytes a second for each Mbit/s.
const BYTES: u32 = 1_000_000 / 8;

/// Makes these links so, whatever they were before. What is cut stays cut.
///
/// # Errors
/// The kernel refuses, or lacks what it takes.
pub fn impair(
    running: &Running,
    topology: &Topology,
    links: &[usize],
    impairment: Impairment,
) -> io::Result<()> {
    each_end(running, topology, links, |end| {
        set_loss(end.number, impairment.loss_millionths)?;
        set_rate(running, topology, end, impairment.rate_mbit)
    })
}

/// Makes all links what the network says.
///
/// # Errors
/// As [`impair`].
pub fn begin(running: &Running, topology: &Topology) -> io::Result<()> {
    let numbered = topology.links().iter().enumerate();
    let mut impaired = numbered.filter(|(_, link)| !link.impairment.is_none());
    impaired.try_for_each(|(index, link)| impair(running, topology, &[index], link.impairment))
}

/// Losses are of the receiving end, so that a sender learns nothing of a lost packet. Each interface has a table of its own:
/// commands for two links of a node at the same time do not undo each other's.
fn set_loss(number: u32, millionths: u32) -> io::Result<()> {
    let loss = Loss {
        interface: number,
        millionths,
    };
    let losses = [loss];
    let lost = if millionths > 0 { &losses[..] } else { &[] };
    lose_incoming(&format!("{TABLE}-{number}"), lost)
}

fn set_rate(
    running: &Running,
    topology: &Topology,
    end: End,
    rate_mbit: Option<u32>,
) -> io::Result<()> {
    let before = Queues::of(end.number)?;
    let rate = rate_mbit.map(|mbit| mbit.saturating_mul(BYTES));
    if before.rate == rate {
        return Ok(());
    }
    let socket = namespace::socket()?;
    match rate {
        Some(rate) => socket.transact(link::limit(end.number, rate).bytes())?,
        None => socket.transact(link::send_at_once(end.number).bytes())?,
    }
    // What was there is gone with the root, or is not behind the limit yet.
    let after = Queues { rate, ..before };
    match before.loses {
        true => socket.transact(link::lose(end.number, after.slot()).bytes()),
        false => end.restore(running, topology, after),
    }
}

/// The links that are impaired, and how, as the kernel knows them. Of two ends that differ, after a command that was ended in
/// the middle, the worse counts.
///
/// # Errors
/// The kernel does not tell.
pub fn impairments(running: &Running, topology: &Topology) -> io::Result<Vec<(usize, Impairment)>> {
    let nodes: Vec<NodeId> = topology.places().collect();
    let mut all: Vec<Impairment> = vec![Impairment::default(); topology.links().len()];
    for (link, queues) in of_links(running, topology, nodes.clone())? {
        all[link].rate_mbit = queues.rate.map(|rate| rate / BYTES);
    }
    let look = || {
        for node in nodes {
            namespace::enter(&File::open(running.namespace(node.index()))?)?;
            let links = topology.links_at(node);
            for loss in lost_incoming(TABLE)? {
                let place = loss.interface.checked_sub(link::number(0));
                if let Some(&index) = place.and_then(|place| links.get(place as usize)) {
                    let known = &mut all[index].loss_millionths;
                    *known = loss.millionths.max(*known);
                }
            }
        }
        Ok(all)
    };
    let all = thread::scope(|scope| scope.spawn(look).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))?;
    let numbered = all.into_iter().enumerate();
    Ok(numbered.filter(|(_, it)| !it.is_none()).collect())
}

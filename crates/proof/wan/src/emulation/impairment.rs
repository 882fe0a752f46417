//! Links that carry less than they might: at most so much a second, and not every packet.

use std::io;

use bumpless_capture::netlink::Message;
use bumpless_capture::{Loss, lose_incoming, lost_incoming};

use super::place::Running;
use super::queues::{End, Queues, each_end, ends, of_links};
use super::{link, namespace};
use crate::impairment::Impairment;
use crate::topology::{NodeId, Topology};

/// What the name of the table of an interface that loses packets begins with; its number follows.
const TABLE: &str = "bumpless-wan-loss";
/// A bit rate is so many bytes a second for each Mbit/s.
const BYTES: u32 = 1_000_000 / 8;
/// What the kernel has that can lose packets, and that can limit rates.
const FOR_LOSSES: &str = "CONFIG_NF_TABLES and CONFIG_NFT_NUMGEN, or their modules";
const FOR_RATES: &str = "CONFIG_NET_SCH_TBF, or the module sch_tbf";

/// What is wrong with one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wrong {
    /// Packets that it loses as they come in, of a million.
    loss_millionths: u32,
    /// Bytes a second that it sends at most.
    rate: Option<u32>,
}

impl Wrong {
    /// With the end in whose namespace the calling thread is.
    fn at(end: End) -> io::Result<Self> {
        let losses = lost_incoming(TABLE)?.into_iter();
        let mut own = losses.filter(|it| it.interface == end.number);
        Ok(Self {
            loss_millionths: own.next().map_or(0, |it| it.millionths),
            rate: Queues::of(end.number)?.rate,
        })
    }

    /// Makes it so there, where it is not: a kernel that lacks what one of the two takes can do the other.
    fn apply(self, running: &Running, topology: &Topology, end: End) -> io::Result<()> {
        let before = Self::at(end)?;
        if before.rate != self.rate {
            let rate = self.rate;
            let queues = Queues::of(end.number)?;
            end.apply(running, topology, Queues { rate, ..queues })
                .map_err(no_rate)?;
        }
        match before.loss_millionths == self.loss_millionths {
            true => Ok(()),
            false => lose(&[(end, self.loss_millionths)]),
        }
    }
}

impl From<Impairment> for Wrong {
    fn from(impairment: Impairment) -> Self {
        Self {
            loss_millionths: impairment.loss_millionths,
            rate: impairment.rate_mbit.map(|mbit| mbit.saturating_mul(BYTES)),
        }
    }
}

/// Has ends of the node in whose namespace the calling thread is lose so many of a million packets. It is the receiving end that
/// does, so that a sender learns nothing of a lost packet.
fn lose(ends: &[(End, u32)]) -> io::Result<()> {
    let losses: Vec<_> = ends
        .iter()
        .map(|&(end, millionths)| Loss {
            interface: end.number,
            millionths,
        })
        .collect();
    lose_incoming(TABLE, &losses).map_err(|error| lacking("losses of links", FOR_LOSSES, &error))
}

fn no_rate(error: io::Error) -> io::Error {
    lacking("rates of links", FOR_RATES, &error)
}

fn lacking(what: &str, takes: &str, error: &io::Error) -> io::Error {
    let why = format!("{error} ({what} take root and {takes})");
    io::Error::new(error.kind(), why)
}

/// Makes these links so, whatever they were before, or leaves all of them as they were. What is cut stays cut.
///
/// # Errors
/// The kernel refuses, or lacks what it takes, or another command changes links for too long.
pub fn impair(
    running: &Running,
    topology: &Topology,
    links: &[usize],
    impairment: Impairment,
) -> io::Result<()> {
    let _alone = running.changing()?;
    let mut before: Vec<(End, Wrong)> = Vec::new();
    let done = each_end(running, &ends(topology, links), |end| {
        before.push((end, Wrong::at(end)?));
        Wrong::from(impairment).apply(running, topology, end)
    });
    done.map_err(|error| {
        let changed: Vec<_> = before.iter().map(|(end, _)| *end).collect();
        let mut as_before = before.iter().map(|(_, wrong)| *wrong);
        let back = each_end(running, &changed, |end| match as_before.next() {
            Some(wrong) => wrong.apply(running, topology, end),
            None => Ok(()),
        });
        let told = match back {
            Ok(()) => format!("{error}; all links are as they were"),
            Err(other) => format!("{error}; not all links are as they were: {other}"),
        };
        io::Error::new(error.kind(), told)
    })
}

/// Makes all links of a network that nobody knows of yet what it says, until it is `abandoned`.
///
/// # Errors
/// The kernel refuses, or lacks what it takes.
pub fn begin(
    running: &Running,
    topology: &Topology,
    abandoned: &(dyn Fn() -> bool + Sync),
) -> io::Result<()> {
    let impaired = |end: &End| !topology.links()[end.link].impairment.is_none();
    namespace::apart(|| {
        for node in topology.places() {
            let mut here = ends(topology, topology.links_at(node));
            here.retain(|end| end.node == node && impaired(end));
            if here.is_empty() {
                continue;
            }
            if abandoned() {
                break;
            }
            running.enter(node)?;
            begin_at(running, topology, &here)?;
        }
        Ok(())
    })
}

/// The same at these ends, in the namespace of whose node the calling thread is.
fn begin_at(running: &Running, topology: &Topology, here: &[End]) -> io::Result<()> {
    let mut lossy = Vec::new();
    for &end in here {
        let wrong = Wrong::from(topology.links()[end.link].impairment);
        if let Some(rate) = wrong.rate {
            let queues = Queues {
                loses: false,
                rate: Some(rate),
            };
            end.apply(running, topology, queues).map_err(no_rate)?;
        }
        if wrong.loss_millionths > 0 {
            lossy.push((end, wrong.loss_millionths));
        }
    }
    // One change of the node's tables, since the kernel takes its time for each.
    match lossy.is_empty() {
        true => Ok(()),
        false => lose(&lossy),
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
    let all = namespace::apart(|| {
        for node in nodes {
            running.enter(node)?;
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
    })?;
    let numbered = all.into_iter().enumerate();
    Ok(numbered.filter(|(_, it)| !it.is_none()).collect())
}

/// Tries in the namespace of the calling thread, with the interface of this number, what the links of `topology` take that are
/// impaired, and gives what this kernel lacks.
pub fn lacking_for(topology: &Topology, number: u32) -> Vec<String> {
    let all = topology.links().iter().map(|link| link.impairment);
    let mut lacking = Vec::new();
    if all.clone().any(|it| it.loss_millionths > 0) {
        let trial = Loss {
            interface: number,
            millionths: 1,
        };
        if let Err(error) = lose_incoming(TABLE, &[trial]) {
            lacking.push(format!(
                "losses of links ({error}): {FOR_LOSSES}; without `loss_percent` they are not needed"
            ));
        }
    }
    if all.clone().any(|it| it.rate_mbit.is_some()) {
        let limit = link::limit(Message::new(), number, BYTES, false);
        let tried = namespace::socket().and_then(|socket| socket.transact(limit.bytes()));
        if let Err(error) = tried {
            lacking.push(format!(
                "rates of links ({error}): {FOR_RATES}; without `rate_mbit` they are not needed"
            ));
        }
    }
    lacking
}

//! What a node's interfaces do with what they are given to send, as the kernel knows it.

use std::io;

use bumpless_capture::netlink::{Message, Netlink, attributes};

use super::build::{Delays, leaving_us};
use super::link::{self, Slot};
use super::namespace;
use super::place::Running;
use crate::topology::{NodeId, Topology};

/// The queues of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// It loses everything.
    pub loses: bool,
    /// Bytes a second that it sends at most.
    pub rate: Option<u32>,
}

impl Queues {
    /// Those of the interface with this number in the namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn of(number: u32) -> io::Result<Self> {
        let mut found = Self::default();
        each(|at, queue| {
            if at == number {
                queue.add_to(&mut found);
            }
        })?;
        Ok(found)
    }

    /// Where what comes behind the limit hangs.
    pub const fn slot(self) -> Slot {
        match self.rate {
            Some(_) => Slot::Behind,
            None => Slot::Root,
        }
    }
}

/// One queue that says something.
#[derive(Clone, Copy, Debug)]
enum Queue {
    Loses,
    Limits(u32),
}

impl Queue {
    fn add_to(self, queues: &mut Queues) {
        match self {
            Self::Loses => queues.loses = true,
            // Of two ends that differ the worse counts.
            Self::Limits(rate) => queues.rate = Some(queues.rate.map_or(rate, |it| it.min(rate))),
        }
    }
}

/// Shows such queues of the namespace of the calling thread with the numbers of their interfaces.
fn each(mut show: impl FnMut(u32, Queue)) -> io::Result<()> {
    namespace::socket()?.dump(link::queues().bytes(), |_, body| {
        let value = |wanted: u16| {
            let mut all = attributes(body, link::QUEUEING_LEN);
            all.find(|(kind, _)| *kind == wanted)
                .map(|(_, value)| value)
        };
        let kind = value(1).unwrap_or_default();
        let is = |name: &str| kind == [name.as_bytes(), &[0]].concat();
        let number = body.get(4..8).and_then(|it| it.first_chunk());
        let number = number.map_or(0, |number| u32::from_ne_bytes(*number));
        if is(link::LOSES) {
            show(number, Queue::Loses);
        } else if is(link::LIMITS) {
            let rate = value(2).and_then(link::limit_of);
            show(number, Queue::Limits(rate.unwrap_or_default()));
        }
    })
}

/// The links at these nodes of which an end has such queues, with them, in the order of the network.
///
/// # Errors
/// The kernel does not tell.
pub fn of_links(
    running: &Running,
    topology: &Topology,
    nodes: Vec<NodeId>,
) -> io::Result<Vec<(usize, Queues)>> {
    namespace::apart(|| {
        let mut found: Vec<(usize, Queues)> = Vec::new();
        for node in nodes {
            running.enter(node)?;
            let links = topology.links_at(node);
            each(|number, queue| {
                let place = number.checked_sub(link::number(0));
                let Some(&index) = place.and_then(|place| links.get(place as usize)) else {
                    return;
                };
                let known = found.iter_mut().find(|(link, _)| *link == index);
                match known {
                    Some((_, queues)) => queue.add_to(queues),
                    None => {
                        let mut queues = Queues::default();
                        queue.add_to(&mut queues);
                        found.push((index, queues));
                    }
                }
            })?;
        }
        found.sort_unstable_by_key(|(link, _)| *link);
        Ok(found)
    })
}

/// One end of a link, in whose namespace the calling thread is.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The node.
    pub node: NodeId,
    /// The link.
    pub link: usize,
    /// The number of its interface.
    pub number: u32,
}

impl End {
    /// Gives it these queues. Behind the limit of a rate, if there is one, it loses everything, or is the delay of the link, where
    /// the kernel delays, or nothing. What loses everything before and after does so all the while, even if the command is
    /// killed: the kernel is told everything in one go, and a limit that it is given has no room for anything.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn apply(self, running: &Running, topology: &Topology, queues: Queues) -> io::Result<()> {
        let socket: Netlink = namespace::socket()?;
        let limited = match queues.rate {
            Some(rate) => link::limit(Message::new(), self.number, rate, queues.loses),
            None => Message::new(),
        };
        if queues.loses {
            return socket.transact(link::lose(limited, self.number, queues.slot()).bytes());
        }
        let delay_us = leaving_us(topology, self.node, self.link);
        if running.delays == Delays::Netem && delay_us > 0 {
            let delayed = link::delay(limited, self.number, delay_us, queues.rate);
            return socket.transact(delayed.bytes());
        }
        if let Some(rate) = queues.rate {
            return socket.transact(link::wait(limited, self.number, rate).bytes());
        }
        match socket.transact(link::send_at_once(limited, self.number).bytes()) {
            // There is nothing already.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
}

/// Both ends of each link.
pub fn ends(topology: &Topology, links: &[usize]) -> Vec<End> {
    let both = links.iter().flat_map(|&link| {
        let nodes = topology.links()[link].ends.into_iter();
        nodes.map(move |node| {
            let at = topology.links_at(node).iter();
            let place = at.take_while(|&&known| known != link).count();
            let number = link::number(place);
            End { node, link, number }
        })
    });
    both.collect()
}

/// Does `work` in the namespace of each end.
///
/// # Errors
/// What `work` says, or a node cannot be entered.
pub fn each_end(
    running: &Running,
    ends: &[End],
    mut work: impl FnMut(End) -> io::Result<()> + Send,
) -> io::Result<()> {
    namespace::apart(|| {
        for &end in ends {
            running.enter(end.node)?;
            work(end)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_ends_that_differ_the_lower_rate_counts() {
        let of = |rates: [u32; 2]| {
            let mut queues = Queues::default();
            for rate in rates {
                Queue::Limits(rate).add_to(&mut queues);
            }
            queues.rate
        };
        assert_eq!([of([1, 2]), of([2, 1])], [Some(1); 2]);
    }
}

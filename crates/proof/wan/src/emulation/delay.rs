//! Delays where the kernel has no netem: the host that a packet is for holds it as long as its way takes, by the routes
//! that the network was given. What is sent to a router itself is not delayed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use bumpless_capture::Queue;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use crate::address::Addresses;
use crate::route::Ways;
use crate::topology::{NodeId, Topology};

/// Packets that are read from one host before the next one's turn.
const TURN: usize = 256;

/// What it takes besides to hold a packet, and to forward it over a link, microseconds: least figures that were measured, some
/// less for a quicker machine. A packet is held so much shorter. *Constants: to take off what has passed would hide queues.*
const HOLDING_US: u32 = 60;
const LINK_US: u32 = 3;

/// What a packet takes to a host from anywhere.
#[derive(Debug)]
pub struct Times {
    nodes: HashMap<IpAddr, NodeId>,
    /// For each host, how many microseconds it holds what is from each node.
    to: Vec<Vec<u32>>,
}

impl Times {
    /// The times to these hosts, in this order.
    pub fn new(topology: &Topology, addresses: &Addresses, hosts: &[NodeId]) -> Self {
        let mut nodes = HashMap::new();
        for (index, link) in topology.links().iter().enumerate() {
            nodes.extend(addresses.link(index).into_iter().zip(link.ends));
        }
        for host in topology.hosts() {
            nodes.extend(addresses.host(host).map(|address| (address, host)));
        }
        let to = hosts.iter().map(|&host| times(topology, host)).collect();
        Self { nodes, to }
    }

    /// How long the packet with this header is held at the host of this place, by the address that it is from.
    pub fn of(&self, host: usize, header: &[u8]) -> Duration {
        let from = source(header).and_then(|source| self.nodes.get(&source));
        let us = from.map_or(0, |from| self.to[host][from.index()]);
        Duration::from_micros(us.into())
    }
}

/// How long packets from every node are held at `host`, microseconds.
fn times(topology: &Topology, host: NodeId) -> Vec<u32> {
    let ways = Ways::new(topology, host);
    // What the links and routers of a way take, and how many links it has.
    let mut known: Vec<Option<(u64, u32)>> = vec![None; topology.nodes().len()];
    known[host.index()] = Some((0, 0));
    for node in topology.places() {
        let mut passed = Vec::new();
        let mut here = node;
        while known[here.index()].is_none() {
            let Some(index) = ways.next(here).next() else {
                break;
            };
            let router = topology.node(here).kind.forwards();
            let own = if router { topology.router_us() } else { 0 };
            let us = u64::from(topology.links()[index].delay_us) + u64::from(own);
            passed.push((here, us));
            here = topology.links()[index].other(here);
        }
        let (mut sum, mut links) = known[here.index()].unwrap_or((0, 0));
        for (node, us) in passed.into_iter().rev() {
            (sum, links) = (sum + us, links + 1);
            known[node.index()] = Some((sum, links));
        }
    }
    let held = |(us, links): (u64, u32)| {
        let besides = u64::from(HOLDING_US) + u64::from(LINK_US) * u64::from(links);
        u32::try_from(us.saturating_sub(besides)).unwrap_or(u32::MAX)
    };
    let known = known.into_iter();
    known.map(|way| way.map_or(0, held)).collect()
}

/// The address that a packet is from.
pub fn source(header: &[u8]) -> Option<IpAddr> {
    match header.first()? >> 4 {
        4 => header
            .get(12..16)?
            .first_chunk::<4>()
            .map(|it| (*it).into()),
        6 => header
            .get(8..24)?
            .first_chunk::<16>()
            .map(|it| (*it).into()),
        _ => None,
    }
}

/// Holds packets of all queues until they are due; ends only by an error. `due` says when one is that has come to the queue
/// of this place at this time, by its header.
///
/// # Errors
/// The kernel cannot be waited for, or gives no packets any more.
pub fn hold(
    queues: &mut [Queue],
    mut due: impl FnMut(usize, Instant, &[u8]) -> Instant,
) -> io::Result<Infallible> {
    // By default the kernel wakes a thread up to 50 us later than it asks for.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (place, queue) in queues.iter().enumerate() {
        let data = epoll::EventData::new_u64(place as u64);
        epoll::add(&ready, descriptor(queue), data, epoll::EventFlags::IN)?;
    }
    let mut held = BinaryHeap::new();
    let mut events = Vec::with_capacity(queues.len());
    loop {
        let timeout = held.peek().map(|Reverse((due, _, _))| until(*due));
        events.clear();
        // Waiting for the whole by epoll would take whole milliseconds.
        let mut some = [PollFd::new(&ready, PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let waited = poll(&mut some, timeout.as_ref()).and_then(|_| {
            let room = rustix::buffer::spare_capacity(&mut events);
            epoll::wait(&ready, room, Some(&at_once))
        });
        match waited {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let place = event.data.u64() as usize;
            let come = Instant::now();
            let taken = queues[place].take(TURN, |id, header| {
                held.push(Reverse((due(place, come, header), place, id)));
            });
            match taken {
                // A host that has been sent more than the kernel keeps has lost some, as a full queue does: the kernel counts them.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                other => other?,
            }
        }
        while let Some(Reverse((due, place, id))) = held.peek().copied() {
            if due > Instant::now() {
                break;
            }
            held.pop();
            queues[place].release(id);
        }
    }
}

#[allow(unsafe_code)]
fn descriptor(queue: &Queue) -> BorrowedFd<'_> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for as long as the queue, which is borrowed.
    unsafe { BorrowedFd::borrow_raw(queue.as_raw_fd()) }
}

fn until(due: Instant) -> Timespec {
    let left = due.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Pool;
    use crate::impairment::Impairment;
    use crate::topology::{DELAY_MAX_US, Kind, Layer, Link, Node};
    use crate::{MEASURED_ROUTER_US, Shape, generate};

    #[test]
    fn the_longest_way_that_can_be_is_long_and_does_not_wrap() {
        let host = |name: &str| Node {
            name: name.to_owned(),
            kind: Kind::Substation,
        };
        let router = |number: u32| Node {
            name: format!("r{number}"),
            kind: Kind::Router(Layer::Access),
        };
        let count = 300;
        let routers = (1..=count).map(router);
        let nodes = [host("from")].into_iter().chain(routers);
        let link = |from: u32| Link {
            ends: [NodeId(from), NodeId(from + 1)],
            delay_us: DELAY_MAX_US,
            impairment: Impairment::default(),
        };
        let nodes = nodes.chain([host("to")]).collect();
        let links = (0..=count).map(link).collect();
        let topology = Topology::new(nodes, links, DELAY_MAX_US).unwrap();
        let to = topology.find("to").unwrap();
        // More than a hundred minutes are more than microseconds in 32 bits.
        assert_eq!(times(&topology, to)[0], u32::MAX);
        let near = times(&topology, to)[count as usize];
        assert_eq!(near, 2 * DELAY_MAX_US - HOLDING_US - LINK_US);
    }

    #[test]
    fn a_packet_is_held_for_what_its_way_takes_less_what_passes_besides() {
        let shape = Shape {
            router_us: MEASURED_ROUTER_US,
            ..Shape::default()
        };
        let topology = generate(&shape).unwrap();
        for pool in [Pool::V4, Pool::V6] {
            let addresses = Addresses::new(&topology, pool).unwrap();
            let ends = ["s10-1-1", "centre-2"].map(|name| topology.find(name).unwrap());
            let times = Times::new(&topology, &addresses, &ends);
            let pairs = ends.iter().enumerate();
            let pairs = pairs
                .flat_map(|(place, host)| topology.hosts().map(move |from| (place, *host, from)));
            for (place, host, from) in pairs.filter(|(_, host, from)| from != host) {
                let way = Ways::new(&topology, host).way(from).unwrap();
                let mut header = [0; 40];
                match addresses.host(from).unwrap() {
                    IpAddr::V4(source) => {
                        header[0] = 0x45;
                        header[12..16].copy_from_slice(&source.octets());
                    }
                    IpAddr::V6(source) => {
                        header[0] = 0x60;
                        header[8..24].copy_from_slice(&source.octets());
                    }
                }
                let besides = u64::from(HOLDING_US + LINK_US * way.links.len() as u32);
                let us = way.delay_us(&topology).saturating_sub(besides);
                assert_eq!(times.of(place, &header), Duration::from_micros(us));
            }
            assert_eq!(times.of(0, &[]), Duration::ZERO);
            assert_eq!(times.of(0, &[0x45; 20]), Duration::ZERO);
        }
    }
}

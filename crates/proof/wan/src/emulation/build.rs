//! Makes the network: a namespace for each node, cables between them, addresses, neighbours, routes, delays.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::resume_unwind;
use std::thread;

use bumpless_capture::netlink::{Message, Netlink};
use bumpless_capture::{Queue, queue_incoming};
use serde::{Deserialize, Serialize};

use super::ospf::Routing;
use super::{link, namespace, routes};
use crate::address::Addresses;
use crate::topology::{NodeId, Topology};

/// Messages are sent when so many bytes have come together: a socket takes two hundred thousand.
const SENT_AT: usize = 32 << 10;
/// The table of the rule that holds packets back.
const TABLE: &str = "bumpless_wan";
/// The queue for it, of which each namespace has its own.
pub const QUEUE: u16 = 1;
/// Packets that a host holds back at most: a second of what one can be sent.
const HELD_MAX: u32 = 1 << 16;

/// Threads that bind queues: the kernel lets each wait for the end of a grace period, and they wait together.
const THREADS: usize = 16;

/// How links get their delays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by", content = "why")]
pub enum Delays {
    /// No link has one.
    Nothing,
    /// The kernel's netem holds packets at each end of a link.
    Netem,
    /// This kernel has no netem: the host that a packet is for holds it for what its way takes.
    Held,
    /// They cannot be had, for this reason.
    Lacking(String),
}

/// The network, as long as this value lives.
#[derive(Debug)]
pub struct Network {
    /// In the order of nodes.
    pub namespaces: Vec<OwnedFd>,
    /// How links are delayed.
    pub delays: Delays,
    /// Where packets are held, if they are.
    pub queues: Vec<(NodeId, Queue)>,
}

/// Makes the network on a thread of its own. `abandoned` says at each node whether nobody wants it any more.
///
/// # Errors
/// What the kernel refuses, and where. Nothing is left of it then.
pub fn build(
    topology: &Topology,
    (addresses, routing): (&Addresses, Routing),
    abandoned: &(dyn Fn() -> bool + Sync),
) -> Result<Network, String> {
    let builder = Builder {
        topology,
        addresses,
        routing,
        abandoned,
    };
    thread::scope(|scope| scope.spawn(|| builder.run()).join())
        .unwrap_or_else(|_| Err("a thread ended by a panic".to_owned()))
}

struct Builder<'a> {
    topology: &'a Topology,
    addresses: &'a Addresses,
    routing: Routing,
    abandoned: &'a (dyn Fn() -> bool + Sync),
}

/// A node's namespace and a socket in it.
struct Made {
    namespace: OwnedFd,
    socket: Netlink,
}

impl Builder<'_> {
    fn run(&self) -> Result<Network, String> {
        let mut made = Vec::with_capacity(self.topology.nodes().len());
        self.each(|node| {
            made.push(self.node(node)?);
            Ok(())
        })?;
        self.each(|node| self.cables(node, &made))?;
        self.each(|node| self.interfaces(node, &made[node.index()].socket))?;
        self.each(|node| self.ways(node, &made[node.index()].socket))?;
        let (delays, queues) = self.delays(&made)?;
        Ok(Network {
            namespaces: made.into_iter().map(|node| node.namespace).collect(),
            delays,
            queues,
        })
    }

    fn each(&self, mut work: impl FnMut(NodeId) -> io::Result<()>) -> Result<(), String> {
        for node in self.topology.places() {
            if (self.abandoned)() {
                return Err("nobody waits for the network any more".to_owned());
            }
            work(node).map_err(|error| {
                format!("cannot make {}: {error}", self.topology.node(node).name)
            })?;
        }
        Ok(())
    }

    fn v6(&self) -> bool {
        let mut hosts = self.topology.hosts();
        let first = hosts.find_map(|host| self.addresses.host(host));
        let address = first.or_else(|| {
            let links = self.topology.links();
            (!links.is_empty()).then(|| self.addresses.link(0)[0])
        });
        matches!(address, Some(IpAddr::V6(_)))
    }

    fn node(&self, node: NodeId) -> io::Result<Made> {
        let namespace = namespace::begin()?;
        let forwards = if self.topology.node(node).kind.forwards() {
            "1"
        } else {
            "0"
        };
        // A way there and the way back may differ.
        namespace::set("ipv4/conf/all/rp_filter", "0")?;
        namespace::set("ipv4/conf/default/rp_filter", "0")?;
        namespace::set("ipv4/ip_forward", forwards)?;
        if self.routing == Routing::EqualCost {
            // By addresses and ports: packets of one connection keep their order.
            namespace::set("ipv4/fib_multipath_hash_policy", "1")?;
            namespace::set("ipv6/fib_multipath_hash_policy", "1")?;
        }
        if self.v6() {
            namespace::set("ipv6/conf/all/forwarding", forwards)?;
        } else {
            namespace::set("ipv6/conf/default/disable_ipv6", "1")?;
        }
        let socket = namespace::socket()?;
        socket.transact(link::up(Message::new(), link::LOOPBACK).bytes())?;
        Ok(Made { namespace, socket })
    }

    /// The cables that begin at a node.
    fn cables(&self, node: NodeId, made: &[Made]) -> io::Result<()> {
        let mut batch = Batch::new(&made[node.index()].socket);
        for (place, &index) in self.topology.links_at(node).iter().enumerate() {
            let [one, other] = self.topology.links()[index].ends;
            if one != node {
                continue;
            }
            let at_other = self.topology.links_at(other).iter();
            let far = at_other.take_while(|&&known| known != index).count();
            let end = |place, end| link::End {
                place,
                hardware: link::hardware(index, end),
            };
            let fd = made[other.index()].namespace.as_raw_fd();
            batch.add(|it| link::cable(it, end(place, 0), end(far, 1), fd))?;
        }
        batch.send()
    }

    /// Addresses of a node; its interfaces are switched on.
    fn interfaces(&self, node: NodeId, socket: &Netlink) -> io::Result<()> {
        let mut batch = Batch::new(socket);
        if let Some(address) = self.addresses.host(node) {
            batch.add(|it| link::address(it, link::LOOPBACK, address, true))?;
        }
        for (place, &index) in self.topology.links_at(node).iter().enumerate() {
            let number = link::number(place);
            let (own, _, _) = self.ends(node, index);
            batch.add(|it| link::address(link::up(it, number), number, own, false))?;
        }
        batch.send()
    }

    /// Neighbours and routes of a node.
    fn ways(&self, node: NodeId, socket: &Netlink) -> io::Result<()> {
        let mut batch = Batch::new(socket);
        let links = self.topology.links_at(node);
        for (place, &index) in links.iter().enumerate() {
            let (_, far, hardware) = self.ends(node, index);
            batch.add(|it| link::neighbour(it, link::number(place), far, hardware))?;
        }
        if self.routing == Routing::Ospf && self.topology.node(node).kind.forwards() {
            return self.hosts(node, batch);
        }
        let source = self.addresses.host(node);
        let over_all = self.routing == Routing::EqualCost;
        let table = routes::of(self.topology, self.addresses, node, over_all);
        let gateways = links.iter().enumerate().map(|(place, &index)| {
            let (_, gateway, _) = self.ends(node, index);
            (link::number(place), gateway)
        });
        let gateways: Vec<_> = gateways.collect();
        for route in table.routes {
            let to = (route.first, route.prefix);
            match table.ways[route.by][..] {
                [place] => batch.add(|it| link::route(it, to, gateways[place], source))?,
                ref all => {
                    let all: Vec<_> = all.iter().map(|&place| gateways[place]).collect();
                    batch.add(|it| link::route_over(it, to, &all, source))?;
                }
            }
        }
        batch.send()
    }

    /// Routes of a router to the hosts at it; a daemon makes the others.
    fn hosts(&self, node: NodeId, mut batch: Batch<'_>) -> io::Result<()> {
        for (place, &index) in self.topology.links_at(node).iter().enumerate() {
            let other = self.topology.links()[index].other(node);
            let Some(host) = self.addresses.host(other) else {
                continue;
            };
            let (_, gateway, _) = self.ends(node, index);
            let by = (link::number(place), gateway);
            batch.add(|it| link::route(it, (host, 32), by, None))?;
        }
        batch.send()
    }

    /// The address of this end of a link, and address and hardware address of the other one.
    fn ends(&self, node: NodeId, index: usize) -> (IpAddr, IpAddr, [u8; 6]) {
        let here = usize::from(self.topology.links()[index].ends[1] == node);
        let addresses = self.addresses.link(index);
        (
            addresses[here],
            addresses[1 - here],
            link::hardware(index, 1 - here),
        )
    }

    fn delays(&self, made: &[Made]) -> Result<(Delays, Vec<(NodeId, Queue)>), String> {
        let links = self.topology.links().iter();
        if self.topology.router_us() == 0 && links.clone().all(|link| link.delay_us == 0) {
            return Ok((Delays::Nothing, Vec::new()));
        }
        if self.netem(made).is_ok() {
            return Ok((Delays::Netem, Vec::new()));
        }
        let hosts: Vec<_> = self.topology.hosts().collect();
        let share = hosts.len().div_ceil(THREADS).max(1);
        let shares: Vec<Vec<_>> = thread::scope(|scope| {
            let threads: Vec<_> = hosts
                .chunks(share)
                .map(|share| scope.spawn(|| self.queues(share, made)))
                .collect();
            let ends = threads.into_iter().map(|thread| thread.join());
            ends.map(|end| end.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        let mut queues = Vec::new();
        for (host, queue) in hosts.into_iter().zip(shares.into_iter().flatten()) {
            match queue {
                Ok(queue) => queues.push((host, queue)),
                Err(error) => {
                    let why = format!(
                        "the kernel has neither netem (sch_netem) nor NFQUEUE by nf_tables: {error}"
                    );
                    return Ok((Delays::Lacking(why), Vec::new()));
                }
            }
        }
        if (self.abandoned)() {
            return Err("nobody waits for the network any more".to_owned());
        }
        Ok((Delays::Held, queues))
    }

    /// The queues of some hosts, in order.
    fn queues(&self, hosts: &[NodeId], made: &[Made]) -> Vec<io::Result<Queue>> {
        let mut queues = Vec::with_capacity(hosts.len());
        for host in hosts {
            if (self.abandoned)() {
                queues.push(Err(io::ErrorKind::Interrupted.into()));
                continue;
            }
            queues.push(self.held(&made[host.index()].namespace));
        }
        queues
    }

    fn netem(&self, made: &[Made]) -> io::Result<()> {
        for node in self.topology.places() {
            for (place, &index) in self.topology.links_at(node).iter().enumerate() {
                let delay_us = leaving_us(self.topology, node, index);
                if delay_us > 0 {
                    let number = link::number(place);
                    let message = link::delay(Message::new(), number, delay_us, None);
                    made[node.index()].socket.transact(message.bytes())?;
                }
            }
        }
        Ok(())
    }

    fn held(&self, namespace: &OwnedFd) -> io::Result<Queue> {
        namespace::enter(namespace)?;
        let queue = Queue::hold(QUEUE, HELD_MAX)?;
        queue_incoming(TABLE, self.v6(), QUEUE)?;
        Ok(queue)
    }
}

/// What a packet is delayed that leaves a node over a link: by the link, and by the node if that is a router.
pub fn leaving_us(topology: &Topology, node: NodeId, link: usize) -> u32 {
    let router = topology.node(node).kind.forwards();
    topology.links()[link].delay_us + if router { topology.router_us() } else { 0 }
}

/// Messages for one socket, sent in as few pieces as it takes.
struct Batch<'a> {
    socket: &'a Netlink,
    messages: Message,
}

impl<'a> Batch<'a> {
    fn new(socket: &'a Netlink) -> Self {
        Self {
            socket,
            messages: Message::new(),
        }
    }

    fn add(&mut self, more: impl FnOnce(Message) -> Message) -> io::Result<()> {
        self.messages = more(std::mem::take(&mut self.messages));
        if self.messages.bytes().len() >= SENT_AT {
            self.socket.transact(self.messages.bytes())?;
            self.messages = Message::new();
        }
        Ok(())
    }

    fn send(self) -> io::Result<()> {
        if self.messages.bytes().is_empty() {
            return Ok(());
        }
        self.socket.transact(self.messages.bytes())
    }
}

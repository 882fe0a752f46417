//! From which address a host speaks.

use std::fs::File;
use std::io;
use std::thread;

use bumpless_capture::netlink::Message;

use super::place::Running;
use super::{link, namespace, routes};
use crate::address::Addresses;
use crate::topology::{NodeId, Topology};

/// Has what programs at `host` send over the network come from the address of its first link, unless they say another
/// one, and no longer from the address by which the host is known.
///
/// # Errors
/// The kernel refuses.
pub fn speak_from_link(
    running: &Running,
    topology: &Topology,
    addresses: &Addresses,
    host: NodeId,
) -> io::Result<()> {
    let address = |link: usize, here: bool| {
        let second = (topology.links()[link].ends[1] == host) == here;
        addresses.link(link)[usize::from(second)]
    };
    let links = topology.links_at(host);
    let all = || {
        namespace::enter(&File::open(running.namespace(host.index()))?)?;
        let socket = namespace::socket()?;
        // Each way of it is one link.
        for route in routes::of(topology, addresses, host, false).routes {
            let by = (link::number(route.by), address(links[route.by], false));
            let source = Some(address(links[0], true));
            let message = link::route(Message::new(), (route.first, route.prefix), by, source);
            socket.transact(message.bytes())?;
        }
        Ok(())
    };
    thread::scope(|scope| scope.spawn(all).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

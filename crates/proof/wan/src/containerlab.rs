//! The same network for containerlab, where one machine is outgrown: a topology file, and a script for the delays, which
//! that format has no field for.

use std::fmt::Write;
use std::net::IpAddr;

use crate::address::Addresses;
use crate::route::Ways;
use crate::topology::{NodeId, Topology};

/// What each node runs; it has `ip` and `sysctl`.
const IMAGE: &str = "alpine:3.20";

/// Interface of `node` on `link`: the first of its links is `eth1`, since containerlab keeps `eth0` for itself.
fn interface(topology: &Topology, node: NodeId, link: usize) -> String {
    let place = topology
        .links_at(node)
        .iter()
        .position(|&other| other == link);
    format!("eth{}", place.map_or(0, |place| place + 1))
}

/// The topology file `NAME.clab.yml`: nodes with their addresses and routes, and links.
pub fn file(topology: &Topology, addresses: &Addresses, name: &str) -> String {
    let mut out = format!("name: {name}\ntopology:\n  nodes:\n");
    let routes = routes(topology, addresses);
    for (place, node) in topology.places().zip(topology.nodes()) {
        let _ = writeln!(
            out,
            "    {}:\n      kind: linux\n      image: {IMAGE}\n      exec:",
            node.name
        );
        let mut command = |text: String| {
            let _ = writeln!(out, "        - {text}");
        };
        if node.kind.forwards() {
            command("sysctl -w net.ipv4.ip_forward=1".to_owned());
            command("sysctl -w net.ipv6.conf.all.forwarding=1".to_owned());
        }
        if let Some(address) = addresses.host(place) {
            command(format!("ip address add {address} dev lo"));
        }
        for &link in topology.links_at(place) {
            let end = usize::from(topology.links()[link].ends[1] == place);
            let address = addresses.link(link)[end];
            let prefix = if address.is_ipv4() { 31 } else { 127 };
            let device = interface(topology, place, link);
            command(format!("ip address add {address}/{prefix} dev {device}"));
        }
        for route in &routes[place.index()] {
            command(route.clone());
        }
    }
    out.push_str("  links:\n");
    for (index, link) in topology.links().iter().enumerate() {
        let end = |end: NodeId| {
            format!(
                "\"{}:{}\"",
                topology.node(end).name,
                interface(topology, end, index)
            )
        };
        let _ = writeln!(
            out,
            "    - endpoints: [{}, {}]",
            end(link.ends[0]),
            end(link.ends[1])
        );
    }
    out
}

/// For each node, `ip route` lines to every host.
fn routes(topology: &Topology, addresses: &Addresses) -> Vec<Vec<String>> {
    let mut routes = vec![Vec::new(); topology.nodes().len()];
    for host in topology.hosts() {
        let ways = Ways::new(topology, host);
        let to = addresses.host(host).expect("a host has an address");
        for node in topology.places().filter(|&node| node != host) {
            let Some(link) = ways.next(node).next() else {
                continue;
            };
            let far = usize::from(topology.links()[link].ends[0] == node);
            let by = addresses.link(link)[far];
            let from = addresses
                .host(node)
                .map_or(String::new(), |own| format!(" src {own}"));
            let family = if matches!(to, IpAddr::V6(_)) {
                "ip -6"
            } else {
                "ip"
            };
            routes[node.index()].push(format!("{family} route add {to} via {by}{from}"));
        }
    }
    routes
}

/// The script that gives links their delay, loss and rate once the network is up. Each end delays what leaves it, so each direction of
/// a link takes its delay once; what a router adds is added where packets leave it.
pub fn delays(topology: &Topology, name: &str) -> String {
    let mut out = "#!/bin/sh\nset -e\n".to_owned();
    for (index, link) in topology.links().iter().enumerate() {
        for end in link.ends {
            let router = topology.node(end).kind.forwards();
            let delay = link.delay_us + if router { topology.router_us() } else { 0 };
            let mut options = String::new();
            if delay > 0 {
                let _ = write!(options, " --delay {delay}us");
            }
            if link.impairment.loss_millionths > 0 {
                let _ = write!(options, " --loss {}", link.impairment.loss_percent());
            }
            if let Some(rate) = link.impairment.rate_mbit {
                let _ = write!(options, " --rate {}", u64::from(rate) * 1000);
            }
            if !options.is_empty() {
                let _ = writeln!(
                    out,
                    "containerlab tools netem set -n clab-{name}-{} -i {}{options}",
                    topology.node(end).name,
                    interface(topology, end, index)
                );
            }
        }
    }
    out
}

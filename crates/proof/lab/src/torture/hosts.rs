//! The computers of a run as network namespaces: `left`, `right`, a witness on each of the networks A
//! and B, and `field` with the plant.
//!
//! A and B go through the [`Switch`]. The plant is reached on cables of its own, so that faults of A and
//! B disturb nothing else. The namespaces have no names and the devices belong to this process: the
//! kernel removes all of it when the process and its children are gone, however they end.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use bumpless_bench::network::namespace::Namespace;

use super::TortureError;
use super::switch::faults::{NETWORKS, PORTS, WITNESS};
use super::switch::{Switch, Tap, mac};
use crate::demo::addresses::Addresses;

const NODE_PORT: u16 = 4700;
const WITNESS_PORT: u16 = 4710;
const PLANT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 9, 10)), 5502);
/// Names of the devices on A and B.
const DEVICES: [&str; NETWORKS] = ["a", "b"];
/// Last byte of a port's address: nodes 1 and 2, the witness 9.
const HOSTS: [u8; PORTS] = [1, 2, 9];

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With this node.
    Node(usize),
    /// With the witness of this network.
    Witness(usize),
    /// With the plant.
    Field,
}

/// The computers and the networks between them.
#[derive(Debug)]
pub struct Hosts {
    nodes: [Namespace; 2],
    witnesses: [Namespace; NETWORKS],
    field: Namespace,
    /// Networks A and B.
    pub switch: Switch,
}

fn impossible(error: impl std::fmt::Display) -> TortureError {
    TortureError::Impossible(error.to_string())
}

impl Hosts {
    /// Makes everything; the switch draws from `seed`.
    ///
    /// # Errors
    /// The process is not root, or the kernel or iproute2 lacks what is needed.
    pub fn new(seed: u64) -> Result<Self, TortureError> {
        let host = || Namespace::new().map_err(impossible);
        let nodes = [host()?, host()?];
        let witnesses = [host()?, host()?];
        let field = host()?;
        let mut ports = Vec::new();
        for (network, witness) in witnesses.iter().enumerate() {
            let at = |port: usize| nodes.get(port).unwrap_or(witness);
            let ends: Result<Vec<_>, _> = (0..PORTS)
                .map(|port| attach(at(port), network, port))
                .collect();
            let ends: [Tap; PORTS] = ends?.try_into().map_err(|_| impossible("ports"))?;
            ports.push(ends);
        }
        let ports = ports.try_into().map_err(|_| impossible("networks"))?;
        for (number, node) in nodes.iter().enumerate() {
            cable(node, &field, number + 1)?;
        }
        tool(&field, &format!("address add {}/32 dev lo", PLANT.ip()))?;
        let switch = Switch::start(ports, seed).map_err(impossible)?;
        Ok(Self {
            nodes,
            witnesses,
            field,
            switch,
        })
    }

    /// Everybody's address.
    pub fn addresses() -> Addresses {
        let at = |network: usize, port: usize, number: u16| {
            SocketAddr::new(address(network, port).into(), number)
        };
        Addresses {
            nodes: [0, 1].map(|network| [0, 1].map(|node| at(network, node, NODE_PORT))),
            witnesses: [0, 1].map(|network| at(network, WITNESS, WITNESS_PORT)),
            plant: PLANT,
        }
    }

    /// Makes `command` run at `place`.
    pub fn put(&self, place: Place, command: &mut Command) {
        match place {
            Place::Node(node) => &self.nodes[node],
            Place::Witness(network) => &self.witnesses[network],
            Place::Field => &self.field,
        }
        .put_into(command);
    }
}

fn address(network: usize, port: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, network as u8 + 1, HOSTS[port])
}

fn tool(host: &Namespace, line: &str) -> Result<(), TortureError> {
    host.tool("ip", line).map_err(impossible)
}

/// Puts `host` on a network. Neighbours are told, not asked for: a question lost in an outage is asked
/// again after a second, and it would be the kernel that is measured.
fn attach(host: &Namespace, network: usize, port: usize) -> Result<Tap, TortureError> {
    let device = DEVICES[network];
    let tap = host
        .run(|| Tap::open(device))
        .map_err(impossible)?
        .map_err(|error| {
            impossible(format_args!(
                "cannot make a network device: {error}; it takes root and /dev/net/tun (module tun)"
            ))
        })?;
    tool(
        host,
        &format!("link set dev {device} address {}", text(mac(network, port))),
    )?;
    tool(
        host,
        &format!("address add {}/24 dev {device}", address(network, port)),
    )?;
    tool(host, &format!("link set dev {device} up"))?;
    for other in (0..PORTS).filter(|&other| other != port) {
        let (address, mac) = (address(network, other), text(mac(network, other)));
        tool(
            host,
            &format!("neigh replace {address} lladdr {mac} dev {device} nud permanent"),
        )?;
    }
    Ok(tap)
}

/// A cable from a node to the plant.
fn cable(node: &Namespace, field: &Namespace, number: usize) -> Result<(), TortureError> {
    let (far, plant) = (field.path(), PLANT.ip());
    tool(
        node,
        &format!("link add f type veth peer name f{number} netns {far}"),
    )?;
    tool(node, &format!("address add 10.77.10{number}.1/30 dev f"))?;
    tool(node, "link set dev f up")?;
    tool(
        field,
        &format!("address add 10.77.10{number}.2/30 dev f{number}"),
    )?;
    tool(field, &format!("link set dev f{number} up"))?;
    tool(
        node,
        &format!("route add {plant}/32 via 10.77.10{number}.2 dev f src 10.77.10{number}.1"),
    )
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

//! Two hosts as network namespaces without names, joined by networks that pass through the [`Relay`]. The kernel removes all of it
//! when this process and its children are gone, however they end.

use std::net::Ipv4Addr;

use bumpless_bench::network::namespace::Namespace;

use super::port::Port;
use super::relay::Relay;
use super::{LabError, impossible};

/// The networks' names, in reports and as the last letter of interfaces.
pub const NAMES: [&str; 3] = ["A", "B", "C"];
/// Copies go there.
const DATA_PORT: u16 = 4761;

/// Sender and receiver.
pub struct Hosts {
    hosts: [Namespace; 2],
    pub relay: Relay,
    /// Where the cables of both end.
    _middle: Namespace,
}

/// A host's address on a network, both from 0.
pub const fn address(network: usize, host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, network as u8 + 1, host as u8 + 1)
}

/// A host's interface on a network.
pub fn interface(network: usize) -> String {
    format!("n{}", NAMES[network].to_lowercase())
}

impl Hosts {
    /// Two hosts and so many networks, three at most. Losses and delays are drawn from `seed`.
    ///
    /// # Errors
    /// The right is missing, or the kernel or iproute2 lacks what is needed.
    pub fn new(networks: usize, seed: u64) -> Result<Self, LabError> {
        let host = || Namespace::new().map_err(impossible);
        let (hosts, middle) = ([host()?, host()?], host()?);
        let mut ends = Vec::new();
        for network in 0..networks.min(NAMES.len()) {
            let end = |number: usize| attach((&hosts[number], &middle), network, number);
            ends.push([end(0)?, end(1)?]);
        }
        let relay = Relay::start(ends, DATA_PORT, seed).map_err(impossible)?;
        Ok(Self {
            hosts,
            relay,
            _middle: middle,
        })
    }

    /// A host.
    pub const fn host(&self, number: usize) -> &Namespace {
        &self.hosts[number]
    }
}

/// The hardware address of a host on a network.
fn hardware(network: usize, host: usize) -> String {
    format!("02:62:75:6d:{network:02x}:{host:02x}")
}

/// Puts a host on a network, by a cable that ends where the relay is. Neighbours are told, not asked for: questions would be lost, too.
fn attach(
    (host, middle): (&Namespace, &Namespace),
    network: usize,
    number: usize,
) -> Result<Port, LabError> {
    let (name, far) = (interface(network), format!("m{network}h{number}"));
    let (own, other) = (address(network, number), address(network, 1 - number));
    let [here, there] = [number, 1 - number].map(|it| hardware(network, it));
    for line in [
        format!(
            "link add {name} address {here} type veth peer name {far} netns {}",
            middle.path()
        ),
        format!("address add {own}/24 dev {name}"),
        // One copy a frame: what the relay loses and notes is single copies.
        format!("link set dev {name} gso_max_segs 1 up"),
        format!("neigh replace {other} lladdr {there} dev {name} nud permanent"),
    ] {
        host.tool("ip", &line).map_err(impossible)?;
    }
    middle
        .tool("ip", &format!("link set dev {far} up"))
        .map_err(impossible)?;
    let port = middle.run(|| Port::open(&far)).map_err(impossible)?;
    port.map_err(|error| {
        impossible(format_args!(
            "cannot read the frames of a cable: {error}; the kernel lacks packet sockets (CONFIG_PACKET), or is older than 4.20"
        ))
    })
}

//! A host of the network, at which the study's programs run.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use bumpless_wan::address::Addresses;
use bumpless_wan::emulation::{self, Backup, Running};
use bumpless_wan::{NodeId, Topology};

/// A host.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The file of its namespace.
    namespace: PathBuf,
    /// Its address on the network.
    pub network: Ipv4Addr,
    /// Its address on the backup.
    pub backup: Ipv4Addr,
    /// Its place on the backup.
    pub place: usize,
}

impl Host {
    /// The host that has this node, and this place on the backup. On the network it is known by the address of its link,
    /// since a daemon of iPRP is told of interfaces.
    pub fn new(
        running: &Running,
        topology: &Topology,
        addresses: &Addresses,
        (place, node): (usize, NodeId),
    ) -> Self {
        let link = topology.links_at(node)[0];
        let end = usize::from(topology.links()[link].ends[1] == node);
        let network = match addresses.link(link)[end] {
            IpAddr::V4(address) => address,
            // Pools of the study are of version 4.
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        Self {
            name: topology.node(node).name.clone(),
            namespace: running.namespace(node.index()),
            network,
            backup: Backup::address(place),
            place,
        }
    }

    /// The file of its namespace.
    pub fn namespace(&self) -> &Path {
        &self.namespace
    }

    /// Does `work` at this host, on a thread of its own.
    ///
    /// # Errors
    /// The host cannot be entered, or what `work` says.
    pub fn at<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let all = || {
            self.enter()?;
            work()
        };
        thread::scope(|scope| scope.spawn(all).join())
            .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
    }

    /// Puts the calling thread there for good.
    ///
    /// # Errors
    /// It cannot be entered.
    pub fn enter(&self) -> io::Result<()> {
        emulation::enter(&File::open(&self.namespace)?)
    }

    /// Both ends of a conversation from here with `other`, over the network and over the backup.
    pub fn ways(&self, other: &Self, port: u16) -> [(SocketAddrV4, SocketAddrV4); 2] {
        let way = |from, to| (SocketAddrV4::new(from, 0), SocketAddrV4::new(to, port));
        [
            way(self.network, other.network),
            way(self.backup, other.backup),
        ]
    }

    /// Has its kernel make connections of multipath TCP of both ways, if it has any: `calls` says whether this host begins
    /// them.
    ///
    /// # Errors
    /// What is missing.
    pub fn multipath(&self, calls: bool) -> Result<(), String> {
        let backup = self.backup.to_string();
        let limits = ["limits", "set", "subflow", "2", "add_addr_accepted", "2"];
        let endpoint = ["endpoint", "add", &backup, "signal"];
        let orders = [Some(&limits[..]), Some(&endpoint[..]).filter(|_| !calls)];
        for order in orders.into_iter().flatten() {
            let done = self.at(|| Command::new("ip").arg("mptcp").args(order).output());
            let done = done.map_err(|error| format!("`ip mptcp` of iproute2: {error}"))?;
            if !done.status.success() {
                let said = String::from_utf8_lossy(&done.stderr);
                return Err(format!("`ip mptcp {}`: {}", order.join(" "), said.trim()));
            }
        }
        Ok(())
    }
}

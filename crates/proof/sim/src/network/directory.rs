//! Who has which address on which network.

use std::net::SocketAddr;

use bumpless_config::{Config, ReferenceKind};

use crate::echo::endpoint;
use crate::script::End;

/// The addresses of all ends.
#[derive(Clone, Debug)]
pub struct Directory {
    nodes: usize,
    ends: usize,
    /// By network, then end.
    addresses: Vec<Option<SocketAddr>>,
    /// The keys of these addresses, by which they are looked up; 0 where there is none.
    keys: Vec<u64>,
}

impl Directory {
    /// The addresses that `config` gives.
    pub fn new(config: &Config) -> Self {
        let mut addresses = Vec::new();
        for network in 0..config.networks.len() {
            addresses.extend(config.nodes.iter().map(|node| node.addresses[network]));
            let references = config.references.iter();
            addresses.extend(references.map(|reference| match reference.kind {
                _ if usize::from(reference.network.0) != network => None,
                ReferenceKind::Witness(address) => Some(address),
                ReferenceKind::Ping(address) => Some(endpoint(address)),
            }));
        }
        Self {
            nodes: config.nodes.len(),
            ends: config.nodes.len() + config.references.len(),
            keys: addresses
                .iter()
                .map(|at| at.as_ref().map_or(0, key))
                .collect(),
            addresses,
        }
    }

    /// The number of `end`: nodes first.
    pub fn index(&self, end: End) -> usize {
        match end {
            End::Node(node) => node,
            End::Reference(reference) => self.nodes + reference,
        }
    }

    /// The address of `end` on `network`.
    pub fn address(&self, network: usize, end: End) -> Option<SocketAddr> {
        self.addresses[network * self.ends + self.index(end)]
    }

    /// Whose address `address` is on `network`.
    pub fn at_address(&self, network: usize, address: SocketAddr) -> Option<End> {
        let index = self.find(network, address)?;
        Some(match index.checked_sub(self.nodes) {
            Some(reference) => End::Reference(reference),
            None => End::Node(index),
        })
    }

    /// The node whose address `address` is on `network`.
    pub fn node_at(&self, network: usize, address: SocketAddr) -> Option<usize> {
        self.find(network, address)
            .filter(|&index| index < self.nodes)
    }

    #[inline(always)]
    fn find(&self, network: usize, address: SocketAddr) -> Option<usize> {
        let key = key(&address);
        let keys = &self.keys[network * self.ends..][..self.ends];
        match key < 1 << 49 {
            true => keys.iter().position(|&other| other == key),
            false => self.find_whole(network, key, address),
        }
    }

    #[cold]
    fn find_whole(&self, network: usize, key: u64, address: SocketAddr) -> Option<usize> {
        let keys = &self.keys[network * self.ends..][..self.ends];
        let addresses = &self.addresses[network * self.ends..][..self.ends];
        let same = |(other, at): (&u64, &Option<SocketAddr>)| *other == key && *at == Some(address);
        keys.iter().zip(addresses).position(same)
    }
}

/// Tells addresses apart for less than comparing them costs: all of IPv4, and most others.
pub fn key(address: &SocketAddr) -> u64 {
    let port = u64::from(address.port());
    match address {
        SocketAddr::V4(v4) => 1 << 48 | u64::from(v4.ip().to_bits()) << 16 | port,
        SocketAddr::V6(v6) => 1 << 63 | (v6.ip().to_bits() as u64) << 16 ^ port,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    #[test]
    fn every_end_is_found_at_its_address_and_nobody_at_another() {
        let config = Size::Small.config();
        let directory = Directory::new(&config);
        let mut found = 0;
        for network in 0..config.networks.len() {
            let nodes = (0..config.nodes.len()).map(End::Node);
            for end in nodes.chain((0..config.references.len()).map(End::Reference)) {
                let Some(address) = directory.address(network, end) else {
                    continue;
                };
                found += 1;
                assert_eq!(directory.at_address(network, address), Some(end));
                let node = matches!(end, End::Node(_)).then(|| directory.index(end));
                assert_eq!(directory.node_at(network, address), node);
                let other = SocketAddr::new(address.ip(), address.port() ^ 1);
                assert_eq!(directory.at_address(network, other), None);
                let SocketAddr::V4(v4) = address else {
                    continue;
                };
                let other = SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port());
                assert_eq!(directory.at_address(network, other), None);
            }
        }
        assert!(found > 4);
    }
}

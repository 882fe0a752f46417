//! Puts a node on the bench: every link that it opens gets the fault driver around it.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bumpless_base::{LinkId, NodeId};
use bumpless_config::Config;
use bumpless_net_linux::Link;

use super::control::FaultControl;
use super::link::FaultyLink;
use super::state::{FaultState, LinkState};

/// Where a node's links get their faults from, for as long as it lives.
#[derive(Debug)]
pub struct FaultBench {
    /// Faults, and the partners' addresses, on each network.
    networks: Vec<(Arc<LinkState>, Vec<SocketAddr>)>,
    seed: u64,
    _control: FaultControl,
}

impl FaultBench {
    /// A bench for `node` of `config` that takes orders at `socket`. Equal seeds give equal faults
    /// for equal traffic.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn start(config: &Config, node: NodeId, socket: &Path, seed: u64) -> io::Result<Self> {
        let state = FaultState::new(config.networks.iter().map(|network| network.name.as_str()));
        let others = |link: usize| {
            let nodes = config.nodes.iter().enumerate();
            nodes
                .filter(|&(other, _)| other != usize::from(node.0))
                .filter_map(|(_, other)| other.addresses.get(link).copied().flatten())
                .collect()
        };
        let networks = state.links().enumerate();
        Ok(Self {
            networks: networks
                .map(|(i, link)| (Arc::clone(link), others(i)))
                .collect(),
            seed: seed ^ u64::from(node.0) << 32,
            _control: FaultControl::start(socket, state)?,
        })
    }

    /// `link`, which is the network at this position of the configuration, with faults.
    ///
    /// # Errors
    /// If the configuration has no such network.
    pub fn wrap(&self, id: LinkId, link: Box<dyn Link + Send>) -> io::Result<Box<dyn Link + Send>> {
        let Some((state, partners)) = self.networks.get(usize::from(id.0)) else {
            let wrong = format!("the configuration has no network at position {}", id.0);
            return Err(io::Error::new(io::ErrorKind::NotFound, wrong));
        };
        let seed = self.seed ^ u64::from(id.0);
        let faulty = FaultyLink::new(link, Arc::clone(state), partners.clone(), seed);
        Ok(Box::new(faulty))
    }
}

//! Who is where on a network.

use std::net::SocketAddr;

use bumpless_base::{LinkId, NodeId, PeerId};
use bumpless_config::Config;

use crate::wiring::{Wiring, witness_addresses};

/// Whoever exchanges messages with this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correspondent {
    /// A partner.
    Partner(PeerId),
    /// A witness, by its position in the configuration.
    Reference(u8),
}

/// Who is where on a network.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The partners, by [`PeerId`].
    pub nodes: Vec<NodeId>,
    /// Their addresses; `None` for one that is not on this network.
    pub partners: Vec<Option<SocketAddr>>,
    /// The witnesses' addresses, by position in the configuration.
    pub references: Vec<Option<SocketAddr>>,
}

impl Addresses {
    /// Those with whom the node of `wiring` exchanges messages on `link`.
    pub fn new(config: &Config, wiring: &Wiring, link: LinkId) -> Self {
        Self {
            nodes: wiring.partners.clone(),
            partners: wiring.partner_addresses(config, link),
            references: witness_addresses(config, link),
        }
    }

    /// Whose address `from` is.
    pub fn who(&self, from: SocketAddr) -> Option<Correspondent> {
        let partner = position(&self.partners, from).map(PeerId);
        let reference = || position(&self.references, from);
        partner
            .map(Correspondent::Partner)
            .or_else(|| reference().map(Correspondent::Reference))
    }

    /// The address of `correspondent`.
    pub fn address(&self, correspondent: Correspondent) -> Option<SocketAddr> {
        let address = match correspondent {
            Correspondent::Partner(peer) => self.partners.get(usize::from(peer.0)),
            Correspondent::Reference(at) => self.references.get(usize::from(at)),
        };
        address.copied().flatten()
    }
}

fn position(addresses: &[Option<SocketAddr>], from: SocketAddr) -> Option<u8> {
    let at = addresses
        .iter()
        .position(|address| address.as_ref() == Some(&from))?;
    u8::try_from(at).ok()
}

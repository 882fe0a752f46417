//! By the configuration: with whom a node has sessions, and what it tells of itself in them.

use bumpless_base::PeerId;
use bumpless_config::{Config, Reference, ReferenceKind};
use bumpless_management as management;
use bumpless_management::{LinkProfile, Partner, Profile};
use bumpless_pki::{BadName, NodeName};

use crate::certificates::WITNESS;
use crate::data_plane::addresses::Correspondent;
use crate::wiring::Wiring;

/// With whom there are sessions, and by which number in the configuration each is known to the data plane.
pub struct Wanted {
    pub partners: Vec<Partner>,
    pub with: Vec<Correspondent>,
    pub names: Vec<String>,
}

impl Wanted {
    pub fn new(config: &Config, wiring: &Wiring, own: &NodeName) -> Result<Self, BadName> {
        let mut wanted = Self {
            partners: Vec::new(),
            with: Vec::new(),
            names: Vec::new(),
        };
        let names = wiring.names.partners.iter().zip(&wiring.partners);
        for (at, (name, number)) in names.enumerate() {
            let ends = config.nodes[usize::from(wiring.node.0)]
                .addresses
                .iter()
                .zip(&config.nodes[usize::from(number.0)].addresses);
            let paths = ends.filter_map(|(here, there)| {
                Some(management::Path {
                    from: (*here)?.ip(),
                    to: (*there)?,
                })
            });
            let partner = Partner {
                name: own.partner(name)?,
                paths: paths.collect(),
                calls: wiring.node < *number,
            };
            wanted.add(partner, Correspondent::Partner(PeerId(at as u8)), name);
        }
        for (at, reference) in config.references.iter().enumerate() {
            if let Some(path) = witness_path(config, wiring, reference) {
                let partner = Partner {
                    name: NodeName::new(&reference.name, WITNESS, own.site())?,
                    paths: vec![path],
                    calls: true,
                };
                let with = Correspondent::Reference(at as u8);
                wanted.add(partner, with, &reference.name);
            }
        }
        Ok(wanted)
    }

    fn add(&mut self, partner: Partner, with: Correspondent, name: &str) {
        self.partners.push(partner);
        self.with.push(with);
        self.names.push(name.to_owned());
    }
}

fn witness_path(
    config: &Config,
    wiring: &Wiring,
    reference: &Reference,
) -> Option<management::Path> {
    let ReferenceKind::Witness(there) = reference.kind else {
        return None;
    };
    let addresses = &config.nodes[usize::from(wiring.node.0)].addresses;
    let here = (*addresses.get(usize::from(reference.network.0))?)?;
    Some(management::Path {
        from: here.ip(),
        to: there,
    })
}

/// What this node tells of itself.
pub fn profile(config: &Config, wiring: &Wiring) -> Profile {
    let addresses = &config.nodes[usize::from(wiring.node.0)].addresses;
    let ends = config.networks.iter().zip(addresses);
    let links = ends.filter(|(_, address)| address.is_some());
    let link = |network: &bumpless_config::Network| LinkProfile {
        network: network.name.clone(),
        bandwidth: network.bandwidth,
        mtu: network.mtu.into(),
    };
    Profile {
        pair: config.pair.clone(),
        node: wiring.names.node.clone(),
        number: wiring.node.0,
        payload_bytes: config.transfer.payload_size,
        in_flight_max: config.transfer.in_flight_max,
        links: links.map(|(network, _)| link(network)).collect(),
    }
}

//! Addresses: each is on a known network, of one IP version there, and nobody else's.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bumpless_base::{LinkSet, frame};

use super::{Known, link};
use crate::file::File;
use crate::model::{IpVersion, Loss, Network, Node, Reference, ReferenceKind};
use crate::reader::Reader;
use crate::schema::{self, Address, ReferenceWord, unusable};
use crate::shape::Describe;

/// Who has which address on which network.
pub(crate) struct Map {
    /// By node, then by network.
    nodes: Vec<Vec<Option<SocketAddr>>>,
    /// Nodes whose list could not be read whole; nothing is said about what they lack.
    partial: Vec<bool>,
    /// By network.
    pub(crate) versions: Vec<Option<IpVersion>>,
    pub(crate) references: Vec<Option<Reference>>,
}

impl Map {
    /// The networks on which `node` has an address; all of them where its list is unknown.
    pub(crate) fn links(&self, node: usize) -> LinkSet {
        let Some(addresses) = self.nodes.get(node) else {
            return LinkSet::EMPTY;
        };
        let unknown = self.partial.get(node).copied().unwrap_or(true);
        let has = |(_, address): &(usize, &Option<SocketAddr>)| unknown || address.is_some();
        addresses
            .iter()
            .enumerate()
            .filter(has)
            .map(|(i, _)| link(i))
            .collect()
    }
}

/// Addresses seen so far, with the place to name when one comes again.
#[derive(Default)]
struct Seen {
    owners: BTreeMap<SocketAddr, String>,
    /// By network: the version, and who decided it.
    versions: BTreeMap<usize, (IpVersion, String)>,
}

impl Seen {
    /// Takes `ip` on `network` for `owner`; reports another version than the network's.
    fn version(&mut self, reader: &mut Reader, at: (usize, &str), network: usize, ip: IpAddr) {
        let version = IpVersion::of(ip);
        let (line, owner) = at;
        let (first, by) = self
            .versions
            .entry(network)
            .or_insert((version, owner.to_owned()));
        if *first != version {
            let wrong = format!("{ip} is {version}, {by} on the same network is {first}");
            let right = format!("give an {first} address, or define another network");
            reader.wrong_on(line, owner.to_owned(), wrong, right);
        }
    }
    /// Takes `address` for `owner`; reports that it is somebody else's.
    fn unique(&mut self, reader: &mut Reader, (line, owner): (usize, &str), address: SocketAddr) {
        if let Some(other) = self.owners.get(&address) {
            let wrong = format!("{address} is also the address of {other}");
            reader.wrong_on(
                line,
                owner.to_owned(),
                wrong,
                "give each an address or port of its own",
            );
        } else {
            self.owners.insert(address, owner.to_owned());
        }
    }
}

pub(crate) fn check(reader: &mut Reader, file: &File, known: &Known) -> Map {
    let mut seen = Seen::default();
    let mut map = Map {
        nodes: Vec::new(),
        partial: Vec::new(),
        versions: Vec::new(),
        references: Vec::new(),
    };
    for node in &file.nodes {
        let (addresses, whole) = of_node(reader, file, known, &mut seen, node);
        map.nodes.push(addresses);
        map.partial.push(!whole);
    }
    for reference in &file.references {
        map.references
            .push(of_reference(reader, known, &mut seen, reference));
    }
    let version = |i: usize| seen.versions.get(&i).map(|(version, _)| *version);
    map.versions = (0..file.networks.len()).map(version).collect();
    map
}

fn of_node(
    reader: &mut Reader,
    file: &File,
    known: &Known,
    seen: &mut Seen,
    node: &schema::Node,
) -> (Vec<Option<SocketAddr>>, bool) {
    let mut addresses = vec![None; file.networks.len()];
    let Some(entries) = &node.addresses else {
        return (addresses, false);
    };
    let mut whole = true;
    for entry in entries {
        let (name, line) = (&entry.network.name, entry.network.line);
        let owner = format!("{}.addresses.{}", node.place.path, name.escape_debug());
        let at = (line, owner.as_str());
        let network = known
            .networks
            .find(reader, &node.place, ("addresses", line), name);
        let address = match &entry.address {
            Ok(address) => *address,
            Err(wrong) => {
                let right = format!("give {}", Address.accepts());
                reader.wrong_on(line, owner, wrong.clone(), right);
                whole = false;
                continue;
            }
        };
        seen.unique(reader, at, address);
        let Some(network) = network else {
            whole = false;
            continue;
        };
        seen.version(reader, at, network, address.ip());
        addresses[network] = Some(address);
    }
    (addresses, whole)
}

fn of_reference(
    reader: &mut Reader,
    known: &Known,
    seen: &mut Seen,
    given: &schema::Reference,
) -> Option<Reference> {
    let place = &given.place;
    let at = ("network", place.line_of("network"));
    let network = given
        .network
        .as_ref()
        .and_then(|name| known.networks.find(reader, place, at, name));
    let kind = reference_kind(reader, given);
    if let Some(kind) = kind {
        let owner = format!("{}.address", place.path);
        let at = (place.line_of("address"), owner.as_str());
        let ip = match kind {
            ReferenceKind::Witness(address) => {
                seen.unique(reader, at, address);
                address.ip()
            }
            ReferenceKind::Ping(ip) => ip,
        };
        if let Some(network) = network {
            seen.version(reader, at, network, ip);
        }
    }
    Some(Reference {
        name: given.name.clone()?,
        kind: kind?,
        network: link(network?),
        round_trip_max: given.round_trip_max?,
    })
}

fn reference_kind(reader: &mut Reader, given: &schema::Reference) -> Option<ReferenceKind> {
    let text = given.address.as_deref()?;
    let (kind, wrong, right) = match given.kind? {
        ReferenceWord::Witness => match Address::check(text) {
            Ok(address) => return Some(ReferenceKind::Witness(address)),
            Err(wrong) => ("witness", wrong, Address.accepts()),
        },
        ReferenceWord::Ping => {
            let wrong = match text.parse::<IpAddr>() {
                Ok(ip) => match unusable(ip) {
                    None => return Some(ReferenceKind::Ping(ip)),
                    Some(reason) => format!("is {text}, {reason}"),
                },
                Err(_) => format!("is the text {}", crate::shape::quote(text)),
            };
            (
                "ping",
                wrong,
                "an IP address without port, such as \"192.0.2.1\"".into(),
            )
        }
    };
    reader.wrong(
        &given.place,
        "address",
        wrong,
        format!("for kind {kind}, give {right}"),
    );
    None
}

/// The networks with their IP version; reports those without any address.
pub(crate) fn networks(
    reader: &mut Reader,
    file: &File,
    map: &Map,
    protection: Option<u16>,
) -> Option<Vec<Network>> {
    let networks: Vec<Option<Network>> = file
        .networks
        .iter()
        .zip(&map.versions)
        .map(|(given, version)| {
            let network = network(reader, given, *version, map)?;
            let protection = protection?;
            Some(Network {
                protection,
                ..network
            })
        })
        .collect();
    networks.into_iter().collect()
}

fn network(
    reader: &mut Reader,
    given: &schema::Network,
    version: Option<IpVersion>,
    map: &Map,
) -> Option<Network> {
    /// RFC 8200, section 5: every IPv6 link carries packets of this size.
    const IPV6_MTU_MIN: u64 = 1280;
    let place = &given.place;
    if version.is_none() && !map.partial.contains(&true) && given.name.is_some() {
        let right = "give the nodes addresses on it, or remove the network";
        reader.wrong(place, "", "no node has an address on this network", right);
    }
    if let (Some(IpVersion::V6), Some(mtu)) = (version, given.mtu)
        && mtu < IPV6_MTU_MIN
    {
        let wrong = format!("{mtu} is below the least of IPv6");
        reader.wrong(
            place,
            "mtu",
            wrong,
            format!("give at least {IPV6_MTU_MIN} (RFC 8200)"),
        );
    }
    let loss = loss(reader, given);
    let mtu = u16::try_from(given.mtu?).ok()?;
    Some(Network {
        name: given.name.clone()?,
        bandwidth: given.bandwidth?,
        mtu,
        dscp: u8::try_from(given.dscp?).ok()?,
        priority: u8::try_from(given.priority?).ok()?,
        ip: version?,
        loss: loss?,
        round_trip_max: given.round_trip_max?,
        other_traffic: match given.other_traffic? {
            Some(bytes) => u32::try_from(bytes).ok()?,
            None => u32::from(mtu) + u32::from(frame::ETHERNET),
        },
        protection: 0,
    })
}

/// How often frames are lost; reports two answers to this question.
fn loss(reader: &mut Reader, given: &schema::Network) -> Option<Loss> {
    /// IEEE 802.3ab-1999: a bit error rate of less than this.
    const BIT_ERROR_RATE: f64 = 1e-10;
    let (bits, frames) = (given.bit_error_rate?, given.frame_loss?);
    if let (Some(rate), Some(share)) = (bits, frames) {
        let wrong = format!("{share} stands beside a bit_error_rate of {rate}");
        let right =
            "give one of the two: frame_loss where losses do not depend on a frame's length";
        reader.wrong(&given.place, "frame_loss", wrong, right);
        return None;
    }
    Some(match frames {
        Some(share) => Loss::Frames(share),
        None => Loss::BitErrors(bits.unwrap_or(BIT_ERROR_RATE)),
    })
}

pub(crate) fn nodes(reader: &mut Reader, file: &File, map: &Map) -> Option<Vec<Node>> {
    let node = |(given, addresses): (&schema::Node, &Vec<Option<SocketAddr>>)| {
        if let (None, Some(_)) = (given.control.as_ref()?, given.control_group.as_ref()?) {
            let wrong = "stands here without a path, and the folder of the default one is the node's user's alone";
            let right = "give control a path in a folder that the group can reach, such as \"/run/bumpless/NODE.sock\"";
            reader.wrong(&given.place, "control_group", wrong, right);
            return None;
        }
        Some(Node {
            name: given.name.clone()?,
            addresses: addresses.clone(),
            control: given.control.clone()?.map(Into::into),
            control_group: given.control_group.clone()?,
            state_dir: given.state_dir.clone()?.map(Into::into),
        })
    };
    file.nodes.iter().zip(&map.nodes).map(node).collect()
}

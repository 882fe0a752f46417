//! Opening what a node needs of the system: links, ICMP sockets.

use std::sync::Arc;

use bumpless_base::LinkId;
use bumpless_config::{Config, ReferenceKind};
use bumpless_net_linux::{Clock, Pinger, random};
use bumpless_secure::{Keyring, RingSuite};

use crate::data_plane::addresses::Addresses;
use crate::data_plane::link_port::LinkPort;
use crate::data_plane::protection::{self, Protection};
use crate::note::Note;
use crate::wiring::{LinkSettings, Wiring};
use crate::{OpenLink, RunError};

/// Where the keys of packets come from.
#[derive(Clone, Copy, Debug)]
pub enum PacketKeys<'a> {
    /// From nowhere: messages are open.
    None,
    /// They are there.
    Given(&'a Arc<Keyring<RingSuite>>),
    /// They are agreed on while the node runs.
    Agreed,
}

/// Opens the link of every network on which this node has an address; messages are sealed with `keys`.
pub fn open_links(
    (config, wiring): (&Config, &Wiring),
    keys: PacketKeys<'_>,
    open_link: OpenLink<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Option<LinkPort>>, RunError> {
    let mut ports = Vec::new();
    let mut present = false;
    let settings = wiring.links(config);
    for (index, settings) in settings.iter().enumerate() {
        let Some(settings) = settings else {
            ports.push(None);
            continue;
        };
        let link = LinkId(index as u8);
        let opened = open_link(link, settings).map_err(|error| RunError::Link {
            network: settings.name.clone(),
            cause: error.to_string(),
        })?;
        let name = &settings.name;
        let lasting = opened.notes.iter();
        notes.extend(lasting.map(|note| Note::lasting(format!("network '{name}': {note}"))));
        if !opened.present {
            notes.push(absent(link, settings));
        }
        present |= opened.present;
        let addresses = Addresses::new(config, wiring, link);
        let protection = protect(keys, (wiring, link), &addresses, settings)?;
        ports.push(Some(LinkPort::new(
            link,
            opened.driver,
            settings,
            (addresses, protection),
            Clock.now(),
        )));
    }
    if !present {
        let addresses: Vec<_> = settings
            .iter()
            .flatten()
            .map(|link| link.local.ip().to_string())
            .collect();
        return Err(RunError::Setup(format!(
            "none of node '{}'s addresses ({}) is on this machine; give the name of the node that this machine is",
            wiring.names.node,
            addresses.join(", ")
        )));
    }
    Ok(ports)
}

fn protect(
    keys: PacketKeys<'_>,
    (wiring, link): (&Wiring, LinkId),
    addresses: &Addresses,
    settings: &LinkSettings,
) -> Result<Protection<RingSuite>, RunError> {
    let origin = random::seed().map_err(|errno| RunError::System {
        what: "draw a random number",
        cause: errno.into(),
    })?;
    let sender = protection::Sender {
        node: wiring.node,
        link,
        origin,
    };
    let (longest, now) = (settings.message_max, Clock.now());
    Ok(match keys {
        PacketKeys::None => Protection::none(addresses.nodes.len()),
        PacketKeys::Given(keys) => Protection::sealed(keys, sender, addresses, longest, now),
        PacketKeys::Agreed => Protection::keyless(sender, addresses, longest, now),
    })
}

fn absent(link: LinkId, settings: &LinkSettings) -> Note {
    Note {
        text: format!(
            "network '{}': address {} is not on this machine; the link stays down until it is",
            settings.name,
            settings.local.ip()
        ),
        until_up: Some(link),
    }
}

/// Opens an ICMP socket for each pingable reference point that this node's groups use.
pub fn open_pingers(
    config: &Config,
    wiring: &Wiring,
    nonce: u64,
    notes: &mut Vec<Note>,
) -> Result<Vec<Option<Pinger>>, RunError> {
    let used = |index: usize| {
        wiring
            .groups
            .iter()
            .any(|&group| config.groups[group].references.contains(&index))
    };
    let mut pingers = Vec::new();
    for (index, reference) in config.references.iter().enumerate() {
        let ReferenceKind::Ping(target) = reference.kind else {
            pingers.push(None);
            continue;
        };
        let local =
            config.nodes[usize::from(wiring.node.0)].addresses[usize::from(reference.network.0)];
        if !used(index) {
            pingers.push(None);
            continue;
        }
        match Pinger::open(target, local.map(|address| address.ip()), nonce) {
            Ok(pinger) => pingers.push(Some(pinger)),
            Err(error) => {
                notes.push(Note::lasting(format!(
                    "reference point '{}' cannot be used: {error}",
                    reference.name
                )));
                pingers.push(None);
            }
        }
    }
    Ok(pingers)
}

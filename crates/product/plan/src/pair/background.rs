//! What a node sends besides states, at its real size and as often as it ever may.

use bumpless_base::{LinkId, NodeId, frame};
use bumpless_config::{Config, ReferenceKind};
use bumpless_wire::{WitnessRequest, heartbeat_len};

use crate::acknowledgements;
use crate::input::{Background, Scenario};

/// Heartbeats go at once when something changes, at most so many times as often.
const HASTE: u64 = 8;
/// Requests to a witness go at once when the role is wanted; never as often as this.
const REQUESTS: u64 = 2;
/// Bytes of an ICMP echo request with its IP header.
const ECHO: u32 = 16 + 40;
/// Between two echo requests, in leases.
const ECHOES_PER_LEASE: u64 = 2;
/// Everything that `node` may send on `network` besides states.
pub(crate) fn of(
    config: &Config,
    node: NodeId,
    network: LinkId,
    scenario: &Scenario,
) -> Vec<Background> {
    let overhead = u32::from(config.networks[usize::from(network.0)].message_overhead());
    let datagram = |len: usize| len as u32 + overhead;
    let heartbeat = config.timing.heartbeat;
    let mut all = Vec::new();
    for partner in config.partners(node) {
        if config.nodes[usize::from(partner.0)].addresses[usize::from(network.0)].is_none() {
            continue;
        }
        let shared = config.groups.iter().filter(|group| {
            group.candidates.contains(&node) && group.candidates.contains(&partner)
        });
        all.push(Background {
            bytes: datagram(heartbeat_len(shared.count())),
            period: heartbeat / HASTE,
            acknowledges: None,
        });
        all.push(Background {
            bytes: datagram(config.networks[usize::from(network.0)].message_max().into()),
            period: config.timing.full_length_interval(),
            acknowledges: None,
        });
    }
    let mine = || {
        config
            .groups
            .iter()
            .filter(|group| group.candidates.contains(&node))
    };
    for reference in mine().flat_map(|group| &group.references) {
        let reference = &config.references[*reference];
        if reference.network != network {
            continue;
        }
        all.push(match reference.kind {
            ReferenceKind::Witness(_) => Background {
                bytes: datagram(WitnessRequest::LEN),
                period: heartbeat / REQUESTS,
                acknowledges: None,
            },
            ReferenceKind::Ping(_) => Background {
                bytes: ECHO + u32::from(frame::ETHERNET),
                period: config.timing.lease / ECHOES_PER_LEASE,
                acknowledges: None,
            },
        });
    }
    // Primary of one group, the node may be backup of another and acknowledge that one's states.
    if mine().count() > 1 {
        let name = &config.networks[usize::from(network.0)].name;
        let links = scenario.links.iter().enumerate();
        for (at, link) in links.filter(|(_, link)| link.name == *name) {
            let carried =
                |channel: &usize| scenario.channels[*channel].links.contains(LinkId(at as u8));
            let channels = (0..scenario.channels.len()).filter(carried);
            all.extend(channels.map(|channel| acknowledgements::of(scenario, link, channel)));
        }
    }
    all
}

//! What a node sends besides states, at its real size and as often as it ever may.

use bumpless_base::{LinkId, NodeId};
use bumpless_config::{Config, ReferenceKind, WireVersion};
use bumpless_wire::{MAX_ACK_BLOCKS, Version, WitnessRequest, ack_len, heartbeat_len};

use crate::input::{Background, Channel, Scenario};

/// Heartbeats go at once when something changes, at most so many times as often.
const HASTE: u64 = 8;
/// Requests to a witness go at once when the role is wanted; never as often as this.
const REQUESTS: u64 = 2;
/// Bytes of an ICMP echo request with its IP header, and of the smallest frame's content that Ethernet
/// carries.
const ECHO: u32 = 16 + 40;
const ETHERNET: u32 = 38;
/// Between two echo requests, in leases.
const ECHOES_PER_LEASE: u64 = 2;
/// Acknowledgements that each lost packet of a state may cause: its gap, a packet that passes over it, its coming
/// again, a probe (T-15, T-23).
const PER_LOSS: u64 = 4;
/// Acknowledgements of a state without losses besides those for the in-flight limit: its last packet, its
/// completion, one that another channel's packet asks for.
const PER_STATE: u64 = 3;

/// Everything that `node` may send on `network` besides states.
pub(super) fn of(
    config: &Config,
    node: NodeId,
    network: LinkId,
    scenario: &Scenario,
) -> Vec<Background> {
    let overhead = u32::from(config.networks[usize::from(network.0)].frame_overhead());
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
            },
            ReferenceKind::Ping(_) => Background {
                bytes: ECHO + ETHERNET,
                period: config.timing.lease / ECHOES_PER_LEASE,
            },
        });
    }
    // Primary of one group, the node may be backup of another and acknowledge that one's states.
    if mine().count() > 1 {
        let carried = scenario.channels.iter().filter(|channel| {
            let position = scenario
                .links
                .iter()
                .position(|link| link.name == config.networks[usize::from(network.0)].name);
            position.is_some_and(|at| channel.links.contains(LinkId(at as u8)))
        });
        all.extend(carried.map(|channel| acknowledgements(config, scenario, channel, overhead)));
    }
    all
}

/// All acknowledgements of one state, as one message for each period.
fn acknowledgements(
    config: &Config,
    scenario: &Scenario,
    channel: &Channel,
    overhead: u32,
) -> Background {
    let version = match config.transfer.version {
        WireVersion::V1 => Version::V1,
        WireVersion::V2 => Version::V2,
    };
    let budget = u64::from(channel.budget);
    let fifth = u64::from(config.transfer.in_flight_max / 5).max(1);
    let full = scenario.packets.count(channel.size).div_ceil(fifth);
    // For each link that has shown something one, and each on all links (T-16).
    let count = (full + PER_STATE + budget * PER_LOSS) * channel.links.len() as u64;
    let blocks = (channel.budget as usize + 1).min(MAX_ACK_BLOCKS);
    let bytes = count * (ack_len(version, blocks) as u64 + u64::from(overhead));
    Background {
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        period: channel.period,
    }
}

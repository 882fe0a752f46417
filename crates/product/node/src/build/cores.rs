//! The cores of a node from its configuration.

use bumpless_base::{Counters, Instant, LinkId, LinkSet, NodeId, PeerId};
use bumpless_config::{AfterHotRestart, Config, ReferenceKind};
use bumpless_redundancy::{self as redundancy, GroupId, Redundancy, ReferenceId};
use bumpless_transfer::{Publisher, Receiver, Sender, Subscriber};

use crate::RunError;
use crate::data_plane::inbound::Cores;
use crate::wiring::{ROOM, Wiring};

/// Heartbeats that a link may miss before it counts as down.
const MISSED_HEARTBEATS: u64 = 3;

/// The application's ends of each channel.
pub type Ends = (Vec<Publisher>, Vec<Subscriber>);

/// Builds the cores and the applications' ends of their channels.
///
/// # Errors
/// What a core refuses of its setup.
pub fn build_cores(
    config: &Config,
    wiring: &Wiring,
    seed: u64,
    now: Instant,
) -> Result<(Cores, Ends), RunError> {
    let setup = |error: &dyn std::fmt::Display| RunError::Setup(error.to_string());
    let (mut sender, publishers) = Sender::with_room(
        &wiring.link_parameters(config),
        &wiring.sender_peers(config),
        &wiring.sender_channels(config),
        ROOM,
    )
    .map_err(|error| setup(&error))?;
    // Links are down until heartbeats have crossed them; with none up, the sender tries all.
    for peer in 0..wiring.partners.len() {
        for link in 0..config.networks.len() {
            sender.set_link_healthy(PeerId(peer as u8), LinkId(link as u8), false, now);
        }
    }
    let (receiver, subscribers) = Receiver::with_room(
        &wiring.receiver_peers(config),
        &wiring.receiver_channels(config),
        ROOM,
    )
    .map_err(|error| setup(&error))?;
    let redundancy = Redundancy::new(redundancy_setup(config, wiring), seed, now)
        .map_err(|error| setup(&error))?;
    let version = config.transfer.version;
    let cores = Cores {
        sender,
        receiver,
        redundancy,
        counters: Counters::default(),
        version,
    };
    Ok((cores, (publishers, subscribers)))
}

fn redundancy_setup(config: &Config, wiring: &Wiring) -> redundancy::Setup {
    let own = &config.nodes[usize::from(wiring.node.0)].addresses;
    let common = |partner: &NodeId| -> LinkSet {
        let theirs = &config.nodes[usize::from(partner.0)].addresses;
        (0..own.len())
            .filter(|&link| own[link].is_some() && theirs[link].is_some())
            .map(|link| LinkId(link as u8))
            .collect()
    };
    redundancy::Setup {
        pair: config.pair_id(),
        fingerprint: config.fingerprint(),
        node: wiring.node,
        timing: redundancy::Timing {
            heartbeat: config.timing.heartbeat,
            peer_timeout: config.timing.heartbeat * MISSED_HEARTBEATS,
            lease: config.timing.lease,
            drift_ppm: config.timing.clock_drift_ppm,
            start_wait: config.timing.start_wait,
            hand_over: config.hand_over_time(),
            full_length: config.timing.full_length_interval(),
        },
        partners: wiring
            .partners
            .iter()
            .map(|partner| redundancy::PartnerSetup {
                node: *partner,
                links: common(partner),
            })
            .collect(),
        references: config
            .references
            .iter()
            .map(|reference| match reference.kind {
                ReferenceKind::Witness(_) => redundancy::ReferenceKind::Witness,
                ReferenceKind::Ping(_) => redundancy::ReferenceKind::Ping,
            })
            .collect(),
        groups: wiring
            .groups
            .iter()
            .map(|&group| group_setup(config, group))
            .collect(),
    }
}

fn group_setup(config: &Config, group: usize) -> redundancy::GroupSetup {
    let settings = &config.groups[group];
    let applications = config.applications.iter().filter(|app| app.group == group);
    let hot_restart = applications.map(|app| app.hot_restart).min();
    redundancy::GroupSetup {
        id: GroupId(group as u16),
        candidates: [settings.candidates[0], settings.candidates[1]],
        references: settings
            .references
            .iter()
            .map(|&index| ReferenceId(index as u8))
            .collect(),
        without_reference: settings.references.is_empty(),
        hot_restart: hot_restart.unwrap_or_default(),
        stop_when_old: settings.after_hot_restart == AfterHotRestart::Stop,
    }
}

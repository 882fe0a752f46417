//! Building a node's parts from its configuration, without the operating system: the daemon puts
//! threads and sockets around them, a simulator puts a world.

use std::net::SocketAddr;
use std::sync::Arc;

use bumpless_base::{Counters, Duration, Instant, LinkId, LinkSet, NodeId, PeerId};
use bumpless_config::{Config, ReferenceKind};
use bumpless_exchange::Marks;
use bumpless_meeting::{ApplicationPort, GroupGate};
use bumpless_redundancy::{self as redundancy, GroupId, Redundancy, ReferenceId};
use bumpless_transfer::{Publisher, Receiver, Sender, Subscriber};

use crate::RunError;
use crate::applications::CounterBoard;
use crate::data_plane::drivers::{Drivers, Pingers, Ports};
use crate::data_plane::group::GroupRuntime;
use crate::data_plane::inbound::Cores;
use crate::data_plane::{ChannelRuntime, DataPlane, Surroundings};
use crate::status::{ApplicationSnapshot, LinkSnapshot};
use crate::wiring::{self, Wiring};

/// Heartbeats that a link may miss before it counts as down.
const MISSED_HEARTBEATS: u64 = 3;

/// The witnesses' addresses on `link`, by position in the configuration.
pub fn witness_addresses(config: &Config, link: LinkId) -> Vec<Option<SocketAddr>> {
    config
        .references
        .iter()
        .map(|reference| match reference.kind {
            ReferenceKind::Witness(address) if reference.network == link => Some(address),
            _ => None,
        })
        .collect()
}

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
    let (mut sender, publishers) = Sender::new(
        &wiring.link_parameters(config),
        &wiring.sender_peers(config),
        &wiring.sender_channels(config),
    )
    .map_err(|error| setup(&error))?;
    // Links are down until heartbeats have crossed them; with none up, the sender tries all.
    for peer in 0..wiring.partners.len() {
        for link in 0..config.networks.len() {
            sender.set_link_healthy(PeerId(peer as u8), LinkId(link as u8), false, now);
        }
    }
    let (receiver, subscribers) = Receiver::new(
        &wiring.receiver_peers(config),
        &wiring.receiver_channels(config),
    )
    .map_err(|error| setup(&error))?;
    let redundancy = Redundancy::new(redundancy_setup(config, wiring), seed, now)
        .map_err(|error| setup(&error))?;
    let version = wiring::version(config);
    let cores = Cores {
        sender,
        receiver,
        redundancy,
        counters: Counters::default(),
        version,
    };
    Ok((cores, (publishers, subscribers)))
}

/// How long a hand-over may take: each application must once have its newest state at the backup,
/// those of equal period at the same time.
fn hand_over_bound(config: &Config) -> Duration {
    let longest = config
        .applications
        .iter()
        .map(|app| app.period + app.deadline)
        .max();
    config.timing.start_wait + longest.unwrap_or_default() * 2
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
            hand_over: hand_over_bound(config),
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
        lone_start_without: false,
    }
}

fn group_setup(config: &Config, group: usize) -> redundancy::GroupSetup {
    let settings = &config.groups[group];
    redundancy::GroupSetup {
        id: GroupId(group as u16),
        candidates: [settings.candidates[0], settings.candidates[1]],
        references: settings
            .references
            .iter()
            .map(|&index| ReferenceId(index as u8))
            .collect(),
        without_reference: settings.references.is_empty(),
    }
}

/// What one application's executor shares with the data plane.
pub struct Shared {
    /// The application's position in the configuration.
    pub index: usize,
    /// Role and right to write.
    pub gate: Arc<GroupGate>,
    /// Outcomes of states, pauses, what the executor has learned.
    pub port: Arc<ApplicationPort>,
    /// What the executor counts.
    pub board: Arc<CounterBoard>,
}

/// What executors and data plane share, by position in the wiring.
pub struct Parts {
    wiring: Wiring,
    gates: Vec<Arc<GroupGate>>,
    /// By group: which applications have something to say.
    marks: Vec<Arc<Marks>>,
    ports: Vec<Arc<ApplicationPort>>,
    boards: Vec<Arc<CounterBoard>>,
    /// For each application: position of its group in `gates`, and its own in that group.
    places: Vec<(usize, usize)>,
}

impl Parts {
    /// Everything that the applications of `wiring` share with the data plane.
    pub fn new(config: &Config, wiring: &Wiring) -> Self {
        let mut members = vec![0; wiring.groups.len()];
        let places: Vec<_> = wiring
            .applications
            .iter()
            .map(|&app| {
                let group = config.applications[app].group;
                let at = wiring
                    .groups
                    .iter()
                    .position(|&g| g == group)
                    .unwrap_or_default();
                members[at] += 1;
                (at, members[at] - 1)
            })
            .collect();
        let marks = members.iter().map(|&count| Arc::new(Marks::new(count)));
        let marks: Vec<_> = marks.collect();
        let port = |&(group, member): &(usize, usize)| {
            Arc::new(ApplicationPort::marking(Arc::clone(&marks[group]), member))
        };
        Self {
            wiring: wiring.clone(),
            gates: wiring.groups.iter().map(|_| Arc::default()).collect(),
            ports: places.iter().map(port).collect(),
            marks,
            boards: wiring.applications.iter().map(|_| Arc::default()).collect(),
            places,
        }
    }

    /// What the application at position `at` of the wiring shares with the data plane.
    pub fn shared(&self, at: usize) -> Shared {
        Shared {
            index: self.wiring.applications[at],
            gate: Arc::clone(&self.gates[self.places[at].0]),
            port: Arc::clone(&self.ports[at]),
            board: Arc::clone(&self.boards[at]),
        }
    }

    /// Wakes every executor.
    pub fn wake_executors(&self) {
        self.ports.iter().for_each(|port| port.wake());
    }

    /// The data plane around `cores`. `session` names this process in the log.
    pub fn data_plane<D: Drivers>(
        &self,
        config: &Config,
        cores: Cores,
        (ports, pingers): (Ports<D>, Pingers<D>),
        surroundings: Surroundings,
        session: u64,
        now: Instant,
    ) -> DataPlane<D> {
        let names = &self.wiring.names;
        DataPlane {
            cores,
            groups: self.groups(config),
            channels: self.channels(),
            link_names: names.links.clone(),
            partner_names: names.partners.clone(),
            reference_names: config
                .references
                .iter()
                .map(|reference| reference.name.clone())
                .collect(),
            link_snapshots: vec![LinkSnapshot::default(); names.partners.len() * ports.len()],
            reference_links: config
                .references
                .iter()
                .map(|reference| usize::from(reference.network.0))
                .collect(),
            ports,
            pingers,
            surroundings,
            hand_over_patience: hand_over_bound(config),
            scratch: Box::default(),
            session,
            leaving_until: None,
            redundancy_due: now,
            turn_began: now,
            stalls: (0, Duration::ZERO),
            stalled_at: now,
            refreshed: now,
        }
    }

    fn groups(&self, config: &Config) -> Vec<GroupRuntime> {
        let groups = self.wiring.groups.iter().enumerate();
        groups
            .filter_map(|(at, &group)| {
                let peer = self.wiring.partner_in(config, group)?;
                let places = self.places.iter().zip(&self.ports).enumerate();
                let members: Vec<_> = places
                    .filter(|(_, (place, _))| place.0 == at)
                    .map(|(member, (_, port))| {
                        let application = self.wiring.applications[member];
                        (Arc::clone(port), config.applications[application].period)
                    })
                    .collect();
                Some(GroupRuntime::new(
                    GroupId(group as u16),
                    peer,
                    Arc::clone(&self.gates[at]),
                    Arc::clone(&self.marks[at]),
                    members,
                ))
            })
            .collect()
    }

    fn channels(&self) -> Vec<ChannelRuntime> {
        let applications = self.wiring.applications.iter().enumerate();
        applications
            .map(|(at, &application)| ChannelRuntime {
                application: application as u16,
                group: self.places[at],
                port: Arc::clone(&self.ports[at]),
                board: Arc::clone(&self.boards[at]),
                snapshot: ApplicationSnapshot {
                    member: true,
                    ..ApplicationSnapshot::default()
                },
            })
            .collect()
    }
}

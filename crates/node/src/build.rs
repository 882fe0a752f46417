//! Building a node's parts from its configuration, without the operating system: the daemon puts
//! threads and sockets around them, a simulator puts a world.

use std::net::SocketAddr;
use std::sync::Arc;

use bumpless_base::{Counters, Duration, Instant, LinkId, LinkSet, NodeId, PeerId};
use bumpless_config::{AfterHotRestart, Config, ReferenceKind};
use bumpless_exchange::Marks;
use bumpless_meeting::{ApplicationPort, GroupGate};
use bumpless_redundancy::{self as redundancy, GroupId, Redundancy, ReferenceId};
use bumpless_transfer::{Publisher, Receiver, Sender, Subscriber};

use crate::RunError;
use crate::applications::CounterBoard;
use crate::change::Seat;
use crate::data_plane::drivers::{Drivers, Pingers, Ports};
use crate::data_plane::group::GroupRuntime;
use crate::data_plane::inbound::Cores;
use crate::data_plane::members::{Counts, Member, MemberTimes};
use crate::data_plane::{ChannelRuntime, DataPlane, Surroundings};
use crate::status::{ApplicationSnapshot, LinkSnapshot};
use crate::wiring::{self, Wiring};

/// Applications that can come while a node of a pair runs, before as many have gone.
pub const ROOM: usize = 64;
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

/// The field device of an application, in words.
fn field_name(settings: &bumpless_config::Application) -> String {
    match &settings.field {
        Some(field) => format!("field device {} of '{}'", field.address, settings.name),
        None => format!("application '{}'", settings.name),
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

/// What one application's executor shares with the data plane.
pub struct Shared {
    /// The application's number: its position in the configuration with which the node started, or the place
    /// to which it came.
    pub index: usize,
    /// Role and right to write.
    pub gate: Arc<GroupGate>,
    /// Outcomes of states, pauses, what the executor has learned.
    pub port: Arc<ApplicationPort>,
    /// What the executor counts.
    pub board: Arc<CounterBoard>,
}

/// What executors and data plane share, by position in the wiring.
#[derive(Clone)]
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
        let marks = members
            .iter()
            .map(|&count| Arc::new(Marks::new(count + ROOM)));
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

    /// The data plane around `cores`.
    pub fn data_plane<D: Drivers>(
        &self,
        config: &Config,
        cores: Cores,
        (ports, pingers): (Ports<D>, Pingers<D>),
        surroundings: Surroundings,
        now: Instant,
    ) -> DataPlane<D> {
        let names = &self.wiring.names;
        let mut groups = self.groups(config);
        for group in &mut groups {
            group.snapshot.changed_at = now;
        }
        let plane = DataPlane {
            cores,
            groups,
            channels: self.channels(),
            link_names: names.links.clone(),
            partner_names: names.partners.clone(),
            reference_names: config
                .references
                .iter()
                .map(|reference| reference.name.clone())
                .collect(),
            field_names: config.applications.iter().map(field_name).collect(),
            link_snapshots: vec![LinkSnapshot::default(); names.partners.len() * ports.len()],
            reference_links: config
                .references
                .iter()
                .map(|reference| usize::from(reference.network.0))
                .collect(),
            ports,
            pingers,
            surroundings,
            hand_over_patience: config.hand_over_time(),
            scratch: Box::default(),
            leaving_until: None,
            awaits_partner: false,
            redundancy_due: now,
            turn_began: now,
            arrived_since: now,
            stalls: (0, Duration::ZERO),
            stalled_at: now,
            refreshed: now,
        };
        // Whoever asks before the first turn hears of groups that start.
        plane.show(now);
        plane
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
                        Member {
                            port: Arc::clone(port),
                            times: (&config.applications[application]).into(),
                            counts: Counts::Yes,
                        }
                    })
                    .collect();
                let places = members.len() + ROOM;
                Some(GroupRuntime::new(
                    GroupId(group as u16),
                    peer,
                    Arc::clone(&self.gates[at]),
                    Arc::clone(&self.marks[at]),
                    (members, places),
                ))
            })
            .collect()
    }

    fn channels(&self) -> Vec<Option<ChannelRuntime>> {
        let applications = self.wiring.applications.iter().enumerate();
        let taken = applications.map(|(at, &application)| {
            let place = (application as u16, self.places[at]);
            Some(channel(place, &self.ports[at], &self.boards[at]))
        });
        let vacant = std::iter::repeat_with(|| None).take(ROOM);
        taken.chain(vacant).collect()
    }

    /// What the application number `application` shares with the data plane when it comes to the place
    /// `member` of the group at position `group`, and what the data plane gets.
    pub fn newcomer(
        &self,
        application: u16,
        (group, member): (usize, usize),
        times: MemberTimes,
    ) -> (Shared, ChannelRuntime, Member) {
        let port = ApplicationPort::marking(Arc::clone(&self.marks[group]), member);
        let shared = Shared {
            index: application.into(),
            gate: Arc::clone(&self.gates[group]),
            port: Arc::new(port),
            board: Arc::default(),
        };
        let runtime = channel((application, (group, member)), &shared.port, &shared.board);
        let member = Member {
            port: Arc::clone(&shared.port),
            times,
            counts: Counts::OnceThere,
        };
        (shared, runtime, member)
    }

    /// The position of the configuration's group `group` among those of this node.
    pub fn group(&self, group: usize) -> Option<usize> {
        self.wiring.groups.iter().position(|&g| g == group)
    }

    /// How many groups this node has.
    pub fn groups_here(&self) -> usize {
        self.gates.len()
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.wiring.node
    }

    /// The place of the application that the node has at position `at` from the start.
    pub fn seat(&self, config: &Config, at: usize) -> Seat {
        Seat {
            name: config.applications[self.wiring.applications[at]]
                .name
                .clone(),
            group: self.places[at],
        }
    }

    /// How many applications the node has at the start.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}

fn channel(
    (application, group): (u16, (usize, usize)),
    port: &Arc<ApplicationPort>,
    board: &Arc<CounterBoard>,
) -> ChannelRuntime {
    ChannelRuntime {
        application,
        group,
        port: Arc::clone(port),
        board: Arc::clone(board),
        snapshot: ApplicationSnapshot::default(),
    }
}

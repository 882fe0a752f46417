//! Putting a node together, and taking it apart again in order.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bumpless_base::{Counters, Duration, LinkId, LinkSet, NodeId, PeerId};
use bumpless_config::{Config, ReferenceKind};
use bumpless_net_linux::{Clock, Pinger, Poller, Waker, random, realtime};
use bumpless_redundancy::{self as redundancy, GroupId, Redundancy, ReferenceId};
use bumpless_transfer::{Publisher, Receiver, Sender, Subscriber};
use rtrb::RingBuffer;

use crate::applications::{ApplicationThread, CounterBoard};
use crate::control::ControlServer;
use crate::data_plane::group::GroupRuntime;
use crate::data_plane::inbound::Cores;
use crate::data_plane::link_port::{Addresses, LinkPort};
use crate::data_plane::{ChannelRuntime, DataPlane, Surroundings};
use crate::executor::ChannelReplication;
use crate::instance_lock::InstanceLock;
use crate::log::{EventLog, LogOutput};
use crate::operator::Operator;
use crate::shared::{ApplicationPort, GroupGate};
use crate::status::{ApplicationSnapshot, LinkSnapshot, Snapshot};
use crate::wiring::{self, Wiring};
use crate::{OpenLink, RunError, RunOptions};

/// Heartbeats that a link may miss before it counts as down.
const MISSED_HEARTBEATS: u64 = 3;
const COMMANDS: usize = 8;

/// Runs a node; see [`crate::run`].
pub fn run(
    config: &Config,
    node: NodeId,
    options: RunOptions,
    open_link: OpenLink<'_>,
) -> Result<(), RunError> {
    let socket = config.control_socket(node);
    let lock_path = PathBuf::from(format!("{}.lock", socket.display()));
    let _lock = InstanceLock::take(&lock_path).map_err(RunError::Lock)?;
    let wiring = Wiring::new(config, node);
    let seed = random::seed().map_err(|errno| system("draw a random number", errno.into()))?;
    let waker = Waker::new().map_err(|errno| system("make a wake-up descriptor", errno.into()))?;

    let mut warnings = Vec::new();
    let links = open_links(config, &wiring, open_link, &mut warnings)?;
    let pingers = open_pingers(config, &wiring, seed, &mut warnings)?;
    let (cores, ends) = build_cores(config, &wiring, seed)?;

    let mut log = EventLog::new(wiring.names.clone());
    let parts = Parts::new(config, &wiring);
    // Executors outlive the order to stop: a hand-over needs them.
    let executors_stop = Arc::new(AtomicBool::new(false));
    let threads = parts.application_threads(
        config,
        ends,
        &waker,
        &mut log,
        (options.log_outputs, &executors_stop),
    );
    let snapshot = Arc::new(Mutex::new(Snapshot::new(
        config,
        &wiring.names,
        seed,
        Clock.now(),
    )));
    let (orders, commands) = RingBuffer::new(COMMANDS);
    let surroundings = Surroundings {
        commands,
        sink: log.sink(),
        snapshot: Arc::clone(&snapshot),
        stop: Arc::clone(&options.stop),
        log_transfers: options.log_transfers,
    };
    let mut plane = parts.data_plane(
        config,
        &wiring,
        cores,
        (links, pingers),
        surroundings,
        (waker.clone(), seed),
    );

    let log = log
        .start(outputs(&options)?)
        .map_err(|error| system("start the log", error))?;
    let realtime_notes = Arc::new(Mutex::new(warnings));
    let operator = Operator::new(
        config.clone(),
        wiring.names.clone(),
        snapshot,
        orders,
        waker,
        Arc::clone(&realtime_notes),
    );
    let control = ControlServer::start(&socket, operator)
        .map_err(|error| system("listen on the control socket", error))?;
    let applications: Vec<JoinHandle<()>> = threads
        .into_iter()
        .map(|thread| thread.start(config))
        .collect::<Result<_, _>>()
        .map_err(|error| system("start an application's thread", error))?;
    let realtime = config.realtime.clone();
    let notes = Arc::clone(&realtime_notes);
    let data_plane = thread::Builder::new()
        .name("data plane".into())
        .spawn(move || {
            prepare_thread(&realtime, &notes);
            plane.run();
            plane.groups.iter().for_each(GroupRuntime::release);
        })
        .map_err(|error| system("start the data plane", error))?;
    let ended = data_plane.join();
    executors_stop.store(true, Ordering::Release);
    parts.ports.iter().for_each(|port| port.wake());
    for application in applications {
        let _ = application.join();
    }
    drop(control);
    drop(log);
    ended.map_err(|_| {
        RunError::Setup("the data plane ended by a panic; please report it with the log".into())
    })
}

fn system(what: &'static str, cause: std::io::Error) -> RunError {
    RunError::System { what, cause }
}

fn outputs(options: &RunOptions) -> Result<Vec<LogOutput>, RunError> {
    let mut outputs = Vec::new();
    if let Some(path) = &options.log_file {
        outputs.push(LogOutput::file(path).map_err(|error| system("open the log file", error))?);
    }
    outputs.extend(options.log_stdout.map(LogOutput::stdout));
    Ok(outputs)
}

/// Real-time properties of the calling thread, as far as they are permitted.
fn prepare_thread(settings: &bumpless_config::Realtime, notes: &Mutex<Vec<String>>) {
    let mut refused = Vec::new();
    let mut note = |result: Result<(), realtime::Refused>| {
        if let Err(error) = result {
            refused.push(error.to_string());
        }
    };
    note(realtime::tighten_timers());
    if let Some(cpu) = settings.cpu {
        note(realtime::pin(cpu.into()));
    }
    if settings.lock_memory {
        note(realtime::lock_memory());
    }
    if let Some(priority) = settings.priority {
        note(realtime::set_fifo(priority));
    }
    if let Ok(mut notes) = notes.lock() {
        notes.append(&mut refused);
    }
}

fn open_links(
    config: &Config,
    wiring: &Wiring,
    open_link: OpenLink<'_>,
    warnings: &mut Vec<String>,
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
        warnings.extend(
            opened
                .notes
                .into_iter()
                .map(|note| format!("network '{}': {note}", settings.name)),
        );
        present |= opened.present;
        let addresses = Addresses {
            partners: wiring.partner_addresses(config, link),
            references: witness_addresses(config, link),
        };
        ports.push(Some(LinkPort::new(
            link,
            opened.driver,
            settings,
            addresses,
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

fn witness_addresses(config: &Config, link: LinkId) -> Vec<Option<std::net::SocketAddr>> {
    config
        .references
        .iter()
        .map(|reference| match reference.kind {
            ReferenceKind::Witness(address) if reference.network == link => Some(address),
            _ => None,
        })
        .collect()
}

fn open_pingers(
    config: &Config,
    wiring: &Wiring,
    nonce: u64,
    warnings: &mut Vec<String>,
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
                warnings.push(format!(
                    "reference point '{}' cannot be used: {error}",
                    reference.name
                ));
                pingers.push(None);
            }
        }
    }
    Ok(pingers)
}

/// The application's ends of each channel.
type Ends = (Vec<Publisher>, Vec<Subscriber>);

fn build_cores(config: &Config, wiring: &Wiring, seed: u64) -> Result<(Cores, Ends), RunError> {
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
            sender.set_link_healthy(PeerId(peer as u8), LinkId(link as u8), false, Clock.now());
        }
    }
    let (receiver, subscribers) = Receiver::new(
        &wiring.receiver_peers(config),
        &wiring.receiver_channels(config),
    )
    .map_err(|error| setup(&error))?;
    let redundancy = Redundancy::new(redundancy_setup(config, wiring), seed, Clock.now())
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

/// What executors and data plane share, by position in the wiring.
struct Parts {
    wiring: Wiring,
    gates: Vec<Arc<GroupGate>>,
    ports: Vec<Arc<ApplicationPort>>,
    boards: Vec<Arc<CounterBoard>>,
    /// For each application: position of its group in `gates`, and its own in that group.
    places: Vec<(usize, usize)>,
}

impl Parts {
    fn new(config: &Config, wiring: &Wiring) -> Self {
        let mut members = vec![0; wiring.groups.len()];
        let places = wiring
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
        Self {
            wiring: wiring.clone(),
            gates: wiring.groups.iter().map(|_| Arc::default()).collect(),
            ports: wiring.applications.iter().map(|_| Arc::default()).collect(),
            boards: wiring.applications.iter().map(|_| Arc::default()).collect(),
            places,
        }
    }

    fn application_threads(
        &self,
        config: &Config,
        (publishers, subscribers): Ends,
        waker: &Waker,
        log: &mut EventLog,
        (log_outputs, stop): (bool, &Arc<AtomicBool>),
    ) -> Vec<ApplicationThread> {
        let ends = publishers.into_iter().zip(subscribers);
        ends.enumerate()
            .map(|(at, (publisher, subscriber))| {
                let gate = Arc::clone(&self.gates[self.places[at].0]);
                let port = Arc::clone(&self.ports[at]);
                ApplicationThread {
                    index: self.wiring.applications[at],
                    node: self.wiring.node,
                    replication: ChannelReplication {
                        publisher,
                        subscriber,
                        expiry: config.applications[self.wiring.applications[at]].expiry,
                        port: Arc::clone(&port),
                        gate: Arc::clone(&gate),
                        waker: waker.clone(),
                    },
                    gate,
                    port,
                    sink: log.sink(),
                    log_outputs,
                    board: Arc::clone(&self.boards[at]),
                    stop: Arc::clone(stop),
                }
            })
            .collect()
    }

    fn data_plane(
        &self,
        config: &Config,
        wiring: &Wiring,
        cores: Cores,
        (ports, pingers): (Vec<Option<LinkPort>>, Vec<Option<Pinger>>),
        surroundings: Surroundings,
        (waker, session): (Waker, u64),
    ) -> DataPlane {
        let mut watched = Vec::new();
        let mut watch = |descriptor| {
            watched.push(descriptor);
            watched.len() - 1
        };
        let descriptors = ports
            .iter()
            .map(|port| port.as_ref().and_then(LinkPort::descriptor).map(&mut watch))
            .collect();
        for pinger in pingers.iter().flatten() {
            watch(pinger.descriptor());
        }
        DataPlane {
            cores,
            groups: self.groups(config),
            channels: self.channels(),
            link_names: wiring.names.links.clone(),
            partner_names: wiring.names.partners.clone(),
            reference_names: config
                .references
                .iter()
                .map(|reference| reference.name.clone())
                .collect(),
            link_snapshots: vec![LinkSnapshot::default(); wiring.partners.len() * ports.len()],
            reference_links: config
                .references
                .iter()
                .map(|reference| usize::from(reference.network.0))
                .collect(),
            ports,
            pingers,
            descriptors,
            poller: Poller::new(&watched, waker),
            surroundings,
            hand_over_patience: hand_over_bound(config),
            session,
            turn_began: Clock.now(),
            stalls: (0, Duration::ZERO),
            refreshed: Clock.now(),
        }
    }

    fn groups(&self, config: &Config) -> Vec<GroupRuntime> {
        let groups = self.wiring.groups.iter().enumerate();
        groups
            .filter_map(|(at, &group)| {
                let peer = self.wiring.partner_in(config, group)?;
                let places = self.places.iter().zip(&self.ports).enumerate();
                let mut members: Vec<_> = places
                    .filter(|(_, (place, _))| place.0 == at)
                    .map(|(member, (_, port))| {
                        let application = self.wiring.applications[member];
                        (Arc::clone(port), config.applications[application].period)
                    })
                    .collect();
                members.sort_by_key(|(_, period)| std::cmp::Reverse(*period));
                Some(GroupRuntime::new(
                    GroupId(group as u16),
                    peer,
                    Arc::clone(&self.gates[at]),
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

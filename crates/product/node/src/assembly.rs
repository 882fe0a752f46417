//! Putting a node together, and taking it apart again in order.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bumpless_base::{Duration, NodeId};
use bumpless_config::{Config, Realtime, Security};
use bumpless_net_linux::{Clock, Waker, open_files, random};
use bumpless_pki::Identity;
use bumpless_secure::{Keyring, RingSuite};
use rtrb::Producer;

use crate::admission::Admission;
use crate::build::{Beginning, Ends, Node, Parts};
use crate::certificates;
use crate::change::store::Store;
use crate::change::{Changer, RunningChanges, Tools};
use crate::control::{CALLERS_MAX, ControlServer};
use crate::data_plane::change::ChangeBoard;
use crate::data_plane::drivers::{Pingers, Ports, Sockets};
use crate::data_plane::waiter::Waiter;
use crate::data_plane::{Command, DataPlane};
use crate::directory::Directory;
use crate::field_identity::{self, FieldIdentity};
use crate::key_file;
use crate::key_service::{self, GroupKeys, KeyService};
use crate::log::{EventLog, EventSink, LogHealth, LogOutput, LogRegistry, Names};
use crate::management::{self, Sessions};
use crate::note::Note;
use crate::opening::{PacketKeys, open_links, open_pingers};
use crate::operator::Operator;
use crate::persist::{Disk, Found, Tellers};
use crate::program;
use crate::realtime::prepare_thread;
use crate::reception::guard::NetworkGuard;
use crate::reception::placement;
use crate::reception::programs::SILENT_MAX;
use crate::running::{Common, Running};
use crate::snapshot::Snapshot;
use crate::state_security::{self, Healths, StateGuards};
use crate::wiring::Wiring;
use crate::{OpenLink, RunError, RunOptions};

/// Runs a node; see [`crate::run`].
pub fn run(
    config: &Config,
    node: NodeId,
    options: RunOptions,
    open_link: OpenLink<'_>,
) -> Result<(), RunError> {
    let admission = Admission::of(config).map_err(RunError::Refused)?;
    let folder = key_file::folder_of(options.config_file.as_deref());
    let keys = read_keys((config, node), folder)?;
    let called = { config.nodes.get(usize::from(node.0)) }.map_or("", |node| &node.name);
    field_identity::check((config, called), folder).map_err(RunError::Identity)?;
    let _lock = crate::lock(config, node).map_err(RunError::Lock)?;
    let wiring = Wiring::new(config, node);
    open_files::ensure(files_needed(config, &wiring)).map_err(RunError::OpenFiles)?;
    let mut notes = Vec::new();
    let disk = Disk::open(config, node, &wiring)?;
    let found = read_disk(disk.as_ref(), &mut notes);
    let own = wiring
        .applications
        .iter()
        .map(|&at| &config.applications[at]);
    let unkept = own.filter_map(program::retains_in_memory_alone);
    notes.extend(unkept.map(|weakness| Note::lasting(weakness.to_string())));
    let drivers = open_drivers((config, &wiring), keys.packets(), open_link, &mut notes)?;
    // Before the node's time begins: attaching waits for the kernel.
    let guard = NetworkGuard::start((config, node), folder, &mut notes);
    // After that: a driver may begin anew when a program is attached, with other threads.
    let placement = placement::start((config, node), options.keeper.as_deref(), &mut notes);
    let beginning = Beginning {
        seed: seed()?,
        now: Clock.now(),
        stop: Arc::clone(&options.stop),
        log_transfers: options.log_transfers,
    };
    let mut built = Node::new(config, &wiring, drivers, beginning)?;
    built.plane.restore(&found, Clock.now());
    let found = (options, admission, keys);
    let ended = start_threads(config, &wiring, found, (built, disk, notes), &guard);
    // In the other order: without the guard's program a virtual interface has no threads, and takes no word on them.
    drop(placement);
    guard.end();
    ended
}

/// The keys of messages; those of states are there, too.
fn read_keys((config, node): (&Config, NodeId), folder: &Path) -> Result<Keys, RunError> {
    let keys = Keys::read((config, node), folder);
    let of_states = state_security::key_problems(config, folder);
    if of_states.is_empty() {
        return keys;
    }
    match keys {
        Ok(_) => Err(RunError::Keys(of_states)),
        Err(RunError::Keys(mut errors)) => {
            let known: Vec<_> = errors.iter().map(|error| error.path.clone()).collect();
            let others = of_states.into_iter();
            errors.extend(others.filter(|error| !known.contains(&error.path)));
            Err(RunError::Keys(errors))
        }
        Err(other) => Err(other),
    }
}

/// Where the keys of packets come from, and with what.
enum Keys {
    Open,
    Files(Arc<Keyring<RingSuite>>),
    Sessions(Box<Identity>),
}

impl Keys {
    fn read((config, node): (&Config, NodeId), folder: &Path) -> Result<Self, RunError> {
        if let Security::Certificates(given) = &config.security {
            let node = config.nodes.get(usize::from(node.0));
            let called = node.map_or("", |node| node.name.as_str());
            let identity = certificates::identity(given, (config, called), folder);
            let identity = identity.map_err(RunError::Identity)?;
            return Ok(Self::Sessions(identity.into()));
        }
        let keys = key_file::for_config(&config.security, folder).map_err(RunError::Keys)?;
        Ok(keys.map_or(Self::Open, |keys| Self::Files(Arc::new(keys))))
    }

    const fn packets(&self) -> PacketKeys<'_> {
        match self {
            Self::Open => PacketKeys::None,
            Self::Files(keys) => PacketKeys::Given(keys),
            Self::Sessions(_) => PacketKeys::Agreed,
        }
    }
}

/// Starts the threads of a node that is put together, and waits for the end of its data plane. What is declared first
/// ends last, whatever goes wrong: the data plane, which hands over with the executors' help; the control socket;
/// changes and executors; the way to the disk; the log.
fn start_threads(
    config: &Config,
    wiring: &Wiring,
    (options, admission, keys): (RunOptions, Admission, Keys),
    (built, disk, notes): (Node<Sockets>, Option<Disk>, Vec<Note>),
    guard: &NetworkGuard,
) -> Result<(), RunError> {
    let (parts, mut log) = (built.parts, built.log);
    let ways = WaysIntoLog::new(&mut log, wiring);
    let directory = Directory::new(config, admission.clone());
    let field_boards = directory.field.clone();
    let control = (built.orders, built.snapshot, built.board);
    let shared = Shared::new(directory, control, notes, log.health())?;
    let tellers = Tellers {
        notes: Arc::clone(&shared.notes),
        log: ways.registry.clone(),
        sink: log.sink(),
    };
    let store = find_store(&options, wiring)?;
    let folder = key_file::folder_of(options.config_file.as_deref());
    let guards = StateGuards::new((config, wiring), folder);
    let _log = log
        .start(outputs(&options)?)
        .map_err(|error| system("start the log", error))?;
    let (_writer, keeping) = disk
        .map(|disk| disk.start(tellers))
        .transpose()
        .map_err(|error| system("start the thread that writes states", error))?
        .unzip();
    let common = Common {
        node: wiring.node,
        waker: shared.waker.clone(),
        log_outputs: options.log_outputs,
        priority: config.realtime.priority,
        keeping,
        guards: guards.clone(),
        field: FieldIdentity::new((config, &wiring.names.node), folder, field_boards),
    };
    let (weaknesses, told) = (ways.registry.clone(), ways.registry.clone());
    let ends = (built.ends, ways.executors);
    let running = start_applications(config, wiring, &parts, common, ends)?;
    let tools = shared.tools((store, folder), running, (ways.registry, ways.changes));
    let changer = Changer::new((config, admission), parts, built.factories);
    let changes = RunningChanges::start(changer, tools)
        .map_err(|error| system("start the thread for changes", error))?;
    let (sessions, key_service) = (Sessions::default(), KeyService::default());
    guard
        .look_after(Arc::clone(&shared.directory))
        .map_err(|error| system("start the thread for reception", error))?;
    let told_by = (
        (sessions.clone(), key_service.clone()),
        guards.healths(),
        guard.clone(),
    );
    let operator = shared.operator(wiring.names.clone(), &changes, told_by);
    let socket = config.control_socket(wiring.node);
    let group = config.nodes[usize::from(wiring.node.0)]
        .control_group
        .as_deref();
    let _control = ControlServer::start(&socket, group, operator)
        .map_err(|error| system(listening(group), error))?;
    let realtime = (config.realtime.clone(), config.reception.busy_poll);
    let data_plane = start_data_plane(built.plane, &shared, realtime, weaknesses)
        .map_err(|error| system("start the data plane", error))?;
    let _sessions = start_sessions(
        (config, wiring),
        keys,
        (&shared, (&sessions, &key_service), &guards),
        (&options, told),
        &changes,
    )?;
    data_plane.join().map_err(|_| RunError::Panicked)
}

/// What is attempted, as an error says it.
const fn listening(group: Option<&str>) -> &'static str {
    match group {
        None => "listen on the control socket",
        Some(_) => {
            "listen on the control socket for its control_group, of which the node's user must be a member"
        }
    }
}

/// The threads of sessions, which end with this: with partners and witnesses, and with key servers.
type RunningSessions = (bumpless_management::Running, Option<bumpless_keys::Running>);

/// Sessions with partners and witnesses, and with key servers, if there are certificates.
fn start_sessions(
    (config, wiring): (&Config, &Wiring),
    keys: Keys,
    (shared, (sessions, key_service), guards): (&Shared, (&Sessions, &KeyService), &StateGuards),
    (options, log): (&RunOptions, LogRegistry),
    changes: &RunningChanges,
) -> Result<Option<RunningSessions>, RunError> {
    let (Keys::Sessions(identity), Security::Certificates(certificates)) = (keys, &config.security)
    else {
        return Ok(None);
    };
    let folder = key_file::folder_of(options.config_file.as_deref());
    let ways = |rings| (Arc::clone(&shared.orders), shared.waker.clone(), rings);
    let given = config.security.has_key_servers();
    let group = GroupKeys::new(wiring.partners.len(), ways(guards.group_rings()));
    let group = given.then_some(group);
    let of_servers = match &group {
        None => None,
        Some(group) => {
            let again = certificates::identity(certificates, (config, &wiring.names.node), folder);
            let with = (certificates, again.map_err(RunError::Identity)?, folder);
            let told = (group.clone(), key_service);
            let started = key_service::start((config, wiring), with, told, log.clone());
            Some(started.map_err(|error| system("start sessions with key servers", error))?)
        }
    };
    let with = (certificates, *identity, folder);
    let orders = (ways(guards.rings()), group);
    let told = (sessions, log);
    let started = management::start((config, wiring), with, orders, told, changes.entrance());
    let started = started.map_err(|error| system("start sessions with partners", error))?;
    Ok(Some((started, of_servers)))
}

/// Files that `wiring` takes, those included with which a process starts, and those that come and go: callers of the
/// control socket, the log opened again, a configuration that is read.
fn files_needed(config: &Config, wiring: &Wiring) -> u64 {
    /// The standard ones; lock, wake-up, wake latency, log, control socket.
    const ALWAYS: usize = 3 + 5;
    /// Poll descriptor, its copy and wake-up; connections come besides.
    const PER_FIELD: usize = 3;
    const FOR_A_WHILE: usize = 8;
    // Listeners, callers that have not shown who they are, two sessions with each partner and witness.
    let sessions = match &config.security {
        Security::Certificates(given) => {
            let servers = 2 * given.key_servers.len().min(1);
            let others = 2 * (wiring.partners.len() + config.references.len());
            config.networks.len() + 8 + others + servers
        }
        _ => 0,
    };
    let fields = wiring.applications.iter();
    let fields = fields.filter_map(|&at| config.applications[at].field.as_ref());
    let fields: usize = fields
        .map(|field| match field_identity::secure_count(field) {
            0 => PER_FIELD + field.count(),
            // Connections are made by a thread of its own.
            secure => 2 * PER_FIELD + field.count() + secure,
        })
        .sum();
    let networks = config.networks.len() + config.references.len();
    // Each network's record of how its interface was; each program's connection, and those that have not said what they want.
    let placed = config.networks.len() + 1;
    let programs = { config.registration.as_ref() }.map_or(0, |it| it.flows + 2 + SILENT_MAX);
    let needed =
        ALWAYS + networks + fields + CALLERS_MAX + FOR_A_WHILE + sessions + placed + programs;
    needed as u64
}

/// What the threads of a node share.
struct Shared {
    waker: Waker,
    orders: Arc<Mutex<Producer<Command>>>,
    snapshot: Arc<Mutex<Snapshot>>,
    board: Arc<ChangeBoard>,
    directory: Arc<Mutex<Directory>>,
    /// What was not granted at the start.
    notes: Arc<Mutex<Vec<Note>>>,
    /// How the event log does.
    log: LogHealth,
}

impl Shared {
    fn new(
        directory: Directory,
        (orders, snapshot, board): (Producer<Command>, Arc<Mutex<Snapshot>>, Arc<ChangeBoard>),
        notes: Vec<Note>,
        log: LogHealth,
    ) -> Result<Self, RunError> {
        let waker =
            Waker::new().map_err(|errno| system("make a wake-up descriptor", errno.into()))?;
        Ok(Self {
            waker,
            orders: Arc::new(Mutex::new(orders)),
            snapshot,
            board,
            directory: Arc::new(Mutex::new(directory)),
            notes: Arc::new(Mutex::new(notes)),
            log,
        })
    }

    fn tools(
        &self,
        (store, keys_folder): (Option<Store>, &Path),
        running: Running,
        (registry, sink): (LogRegistry, EventSink),
    ) -> Tools {
        Tools {
            store,
            keys_folder: keys_folder.to_owned(),
            board: Arc::clone(&self.board),
            orders: Arc::clone(&self.orders),
            waker: self.waker.clone(),
            running,
            registry,
            sink,
            directory: Arc::clone(&self.directory),
        }
    }

    fn operator(
        &self,
        names: Names,
        changes: &RunningChanges,
        (sessions, states, guard): ((Sessions, KeyService), Healths, NetworkGuard),
    ) -> Operator {
        Operator::new(
            Arc::clone(&self.directory),
            names,
            Arc::clone(&self.snapshot),
            Arc::clone(&self.orders),
            changes.entrance(),
            self.waker.clone(),
            (
                Arc::clone(&self.notes),
                Arc::clone(&self.log),
                sessions,
                states,
                guard,
            ),
        )
    }
}

/// Ways into the log, one for each thread that tells events.
struct WaysIntoLog {
    executors: Vec<EventSink>,
    changes: EventSink,
    registry: LogRegistry,
}

impl WaysIntoLog {
    fn new(log: &mut EventLog, wiring: &Wiring) -> Self {
        Self {
            executors: wiring.applications.iter().map(|_| log.sink()).collect(),
            changes: log.sink(),
            registry: log.registry(),
        }
    }
}

fn seed() -> Result<u64, RunError> {
    random::seed().map_err(|errno| system("draw a random number", errno.into()))
}

fn open_drivers(
    (config, wiring): (&Config, &Wiring),
    keys: PacketKeys<'_>,
    open_link: OpenLink<'_>,
    notes: &mut Vec<Note>,
) -> Result<(Ports<Sockets>, Pingers<Sockets>), RunError> {
    let links = open_links((config, wiring), keys, open_link, notes)?;
    // Echo requests show their nonce to everybody on their way; it must tell nothing of the cores' seed.
    let pingers = open_pingers(config, wiring, seed()?, notes)?;
    Ok((links, pingers))
}

/// What may be gone on from; what is refused is said here, in `notes`, and by them in log and status.
fn read_disk(disk: Option<&Disk>, notes: &mut Vec<Note>) -> Vec<Found> {
    let Some(disk) = disk else {
        return Vec::new();
    };
    for refusal in disk.refusals() {
        eprintln!("bumpless: {refusal}");
        notes.push(Note::lasting(refusal.clone()));
    }
    disk.found().to_vec()
}

fn find_store(options: &RunOptions, wiring: &Wiring) -> Result<Option<Store>, RunError> {
    let file = options.config_file.as_deref();
    let store = file.map(|file| Store::new(file, &wiring.names.node));
    store
        .transpose()
        .map_err(|error| system("find the configuration's file", error))
}

fn start_applications(
    config: &Config,
    wiring: &Wiring,
    parts: &Parts,
    common: Common,
    (ends, sinks): (Ends, Vec<EventSink>),
) -> Result<Running, RunError> {
    let mut running = Running::new(common);
    let ends = ends.0.into_iter().zip(ends.1).zip(sinks).enumerate();
    for (at, (ends, sink)) in ends {
        let settings = &config.applications[wiring.applications[at]];
        running
            .start(at, (settings, false), parts.shared(at), ends, sink)
            .map_err(|error| system("start an application's thread", error))?;
    }
    Ok(running)
}

fn start_data_plane(
    mut plane: DataPlane,
    shared: &Shared,
    (realtime, busy_poll): (Realtime, Duration),
    weaknesses: LogRegistry,
) -> io::Result<JoinHandle<()>> {
    let mut waiter = Waiter::new(&plane, shared.waker.clone(), busy_poll);
    let notes = Arc::clone(&shared.notes);
    thread::Builder::new()
        .name("data plane".into())
        .spawn(move || {
            let _held = prepare_thread(&realtime, &notes);
            tell(&notes, weaknesses);
            waiter.run(&mut plane);
            plane.release();
        })
}

/// Has the log tell what was found at the start.
fn tell(notes: &Mutex<Vec<Note>>, log: LogRegistry) {
    let notes = notes.lock().map(|notes| notes.clone()).unwrap_or_default();
    for note in notes {
        log.tell_weakness(Clock.now(), note.text);
    }
}

fn system(what: &'static str, cause: io::Error) -> RunError {
    RunError::System { what, cause }
}

fn outputs(options: &RunOptions) -> Result<Vec<LogOutput>, RunError> {
    let mut outputs = Vec::new();
    if let Some(path) = &options.log_file {
        let output = LogOutput::file(path).map_err(|cause| RunError::Log {
            path: path.clone(),
            cause,
        })?;
        outputs.push(output);
    }
    outputs.extend(options.log_stdout.map(LogOutput::stdout));
    Ok(outputs)
}

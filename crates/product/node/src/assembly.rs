//! Putting a node together, and taking it apart again in order.

mod files;
mod keys;
mod sessions;
mod shared;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bumpless_base::{Duration, NodeId};
use bumpless_config::{Config, Realtime};
use bumpless_net_linux::{Clock, open_files, random};

use self::files::files_needed;
use self::keys::{Keys, read_keys};
use self::sessions::start_sessions;
use self::shared::{Shared, WaysIntoLog};
use crate::admission::Admission;
use crate::build::{Beginning, Ends, Node, Parts};
use crate::change::store::Store;

use crate::change::{Changer, RunningChanges, Tools};
use crate::control::ControlServer;
use crate::data_plane::DataPlane;
use crate::data_plane::drivers::{Pingers, Ports, Sockets};
use crate::data_plane::waiter::Waiter;
use crate::directory::Directory;
use crate::field_identity::{self, FieldIdentity};
use crate::key_file;
use crate::key_service::KeyService;
use crate::log::{EventSink, LogOutput, LogRegistry};
use crate::management::Sessions;
use crate::note::Note;
use crate::opening::{PacketKeys, open_links, open_pingers};
use crate::operator::Operator;
use crate::persist::{Disk, Found, Keeping, RunningWriter, Tellers};
use crate::program;
use crate::realtime::prepare_thread;
use crate::reception::guard::NetworkGuard;
use crate::reception::placement;
use crate::running::{Common, Running};
use crate::state_security::StateGuards;
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
    let wanted = || !options.stop.load(Ordering::Acquire);
    let disk = Disk::open(config, node, &wiring, &wanted)?;
    if !wanted() {
        return Ok(());
    }
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
    let tellers = shared.tellers(ways.registry.clone(), log.sink());
    let store = find_store(&options, wiring)?;
    let folder = key_file::folder_of(options.config_file.as_deref());
    let guards = StateGuards::new((config, wiring), folder);
    let _log = log
        .start(outputs(&options)?)
        .map_err(RunError::system("start the log"))?;
    let (_writer, keeping) = start_disk(disk, tellers)?;
    let common = Common {
        node: wiring.node,
        waker: shared.waker.clone(),
        log_outputs: options.log_outputs,
        priority: config.realtime.priority,
        keeping,
        guards: guards.clone(),
        field: FieldIdentity::new((config, &wiring.names.node), folder, field_boards),
        stop: Arc::clone(&options.stop),
        failover: config.timing.failover_time(),
    };
    let (weaknesses, told) = (ways.registry.clone(), ways.registry.clone());
    let ends = (built.ends, ways.executors);
    let running = match start_applications(config, wiring, &parts, common, ends) {
        // Told to end while a program began: nothing has begun that would have to be handed over.
        Err(_) if options.stop.load(Ordering::Acquire) => return Ok(()),
        running => running?,
    };
    let tools = shared.tools((store, folder), running, (ways.registry, ways.changes));
    let changer = Changer::new((config, admission), parts, built.factories);
    let changes = start_changes(changer, tools)?;
    let (sessions, key_service) = (Sessions::default(), KeyService::default());
    let looked_after = guard.look_after(Arc::clone(&shared.directory));
    looked_after.map_err(RunError::system("start the thread for reception"))?;
    let with = (sessions.clone(), key_service.clone());
    let told_by = (with, guards.healths(), guard.clone());
    let operator = shared.operator(wiring.names.clone(), &changes, told_by);
    let _control = start_control(config, wiring, operator)?;
    let realtime = (config.realtime.clone(), config.reception.busy_poll);
    let data_plane = start_data_plane(built.plane, &shared, realtime, weaknesses)?;
    let _sessions = start_sessions(
        (config, wiring),
        keys,
        (&shared, (&sessions, &key_service), &guards),
        (&options, told),
        &changes,
    )?;
    data_plane.join().map_err(|_| RunError::Panicked)
}

fn start_control(
    config: &Config,
    wiring: &Wiring,
    operator: Operator,
) -> Result<ControlServer, RunError> {
    let socket = config.control_socket(wiring.node);
    let node = &config.nodes[usize::from(wiring.node.0)];
    let group = node.control_group.as_deref();
    ControlServer::start(&socket, group, operator).map_err(RunError::system(listening(group)))
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

fn seed() -> Result<u64, RunError> {
    random::seed().map_err(|errno| RunError::system("draw a random number")(errno.into()))
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
        .map_err(RunError::system("find the configuration's file"))
}

fn start_applications(
    config: &Config,
    wiring: &Wiring,
    parts: &Parts,
    common: Common,
    (ends, sinks): (Ends, Vec<EventSink>),
) -> Result<Running, RunError> {
    let mut running = Running::new(common);
    let ends = ends.0.into_iter().zip(ends.1).zip(sinks);
    for (at, (ends, sink)) in wiring.applications.indices().zip(ends) {
        let settings = &config.applications[wiring.applications[at]];
        running
            .start(at, (settings, false), parts.shared(at), ends, sink)
            .map_err(RunError::system("start an application's thread"))?;
    }
    Ok(running)
}

fn start_data_plane(
    mut plane: DataPlane,
    shared: &Shared,
    (realtime, busy_poll): (Realtime, Duration),
    weaknesses: LogRegistry,
) -> Result<JoinHandle<()>, RunError> {
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
        .map_err(RunError::system("start the data plane"))
}

fn start_disk(
    disk: Option<Disk>,
    tellers: Tellers,
) -> Result<(Option<RunningWriter>, Option<Keeping>), RunError> {
    let started = disk.map(|disk| disk.start(tellers)).transpose();
    let started = started.map_err(RunError::system("start the thread that writes states"))?;
    Ok(started.unzip())
}

fn start_changes(changer: Changer, tools: Tools) -> Result<RunningChanges, RunError> {
    RunningChanges::start(changer, tools).map_err(RunError::system("start the thread for changes"))
}

/// Has the log tell what was found at the start.
fn tell(notes: &Mutex<Vec<Note>>, log: LogRegistry) {
    let notes = notes.lock().map(|notes| notes.clone()).unwrap_or_default();
    for note in notes {
        log.tell_weakness(Clock.now(), note.text);
    }
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

//! Putting a node together, and taking it apart again in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use bumpless_base::NodeId;
use bumpless_config::Config;
use bumpless_net_linux::{Clock, Waker, random};
use rtrb::RingBuffer;

use crate::admission::Admission;
use crate::build::{Parts, build_cores};
use crate::change::store::Store;
use crate::change::{ChangeThread, Changer, Tools};
use crate::control::ControlServer;
use crate::data_plane::Surroundings;
use crate::data_plane::change::ChangeBoard;
use crate::data_plane::group::GroupRuntime;
use crate::data_plane::waiter::Waiter;
use crate::directory::Directory;
use crate::log::{EventLog, LogOutput, LogRegistry};
use crate::note::Note;
use crate::opening::{open_links, open_pingers, prepare_thread};
use crate::operator::Operator;
use crate::running::{Common, Running};
use crate::status::Snapshot;
use crate::wiring::Wiring;
use crate::{OpenLink, RunError, RunOptions};

const COMMANDS: usize = 8;

/// Runs a node; see [`crate::run`].
pub fn run(
    config: &Config,
    node: NodeId,
    options: RunOptions,
    open_link: OpenLink<'_>,
) -> Result<(), RunError> {
    let admission = Admission::of(config).map_err(RunError::Refused)?;
    let socket = config.control_socket(node);
    let _lock = crate::lock(config, node).map_err(RunError::Lock)?;
    let wiring = Wiring::new(config, node);
    let seed = random::seed().map_err(|errno| system("draw a random number", errno.into()))?;
    let waker = Waker::new().map_err(|errno| system("make a wake-up descriptor", errno.into()))?;

    let mut notes = Vec::new();
    let links = open_links(config, &wiring, open_link, &mut notes)?;
    // Echo requests show their nonce to everybody on their way; it must tell nothing of the seed.
    let nonce = random::seed().map_err(|errno| system("draw a random number", errno.into()))?;
    let pingers = open_pingers(config, &wiring, nonce, &mut notes)?;
    let (cores, ends) = build_cores(config, &wiring, seed, Clock.now())?;

    let mut log = EventLog::new(wiring.names.clone());
    let parts = Parts::new(config, &wiring);
    let factories = (cores.sender.factory(), cores.receiver.factory());
    let sinks: Vec<_> = wiring.applications.iter().map(|_| log.sink()).collect();
    let snapshot = Arc::new(Mutex::new(Snapshot::new(
        config,
        &wiring.names,
        cores.redundancy.session(),
        Clock.now(),
    )));
    let (orders, commands) = RingBuffer::new(COMMANDS);
    let orders = Arc::new(Mutex::new(orders));
    let board = Arc::new(ChangeBoard::default());
    let surroundings = Surroundings {
        commands,
        sink: log.sink(),
        snapshot: Arc::clone(&snapshot),
        board: Arc::clone(&board),
        stop: Arc::clone(&options.stop),
        log_transfers: options.log_transfers,
    };
    let drivers = (links, pingers);
    let mut plane = parts.data_plane(config, cores, drivers, surroundings, Clock.now());
    let mut waiter = Waiter::new(&plane, waker.clone());

    let (registry, change_sink) = (log.registry(), log.sink());
    let weaknesses = registry.clone();
    let store = options.config_file.as_deref();
    let store = store
        .map(|file| Store::new(file, &wiring.names.node))
        .transpose();
    let store = store.map_err(|error| system("find the configuration's file", error))?;
    let log = log
        .start(outputs(&options)?)
        .map_err(|error| system("start the log", error))?;
    let notes = Arc::new(Mutex::new(notes));
    let directory = Arc::new(Mutex::new(Directory::new(config, admission.clone())));
    // Executors outlive the order to stop: a hand-over needs them.
    let mut running = Running::new(Common {
        node,
        waker: waker.clone(),
        log_outputs: options.log_outputs,
        priority: config.realtime.priority,
    });
    let ends = ends.0.into_iter().zip(ends.1).zip(sinks).enumerate();
    for (at, (ends, sink)) in ends {
        let settings = &config.applications[wiring.applications[at]];
        running
            .start(at, (settings, false), parts.shared(at), ends, sink)
            .map_err(|error| system("start an application's thread", error))?;
    }
    let stop_changes = Arc::new(AtomicBool::new(false));
    let changer = Changer::new((config, admission), parts, factories);
    let tools = Tools {
        store,
        board,
        orders: Arc::clone(&orders),
        waker: waker.clone(),
        running,
        registry,
        sink: change_sink,
        stop: Arc::clone(&stop_changes),
        directory: Arc::clone(&directory),
    };
    let (requests, asked) = mpsc::channel();
    let changes = ChangeThread::new(changer, tools, asked);
    let changes = thread::Builder::new()
        .name("change".into())
        .spawn(move || changes.run())
        .map_err(|error| system("start the thread for changes", error))?;
    let operator = Operator::new(
        directory,
        wiring.names.clone(),
        snapshot,
        orders,
        (requests, changes.thread().clone()),
        waker,
        Arc::clone(&notes),
    );
    let control = ControlServer::start(&socket, operator)
        .map_err(|error| system("listen on the control socket", error))?;
    let realtime = config.realtime.clone();
    let data_plane = thread::Builder::new()
        .name("data plane".into())
        .spawn(move || {
            let _held = prepare_thread(&realtime, &notes);
            tell(&notes, weaknesses);
            waiter.run(&mut plane);
            plane.groups.iter().for_each(GroupRuntime::release);
        })
        .map_err(|error| system("start the data plane", error))?;
    let ended = data_plane.join();
    drop(control);
    stop_changes.store(true, Ordering::Release);
    changes.thread().unpark();
    if let Ok(mut running) = changes.join() {
        running.stop_all();
    }
    drop(log);
    ended.map_err(|_| RunError::Panicked)
}

/// Has the log tell what was found at the start.
fn tell(notes: &Mutex<Vec<Note>>, log: LogRegistry) {
    let notes = notes.lock().map(|notes| notes.clone()).unwrap_or_default();
    for note in notes {
        log.tell_weakness(Clock.now(), note.text);
    }
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

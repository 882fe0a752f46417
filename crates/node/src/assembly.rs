//! Putting a node together, and taking it apart again in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bumpless_base::NodeId;
use bumpless_config::Config;
use bumpless_net_linux::{Clock, Waker, random};
use rtrb::RingBuffer;

use crate::admission::Admission;
use crate::applications::ApplicationThread;
use crate::build::{Ends, Parts, Shared, build_cores};
use crate::control::ControlServer;
use crate::data_plane::Surroundings;
use crate::data_plane::group::GroupRuntime;
use crate::data_plane::waiter::Waiter;
use crate::executor::{ChannelReplication, Threads};
use crate::log::{EventLog, LogOutput};
use crate::opening::{open_links, open_pingers, prepare_thread};
use crate::operator::Operator;
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

    let mut warnings: Vec<String> = admission.weakness().into_iter().collect();
    let links = open_links(config, &wiring, open_link, &mut warnings)?;
    let pingers = open_pingers(config, &wiring, seed, &mut warnings)?;
    let (cores, ends) = build_cores(config, &wiring, seed, Clock.now())?;

    let mut log = EventLog::new(wiring.names.clone());
    let parts = Parts::new(config, &wiring);
    // Executors outlive the order to stop: a hand-over needs them.
    let executors_stop = Arc::new(AtomicBool::new(false));
    let threads = application_threads(
        config,
        (&wiring, &parts),
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
        cores,
        (links, pingers),
        surroundings,
        seed,
        Clock.now(),
    );
    let mut waiter = Waiter::new(&plane, waker.clone());

    let log = log
        .start(outputs(&options)?)
        .map_err(|error| system("start the log", error))?;
    let realtime_notes = Arc::new(Mutex::new(warnings));
    let operator = Operator::new(
        (config.clone(), admission),
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
            waiter.run(&mut plane);
            plane.groups.iter().for_each(GroupRuntime::release);
        })
        .map_err(|error| system("start the data plane", error))?;
    let ended = data_plane.join();
    executors_stop.store(true, Ordering::Release);
    parts.wake_executors();
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

/// The applications' threads, not started yet.
fn application_threads(
    config: &Config,
    (wiring, parts): (&Wiring, &Parts),
    (publishers, subscribers): Ends,
    waker: &Waker,
    log: &mut EventLog,
    (log_outputs, stop): (bool, &Arc<AtomicBool>),
) -> Vec<ApplicationThread> {
    let ends = publishers.into_iter().zip(subscribers);
    ends.enumerate()
        .map(|(at, (publisher, subscriber))| {
            let Shared {
                index,
                gate,
                port,
                board,
            } = parts.shared(at);
            ApplicationThread {
                index,
                node: wiring.node,
                replication: ChannelReplication {
                    publisher,
                    subscriber,
                    expiry: config.applications[index].expiry,
                    port: Arc::clone(&port),
                    gate: Arc::clone(&gate),
                    environment: Threads(waker.clone()),
                },
                gate,
                port,
                sink: log.sink(),
                log_outputs,
                board,
                stop: Arc::clone(stop),
            }
        })
        .collect()
}

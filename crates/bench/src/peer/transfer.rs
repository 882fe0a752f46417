//! Ours, as the daemon runs it: its data plane on a thread of its own over real sockets, published to
//! through the port that an executor publishes through, and read as a backup reads.
//!
//! Sender and receiver are the two nodes of a pair of which the sender is preferred, without a
//! reference point, so that nothing but the pair itself is needed. Heartbeats run at their default
//! rate; the lease is long, because what is measured is the transfer and not a take-over.
//!
//! A transfer is acknowledged when the whole state lies where the backup's application reads it. The
//! receiver reads and checks the newest state of each channel every few milliseconds.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use bumpless_base::{ChannelId, Duration};
use bumpless_config::{Config, Problem};
use bumpless_controller::Replication;
use bumpless_meeting::{GroupGate, Outcome};
use bumpless_net_linux::{Clock, Waker, random};
use bumpless_node::build::{Ends, Parts, build_cores};
use bumpless_node::data_plane::waiter::Waiter;
use bumpless_node::data_plane::{DataPlane, Surroundings};
use bumpless_node::executor::{ChannelReplication, Threads};
use bumpless_node::log::EventLog;
use bumpless_node::opening::{open_links, prepare_thread};
use bumpless_node::status::Snapshot;
use bumpless_node::wiring::Wiring;
use bumpless_transfer::Subscriber;
use rtrb::RingBuffer;

use super::payload::is_whole;
use super::{ChannelSender, PATIENCE, PeerOptions, Side, wait_for_end};
use crate::conversation::serve::tell;
use crate::conversation::{ready, serve};

/// How long a sender waits for its partner at the start.
const MEETING: Duration = Duration::from_secs(20);
/// How often the receiver looks at what it has.
const LOOK: Duration = Duration::from_millis(10);

/// A node's data plane at work; ends when dropped.
struct Node {
    parts: Parts,
    ends: Ends,
    waker: Waker,
    stop: Arc<AtomicBool>,
    settings: String,
    thread: Option<thread::JoinHandle<()>>,
}

impl Node {
    fn start(options: &PeerOptions, side: Side) -> Result<Self, String> {
        let config = configuration(options)?;
        let name = if side == Side::Send {
            "sender"
        } else {
            "receiver"
        };
        let node = config.node(name).ok_or("the pair has no such node")?;
        let system = |error: bumpless_net_linux::Errno| io::Error::from(error).to_string();
        let wiring = Wiring::new(&config, node);
        let seed = random::seed().map_err(system)?;
        let waker = Waker::new().map_err(system)?;
        let mut notes = Vec::new();
        let links = open_links(&config, &wiring, &mut bumpless_node::open_udp, &mut notes)
            .map_err(|error| error.to_string())?;
        let (cores, ends) =
            build_cores(&config, &wiring, seed, Clock.now()).map_err(|error| error.to_string())?;
        let mut log = EventLog::new(wiring.names.clone());
        let parts = Parts::new(&config, &wiring);
        let stop = Arc::new(AtomicBool::new(false));
        let snapshot = Snapshot::new(&config, &wiring.names, seed, Clock.now());
        let surroundings = Surroundings {
            commands: RingBuffer::new(1).1,
            sink: log.sink(),
            snapshot: Arc::new(Mutex::new(snapshot)),
            stop: Arc::clone(&stop),
            log_transfers: false,
        };
        let drivers = (links, Vec::new());
        let plane = parts.data_plane(&config, cores, drivers, surroundings, seed, Clock.now());
        let waiter = Waiter::new(&plane, waker.clone());
        let settings = settings(options, &notes);
        Ok(Self {
            thread: Some(run(config, plane, waiter, log)?),
            parts,
            ends,
            waker,
            stop,
            settings,
        })
    }

    /// Takes the application's ends out.
    fn take_ends(&mut self) -> Ends {
        std::mem::take(&mut self.ends)
    }
}

/// Runs the data plane on a thread of its own, as the daemon does.
fn run(
    config: Config,
    mut plane: DataPlane,
    mut waiter: Waiter,
    log: EventLog,
) -> Result<thread::JoinHandle<()>, String> {
    let log = log
        .start(Vec::new())
        .map_err(|error| format!("cannot start the log: {error}"))?;
    thread::Builder::new()
        .name("data plane".into())
        .spawn(move || {
            prepare_thread(&config.realtime, &Mutex::default());
            waiter.run(&mut plane);
            drop(log);
        })
        .map_err(|error| format!("cannot start the data plane: {error}"))
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        // A primary hands over first; the receiver may be gone already, so it is not waited for.
        self.thread.take();
    }
}

fn settings(options: &PeerOptions, notes: &[String]) -> String {
    let mut text = match (options.to.len(), options.spread) {
        (1, _) => "one network".to_owned(),
        (networks, true) => format!("spread over {networks} networks"),
        (networks, false) => format!("replicated on {networks} networks"),
    };
    let _ = match options.bandwidth_mbit {
        0 => write!(text, ", not paced"),
        mbit => write!(text, ", paced at {mbit} Mbit/s"),
    };
    text.push_str(", acknowledged when the backup can read the state; heartbeats every 2 ms");
    for note in notes {
        let _ = write!(text, "; {note}");
    }
    text
}

/// The pair's configuration, the same for both nodes.
fn configuration(options: &PeerOptions) -> Result<Config, String> {
    let mut text = String::from(
        "[pair]\nname = \"bench\"\n[timing]\nlease_ms = 200\nstart_wait_ms = 420\n\
         [transfer]\nmemory_max = \"64 GiB\"\n",
    );
    let names = ["A", "B", "C", "D", "E", "F", "G", "H"];
    for name in names.iter().take(options.to.len()) {
        let _ = write!(
            text,
            "[[network]]\nname = \"{name}\"\nbandwidth_mbit = {}\n",
            options.bandwidth_mbit
        );
    }
    for (node, addresses) in [("sender", &options.from), ("receiver", &options.to)] {
        let _ = write!(text, "[[node]]\nname = \"{node}\"\naddresses = {{ ");
        for (at, (name, address)) in names.iter().zip(addresses.iter()).enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let address = socket_address(*address, options.port);
            let _ = write!(text, "{separator}{name} = \"{address}\"");
        }
        text.push_str(" }\n");
    }
    let distribution = if options.spread {
        "spread"
    } else {
        "replicate"
    };
    let _ = write!(
        text,
        "[[group]]\nname = \"g\"\nnodes = [\"sender\", \"receiver\"]\nwithout_reference = true\n\
         [[application]]\nname = \"state\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\n\
         period_ms = 10\ncommit = \"before_output\"\nsize = 16\nchanged_share = 0.0\n\
         distribution = \"{distribution}\"\n"
    );
    let mut config = Config::parse(&text, "bench").map_err(|problems| told(&problems))?;
    let template = config.applications.pop().ok_or("no application")?;
    config.applications = (0..options.channels)
        .map(|at| application(&template, at, options))
        .collect::<Option<_>>()
        .ok_or("more channels than there are numbers; give --channels up to 65535")?;
    Ok(config)
}

fn application(
    template: &bumpless_config::Application,
    at: u32,
    options: &PeerOptions,
) -> Option<bumpless_config::Application> {
    let deadline = options
        .deadlines
        .get(at as usize)
        .copied()
        .unwrap_or(PATIENCE);
    Some(bumpless_config::Application {
        name: format!("state-{at}"),
        channel: ChannelId::new(u16::try_from(at + 1).ok()?)?,
        period: deadline,
        deadline,
        // The newest state stays readable: only the measurement ends it.
        expiry: PATIENCE * 2,
        state_max: options.max_size,
        ..template.clone()
    })
}

fn socket_address(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

fn told(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// Runs the receiving side.
///
/// # Errors
/// It cannot listen.
pub fn receive(options: &PeerOptions) -> Result<(), String> {
    let mut node = Node::start(options, Side::Receive)?;
    let (_, subscribers) = node.take_ends();
    let (end, ended) = channel::<()>();
    let checker = thread::spawn(move || {
        let mut readers: Vec<_> = subscribers.into_iter().map(|reader| (reader, 0)).collect();
        // The other end is dropped when the input ends.
        while ended.recv_timeout(LOOK.to_std()) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            for (reader, seen) in &mut readers {
                look(reader, seen);
            }
        }
    });
    let listening = ready("transfer", env!("CARGO_PKG_VERSION"), &node.settings);
    tell(&mut io::stdout(), &listening).map_err(|error| error.to_string())?;
    wait_for_end();
    drop(end);
    let _ = checker.join();
    Ok(())
}

/// Checks the newest state, once; a wrong one ends the process.
fn look(reader: &mut Subscriber, seen: &mut u32) {
    let Some(state) = reader.read(Clock.now()) else {
        return;
    };
    if state.cycle() != *seen {
        *seen = state.cycle();
        if !is_whole(state.data()) {
            eprintln!("transfer: a state arrived that was not sent");
            std::process::exit(1);
        }
    }
}

/// A channel to the backup.
struct Channel(ChannelReplication<Threads>);

impl ChannelSender for Channel {
    fn begin(&mut self) {
        self.0.port.register_executor();
    }

    fn transfer(&mut self, state: &[u8], patience: Duration) -> Result<Duration, String> {
        let began = Clock.now();
        let ticket = self.0.publish(&mut |buffer| {
            let size = state.len().min(buffer.len());
            buffer[..size].copy_from_slice(&state[..size]);
            size
        });
        // Not as an executor, which goes on alone when its partner is silent for a moment: what is measured
        // is how long the state takes.
        loop {
            let took = Clock.now().since(began);
            match self.0.port.outcome(ticket) {
                Outcome::Safe => return Ok(took),
                Outcome::Failed => {
                    return Err("given up by the sender: its deadline or session ended".into());
                }
                Outcome::Pending if took >= patience => {
                    return Err(format!("no acknowledgement within {patience}"));
                }
                Outcome::Pending => thread::park_timeout(patience.saturating_sub(took).to_std()),
            }
        }
    }
}

/// Runs the sending side.
///
/// # Errors
/// It cannot open its links, the receiver does not answer, or nobody reads what it says.
pub fn send(options: &PeerOptions) -> Result<(), String> {
    let mut node = Node::start(options, Side::Send)?;
    let (publishers, subscribers) = node.take_ends();
    let mut senders: Vec<Box<dyn ChannelSender>> = Vec::new();
    let ends = publishers.into_iter().zip(subscribers);
    for (at, (publisher, subscriber)) in ends.enumerate() {
        let shared = node.parts.shared(at);
        if at == 0 {
            meet(&shared.gate)?;
        }
        senders.push(Box::new(Channel(ChannelReplication {
            publisher,
            subscriber,
            expiry: PATIENCE * 2,
            port: shared.port,
            gate: shared.gate,
            environment: Threads(node.waker.clone()),
        })));
    }
    let mut output = io::stdout();
    let connected = ready("transfer", env!("CARGO_PKG_VERSION"), &node.settings);
    let buffers = u64::from(options.max_size) * 2 * u64::from(options.channels);
    let mut input = io::stdin().lock();
    serve(
        &connected,
        senders,
        options.max_size as usize,
        Some(buffers),
        &mut input,
        &mut output,
    )
    .map_err(|error| error.to_string())
}

/// Waits until the partner is there and this node is primary.
fn meet(gate: &GroupGate) -> Result<(), String> {
    let until = Clock.now() + MEETING;
    while !(gate.is_primary() && gate.backup_expected()) {
        if Clock.now() >= until {
            return Err(format!(
                "the receiver did not answer within {MEETING}; start it first"
            ));
        }
        Clock.sleep_until(Clock.now() + Duration::from_millis(5));
    }
    Ok(())
}

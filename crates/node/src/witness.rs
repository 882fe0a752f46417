//! The witness process: the shipped core behind plain UDP sockets.
//!
//! One thread serves all sockets; each request gets at most one answer, shorter than the request
//! (W-28), back to where it came from, so that a witness is no use as an amplifier.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use bumpless_base::{Duration, Epoch, Instant};
use bumpless_net_linux::{
    Clock, Link, OpenError, Poller, Segment, UdpConfig, UdpLink, Waker, random, realtime,
};
use bumpless_redundancy::{Witness, WitnessSetup};
use bumpless_wire::{Packet, WitnessReply, WitnessRequest, parse};
use serde_json::json;

/// Groups of all pairs that one witness serves.
const CAPACITY: usize = 1024;
const SCHEMA: &str = "bumpless.witness/1";
const DRIFT_PPM: u32 = 500;
/// How often the stop flag is looked at.
const TURN: Duration = Duration::from_millis(100);
/// Answers that wait for the receive call to end; more requests in one batch go unanswered, and
/// the nodes ask again within a heartbeat.
const ANSWERS: usize = 256;

/// How a witness is run.
#[derive(Clone, Debug)]
pub struct WitnessOptions {
    /// Addresses to answer on.
    pub listen: Vec<SocketAddr>,
    /// Longest lease that it grants.
    pub longest_lease: Duration,
    /// Real-time priority, if wanted.
    pub priority: Option<u8>,
    /// Print events as JSON (`bumpless.witness/1`).
    pub json: bool,
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
}

/// Why a witness did not start.
#[derive(Debug)]
pub enum WitnessError {
    /// An address could not be opened.
    Open(OpenError),
    /// The core refused its setup.
    Setup(String),
    /// Something of the system's was refused.
    System(io::Error),
}

impl fmt::Display for WitnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Setup(cause) => write!(f, "witness: {cause}"),
            Self::System(error) => write!(f, "witness: {error}"),
        }
    }
}

impl std::error::Error for WitnessError {}

/// Serves until `options.stop` is set.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(options: &WitnessOptions) -> Result<(), WitnessError> {
    let system = |errno: bumpless_net_linux::Errno| WitnessError::System(errno.into());
    let mut sockets = options
        .listen
        .iter()
        .map(|&address| UdpLink::open(&UdpConfig::new(address)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(WitnessError::Open)?;
    let setup = WitnessSetup {
        max_lease: options.longest_lease,
        drift_ppm: DRIFT_PPM,
        capacity: CAPACITY,
    };
    let witness = Witness::new(setup, random::seed().map_err(system)?, Clock.now())
        .map_err(|error| WitnessError::Setup(error.to_string()))?;
    let descriptors: Vec<_> = sockets.iter().filter_map(Link::descriptor).collect();
    let mut poller = Poller::new(&descriptors, Waker::new().map_err(system)?);
    let mut server = Server {
        witness,
        journal: Journal::start(options.json)?,
        answers: Vec::with_capacity(ANSWERS),
    };
    for socket in &sockets {
        server
            .journal
            .tell(Entry::Listening(socket.local_address()));
    }
    for refused in prepare(options.priority) {
        eprintln!("witness: {refused}");
    }
    while !options.stop.load(Ordering::Acquire) {
        let now = Clock.now();
        poller.wait(now + TURN).map_err(system)?;
        let now = Clock.now();
        sockets
            .iter_mut()
            .for_each(|socket| server.serve(socket, now));
    }
    Ok(())
}

/// Asks for prompt scheduling; returns what was refused.
fn prepare(priority: Option<u8>) -> Vec<realtime::Refused> {
    let fifo = priority.map_or(Ok(()), realtime::set_fifo);
    [realtime::tighten_timers(), fifo]
        .into_iter()
        .filter_map(Result::err)
        .collect()
}

struct Server {
    witness: Witness,
    journal: Journal,
    answers: Vec<(SocketAddr, WitnessRequest, WitnessReply)>,
}

impl Server {
    fn serve(&mut self, socket: &mut UdpLink, now: Instant) {
        let Self {
            witness, answers, ..
        } = self;
        socket.receive(&mut |from, datagram| {
            let Ok(Packet::WitnessRequest(request)) = parse(datagram) else {
                return;
            };
            if answers.len() == ANSWERS {
                return;
            }
            if let Some(reply) = witness.handle_request(&request, now) {
                answers.push((from, request, reply));
            }
        });
        // Answers first: whoever waits for the role must not wait for a terminal.
        for (to, _, reply) in &self.answers {
            let mut bytes = [0; WitnessReply::LEN];
            let len = reply.encode(&mut bytes);
            socket.send(
                *to,
                &[Segment {
                    header: &bytes[..len],
                    payload: &[],
                }],
            );
        }
        for (_, request, reply) in self.answers.drain(..) {
            self.journal.note(&request, &reply);
        }
    }
}

/// Tells changes of holder, not renewals, through a thread that may block on its output.
struct Journal {
    entries: SyncSender<Entry>,
    last: Vec<Grant>,
}

enum Entry {
    Listening(SocketAddr),
    Granted(Instant, Grant),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Grant {
    pair: u32,
    group: u16,
    holder: u8,
    epoch: Epoch,
}

impl Journal {
    fn start(json: bool) -> Result<Self, WitnessError> {
        let (entries, received) = sync_channel::<Entry>(CAPACITY);
        std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || {
                for entry in received {
                    // Nobody reading is no reason to stop answering.
                    let _ = writeln!(io::stdout(), "{}", entry.line(json));
                }
            })
            .map_err(WitnessError::System)?;
        Ok(Self {
            entries,
            last: Vec::with_capacity(CAPACITY),
        })
    }

    fn tell(&self, entry: Entry) {
        // Full: the terminal has blocked for a thousand changes of holder.
        let _ = self.entries.try_send(entry);
    }

    fn note(&mut self, request: &WitnessRequest, reply: &WitnessReply) {
        if !reply.granted || !request.kind.is_lease() {
            return;
        }
        let grant = Grant {
            pair: request.pair,
            group: request.group,
            holder: reply.holder,
            epoch: reply.epoch,
        };
        let same = |last: &Grant| last.pair == grant.pair && last.group == grant.group;
        match self.last.iter().position(same) {
            Some(at) if self.last[at] == grant => return,
            Some(at) => self.last[at] = grant,
            None if self.last.len() < CAPACITY => self.last.push(grant),
            None => return,
        }
        self.tell(Entry::Granted(Clock.now(), grant));
    }
}

impl Entry {
    fn line(&self, as_json: bool) -> String {
        match (self, as_json) {
            (Self::Listening(address), false) => format!("witness answers on {address}"),
            (Self::Listening(address), true) => {
                json!({"schema": SCHEMA, "event": "listening", "address": address.to_string()})
                    .to_string()
            }
            (
                Self::Granted(
                    _,
                    Grant {
                        pair,
                        group,
                        holder,
                        epoch,
                    },
                ),
                false,
            ) => {
                format!("pair {pair:08x} group {group}: node {holder} is primary in epoch {epoch}")
            }
            (
                Self::Granted(
                    at,
                    Grant {
                        pair,
                        group,
                        holder,
                        epoch,
                    },
                ),
                true,
            ) => json!({
                "schema": SCHEMA, "time_ns": at.as_nanos(), "event": "granted",
                "pair": format!("{pair:08x}"), "group": group, "holder": holder, "epoch": epoch.0,
            })
            .to_string(),
        }
    }
}

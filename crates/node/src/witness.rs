//! The witness process: the shipped core behind plain UDP sockets.
//!
//! One thread serves all sockets; each request gets at most one answer, smaller than twice the
//! request, back to where it came from, so that a witness is no use as an amplifier.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Epoch, Instant};
use bumpless_net_linux::{
    Clock, Link, OpenError, Poller, Segment, UdpConfig, UdpLink, Waker, random, realtime,
};
use bumpless_redundancy::{Witness, WitnessSetup};
use bumpless_wire::{Packet, WitnessKind, WitnessReply, WitnessRequest, parse};
use serde_json::json;

/// Groups of all pairs that one witness serves.
const CAPACITY: usize = 1024;
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
        journal: Journal::new(options.json),
        answers: Vec::with_capacity(ANSWERS),
    };
    for socket in &sockets {
        server.journal.listening(socket.local_address());
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
    answers: Vec<(SocketAddr, WitnessReply)>,
}

impl Server {
    fn serve(&mut self, socket: &mut UdpLink, now: Instant) {
        let Self {
            witness,
            journal,
            answers,
        } = self;
        socket.receive(&mut |from, datagram| {
            let Ok(Packet::WitnessRequest(request)) = parse(datagram) else {
                return;
            };
            if answers.len() == ANSWERS {
                return;
            }
            if let Some(reply) = witness.handle_request(&request, now) {
                journal.note(&request, &reply);
                answers.push((from, reply));
            }
        });
        for (to, reply) in self.answers.drain(..) {
            let mut bytes = [0; WitnessReply::LEN];
            let len = reply.encode(&mut bytes);
            socket.send(
                to,
                &[Segment {
                    header: &bytes[..len],
                    payload: &[],
                }],
            );
        }
    }
}

/// Tells changes of holder, not renewals.
struct Journal {
    json: bool,
    last: Vec<Grant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Grant {
    pair: u32,
    group: u16,
    holder: u8,
    epoch: Epoch,
}

impl Journal {
    fn new(json: bool) -> Self {
        Self {
            json,
            last: Vec::with_capacity(CAPACITY),
        }
    }

    fn listening(&self, address: SocketAddr) {
        if self.json {
            println!(
                "{}",
                json!({"schema": "bumpless.witness/1", "event": "listening", "address": address.to_string()})
            );
        } else {
            println!("witness answers on {address}");
        }
    }

    fn note(&mut self, request: &WitnessRequest, reply: &WitnessReply) {
        if !reply.granted || !matches!(request.kind, WitnessKind::Acquire | WitnessKind::Renew) {
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
        self.print(grant);
    }

    fn print(&self, grant: Grant) {
        let Grant {
            pair,
            group,
            holder,
            epoch,
        } = grant;
        if self.json {
            println!(
                "{}",
                json!({
                    "schema": "bumpless.witness/1", "time_ns": Clock.now().as_nanos(), "event": "granted",
                    "pair": format!("{pair:08x}"), "group": group, "holder": holder, "epoch": epoch.0,
                })
            );
        } else {
            println!("pair {pair:08x} group {group}: node {holder} is primary in epoch {epoch}");
        }
    }
}

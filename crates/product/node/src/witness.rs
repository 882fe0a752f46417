//! The witness process: the shipped core behind plain UDP sockets.
//!
//! One thread serves all sockets; each request gets at most one answer, shorter than the request
//! (W-28), back to where it came from, so that a witness is no use as an amplifier.

pub mod envelopes;
mod journal;
mod sessions;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Counter, Counters, Duration, Instant};
use bumpless_config::pair_id;
use bumpless_net_linux::errno::explained;
use bumpless_net_linux::{
    Clock, Link, OpenError, Poller, Segment, UdpConfig, UdpLink, Waker, random, realtime,
};
use bumpless_pki::Problems;
use bumpless_redundancy::{Witness, WitnessSetup};
use bumpless_secure::{RingSuite, place};
use bumpless_wire::{EnvelopeHeader, Packet, WitnessReply, WitnessRequest, parse};

use self::envelopes::{Envelopes, Expected, PairKey, ROOM, Way};
use self::journal::{Entry, Journal};
use self::sessions::Sessions;
use crate::key_file::{self, KeyFileError};
use crate::warn;

pub use self::sessions::Certified;

/// Groups of all pairs that one witness serves.
const CAPACITY: usize = 1024;
const DRIFT_PPM: u32 = 500;
/// How often the stop flag is looked at.
const TURN: Duration = Duration::from_millis(100);
/// Answers that wait for the receive call to end; more requests in one batch go unanswered, and
/// the nodes ask again within a heartbeat.
const ANSWERS: usize = 256;
/// Whether something was discarded or failed is looked at no more often than this: it takes system calls, and
/// requests come by the thousand.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// It is told no more often than this.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// How a witness is run.
#[derive(Clone, Debug)]
pub struct WitnessOptions {
    /// Addresses to answer on.
    pub listen: Vec<SocketAddr>,
    /// Longest lease that it grants.
    pub longest_lease: Duration,
    /// Real-time priority, if wanted.
    pub priority: Option<u8>,
    /// The pairs that it serves by name, and files with their keys, those of a change of keys included.
    pub keys: Vec<(String, PathBuf)>,
    /// Who it is and whom it serves by certificates.
    pub certified: Option<Certified>,
    /// Whether it answers unprotected requests.
    pub open: bool,
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
    /// Key files that cannot be used, all of them.
    Keys(Vec<KeyFileError>),
    /// Files of its certificate that cannot be used, all of them.
    Identity(Problems),
    /// The core refused its setup.
    Setup(String),
    /// Something of the system's was refused.
    System(io::Error),
}

impl fmt::Display for WitnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Keys(errors) => f.write_str(&key_file::told(errors)),
            Self::Identity(problems) => problems.fmt(f),
            Self::Setup(cause) => write!(f, "witness: {cause}"),
            Self::System(error) => write!(f, "witness: {}", explained(error)),
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
    let waker = Waker::new().map_err(system)?;
    let mut poller = Poller::new(&descriptors, waker.clone());
    let journal = Journal::start(options.json, io::stdout()).map_err(WitnessError::System)?;
    let places: Vec<u32> = sockets.iter().map(|it| place(it.local_address())).collect();
    let mut envelopes = protect(options, &places)?;
    let certified = options.certified.as_ref();
    let sessions = certified.map(|it| Sessions::start(it, &options.listen, &waker));
    let sessions = sessions.transpose()?;
    let first = expect(&mut envelopes, sessions.as_ref())?;
    let mut server = Server::new((witness, envelopes), journal, Clock.now());
    for socket in &sockets {
        server
            .journal
            .tell(Entry::Listening(Clock.now(), socket.local_address()));
    }
    for refused in prepare(options.priority) {
        warn(refused);
    }
    while !options.stop.load(Ordering::Acquire) {
        let now = Clock.now();
        poller.wait(now + TURN).map_err(system)?;
        let new = sessions.iter().flat_map(|it| it.keys.try_iter());
        new.for_each(|new| {
            let taken = server.envelopes.set_keys(first + new.node, new.keys, now);
            let _ = new.reply.try_send(taken);
        });
        let now = Clock.now();
        sockets
            .iter_mut()
            .for_each(|socket| server.serve(socket, now));
        server.tell_discards(&sockets, now);
    }
    server.end(&sockets, Clock.now());
    Ok(())
}

/// What protects the messages of the pairs that it serves, at these places.
fn protect(options: &WitnessOptions, places: &[u32]) -> Result<Envelopes<RingSuite>, WitnessError> {
    let mut addresses = options.listen.iter();
    if let Some(anywhere) = addresses.find(|address| address.ip().is_unspecified())
        && !(options.keys.is_empty() && options.certified.is_none())
    {
        return Err(WitnessError::Setup(format!(
            "--listen {anywhere} names no address of this computer, and nodes seal for the address that their \
             configuration gives: name that one, and each of several with a --listen of its own"
        )));
    }
    let (pairs, paths): (Vec<_>, Vec<_>) = options.keys.iter().cloned().unzip();
    let rings = key_file::load_each(&paths, Path::new("")).map_err(WitnessError::Keys)?;
    let with_origin = |(keys, pair): (_, &String)| {
        let origin = random::seed().map_err(|errno| WitnessError::System(errno.into()))?;
        let pair = pair_id(pair);
        Ok(PairKey { keys, pair, origin })
    };
    let keys: Result<Vec<_>, WitnessError> =
        rings.into_iter().zip(&pairs).map(with_origin).collect();
    Ok(Envelopes::new(keys?, places, options.open, Clock.now()))
}

/// Makes room for the keys of nodes with sessions; returns where that of the first one is.
fn expect(
    envelopes: &mut Envelopes<RingSuite>,
    sessions: Option<&Sessions>,
) -> Result<usize, WitnessError> {
    let served = sessions.map_or(&[][..], |sessions| &sessions.served);
    let expected = served.iter().map(|node| {
        let origin = random::seed().map_err(|errno| WitnessError::System(errno.into()))?;
        Ok(Expected {
            pair: node.pair,
            origin,
            places: node.at.iter().map(|&at| place(at)).collect(),
        })
    });
    let expected: Result<Vec<_>, WitnessError> = expected.collect();
    Ok(envelopes.expect(expected?, Clock.now()))
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
    envelopes: Envelopes<RingSuite>,
    answers: Vec<((SocketAddr, Way), WitnessRequest, WitnessReply)>,
    counters: Counters,
    /// Discards and failures that were told.
    told: u64,
    /// When they are looked at again.
    look_at: Instant,
}

impl Server {
    fn new(
        (witness, envelopes): (Witness, Envelopes<RingSuite>),
        journal: Journal,
        now: Instant,
    ) -> Self {
        Self {
            witness,
            envelopes,
            journal,
            answers: Vec::with_capacity(ANSWERS),
            counters: Counters::default(),
            told: 0,
            look_at: now,
        }
    }

    fn serve<L: Link>(&mut self, socket: &mut L, now: Instant) {
        self.receive(socket, now);
        // Answers first: whoever waits for the role must not wait for a terminal.
        for ((to, way), _, reply) in &self.answers {
            let (mut message, mut room) = ([0; WitnessReply::LEN], [0; ROOM]);
            let len = reply.encode(&mut message);
            room[EnvelopeHeader::LEN..][..len].copy_from_slice(&message[..len]);
            let sent = self
                .envelopes
                .seal(*way, &mut room, len)
                .is_some_and(|answer| {
                    let answer = [Segment {
                        header: answer,
                        payload: &[],
                    }];
                    socket.send(*to, &answer).sent == answer.len()
                });
            self.counters.count(match sent {
                true => Counter::DatagramsSent,
                false => Counter::SendFailures,
            });
        }
        for (_, request, reply) in self.answers.drain(..) {
            self.journal.note(&request, &reply);
        }
    }

    fn receive<L: Link>(&mut self, socket: &mut L, now: Instant) {
        let Self {
            witness,
            envelopes,
            answers,
            counters,
            ..
        } = self;
        let here = place(socket.local_address());
        let outcome = socket.receive(&mut |from, datagram| {
            counters.count(Counter::DatagramsReceived);
            let (way, message) = match envelopes.open(here, datagram, now) {
                Ok(opened) => opened,
                Err(cause) => return counters.count(cause),
            };
            let request = match parse(message) {
                Ok(Packet::WitnessRequest(request)) => request,
                Ok(_) => return counters.count(Counter::DiscardWrongKind),
                Err(error) => return counters.count(error.counter()),
            };
            if let Err(cause) = envelopes.permits(way, &request) {
                return counters.count(cause);
            }
            if answers.len() == ANSWERS {
                return counters.count(Counter::DiscardTooManyRequests);
            }
            if let Some(reply) = witness.handle_request(&request, now) {
                answers.push(((from, way), request, reply));
            }
        });
        let without_source = outcome.without_source as u64;
        counters.add(Counter::DatagramsReceived, without_source);
        counters.add(Counter::DiscardNoSource, without_source);
        if outcome.failure.is_some() {
            counters.count(Counter::ReceiveFailures);
        }
    }

    /// Everything that was counted, here, by the core, by the journal and by the kernel.
    fn counters<L: Link>(&self, sockets: &[L]) -> Counters {
        let mut sum = self.counters.clone();
        sum.merge(self.witness.counters());
        sum.add(Counter::EventsLost, self.journal.lost());
        // A count of 2^32 datagrams would take a flooded witness hours: its wrap is not reckoned with.
        for drops in sockets.iter().filter_map(Link::receive_drops) {
            sum.add(Counter::DiscardSocketFull, drops.into());
        }
        sum
    }

    /// Tells what was discarded or failed since it was told last, at a bounded pace.
    fn tell_discards<L: Link>(&mut self, sockets: &[L], now: Instant) {
        if now < self.look_at {
            return;
        }
        let counters = self.counters(sockets);
        let sum = journal::discards(&counters);
        if sum == self.told {
            self.look_at = now + LOOK_EVERY;
            return;
        }
        self.journal.tell(Entry::Counted(now, Box::new(counters)));
        (self.told, self.look_at) = (sum, now + TELL_EVERY);
    }

    /// Tells all figures and ends the journal.
    fn end<L: Link>(self, sockets: &[L], now: Instant) {
        let counters = Box::new(self.counters(sockets));
        self.journal.end(Entry::Counted(now, counters));
    }
}

#[cfg(test)]
mod tests;

//! A node's data plane as the daemon runs it, on a thread of its own over real sockets, published to
//! through the port that an executor publishes through.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use bumpless_base::pieces::overlay;
use bumpless_base::{Duration, NodeId, Pieces, Revision, TransferOutcome};
use bumpless_config::{Config, Security};
use bumpless_controller::Replication;
use bumpless_mailbox::PublishedPermit;
use bumpless_net_linux::{Clock, Waker, random};
use bumpless_node::build::{self, Beginning, Ends, Parts};
use bumpless_node::data_plane::DataPlane;
use bumpless_node::data_plane::waiter::Waiter;
use bumpless_node::executor::{ChannelReplication, Threads};
use bumpless_node::log::EventLog;
use bumpless_node::opening::{PacketKeys, open_links};
use bumpless_node::realtime::prepare_thread;
use bumpless_node::state_security::StateGuard;
use bumpless_node::wiring::Wiring;
use bumpless_secure::{Keyring, RingSuite, Secret};
use bumpless_transfer::{ChannelPlace, Subscriber};

use super::ChannelSender;

/// A node's data plane at work; ends when dropped.
pub(crate) struct Node {
    config: Config,
    keys: Option<Arc<Keyring<RingSuite>>>,
    node: NodeId,
    parts: Parts,
    ends: Ends,
    waker: Waker,
    stop: Arc<AtomicBool>,
    /// What was not granted, a line each.
    pub(crate) notes: Vec<String>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Node {
    /// Starts the data plane of the node called `name`.
    ///
    /// # Errors
    /// There is no such node, or the system refuses what it needs.
    pub(crate) fn start(config: Config, name: &str) -> Result<Self, String> {
        let node = config.node(name).ok_or("the pair has no such node")?;
        let system = |error: bumpless_net_linux::Errno| io::Error::from(error).to_string();
        let wiring = Wiring::new(&config, node);
        let seed = random::seed().map_err(system)?;
        let waker = Waker::new().map_err(system)?;
        let mut notes = Vec::new();
        let keys = match &config.security {
            Security::Open => None,
            _ => Some(Arc::new(keyring()?)),
        };
        let links = open_links(
            (&config, &wiring),
            keys.as_ref().map_or(PacketKeys::None, PacketKeys::Given),
            &mut bumpless_node::open_udp,
            &mut notes,
        )
        .map_err(|error| error.to_string())?;
        let stop = Arc::new(AtomicBool::new(false));
        let beginning = Beginning {
            seed,
            now: Clock.now(),
            stop: Arc::clone(&stop),
            log_transfers: false,
        };
        let drivers = (links, Vec::new());
        let build::Node {
            plane,
            ends,
            parts,
            log,
            ..
        } = build::Node::new(&config, &wiring, drivers, beginning)
            .map_err(|error| error.to_string())?;
        let waiter = Waiter::new(&plane, waker.clone(), config.reception.busy_poll);
        let notes = notes.into_iter().map(|note| note.text).collect();
        Ok(Self {
            thread: Some(run(config.clone(), plane, waiter, log)?),
            config,
            keys,
            node,
            parts,
            ends,
            waker,
            stop,
            notes,
        })
    }

    /// Takes the reading ends of all channels out, once.
    ///
    /// # Errors
    /// The system gives no random number.
    pub(crate) fn take_subscribers(&mut self) -> Result<Vec<Reader>, String> {
        let subscribers = std::mem::take(&mut self.ends).1.into_iter().enumerate();
        let reader = |(at, subscriber)| Ok((subscriber, self.guard(at)?));
        subscribers.map(reader).collect()
    }

    /// What seals and opens the states of the channel at position `at`.
    fn guard(&self, at: usize) -> Result<Option<StateGuard>, String> {
        let (settings, Some(keys)) = (&self.config.applications[at], &self.keys) else {
            return Ok(None);
        };
        let origin = random::seed().map_err(|error| io::Error::from(error).to_string())?;
        let ends = (self.node.0, 1 - self.node.0);
        Ok(StateGuard::given(settings, ends, Arc::clone(keys), origin))
    }

    /// Waits for `timeout` until the partner is there and this node is primary, and takes all channels' sending
    /// ends out, once. Of these states the newest stays readable for `expiry`.
    ///
    /// # Errors
    /// The partner does not answer.
    pub(crate) fn meet(
        &mut self,
        timeout: Duration,
        expiry: Duration,
    ) -> Result<Vec<Channel>, String> {
        let (publishers, subscribers) = std::mem::take(&mut self.ends);
        let mut channels = Vec::new();
        let ends = publishers.into_iter().zip(subscribers);
        for (at, (publisher, subscriber)) in ends.enumerate() {
            let shared = self.parts.shared(ChannelPlace(at));
            if at == 0 {
                meet(&shared.gate, timeout)?;
            }
            channels.push(Channel(ChannelReplication {
                publisher,
                subscriber,
                expiry,
                hot_restart: expiry,
                keeper: None,
                guard: self.guard(at)?,
                mailbox: shared.mailbox,
                gate: shared.gate,
                environment: Threads(self.waker.clone()),
            }));
        }
        Ok(channels)
    }
}

/// A reading end, and what opens its states.
pub(crate) type Reader = (Subscriber, Option<StateGuard>);

/// Both nodes have a secret that everybody knows: what is measured is what protecting takes.
fn keyring() -> Result<Keyring<RingSuite>, String> {
    let keys = Keyring::new(vec![Secret::new(*b"a secret that everybody can know")]);
    keys.map_err(|error| error.to_string())
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
            let _held = prepare_thread(&config.realtime, &Mutex::default());
            waiter.run(&mut plane);
            drop(log);
        })
        .map_err(|error| format!("cannot start the data plane: {error}"))
}

impl Node {
    /// Ends, and waits for it: a primary hands over to its partner first.
    pub(crate) fn end(mut self) {
        self.order_end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn order_end(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The receiver may be gone already, so a primary's hand-over is not waited for.
        self.order_end();
    }
}

/// A channel to the backup.
pub(crate) struct Channel(ChannelReplication<Threads>);

/// A state that an application has as it is to be sent, and of which it does not know what has changed.
struct Bytes<'a>(&'a [u8]);

impl Pieces for Bytes<'_> {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn revision(&self) -> Option<Revision> {
        None
    }

    fn copy(&self, at: usize, piece: &mut [u8], _: Option<Revision>) {
        overlay(piece, at, self.0, 0);
    }
}

impl Channel {
    /// Has the calling thread unparked whenever something becomes of a state.
    pub(crate) fn register(&mut self) {
        self.0.mailbox.register_executor();
    }

    /// Sends a state: by what [`Self::outcome`] knows it.
    pub(crate) fn publish(&mut self, state: &[u8]) -> u64 {
        self.0.publish_pieces(&Bytes(state))
    }

    /// What has become of a state.
    pub(crate) fn outcome(&self, ticket: u64) -> TransferOutcome {
        self.0.mailbox.outcome(ticket)
    }
}

impl ChannelSender for Channel {
    fn begin(&mut self) {
        self.register();
    }

    fn transfer(&mut self, state: &[u8], timeout: Duration) -> Result<Duration, String> {
        let began = Clock.now();
        let ticket = self.publish(state);
        // Not as an executor, which goes on alone when its partner is silent for a moment: what is measured
        // is how long the state takes.
        loop {
            let took = Clock.now().since(began);
            match self.outcome(ticket) {
                TransferOutcome::Safe => return Ok(took),
                TransferOutcome::Failed => {
                    return Err("given up by the sender: its deadline or session ended".into());
                }
                TransferOutcome::Pending if took >= timeout => {
                    return Err(format!("no acknowledgement within {timeout}"));
                }
                TransferOutcome::Pending => {
                    thread::park_timeout(timeout.saturating_sub(took).to_std())
                }
            }
        }
    }
}

/// Waits until the partner is there and this node is primary.
fn meet(gate: &PublishedPermit, timeout: Duration) -> Result<(), String> {
    let until = Clock.now() + timeout;
    while !(gate.is_primary() && gate.backup_expected()) {
        if Clock.now() >= until {
            return Err(format!(
                "the receiver did not answer within {timeout}; start it first"
            ));
        }
        Clock.sleep_until(Clock.now() + Duration::from_millis(5));
    }
    Ok(())
}

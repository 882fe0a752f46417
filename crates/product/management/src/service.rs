//! The thread that calls partners and answers them.

mod guests;
mod peer;
mod proposal;
#[cfg(test)]
mod world;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bumpless_pki::{Identity, IdentityPaths, NodeName};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::guests::{Guests, Outcome};
use self::peer::Peer;
use self::proposal::Order;
use bumpless_sessions::{BACKLOG, Ended, Identities, listen};

use crate::Connection;
use crate::keys::Ring;
use crate::message::Profile;

pub use self::proposal::{Carried, Errand};

/// Longest wait, after which it is looked whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// One way to a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// This node's address.
    pub from: IpAddr,
    /// The partner's.
    pub to: SocketAddr,
}

/// With whom there are sessions.
#[derive(Clone, Debug)]
pub struct Partner {
    /// What it is called.
    pub name: NodeName,
    /// Ways to it, one on each network. None: it calls, from anywhere.
    pub paths: Vec<Path>,
    /// Whether this node calls; one of two does.
    pub calls: bool,
}

impl Partner {
    /// Whether it may call from `address`.
    fn may_call(&self, address: IpAddr) -> bool {
        self.paths.is_empty() || self.is_at(address)
    }

    fn is_at(&self, address: IpAddr) -> bool {
        self.paths.iter().any(|path| path.to.ip() == address)
    }
}

/// Who takes part, and how.
#[derive(Clone, Debug)]
pub struct Setup {
    /// This node's certificate.
    pub identity: IdentityPaths,
    /// What this node says of itself.
    pub profile: Profile,
    /// With whom.
    pub partners: Vec<Partner>,
    /// Where partners that call are answered.
    pub listen: Vec<SocketAddr>,
    /// After this a new session gives a new key.
    pub key_lifetime: Duration,
}

/// How it stands with a partner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartnerState {
    /// Whether there is a session.
    pub connected: bool,
    /// Whether there is a key.
    pub has_key: bool,
    /// How many keys have been agreed upon.
    pub keys_agreed: u64,
    /// Why there is no session, or no newer one.
    pub problem: Option<String>,
    /// What differs, a line each.
    pub mismatches: Vec<String>,
    /// What it has said of itself last.
    pub profile: Option<Profile>,
}

/// What a node does with what is agreed.
pub trait Host: Send {
    /// The partner at this position has said this of itself: from here on the lower of both ends' limits counts, where
    /// both have one. `false`: it cannot be taken at present, and is to be said again.
    fn set_profile(&mut self, partner: usize, profile: &Profile) -> bool;

    /// Packets with the partner at this position are opened, and sealed, with `ring` when this returns. `false`: they
    /// are not, and another secret is needed.
    fn set_keys(&mut self, partner: usize, ring: &Ring) -> bool;

    /// Packets with the partner at this position are neither opened nor sealed from here on. `false`: that was not
    /// possible at present, and is to be said again.
    fn forget_keys(&mut self, partner: usize) -> bool;

    /// What needs care about this node's own certificate, authorities and list is this from here on, a line each.
    fn set_cares(&mut self, _lines: &[String]) {}

    /// It stands otherwise with a partner.
    fn changed(&mut self, partner: usize, state: &PartnerState);

    /// The partner at this position asks for the change to this configuration. [`Host::proposal`] tells what comes of it.
    fn propose(&mut self, _partner: usize, _text: String) {}

    /// What came of its proposal, told once.
    fn proposal(&mut self, _partner: usize) -> Option<Result<(), String>> {
        None
    }

    /// The partner at this position asks to give up what is prepared.
    fn withdraw(&mut self, _partner: usize) {}
}

/// The thread, which ends with this.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Way to have something carried to a partner.
    pub fn errand(&self) -> Errand {
        Errand::new(self.orders.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A thread that panics ends the process.
            let _ = thread.join();
        }
    }
}

/// Starts the thread.
///
/// # Errors
/// An address cannot be listened on, or there is no thread to be had.
pub fn start(setup: Setup, identity: Identity, host: Box<dyn Host>) -> io::Result<Running> {
    let mut listeners = Vec::new();
    for &address in &setup.listen {
        listeners.push(listen(address)?);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (orders, ordered) = channel();
    let mut service = Service::new(setup, (identity, listeners), (host, ordered));
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new()
        .name("management".into())
        .spawn(move || service.run(&stopped))?;
    Ok(Running {
        stop,
        orders,
        thread: Some(thread),
    })
}

struct Service {
    setup: Setup,
    identity: Identities,
    listeners: Vec<TcpListener>,
    host: Box<dyn Host>,
    orders: Receiver<Order>,
    peers: Vec<Peer>,
    guests: Guests,
}

impl Service {
    fn new(
        setup: Setup,
        (identity, listeners): (Identity, Vec<TcpListener>),
        (host, orders): (Box<dyn Host>, Receiver<Order>),
    ) -> Self {
        let now = Instant::now();
        Self {
            identity: Identities::new(setup.identity.clone(), identity, now),
            peers: setup.partners.iter().map(|_| Peer::new(now)).collect(),
            setup,
            listeners,
            host,
            orders,
            guests: Guests::default(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            self.wait();
            self.turn(Instant::now());
        }
        for peer in &mut self.peers {
            peer.close();
        }
    }

    /// Waits until something can be done, or for [`LOOK`].
    fn wait(&self) {
        let connections = self.peers.iter().flat_map(Peer::connections);
        let connections = connections.chain(self.guests.connections());
        let listeners = self.listeners.iter();
        let mut files: Vec<_> = listeners
            .map(|listener| PollFd::new(listener, PollFlags::IN))
            .collect();
        files.extend(connections.map(Connection::poll));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK.subsec_nanos().into(),
        };
        // A signal ends the wait early, which does no harm.
        let _ = poll(&mut files, Some(&timeout));
    }

    fn turn(&mut self, now: Instant) {
        self.judge_anew(now);
        self.accept(now);
        for outcome in self.guests.drive(&self.setup.partners, now) {
            match outcome {
                Outcome::Known(partner, connection, events) => {
                    self.peers[partner].welcome(*connection);
                    self.obey(partner, events, now);
                }
                Outcome::Ended(from, why) => self.tell_refused(from, &why),
            }
        }
        while let Ok(order) = self.orders.try_recv() {
            if let Some(peer) = self.peers.get_mut(order.partner()) {
                peer.carry(order);
            }
        }
        for at in 0..self.peers.len() {
            if let Some(answer) = self.host.proposal(at) {
                self.peers[at].answer(answer);
            }
            self.peers[at].settle(at, self.host.as_mut());
            self.peers[at].call_when_due((&self.setup, at), &mut self.identity, now);
            let events = self.peers[at].drive(now);
            self.obey(at, events, now);
            self.peers[at].retire(at, self.host.as_mut(), now);
            if let Some(state) = self.peers[at].news() {
                self.host.changed(at, state);
            }
        }
    }

    /// Whoever is revoked by a list that is another one than before has no session and no keys any more.
    fn judge_anew(&mut self, now: Instant) {
        if let Some(identity) = self.identity.changed(now) {
            self.guests.dismiss();
            for peer in &mut self.peers {
                peer.begin_anew();
                peer.judge(&identity);
            }
        }
        if let Some(lines) = self.identity.news(now) {
            self.host.set_cares(lines);
        }
    }

    fn obey(&mut self, at: usize, events: Vec<crate::Event>, now: Instant) {
        for event in events {
            let setup = (&self.setup, at);
            self.peers[at].handle(event, setup, self.host.as_mut(), now);
        }
    }

    fn tell_refused(&mut self, from: IpAddr, why: &Ended) {
        let partners = self.setup.partners.iter().zip(&mut self.peers);
        for (_, peer) in partners.filter(|(partner, _)| partner.is_at(from)) {
            peer.refused(why);
        }
    }

    fn accept(&mut self, now: Instant) {
        for listener in &self.listeners {
            // So many at a time, so that who calls without end does not keep the sessions waiting.
            for _ in 0..BACKLOG {
                let (stream, from) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => {
                        // No descriptor is free, or the like: what waits would be reported again at once.
                        thread::sleep(LOOK);
                        break;
                    }
                };
                // Others could not show a certificate anyway; this keeps them from taking places.
                let mut partners = self.setup.partners.iter();
                if partners.any(|partner| partner.may_call(from.ip())) {
                    let identity = self.identity.fresh(now);
                    self.guests.take(stream, (&self.setup, &identity), now);
                }
            }
        }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// The connection's partner among those of `setup`.
fn position(partners: &[Partner], connection: &Connection) -> Option<usize> {
    let name = connection.session().partner()?;
    partners.iter().position(|partner| partner.name == *name)
}

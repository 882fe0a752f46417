//! Keys that are agreed on with each host by certificates: a thread that calls hosts and answers them, by TLS 1.3 (`spec/iprp-daemon.md`,
//! L-50 and further). Nothing here has a deadline, and packets do not wait for it.

mod host;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bumpless_management::{Connection, Event, Profile, Ring, Session};
use bumpless_net_linux::Waker;
use bumpless_pki::{CertificateFault, Expected, NodeName, Refusal, told};
use bumpless_sessions::{BACKLOG, Ended, Identities, listen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::closed::{HostId, Wanted};
use crate::trust::Own;
use host::{Give, Held, Host, problem};

/// Longest wait, after which it is looked whether there is something else to do.
const LOOK: Duration = Duration::from_millis(50);
/// Connections at once whose other end has not shown yet who it is: of others, of one address, and of this host's own.
const GUESTS_MAX: usize = 64;
const GUESTS_OF_ONE: usize = 4;
const CALLS_MAX: usize = 64;
/// Addresses of which it is told that nobody answers there.
const UNANSWERED_MAX: usize = 16;
/// Hosts that are known at most; one without a session gives way.
const HOSTS_MAX: usize = 1024;
/// How often it is written down what status shows.
const SHOW: Duration = Duration::from_millis(200);
/// How long the control plane has for taking keys.
const TAKEN: Duration = Duration::from_secs(1);

/// Who takes part, and how.
pub struct Setup {
    /// This host's certificate, and whom it lets in.
    pub own: Own,
    /// TCP port at which hosts are called.
    pub port: u16,
    /// After this a new session gives a new key.
    pub lifetime: Duration,
}

/// For the control plane.
pub enum News {
    /// What is exchanged with a host at an address is opened and sealed with this ring, when the reply says so.
    Keys {
        host: HostId,
        at: IpAddr,
        ring: Ring,
        reply: SyncSender<bool>,
    },
    /// A host is not believed any more, or too many others are known; why.
    Over {
        host: HostId,
        name: String,
        why: String,
    },
    /// Whoever is at an address was not let in, or does not let in this host; why.
    Refused { at: IpAddr, why: String },
    /// Whoever is at an address has shown itself.
    Shown { at: IpAddr },
}

enum Order {
    Want(Wanted),
    Listen(Vec<IpAddr>),
}

/// The thread, which ends with this.
pub struct Agreements {
    orders: Sender<Order>,
    news: Receiver<News>,
    status: Arc<Mutex<Value>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agreements {
    /// Starts it; `waker` wakes who is to ask for news.
    ///
    /// # Errors
    /// An address cannot be listened on, or there is no thread to be had.
    pub fn start(setup: Setup, addresses: &[IpAddr], waker: Waker) -> std::io::Result<Self> {
        let (orders, ordered) = channel();
        let (told, news) = channel();
        let status = Arc::new(Mutex::new(Value::Null));
        let stop = Arc::new(AtomicBool::new(false));
        let outlet = Outlet { told, waker };
        let mut service = Service::new(setup, outlet, ordered, Arc::clone(&status));
        service.listeners.addresses = addresses.to_vec();
        service.listeners.listen()?;
        service.show();
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("agreements".into())
            .spawn(move || service.run(&stopped))?;
        Ok(Self {
            orders,
            news,
            status,
            stop,
            thread: Some(thread),
        })
    }

    /// Something is to be said to these hosts.
    pub fn want(&self, wanted: Vec<Wanted>) {
        for it in wanted {
            let _ = self.orders.send(Order::Want(it));
        }
    }

    /// The host's addresses are these from here on.
    pub fn set_addresses(&self, addresses: Vec<IpAddr>) {
        let _ = self.orders.send(Order::Listen(addresses));
    }

    /// What is to be done; to be asked for until there is nothing.
    pub fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    /// What status shows of it.
    pub fn status(&self) -> Value {
        let status = self.status.lock();
        status.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Agreements {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Whoever waits for a reply gets none.
        while self.news.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Outlet {
    told: Sender<News>,
    waker: Waker,
}

impl Outlet {
    fn tell(&self, news: News) {
        let _ = self.told.send(news);
        self.waker.wake();
    }
}

impl Give for Outlet {
    fn give(&mut self, host: HostId, at: IpAddr, ring: &Ring) -> bool {
        let (reply, replied) = sync_channel(1);
        let ring = Ring {
            secrets: ring.secrets.clone(),
            seals: ring.seals,
        };
        self.tell(News::Keys {
            host,
            at,
            ring,
            reply,
        });
        replied.recv_timeout(TAKEN).unwrap_or(false)
    }
}

/// Where other hosts call.
struct Listeners {
    port: u16,
    /// Where it is to be.
    addresses: Vec<IpAddr>,
    open: Vec<(IpAddr, TcpListener)>,
}

impl Listeners {
    /// Listens at the addresses, and at no others; called again, at those that have failed.
    ///
    /// # Errors
    /// What the system says of the first address that fails. At all others it listens.
    fn listen(&mut self) -> std::io::Result<()> {
        self.open.retain(|(at, _)| self.addresses.contains(at));
        let mut result = Ok(());
        for &address in &self.addresses {
            if self.open.iter().any(|(at, _)| *at == address) {
                continue;
            }
            match listen(SocketAddr::new(address, self.port)) {
                Ok(listener) => self.open.push((address, listener)),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }
}

struct Service {
    identities: Identities,
    expected: Expected,
    profile: Profile,
    own: NodeName,
    /// Why others cannot call, if they cannot.
    deaf: Option<String>,
    shown_at: Instant,
    /// TCP port at which hosts are called.
    port: u16,
    lifetime: Duration,
    listeners: Listeners,
    /// Connections of which it is not known yet whose they are.
    guests: Vec<Held>,
    calls: Vec<Held>,
    /// Where nobody answered when this host called, and what the system said. Whoever has no daemon is here as well.
    unanswered: VecDeque<(IpAddr, String)>,
    hosts: Vec<Host>,
    next_host: u32,
    outlet: Outlet,
    orders: Receiver<Order>,
    status: Arc<Mutex<Value>>,
}

impl Service {
    fn new(
        setup: Setup,
        outlet: Outlet,
        orders: Receiver<Order>,
        status: Arc<Mutex<Value>>,
    ) -> Self {
        let Own {
            identity,
            paths,
            expected,
        } = setup.own;
        let (own, now) = (identity.name().clone(), Instant::now());
        Self {
            expected,
            profile: Profile {
                pair: own.pair().to_owned(),
                node: own.node().to_owned(),
                ..Profile::default()
            },
            own,
            identities: Identities::new(paths, identity, now),
            deaf: None,
            shown_at: now,
            port: setup.port,
            lifetime: setup.lifetime,
            listeners: Listeners {
                port: setup.port,
                addresses: Vec::new(),
                open: Vec::new(),
            },
            guests: Vec::new(),
            calls: Vec::new(),
            unanswered: VecDeque::new(),
            hosts: Vec::new(),
            next_host: 0,
            outlet,
            orders,
            status,
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            self.wait();
            let now = Instant::now();
            self.turn(now);
            if now >= self.shown_at + SHOW {
                self.shown_at = now;
                if self.deaf.is_some() {
                    self.listen();
                }
                self.show();
            }
        }
        self.hosts.iter_mut().for_each(Host::close);
    }

    fn listen(&mut self) {
        let listening = self.listeners.listen();
        self.deaf = listening.err().map(|error| error.to_string());
    }

    fn wait(&self) {
        let hosts = self.hosts.iter().flat_map(Host::connections);
        let unknown = self.guests.iter().chain(&self.calls);
        let connections = hosts.chain(unknown.map(|it| &it.connection));
        let listeners = self.listeners.open.iter();
        let mut files: Vec<_> = listeners
            .map(|(_, listener)| PollFd::new(listener, PollFlags::IN))
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
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Want(wanted) => self.want(wanted, now),
                Order::Listen(addresses) => {
                    self.listeners.addresses = addresses;
                    self.listen();
                }
            }
        }
        if let Some(identity) = self.identities.changed(now) {
            self.guests.clear();
            self.calls.clear();
            self.hosts.iter_mut().for_each(Host::begin_anew);
            let revoked = Refusal::Partner(CertificateFault::Revoked).to_string();
            while let Some(at) = self.hosts.iter().position(|it| it.is_revoked(&identity)) {
                self.let_go(at, &revoked);
            }
        }
        self.accept(now);
        let guests = std::mem::take(&mut self.guests);
        self.guests = self.drive_unknown(guests, now);
        let calls = std::mem::take(&mut self.calls);
        self.calls = self.drive_unknown(calls, now);
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            host.drive(&mut self.outlet, now);
            host.retire(&mut self.outlet, now);
            // What it is called for is not known to be it, until it has shown itself.
            if self.calls.iter().any(|it| it.at == host.at) {
                continue;
            }
            if let Some((from, to)) = host.call(self.lifetime, now) {
                self.call(from, to, now);
            }
        }
    }

    fn want(&mut self, Wanted { to, ways }: Wanted, now: Instant) {
        let is_it = |host: &Host| host.at == to || host.ways.iter().any(|(_, at)| *at == to);
        if let Some(host) = self.hosts.iter_mut().find(|host| is_it(host)) {
            return host.want(ways, now);
        }
        self.call(None, to, now);
    }

    fn call(&mut self, from: Option<IpAddr>, to: IpAddr, now: Instant) {
        if self.calls.len() >= CALLS_MAX || self.calls.iter().any(|it| it.at == to) {
            return;
        }
        let identity = self.identities.fresh(now);
        let session = Session::call(&identity, self.expected.clone(), self.profile.clone());
        let way = (from, SocketAddr::new(to, self.port));
        let connection = session
            .map_err(Ended::from)
            .and_then(|session| Connection::call(session, way, now).map_err(Ended::from));
        match connection {
            Ok(connection) => self.calls.push(Held {
                connection,
                at: to,
                called: true,
            }),
            Err(why) => self.refused(to, &why),
        }
    }

    fn accept(&mut self, now: Instant) {
        for (_, listener) in &self.listeners.open {
            // So many at a time, so that who calls without end does not keep the sessions waiting.
            for _ in 0..BACKLOG {
                let Ok((stream, from)) = listener.accept() else {
                    break;
                };
                let at = from.ip();
                if self.guests.iter().filter(|it| it.at == at).count() >= GUESTS_OF_ONE {
                    continue;
                }
                let identity = self.identities.fresh(now);
                let session =
                    Session::answer(&identity, self.expected.clone(), self.profile.clone());
                let Ok(session) = session else { continue };
                let Ok(connection) = Connection::answer(stream, session, now) else {
                    continue;
                };
                if self.guests.len() >= GUESTS_MAX {
                    self.guests.remove(0);
                }
                self.guests.push(Held {
                    connection,
                    at,
                    called: false,
                });
            }
        }
    }

    /// Goes on with connections of which it is not known whose they are; those that are left of them.
    fn drive_unknown(&mut self, all: Vec<Held>, now: Instant) -> Vec<Held> {
        let mut left = Vec::new();
        for mut held in all {
            let mut events = Vec::new();
            if let Err(why) = held.connection.drive(now, &mut events) {
                self.refused(held.at, &why);
                continue;
            }
            match held.connection.session().partner().cloned() {
                Some(name) if !events.is_empty() => self.known(name, held, events, now),
                _ => left.push(held),
            }
        }
        left
    }

    fn known(&mut self, name: NodeName, held: Held, events: Vec<Event>, now: Instant) {
        self.outlet.tell(News::Shown { at: held.at });
        self.unanswered.retain(|(at, _)| *at != held.at);
        let at = match self.hosts.iter().position(|host| host.name == name) {
            Some(at) => at,
            None => {
                self.make_room();
                self.next_host = self.next_host.wrapping_add(1).max(1);
                let host = Host::new(HostId(self.next_host), name, held.at, now);
                self.hosts.push(host);
                self.hosts.len() - 1
            }
        };
        let host = &mut self.hosts[at];
        if host.welcome(held, &self.own) {
            host.take(events, &mut self.outlet, now);
        }
    }

    /// One host more must not take more memory: the one without a session gives way that was silent for longest.
    fn make_room(&mut self) {
        if self.hosts.len() < HOSTS_MAX {
            return;
        }
        let by_silence = |(_, host): &(usize, &Host)| (host.is_connected(), host.heard);
        let oldest = self.hosts.iter().enumerate().min_by_key(by_silence);
        if let Some(at) = oldest.map(|(at, _)| at) {
            self.let_go(at, "too many others are known");
        }
    }

    fn let_go(&mut self, at: usize, why: &str) {
        let mut host = self.hosts.swap_remove(at);
        host.close();
        self.outlet.tell(News::Over {
            host: host.id,
            name: host.name.to_string(),
            why: why.to_owned(),
        });
    }

    fn refused(&mut self, at: IpAddr, why: &Ended) {
        for host in self.hosts.iter_mut().filter(|host| host.at == at) {
            host.failed(why);
        }
        if let Some(why) = problem(why) {
            self.outlet.tell(News::Refused { at, why });
        } else if matches!(why, Ended::System(_)) {
            self.unanswered.retain(|(other, _)| *other != at);
            if self.unanswered.len() >= UNANSWERED_MAX {
                self.unanswered.pop_front();
            }
            self.unanswered.push_back((at, why.to_string()));
        }
    }

    fn show(&self) {
        let hosts = self.hosts.iter().map(|host| {
            json!({
                "with": host.name.as_str(),
                "at": host.at.to_string(),
                "connected": host.is_connected(),
                "has_key": host.has_key(),
                "keys_agreed": host.keys_agreed,
                "problem": host.problem,
            })
        });
        let unanswered = self.unanswered.iter();
        let unanswered = unanswered.map(|(at, why)| json!({"at": at.to_string(), "why": why}));
        let identity = self.identities.loaded();
        let notes = self.identities.cares().into_iter();
        let deaf = self.deaf.iter();
        let deaf = deaf.map(|why| format!("other hosts cannot call this one: {why}"));
        let shown = json!({
            "kind": "certificates",
            "name": self.own.as_str(),
            "ends": told(identity.certificate().ends),
            "notes": notes.chain(deaf).collect::<Vec<_>>(),
            "hosts": hosts.collect::<Vec<_>>(),
            "unanswered": unanswered.collect::<Vec<_>>(),
        });
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_taken_keeps_no_other_from_being_listened_at_and_is_tried_again() {
        let taken = TcpListener::bind("127.0.81.1:0").unwrap();
        let mut listeners = Listeners {
            port: taken.local_addr().unwrap().port(),
            addresses: (1..=3).map(|last| [127, 0, 81, last].into()).collect(),
            open: Vec::new(),
        };
        let refused = listeners.listen().unwrap_err().to_string();
        assert!(refused.contains("127.0.81.1"), "{refused}");
        let open = |listeners: &Listeners| listeners.open.len();
        assert_eq!(open(&listeners), 2);
        assert!(listeners.listen().is_err());
        assert_eq!(open(&listeners), 2, "once each");
        drop(taken);
        listeners.listen().unwrap();
        assert_eq!(open(&listeners), 3);
        listeners.addresses.truncate(1);
        listeners.listen().unwrap();
        assert_eq!(open(&listeners), 1);
    }
}

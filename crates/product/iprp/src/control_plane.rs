//! The thread beside the data plane: messages of other hosts, which packets are captured, what has happened, requests,
//! changes of the file and of the host's networks. It may be slow; packets do not wait for it.

mod change;
mod groups;
mod keyless;
mod sessions;
mod telling;
mod troubles;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Requests, SyncSender};

use bumpless_base::{Duration, Instant};
use bumpless_capture::{Captured, Firewall};
use bumpless_iprp::{Scope, SenderEvent, SessionId};
use bumpless_net_linux::{Clock, Poller, Waker};
use bumpless_node::control::refusal;
use bumpless_secure::Refusal;
use rtrb::Consumer;
use serde_json::{Value, json};

use crate::agreements::Agreements;
use crate::closed::{Closed, FRAME_MAX, Kind, Outgoing, Received, Refused};
use crate::config::Config;
use crate::diverting::Ways;
use crate::event::{self, Log};
use crate::exchange::{LENGTH, ToControl, ToData};
use crate::groups::GroupChannels;
use crate::host::{OpenPorts, side};
use crate::members::Memberships;
use crate::networks::Attachment;
use crate::ping::Pings;
use crate::request::{Reply, Request};
use crate::root::Root;
use crate::status::{Status, Surroundings};
use keyless::Keyless;
use troubles::{Of, Troubles};

pub use telling::Outbox;

/// How often signals and the host's networks are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How often the host's networks are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How long the data plane has for its end.
const END: Duration = Duration::from_secs(2);
/// Frames of one socket in one turn.
const BURST: usize = 32;
const ROUNDS_MAX: u32 = 1_000;

/// A request and where its reply goes.
pub type Asked = (Request, SyncSender<Reply>);

/// What ends the daemon, and what has it read its file again.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Set to end.
    pub stop: Arc<AtomicBool>,
    /// Set to read the file again.
    pub reload: Arc<AtomicBool>,
}

/// What the thread owns.
pub struct ControlPlane {
    pub file: PathBuf,
    pub config: Config,
    pub attachments: Vec<Attachment>,
    pub closed: Closed,
    /// Messages to all members of a group.
    pub groups: GroupChannels,
    pub members: Memberships,
    /// Sessions, if hosts have certificates.
    pub agreements: Option<Agreements>,
    /// Those of the data port are the other thread's, too.
    pub ports: OpenPorts,
    pub firewall: Option<Firewall>,
    /// By which way captured packets come.
    pub ways: Ways,
    pub root: Root,
    pub inbox: Consumer<ToControl>,
    pub outbox: Outbox,
    pub requests: Requests<Asked>,
    /// Wakes this thread, and the other one.
    pub waker: Waker,
    pub data: Waker,
    pub log: Log,
    pub signals: Signals,
    pub state: State,
}

/// What it remembers.
pub struct State {
    started: Instant,
    looked: Instant,
    /// When it was looked who is a member of groups.
    members_looked: Instant,
    pings: Pings,
    scopes: BTreeMap<SessionId, Scope>,
    /// What is to be captured (`true`) or not, and has not been told the kernel.
    captures: Vec<(Scope, bool)>,
    /// Who waits for the data plane's next snapshot. Whoever asked before has given up by then: requests come one by one.
    asking: Option<SyncSender<Reply>>,
    refused: BTreeMap<String, u64>,
    /// Frames without a session, by where they came from.
    keyless: Keyless,
    troubles: Troubles,
    ended: bool,
}

impl State {
    /// At the start. Hosts advertise themselves `every` so often.
    pub fn new(now: Instant, every: Duration) -> Self {
        Self {
            started: now,
            looked: now,
            members_looked: Instant::ZERO,
            pings: Pings::default(),
            scopes: BTreeMap::new(),
            captures: Vec::new(),
            asking: None,
            refused: BTreeMap::new(),
            keyless: Keyless::default(),
            troubles: Troubles::new(every),
            ended: false,
        }
    }
}

impl ControlPlane {
    /// Serves until it is told to stop, or `is_alive` says that the data plane has ended by itself.
    pub fn run(mut self, is_alive: impl Fn() -> bool) {
        let mut poller = self.poller();
        let mut stop_at: Option<Instant> = None;
        while is_alive() && !self.state.ended {
            let until = (Clock.now() + TICK).min(self.state.pings.due());
            let ready = poller.wait(until).unwrap_or_default();
            let now = Clock.now();
            for place in (0..self.ports.control.len()).filter(|place| ready.contains(*place)) {
                self.receive(now, place);
            }
            while let Ok(told) = self.inbox.pop() {
                self.hear(now, told);
            }
            self.capture();
            self.tell_what_waits();
            self.state.troubles.expire(now);
            while let Ok((request, reply)) = self.requests.try_recv() {
                self.answer(now, request, reply);
            }
            self.ping(now);
            self.follow_next_hops(now);
            self.follow_sessions(now);
            self.follow_members(now);
            self.expire_groups(now);
            let mut changed = false;
            if self.signals.reload.swap(false, Ordering::AcqRel) {
                changed |= self.reload(now).1;
            }
            if now.since(self.state.looked) >= LOOK {
                self.state.looked = now;
                changed |= self.follow_networks();
            }
            if changed {
                poller = self.poller();
            }
            if stop_at.is_none() && self.signals.stop.load(Ordering::Acquire) {
                stop_at = Some(now + END);
                // First the rules go: what is queued by then is sent on still, and what comes after leaves as it is.
                self.firewall = None;
                self.tell(ToData::Stop);
            }
            if stop_at.is_some_and(|at| now >= at) {
                break;
            }
        }
        // What the data plane has told last may be a withdrawal.
        let now = Clock.now();
        for _ in 0..LENGTH {
            let Ok(told) = self.inbox.pop() else {
                return;
            };
            self.hear(now, told);
        }
    }

    fn poller(&self) -> Poller {
        // News of next hops wake this thread; each turn looks at them.
        let ports = self.ports.control.descriptors();
        let descriptors: Vec<RawFd> = ports.chain(self.ways.news()).collect();
        Poller::new(&descriptors, self.waker.clone())
    }

    /// Frames of other hosts.
    fn receive(&mut self, now: Instant, place: usize) {
        let mut buffer = [0; FRAME_MAX];
        for _ in 0..BURST {
            let Ok(Some(arrived)) = self.ports.control.receive(place, &mut buffer) else {
                return;
            };
            let frame = arrived.datagram(&mut buffer);
            let (ports, port) = (&self.ports.control, self.config.host.control_port);
            let emit = &mut |it: Outgoing<'_>| {
                // A network that takes nothing at present is not the only one.
                let _ = ports.send(it.card, it.bytes, SocketAddr::new(it.to, port));
            };
            if place >= self.attachments.len().pow(2) {
                self.receive_for_group(now, arrived.from, frame);
                continue;
            }
            let at = (arrived.on, arrived.from);
            match self.closed.receive(now, at, frame, emit) {
                Ok(Some(received)) => self.take(now, at, received),
                Ok(None) | Err(Refused::NotFresh | Refused::Repeated | Refused::Own) => {}
                Err(refused) => self.refuse(arrived.from, refused),
            }
        }
    }

    fn take(&mut self, now: Instant, (card, from): (usize, SocketAddr), it: Received) {
        match it.kind {
            Kind::Hello => {}
            Kind::ForSender | Kind::ForReceiver => self.tell(ToData::Message {
                peer: it.peer,
                addresses: it.addresses,
                kind: it.kind,
                message: it.message,
            }),
            Kind::Ping => {
                let (ports, port) = (&self.ports.control, self.config.host.control_port);
                let emit = &mut |it: Outgoing<'_>| {
                    let _ = ports.send(it.card, it.bytes, SocketAddr::new(it.to, port));
                };
                let way = (card, from.ip());
                self.closed.send_on(now, way, Kind::Pong, &it.message, emit);
            }
            // Not when the turn began: answers on several networks may have come in one.
            Kind::Pong => self.state.pings.answered(Clock.now(), &it.message),
        }
    }

    fn refuse(&mut self, from: SocketAddr, refused: Refused) {
        let (cause, trouble) = match refused {
            Refused::Envelope(Refusal::UnknownKey(_)) if self.agreements.is_some() => {
                return self.refuse_without_session(from.ip());
            }
            Refused::Envelope(Refusal::UnknownKey(id)) => (
                "unknown_key",
                Some(format!(
                    "{} seals with the key {id:04x}, which this host does not have: give all hosts the same key file",
                    from.ip()
                )),
            ),
            Refused::Version(version) => (
                "unknown_version",
                Some(format!(
                    "{} speaks version {version} of the control messages, this is {}: run the same release on all hosts",
                    from.ip(),
                    crate::closed::VERSION
                )),
            ),
            Refused::Envelope(Refusal::Forged) => ("forged", None),
            Refused::Envelope(Refusal::TooManyUnknown) => ("untried", None),
            _ => ("malformed", None),
        };
        *self.state.refused.entry(cause.into()).or_default() += 1;
        if let Some(trouble) = trouble {
            self.trouble(Of::Other, &format!("{cause} {}", from.ip()), &trouble);
        }
    }

    /// What the data plane tells.
    fn hear(&mut self, now: Instant, told: ToControl) {
        match told {
            ToControl::Send { to, kind, message } => {
                let (ports, port) = (&self.ports.control, self.config.host.control_port);
                let emit = &mut |it: Outgoing<'_>| {
                    let _ = ports.send(it.card, it.bytes, SocketAddr::new(it.to, port));
                };
                self.closed.send(now, to, kind, &message, emit);
            }
            ToControl::Spread { group, message } => self.spread(group, &message),
            ToControl::MembersKnown(number) => self.members.known(number),
            ToControl::Capture(scope, begin) => self.state.captures.push((scope, begin)),
            ToControl::Sender(event) => {
                if let SenderEvent::Begun { session, scope, .. } = event {
                    self.state.scopes.insert(session, scope);
                }
                let scopes = &self.state.scopes;
                let scope = |session: u32| scopes.get(&SessionId(session)).copied();
                if let Some((name, about, words)) = event::of_sender(&event, scope) {
                    self.log.say(name, about, &words);
                }
                if let SenderEvent::Ended { session, .. } = event {
                    self.state.scopes.remove(&session);
                }
            }
            ToControl::Receiver(event) => {
                if let bumpless_iprp::ReceiverEvent::KeyChanged { number } = event {
                    self.root.keep(number);
                }
                self.members.hear(&event);
                if let Some((name, about, words)) = event::of_receiver(&event) {
                    self.log.say(name, about, &words);
                }
            }
            ToControl::Unanswered(change) => {
                let (name, about, words) = event::of_network(&change);
                self.log.say(name, about, &words);
            }
            ToControl::Unheard(change) => {
                let (name, about, words) = event::of_group_network(&change);
                self.log.say(name, about, &words);
            }
            ToControl::Refused(from, error) => {
                let (name, about, words) = event::refused(&from, error);
                if matches!(error, bumpless_iprp::MessageError::Version(_)) {
                    self.trouble(Of::Other, &format!("version {from:?}"), &words);
                } else {
                    self.log.say(name, about, &words);
                }
            }
            ToControl::Snapshot(snapshot) => {
                let now = Clock.now();
                let troubles = self.state.troubles.words();
                let around = Surroundings {
                    attachments: &self.attachments,
                    uptime_s: now.since(self.state.started).as_secs_f64(),
                    refused: &self.state.refused,
                    troubles: &troubles,
                    troubles_left_out: self.state.troubles.left_out(),
                    untold: self.outbox.lost(),
                    capture: self.ways.status(),
                    groups: self.members.status(&self.attachments),
                    security: self.agreements.as_ref().map(Agreements::status),
                };
                let status = Status::new(snapshot, &around);
                if let Some(reply) = self.state.asking.take() {
                    let _ = reply.try_send(Reply::Status(Box::new(status)));
                }
            }
            ToControl::Ended => self.state.ended = true,
        }
    }

    /// Has the kernel capture what the data plane has told, all that is known by now in one go.
    fn capture(&mut self) {
        let changes = std::mem::take(&mut self.state.captures);
        let Some(firewall) = &mut self.firewall else {
            return;
        };
        let told = |(scope, begin): &(Scope, bool)| {
            let captured = Captured {
                protocol: scope.protocol,
                side: side(scope.side),
                port: scope.port,
                destination: scope.destination,
            };
            (captured, *begin)
        };
        let results = firewall.change(&changes.iter().map(told).collect::<Vec<_>>());
        for ((scope, _), changed) in changes.into_iter().zip(results) {
            let about = format!("capture {scope}");
            match changed {
                Ok(()) => self.no_trouble(&about),
                Err(error) => {
                    let words = format!("{scope}: the firewall's set cannot be changed: {error}");
                    self.trouble(Of::Flow, &about, &words);
                }
            }
        }
    }

    fn ping(&mut self, now: Instant) {
        let closed = &self.closed;
        let attachments = &self.attachments;
        let probes = self.state.pings.poll(now, |host| {
            let ways = closed.ways(host).into_iter();
            ways.filter_map(|(card, to)| Some((attachments.get(card)?.ind, card, to)))
                .collect()
        });
        let (ports, port) = (&self.ports.control, self.config.host.control_port);
        for probe in probes {
            let emit = &mut |it: Outgoing<'_>| {
                let _ = ports.send(it.card, it.bytes, SocketAddr::new(it.to, port));
            };
            let way = (probe.card, probe.to);
            self.state.pings.leaves(Clock.now(), &probe);
            self.closed
                .send_on(now, way, Kind::Ping, &probe.bytes, emit);
        }
    }

    fn answer(&mut self, now: Instant, request: Request, reply: SyncSender<Reply>) {
        let answer = match request {
            Request::Status => {
                self.state.asking = Some(reply);
                return self.tell(ToData::Snapshot);
            }
            Request::Reload => self.reload(now).0,
            Request::Ping {
                host,
                count,
                every_ms,
            } => {
                let every = Duration::from_millis(u64::from(every_ms.clamp(1, 60_000)));
                let count = count.clamp(1, ROUNDS_MAX);
                self.tell_of_self(now, host);
                let id = self.state.pings.begin(now, host, count, every);
                json!({"schema": "bumpless.iprp.ping/1", "id": id})
            }
            Request::Ways { host } => self.ways(now, host),
            Request::PingResult { id } => match self.state.pings.result(now, id) {
                Some(result) => result,
                None => refusal(format_args!(
                    "there is no ping {id} any more; begin another one"
                )),
            },
        };
        let _ = reply.try_send(Reply::Other(answer));
    }

    fn ways(&mut self, now: Instant, host: IpAddr) -> Value {
        let ways = self.closed.ways(host);
        if ways.is_empty() {
            self.tell_of_self(now, host);
        }
        let networks = ways.into_iter().filter_map(|(card, to)| {
            let own = self.attachments.get(card)?;
            Some(json!({
                "ind": own.ind.get(),
                "interface": own.interface,
                "from": own.address.to_string(),
                "to": to.to_string(),
            }))
        });
        json!({"schema": "bumpless.iprp.ways/1", "networks": networks.collect::<Vec<_>>()})
    }

    /// Shows this process to the host at an address, which then shows itself.
    fn tell_of_self(&mut self, now: Instant, host: IpAddr) {
        let (ports, port) = (&self.ports.control, self.config.host.control_port);
        let emit = &mut |it: Outgoing<'_>| {
            let _ = ports.send(it.card, it.bytes, SocketAddr::new(it.to, port));
        };
        self.closed.send(now, host, Kind::Hello, &[], emit);
    }
}

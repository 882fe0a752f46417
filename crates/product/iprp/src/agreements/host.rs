//! One host with a certificate: its sessions, and the keys that they give.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use bumpless_management::{Connection, Event, Keys, Message, Ring};
use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::{Identity, NodeName};
use bumpless_sessions::{Ended, SessionError};

use crate::closed::HostId;

/// Between two calls: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// Whoever did not call gives the other end this much time to call again.
const ITS_TURN: Duration = Duration::from_millis(400);

/// A session, and where its other end is.
pub struct Held {
    pub connection: Connection,
    pub at: IpAddr,
    /// Whether this host has called.
    pub called: bool,
}

/// What is to be done with keys.
pub trait Give {
    /// Opens, and seals, with `ring` what is exchanged with `host` at `address`, when this returns. `false`: it does not.
    fn give(&mut self, host: HostId, address: IpAddr, ring: &Ring) -> bool;
}

/// A host.
pub struct Host {
    pub id: HostId,
    pub name: NodeName,
    /// Where it has shown itself last.
    pub at: IpAddr,
    /// Ways to it: this host's address and its own.
    pub ways: Vec<(IpAddr, IpAddr)>,
    /// When something was heard of it in a session.
    pub heard: Instant,
    /// How many keys were agreed on.
    pub keys_agreed: u64,
    /// Why there is no session, or no newer one.
    pub problem: Option<String>,
    keys: Keys,
    /// The session of which the keys are.
    session: Option<Held>,
    /// The one that takes its place when both ends open with its secret.
    coming: Option<Held>,
    /// Whether this host has called in the last session.
    called: bool,
    /// What it has shown in the session of which the keys are.
    shown: Vec<CertificateDer<'static>>,
    next_way: usize,
    call_at: Instant,
    pause: Duration,
}

impl Host {
    pub fn new(id: HostId, name: NodeName, at: IpAddr, now: Instant) -> Self {
        Self {
            id,
            name,
            at,
            ways: Vec::new(),
            heard: now,
            keys_agreed: 0,
            problem: None,
            keys: Keys::default(),
            session: None,
            coming: None,
            called: false,
            shown: Vec::new(),
            next_way: 0,
            call_at: now,
            pause: PAUSE.0,
        }
    }

    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        let held = self.session.iter().chain(&self.coming);
        held.map(|it| &it.connection)
    }

    pub const fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    pub const fn has_key(&self) -> bool {
        self.keys.seal()
    }

    /// It has shown itself in `held`. Of two calls that cross, that of the host whose name comes first goes on.
    pub fn welcome(&mut self, held: Held, own: &NodeName) -> bool {
        let rank = |it: &Held| it.called == (*own < self.name);
        if self
            .coming
            .as_ref()
            .is_some_and(|it| rank(it) && !rank(&held))
        {
            held.connection.close();
            return false;
        }
        self.at = held.at;
        if let Some(before) = self.coming.replace(held) {
            before.connection.close();
        }
        true
    }

    /// Something is to be said to it: without a session it is called at once.
    pub fn want(&mut self, ways: Vec<(IpAddr, IpAddr)>, now: Instant) {
        if !ways.is_empty() {
            self.ways = ways;
        }
        if self.session.is_none() && self.pause > PAUSE.0 {
            (self.pause, self.call_at) = (PAUSE.0 * 2, now);
        }
    }

    /// Where it is to be called at this moment: from which address to which.
    pub fn call(&mut self, lifetime: Duration, now: Instant) -> Option<(Option<IpAddr>, IpAddr)> {
        let is_old = |it: &Held| it.called && now >= it.connection.began() + lifetime;
        let is_wanted = self.session.as_ref().is_none_or(is_old);
        if !is_wanted || self.coming.is_some() || now < self.call_at {
            return None;
        }
        self.call_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE.1);
        let way = self.next_way % (self.ways.len() + 1);
        self.next_way = way + 1;
        Some(match self.ways.get(way) {
            Some((from, to)) => (Some(*from), *to),
            // As the system finds it.
            None => (None, self.at),
        })
    }

    /// It could not be called, or a session with it that was about to begin has ended.
    pub fn failed(&mut self, why: &Ended) {
        self.problem = problem(why).or_else(|| self.problem.take());
    }

    /// The list of what is revoked is another one: whoever is about to show itself does so again, and is judged by it.
    pub fn begin_anew(&mut self) {
        self.coming = None;
    }

    /// Whether the certificate that it has shown has been revoked since.
    pub fn is_revoked(&self, identity: &Identity) -> bool {
        identity.has_revoked(&self.shown)
    }

    pub fn close(&mut self) {
        for held in self.session.take().into_iter().chain(self.coming.take()) {
            held.connection.close();
        }
    }

    /// Goes on with its sessions.
    pub fn drive(&mut self, give: &mut dyn Give, now: Instant) {
        let mut events = Vec::new();
        if let Some(held) = &mut self.session {
            match held.connection.drive(now, &mut events) {
                Ok(()) => self.heard = now,
                Err(_) => {
                    self.session = None;
                    let wait = if self.called { PAUSE.0 } else { ITS_TURN };
                    (self.pause, self.call_at) = (PAUSE.0, now + wait);
                }
            }
        }
        self.take(events, give, now);
        let mut events = Vec::new();
        if let Some(held) = &mut self.coming
            && let Err(why) = held.connection.drive(now, &mut events)
        {
            self.coming = None;
            self.failed(&why);
        }
        self.take(events, give, now);
    }

    pub fn take(&mut self, events: Vec<Event>, give: &mut dyn Give, now: Instant) {
        for event in events {
            match event {
                Event::Agreed { secret, .. } => self.agree(secret, give, now),
                Event::Ready => self.begin(give, now),
                Event::Sealing => self.keys.sealing(now),
                // What nodes of a pair say to each other has no meaning between hosts.
                _ => {}
            }
        }
    }

    fn agree(
        &mut self,
        secret: bumpless_management::SessionSecret,
        give: &mut dyn Give,
        now: Instant,
    ) {
        let ring = self.keys.agreed(secret);
        let is_given = give.give(self.id, self.at, &ring);
        match (is_given, &mut self.coming) {
            (true, Some(coming)) => {
                coming.connection.say(&Message::Ready);
                // It leaves at once, not when something comes.
                self.drive(give, now);
            }
            // Another session has another secret.
            _ => self.coming = None,
        }
    }

    /// The other end opens with the secret of the session that has come.
    fn begin(&mut self, give: &mut dyn Give, now: Instant) {
        let Some(mut coming) = self.coming.take() else {
            return;
        };
        let Some(ring) = self.keys.ready() else {
            return;
        };
        give.give(self.id, self.at, &ring);
        coming.connection.say(&Message::Sealing);
        self.shown = coming.connection.session().shown().to_vec();
        self.called = coming.called;
        if let Some(before) = self.session.replace(coming) {
            before.connection.close();
        }
        self.keys_agreed += 1;
        self.problem = None;
        self.heard = now;
        (self.pause, self.call_at) = (PAUSE.0, now);
    }

    /// Secrets whose time is over are not opened with any more.
    pub fn retire(&mut self, give: &mut dyn Give, now: Instant) {
        if let Some(ring) = self.keys.retire(now) {
            give.give(self.id, self.at, &ring);
        }
    }
}

/// What to tell of the end of a connection; `None`: that nobody is there.
pub fn problem(why: &Ended) -> Option<String> {
    match why {
        Ended::System(_) | Ended::Silent | Ended::Session(SessionError::Closed) => None,
        why @ Ended::Session(_) => Some(why.to_string()),
    }
}

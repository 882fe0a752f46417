//! Who takes keys from servers: which one is asked when, and what is taken over.

use std::net::SocketAddr;

use bumpless_base::{Duration, Instant};
use bumpless_pki::{CertificateFault, Identity, NodeName, Refusal};
use bumpless_secure::group::{Grant, Schedule};
use bumpless_sessions::{Ended, Identities, SessionError};
use rustix::event::PollFd;

use crate::Connection;
use crate::message::Message;
use crate::session::Session;

/// Between two questions: what is pushed comes at once, this keeps clocks together and shows that both are there.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// What is held back for longer would make this member late.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// Between two calls: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));
/// How often a server that is named before the one in use is tried again.
const PREFER_EVERY: Duration = Duration::from_secs(5);

/// A key server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What it is called in its certificate.
    pub name: NodeName,
    /// Where it answers.
    pub address: SocketAddr,
}

/// A member of a group.
#[derive(Debug)]
pub struct Member {
    group: String,
    servers: Vec<Server>,
    /// What is wrong with each.
    problems: Vec<Option<String>>,
    schedule: Schedule,
    /// The session in which keys come.
    current: Option<Asked>,
    /// One that may take its place.
    trying: Option<Asked>,
    /// Which one is called next, when, and how long it is waited after that.
    next: usize,
    call_at: Instant,
    pause: Duration,
    /// When keys came last.
    answered: Option<Instant>,
    pushes: u64,
}

/// A session with one server.
#[derive(Debug)]
struct Asked {
    server: usize,
    connection: Connection,
    /// Since when a question is not answered.
    asked: Option<Instant>,
    ask_at: Instant,
    /// It was answered once.
    told: bool,
}

impl Member {
    /// A member of `group` that takes its keys from `servers`, the first one before the others, and has those of `schedule`.
    pub fn new(group: String, servers: Vec<Server>, schedule: Schedule, now: Instant) -> Self {
        Self {
            group,
            problems: servers.iter().map(|_| None).collect(),
            servers,
            schedule,
            current: None,
            trying: None,
            next: 0,
            call_at: now,
            pause: PAUSE.0,
            answered: None,
            pushes: 0,
        }
    }

    /// The keys that are here.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The server whose session is in use.
    pub fn server(&self) -> Option<&Server> {
        let current = self.current.as_ref()?;
        self.servers.get(current.server)
    }

    /// When keys came last.
    pub const fn answered(&self) -> Option<Instant> {
        self.answered
    }

    /// How often a server told of keys unasked.
    pub const fn pushes(&self) -> u64 {
        self.pushes
    }

    /// What is wrong with servers, by name.
    pub fn problems(&self) -> impl Iterator<Item = (&Server, &str)> {
        let all = self.servers.iter().zip(&self.problems);
        all.filter_map(|(server, problem)| Some((server, problem.as_deref()?)))
    }

    /// What to wait for.
    pub fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let all = self.current.iter().chain(&self.trying);
        all.map(|asked| asked.connection.poll())
    }

    /// Ends its sessions.
    pub fn close(&mut self) {
        for asked in self.current.take().into_iter().chain(self.trying.take()) {
            asked.connection.close();
        }
    }

    /// The list of what is revoked is another one: whoever is named there is not believed any more.
    pub fn judge(&mut self, identity: &Identity) {
        // Who is about to show who it is shows it again, and is judged by the list.
        self.trying = None;
        let shown = self
            .current
            .as_ref()
            .map(|it| it.connection.session().shown());
        if shown.is_some_and(|shown| identity.has_revoked(shown))
            && let Some(asked) = self.current.take()
        {
            let revoked = Refusal::Partner(CertificateFault::Revoked);
            self.problems[asked.server] = Some(revoked.to_string());
            asked.connection.close();
        }
    }

    /// Does what can be done. Returns whether keys were taken over.
    pub fn drive(&mut self, identities: &mut Identities, now: Instant) -> bool {
        self.schedule.handle_timeout(now);
        self.call_when_due(identities, now);
        let mut taken = false;
        if let Some(mut asked) = self.current.take() {
            match self.go_on(&mut asked, now) {
                Ok(new) => {
                    taken |= new;
                    self.current = Some(asked);
                }
                Err(why) => self.failed(asked.server, why, now),
            }
        }
        if let Some(mut asked) = self.trying.take() {
            match self.go_on(&mut asked, now) {
                Ok(true) => {
                    taken = true;
                    (self.pause, self.next) = (PAUSE.0, 0);
                    self.call_at = now + PREFER_EVERY;
                    if let Some(before) = self.current.replace(asked) {
                        before.connection.close();
                    }
                }
                Ok(false) => self.trying = Some(asked),
                Err(why) => self.failed(asked.server, why, now),
            }
        }
        taken
    }

    fn call_when_due(&mut self, identities: &mut Identities, now: Instant) {
        // Those before the one in use, or all.
        let wanted = self
            .current
            .as_ref()
            .map_or(self.servers.len(), |it| it.server);
        if self.trying.is_some() || wanted == 0 || now < self.call_at {
            return;
        }
        let server = self.next % wanted;
        let clock = std::time::Instant::now();
        let identity = identities.fresh(clock);
        let there = &self.servers[server];
        let session = Session::call(&identity, &there.name);
        let called = session
            .map_err(Ended::from)
            .and_then(|session| Ok(Connection::call(session, (None, there.address), clock)?));
        match called {
            Ok(connection) => {
                self.trying = Some(Asked {
                    server,
                    connection,
                    asked: None,
                    ask_at: now,
                    told: false,
                });
            }
            Err(why) => self.failed(server, why.to_string(), now),
        }
    }

    /// Goes on with a session; whether keys were taken over.
    fn go_on(&mut self, asked: &mut Asked, now: Instant) -> Result<bool, String> {
        let mut heard = Vec::new();
        let driven = asked
            .connection
            .drive(std::time::Instant::now(), &mut heard);
        let mut taken = false;
        for message in heard {
            match message {
                Message::Answer(grant) if asked.asked.is_some() => {
                    self.take(&grant, now)?;
                    (asked.asked, asked.told, taken) = (None, true, true);
                }
                Message::Push(grant) if asked.told => {
                    self.take(&grant, now)?;
                    self.pushes += 1;
                    taken = true;
                }
                Message::Refused(why) => return Err(why.to_string()),
                _ => return Err(SessionError::Malformed.to_string()),
            }
        }
        if taken {
            self.answered = Some(now);
            self.problems[asked.server] = None;
        }
        driven.map_err(|why| why.to_string())?;
        if asked.asked.is_some_and(|at| now >= at + ANSWERED_WITHIN) {
            return Err(
                "it does not answer in time; look at its load and at the network to it".into(),
            );
        }
        // What is said before the handshake is complete would wait for it, and its answer be late.
        let is_there = asked.connection.session().other().is_some();
        if is_there && asked.asked.is_none() && now >= asked.ask_at {
            (asked.asked, asked.ask_at) = (Some(now), now + ASK_EVERY);
            asked.connection.say(&Message::Ask {
                group: self.group.clone(),
                place: self.schedule.place(now).unwrap_or_default(),
            });
            asked.connection.flush().map_err(|why| why.to_string())?;
        }
        Ok(taken)
    }

    fn take(&mut self, grant: &Grant, now: Instant) -> Result<(), String> {
        let taken = self.schedule.take(grant, now, now);
        taken.map_err(|error| error.to_string())
    }

    fn failed(&mut self, server: usize, why: String, now: Instant) {
        self.problems[server] = Some(why);
        self.next = server + 1;
        (self.call_at, self.pause) = match &self.current {
            Some(_) => (now + PREFER_EVERY, PAUSE.0),
            None => (now + self.pause, (self.pause * 2).min(PAUSE.1)),
        };
    }
}

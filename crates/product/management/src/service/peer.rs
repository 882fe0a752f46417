//! One partner: its connections, its keys, and when it is called.

use std::io;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::{CertificateFault, Identity, Refusal};

use super::proposal::{Carried, Order};
use super::{Host, Identities, PartnerState, Setup};
use bumpless_sessions::{Ended, SessionError};

use crate::Connection;
use crate::keys::{Keys, Ring};
use crate::message::Message;
use crate::session::{Event, Session};

/// Between two calls: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

pub struct Peer {
    keys: Keys,
    /// The session of which the keys are.
    connection: Option<Connection>,
    /// The one that takes its place when both ends open with its secret.
    coming: Option<Connection>,
    /// When the partner is called next, and how long it is waited after that.
    call_at: Instant,
    pause: Duration,
    /// Which path is tried next.
    path: usize,
    /// What the partner has shown in the session of which the keys are.
    shown: Vec<CertificateDer<'static>>,
    /// What the host has not taken yet.
    owed: Option<Owed>,
    /// What was proposed to the partner and is not answered.
    proposal: Option<Proposal>,
    state: PartnerState,
    told: Option<PartnerState>,
}

/// What the host is told again until it takes it.
enum Owed {
    /// To forget the keys.
    Nothing,
    /// To use these, and whether the partner waits to hear that they seal.
    Keys(Ring, bool),
}

struct Proposal {
    text: String,
    /// Where the answer goes, and how long it is waited for there.
    reply: SyncSender<Carried>,
    until: Instant,
}

impl Proposal {
    fn message(&self) -> Message {
        let text = self.text.clone();
        Message::Propose { text }
    }
}

impl Peer {
    pub fn new(now: Instant) -> Self {
        Self {
            keys: Keys::default(),
            connection: None,
            coming: None,
            call_at: now,
            pause: PAUSE.0,
            path: 0,
            shown: Vec::new(),
            owed: None,
            proposal: None,
            state: PartnerState::default(),
            told: None,
        }
    }

    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connection.iter().chain(&self.coming)
    }

    pub fn close(&mut self) {
        for connection in self.connection.take().into_iter().chain(self.coming.take()) {
            connection.close();
        }
    }

    /// The list of what is revoked is another one: who is about to show who it is shows it again, and is judged by it.
    pub fn begin_anew(&mut self) {
        self.coming = None;
    }

    /// If the certificate that the partner has shown has been revoked since, its keys and sessions are over.
    pub fn judge(&mut self, identity: &Identity) {
        if identity.has_revoked(&self.shown) {
            self.close();
            self.keys = Keys::default();
            self.owed = Some(Owed::Nothing);
            self.shown.clear();
            let refused = Refusal::Partner(CertificateFault::Revoked);
            self.state.problem = Some(refused.to_string());
        }
    }

    /// Tells the host again what it has not taken.
    pub fn settle(&mut self, at: usize, host: &mut dyn Host) {
        match self.owed.take() {
            Some(Owed::Nothing) if !host.forget_keys(at) => self.owed = Some(Owed::Nothing),
            Some(Owed::Keys(ring, waits)) => self.give(at, host, ring, waits),
            _ => {}
        }
    }

    /// Gives the host the keys, and then tells the partner, if it waits for that, that they seal: it takes those of
    /// before out of use.
    fn give(&mut self, at: usize, host: &mut dyn Host, ring: Ring, waits: bool) {
        if !host.set_keys(at, &ring) {
            self.owed = Some(Owed::Keys(ring, waits));
            return;
        }
        if waits && let Some(connection) = &mut self.connection {
            connection.say(&Message::Sealing);
        }
    }

    /// The partner has called, and shown who it is.
    pub fn welcome(&mut self, connection: Connection) {
        self.coming = Some(connection);
    }

    /// Its state, if that has changed since it was told last.
    pub fn news(&mut self) -> Option<&PartnerState> {
        self.state.connected = self.connection.is_some();
        // Until the host has taken them, nothing is sealed with them.
        let waits = matches!(self.owed, Some(Owed::Keys(_, true)));
        self.state.has_key = self.keys.seal() && !waits;
        if self.told.as_ref() == Some(&self.state) {
            return None;
        }
        self.told = Some(self.state.clone());
        self.told.as_ref()
    }

    /// Says what is to be said, if there is a session.
    pub fn carry(&mut self, order: Order) {
        match (order, &mut self.connection) {
            (
                Order::Propose {
                    text, reply, until, ..
                },
                Some(connection),
            ) => {
                let proposal = Proposal { text, reply, until };
                connection.say(&proposal.message());
                self.proposal = Some(proposal);
            }
            (Order::Withdraw { .. }, Some(connection)) => connection.say(&Message::Withdraw),
            (Order::Propose { reply, .. }, None) => {
                let _ = reply.try_send(Carried::Unanswered);
            }
            (Order::Withdraw { .. }, None) => {}
        }
    }

    /// Says what came of the partner's proposal.
    pub fn answer(&mut self, answer: Result<(), String>) {
        if let Some(connection) = &mut self.connection {
            let refused = answer.err();
            connection.say(&Message::Proposed { refused });
        }
    }

    /// What was proposed is answered.
    fn conclude(&mut self, carried: Carried) {
        if let Some(proposal) = self.proposal.take() {
            // Whoever asked may have gone.
            let _ = proposal.reply.try_send(carried);
        }
    }

    /// Takes keys out of use whose time is over.
    pub fn retire(&mut self, at: usize, host: &mut dyn Host, now: Instant) {
        if let Some(ring) = self.keys.retire(now) {
            let waits = matches!(self.owed, Some(Owed::Keys(_, true)));
            self.owed = None;
            self.give(at, host, ring, waits);
        }
    }

    /// Calls if this node calls, and no session is there, or the key is old.
    pub fn call_when_due(
        &mut self,
        (setup, at): (&Setup, usize),
        identity: &mut Identities,
        now: Instant,
    ) {
        let partner = &setup.partners[at];
        let old = |it: &Connection| now >= it.began() + setup.key_lifetime;
        let wanted = self.connection.as_ref().is_none_or(old);
        let busy = self.coming.is_some() || self.owed.is_some();
        if !partner.calls || !wanted || busy || now < self.call_at {
            return;
        }
        let Some(path) = partner.paths.get(self.path % partner.paths.len().max(1)) else {
            return;
        };
        let identity = identity.fresh(now);
        let session = Session::call(&identity, &partner.name, setup.profile.clone());
        let called = session.map_err(Ended::from).and_then(|session| {
            Connection::call(session, (Some(path.from), path.to), now).map_err(Ended::from)
        });
        match called {
            Ok(connection) => self.coming = Some(connection),
            Err(why) => self.failed(&why, now),
        }
    }

    /// Goes on with its connections; returns what has happened.
    pub fn drive(&mut self, now: Instant) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(connection) = &mut self.connection
            && connection.drive(now, &mut events).is_err()
        {
            self.connection = None;
            self.conclude(Carried::Unanswered);
        }
        if let Some(coming) = &mut self.coming
            && let Err(why) = coming.drive(now, &mut events)
        {
            self.coming = None;
            self.failed(&why, now);
        }
        events
    }

    pub fn handle(
        &mut self,
        event: Event,
        (setup, at): (&Setup, usize),
        host: &mut dyn Host,
        now: Instant,
    ) {
        match event {
            Event::Agreed {
                profile, secret, ..
            } => {
                self.state.mismatches = setup.profile.mismatches(&profile);
                let ring = self.keys.agreed(secret);
                // Before anything is sealed: what is sent then keeps to it. What is owed goes first.
                self.settle(at, host);
                let taken = self.owed.is_none()
                    && host.set_profile(at, &profile)
                    && host.set_keys(at, &ring);
                self.state.profile = Some(profile);
                match (taken, &mut self.coming) {
                    (true, Some(coming)) => {
                        coming.say(&Message::Ready);
                        // It leaves at once, not when something comes.
                        let late = self.drive(now);
                        for event in late {
                            self.handle(event, (setup, at), host, now);
                        }
                    }
                    // Another session has another secret.
                    _ => self.coming = None,
                }
            }
            Event::Ready => {
                // Should it have ended since, its secret opens, and the next session's takes its place.
                let Some(coming) = self.coming.take() else {
                    return;
                };
                let Some(ring) = self.keys.ready() else {
                    return;
                };
                self.shown = coming.session().shown().to_vec();
                if let Some(before) = self.connection.replace(coming) {
                    before.close();
                }
                self.give(at, host, ring, true);
                // Its answer may be lost with the session before; to be asked twice does no harm.
                if let (Some(connection), Some(proposal)) = (&mut self.connection, &self.proposal)
                    && now < proposal.until
                {
                    connection.say(&proposal.message());
                }
                self.state.keys_agreed += 1;
                self.state.problem = None;
                (self.pause, self.call_at) = (PAUSE.0, now);
            }
            Event::Sealing => self.keys.sealing(now),
            Event::Proposed(text) => host.propose(at, text),
            Event::Answered(Ok(())) => self.conclude(Carried::Prepared),
            Event::Answered(Err(why)) => self.conclude(Carried::Refused(why)),
            Event::Withdrawn => host.withdraw(at),
        }
    }

    /// Whoever called from one of its addresses was not let in, or ended.
    pub fn refused(&mut self, why: &Ended) {
        if self.connection.is_none() {
            self.state.problem = problem(why);
        }
    }

    fn failed(&mut self, why: &Ended, now: Instant) {
        self.path += 1;
        self.call_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE.1);
        self.state.problem = problem(why);
    }
}

/// What to tell of the end of a connection. That a partner is away is told by others.
fn problem(why: &Ended) -> Option<String> {
    match why {
        Ended::System(error) if is_absence(error) => None,
        Ended::Session(SessionError::Closed) | Ended::Silent => None,
        why => Some(why.to_string()),
    }
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut,
    };
    let absent = [
        ConnectionRefused,
        ConnectionReset,
        HostUnreachable,
        NetworkUnreachable,
        TimedOut,
    ];
    absent.contains(&error.kind())
}

//! Connections: those that have shown who they are, and those that have not yet.

use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Instant;

use bumpless_keys::{Connection, Message, Session};
use bumpless_pki::{Identity, NodeName};
use bumpless_sessions::{Ended, SessionError};
use rustix::event::PollFd;

/// Most that have not shown who they are; of one address.
const GUESTS: (usize, usize) = (64, 4);
/// Most of one member: a connection that is lost ends here some seconds later than there.
const OF_ONE: usize = 4;
/// Taken in one turn, so that who calls without end does not keep the others waiting.
const AT_ONCE: usize = 16;

/// All connections.
#[derive(Default)]
pub struct Callers {
    guests: Vec<Caller>,
    known: Vec<Caller>,
}

/// A connection.
pub struct Caller {
    connection: Connection,
    from: IpAddr,
    /// The group for whose keys it has asked.
    group: Option<usize>,
}

/// What a caller is told that has said something: the position of the group whose member it is, and the message.
type Answer<'a> = dyn FnMut(&Session, &Message) -> (Option<usize>, Message) + 'a;

/// What has come of a connection in a turn.
pub enum Outcome {
    /// A member has shown who it is.
    Came(NodeName),
    /// A member's connection has ended.
    Left(NodeName, Ended),
    /// Somebody did not show who it is.
    Refused(IpAddr, Ended),
}

impl Callers {
    /// What to wait for.
    pub fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let all = self.guests.iter().chain(&self.known);
        all.map(|caller| caller.connection.poll())
    }

    /// Takes connections that have come. `false`: the system gives none at present.
    pub fn accept(
        &mut self,
        listener: &TcpListener,
        (identity, expected): (&Identity, &[NodeName]),
        now: Instant,
    ) -> bool {
        for _ in 0..AT_ONCE {
            match listener.accept() {
                Ok((stream, from)) => {
                    self.take(stream, from.ip().to_canonical(), (identity, expected), now);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn take(
        &mut self,
        stream: TcpStream,
        from: IpAddr,
        (identity, expected): (&Identity, &[NodeName]),
        now: Instant,
    ) {
        let Ok(session) = Session::answer(identity, expected) else {
            return;
        };
        let Ok(connection) = Connection::answer(stream, session, now) else {
            return;
        };
        // Who floods takes the places of its own address first.
        let of_same = self.guests.iter().filter(|it| it.from == from).count();
        let oldest = match (of_same >= GUESTS.1, self.guests.len() >= GUESTS.0) {
            (true, _) => self.guests.iter().position(|it| it.from == from),
            (_, full) => full.then_some(0),
        };
        if let Some(at) = oldest {
            self.guests.remove(at);
        }
        self.guests.push(Caller {
            connection,
            from,
            group: None,
        });
    }

    /// Goes on with all. `answer` is asked what a caller is told. What has happened goes to `outcomes`.
    pub fn drive(&mut self, answer: &mut Answer<'_>, outcomes: &mut Vec<Outcome>, now: Instant) {
        for mut caller in std::mem::take(&mut self.guests) {
            let ended = caller.drive(answer, now).err();
            match (caller.name(), ended) {
                (Some(name), None) => {
                    outcomes.push(Outcome::Came(name));
                    self.welcome(caller);
                }
                (None, None) => self.guests.push(caller),
                (_, Some(why)) => outcomes.push(Outcome::Refused(caller.from, why)),
            }
        }
        for mut caller in std::mem::take(&mut self.known) {
            match (caller.drive(answer, now), caller.name()) {
                (Ok(()), _) => self.known.push(caller),
                (Err(why), Some(name)) => outcomes.push(Outcome::Left(name, why)),
                (Err(_), None) => {}
            }
        }
    }

    fn welcome(&mut self, caller: Caller) {
        let name = caller.name();
        let same = |it: &Caller| it.name() == name;
        if self.known.iter().filter(|it| same(it)).count() >= OF_ONE
            && let Some(at) = self.known.iter().position(same)
        {
            self.known.remove(at).connection.close();
        }
        self.known.push(caller);
    }

    /// Tells the members of the group at this position that are there.
    pub fn push(&mut self, group: usize, message: &Message) {
        let all = self.known.iter_mut();
        for caller in all.filter(|it| it.group == Some(group)) {
            caller.connection.say(message);
            // That it fails shows when it is driven.
            let _ = caller.connection.flush();
        }
    }

    /// Gives up who is revoked by the list of `identity`, and handshakes that are under way: they begin anew, and are
    /// judged by it.
    pub fn judge(&mut self, identity: &Identity) {
        self.guests.clear();
        for caller in std::mem::take(&mut self.known) {
            match identity.has_revoked(caller.connection.session().shown()) {
                true => caller.connection.close(),
                false => self.known.push(caller),
            }
        }
    }

    /// Short names of who is there for the group at this position.
    pub fn connected(&self, group: usize) -> Vec<String> {
        let all = self.known.iter().filter(|it| it.group == Some(group));
        all.filter_map(|it| Some(it.name()?.short().to_owned()))
            .collect()
    }

    /// How many are there, and how many have not shown who they are.
    pub fn counts(&self) -> (usize, usize) {
        (self.known.len(), self.guests.len())
    }

    /// Ends all.
    pub fn close(&mut self) {
        self.guests.clear();
        for caller in self.known.drain(..) {
            caller.connection.close();
        }
    }
}

impl Caller {
    fn name(&self) -> Option<NodeName> {
        self.connection.session().other().cloned()
    }

    fn drive(&mut self, answer: &mut Answer<'_>, now: Instant) -> Result<(), Ended> {
        let mut heard = Vec::new();
        self.connection.drive(now, &mut heard)?;
        // Who asks several times at once is told once.
        let Some(message) = heard.last() else {
            return Ok(());
        };
        if heard.iter().any(|it| !matches!(it, Message::Ask { .. })) {
            return Err(SessionError::Malformed.into());
        }
        let (group, told) = answer(self.connection.session(), message);
        self.group = group;
        self.connection.say(&told);
        self.connection.flush()
    }
}

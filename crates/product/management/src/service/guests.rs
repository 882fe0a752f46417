//! Connections that have come and have not shown yet whose they are.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use bumpless_pki::Identity;

use super::{Partner, Setup, position};
use bumpless_sessions::Ended;

use crate::Connection;
use crate::session::{Event, Session};

/// Most at once: who connects and says nothing takes no more than these, each for seconds.
const MOST: usize = 8;

#[derive(Default)]
pub struct Guests {
    connections: Vec<Connection>,
}

/// What has come of a connection.
pub enum Outcome {
    /// It is that of the partner at this position, and this has happened.
    Known(usize, Box<Connection>, Vec<Event>),
    /// It came from this address and has ended.
    Ended(IpAddr, Ended),
}

impl Guests {
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter()
    }

    /// Ends all.
    pub fn dismiss(&mut self) {
        self.connections.clear();
    }

    /// Takes a connection that has come, in the place of the one that has been silent for longest if there are too many:
    /// a partner shows who it is within some round trips.
    pub fn take(
        &mut self,
        stream: TcpStream,
        (setup, identity): (&Setup, &Arc<Identity>),
        now: Instant,
    ) {
        let partners: Vec<_> = setup.partners.iter().map(|it| it.name.clone()).collect();
        let Ok(session) = Session::answer(identity, &partners[..], setup.profile.clone()) else {
            return;
        };
        let Ok(connection) = Connection::answer(stream, session, now) else {
            return;
        };
        if self.connections.len() == MOST {
            self.connections.remove(0);
        }
        self.connections.push(connection);
    }

    /// Goes on with all. Those that have shown who they are leave, and those that have ended.
    pub fn drive(&mut self, partners: &[Partner], now: Instant) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for mut connection in std::mem::take(&mut self.connections) {
            let mut events = Vec::new();
            let from = connection.from();
            match (connection.drive(now, &mut events), from) {
                (Ok(()), _) => {}
                (Err(why), Some(from)) => {
                    outcomes.push(Outcome::Ended(from.ip(), why));
                    continue;
                }
                (Err(_), None) => continue,
            }
            match position(partners, &connection) {
                Some(at) if !events.is_empty() => {
                    outcomes.push(Outcome::Known(at, Box::new(connection), events));
                }
                _ => self.connections.push(connection),
            }
        }
        outcomes
    }
}

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
const MOST: usize = 64;

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

    /// Takes a connection that has come. If there are too many, it takes the place of the one that has been silent for
    /// longest of the address with the most: a partner shows who it is within some round trips, and who floods takes the
    /// places of its own address.
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
        self.make_room();
        self.connections.push(connection);
    }

    fn make_room(&mut self) {
        let places = self.connections.iter();
        let addresses: Vec<_> = places.map(ip).collect();
        if let Some(at) = leaves(&addresses) {
            self.connections.remove(at);
        }
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

/// Where it comes from, if its other end is still there.
fn ip(connection: &Connection) -> Option<IpAddr> {
    Some(connection.from()?.ip().to_canonical())
}

/// Which of those from these addresses, the oldest one first, leaves for another one.
fn leaves(addresses: &[Option<IpAddr>]) -> Option<usize> {
    if addresses.len() < MOST {
        return None;
    }
    let count = |of: Option<IpAddr>| addresses.iter().filter(|&&it| it == of).count();
    let crowded = addresses.iter().rev().max_by_key(|&&it| count(it))?;
    addresses.iter().position(|it| it == crowded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    #[test]
    fn who_floods_takes_the_places_of_its_own_address() {
        let mut guests = vec![from(1)];
        for _ in 0..1_000 {
            if let Some(at) = leaves(&guests) {
                guests.remove(at);
            }
            guests.push(from(2));
        }
        assert_eq!(guests.len(), MOST);
        assert_eq!(guests.iter().position(|&it| it == from(1)), Some(0));
    }

    #[test]
    fn when_all_places_are_taken_the_address_with_the_most_gives_one() {
        let mut guests: Vec<_> = (0..MOST - 1).map(|at| from(at as u8 / 2)).collect();
        assert_eq!(leaves(&guests), None);
        guests.insert(0, from(200));
        assert_eq!(leaves(&guests), Some(1));
        let one_each: Vec<_> = (0..MOST).map(|at| from(at as u8)).collect();
        assert_eq!(leaves(&one_each), Some(0), "the oldest one");
    }
}

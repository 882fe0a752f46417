//! One node: its process, its files, its clock, and who it is.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bumpless_pki::{Identity, IdentityPaths};
use bumpless_sessions::listen;

use super::check::{Facts, Occupant, Pair, Witnessed};
use super::site::{Site, WallClock};
use super::{COUNTS_WITHIN, Order};
use crate::service::{Partner, Path, Service, Setup};
use crate::{LinkProfile, Profile};

pub struct Node {
    at: usize,
    service: Option<Service>,
    orders: Option<Sender<Order>>,
    clock: WallClock,
    ports: [u16; 2],
    differs: bool,
    lifetime: Duration,
    /// Its certificate's number, and where it lies.
    number: usize,
    folder: PathBuf,
    occupant: Occupant,
    /// So many of the partner's certificates its list names, since when.
    names: usize,
    since: Instant,
    /// Whether its list can be used.
    sound: bool,
    /// Days by which its clock is off, since when.
    days: i64,
    set: Instant,
}

pub fn address(at: usize) -> IpAddr {
    [127, 0, 0, at as u8 + 1].into()
}

impl Node {
    pub fn new(
        at: usize,
        site: &mut Site,
        (ports, differs): ([u16; 2], bool),
        lifetime: Duration,
    ) -> Self {
        let (number, folder) = site.issue(at);
        let now = Instant::now();
        Self {
            at,
            service: None,
            orders: None,
            clock: WallClock::right(),
            ports,
            differs,
            lifetime,
            number,
            folder,
            occupant: Occupant::Partner,
            names: 0,
            since: now,
            sound: true,
            days: 0,
            set: now,
        }
    }

    /// What an observer knows of it.
    pub const fn facts(&self) -> Facts {
        Facts {
            occupant: self.occupant,
            number: self.number,
            names: self.names,
            since: self.since,
            days: self.days,
            set: self.set,
            differs: self.differs,
        }
    }

    pub fn turn(&mut self, now: Instant) {
        if let Some(service) = &mut self.service {
            service.turn(now);
        }
    }

    pub fn end(&mut self) {
        (self.service, self.orders) = (None, None);
    }

    /// Has an order carried; whether there is a process.
    pub fn order(&self, order: Order) -> bool {
        let orders = self.orders.as_ref();
        orders.is_some_and(|orders| orders.send(order).is_ok())
    }

    /// A process begins. What would keep it from starting is mended before: its clock, its list, a certificate that is revoked.
    pub fn start(
        &mut self,
        site: &mut Site,
        pair: &Arc<Mutex<Pair>>,
        occupant: Occupant,
        now: Instant,
    ) {
        self.occupant = occupant;
        self.set_clock(0, now);
        if !self.sound {
            self.bring_list(site, now);
        }
        if self.number < site.revoked[self.at] {
            (self.number, self.folder) = site.issue(self.at);
            (self.names, self.since) = (site.revoked[1 - self.at], now);
        }
        let (folder, node, in_pair) = match occupant {
            Occupant::OfOtherPair => (site.folder("boiler"), "right", "boiler"),
            Occupant::OfOtherAuthority => (site.folder("stranger"), "right", "tank"),
            _ => (self.folder.clone(), ["left", "right"][self.at], "tank"),
        };
        let paths = IdentityPaths::in_folder(&folder);
        let clock = Arc::new(self.clock.clone());
        let identity = Identity::load(&paths, node, in_pair, clock).unwrap();
        let setup = self.setup(site, paths);
        let listeners = setup.listen.iter().map(|&it| listen(it).unwrap()).collect();
        let (orders, ordered) = channel();
        let host = Box::new(Witnessed::new(self.at, pair));
        self.service = Some(Service::new(setup, (identity, listeners), (host, ordered)));
        self.orders = Some(orders);
    }

    fn setup(&self, site: &Site, identity: IdentityPaths) -> Setup {
        let (own, other) = (self.at, 1 - self.at);
        let pair = match self.occupant {
            Occupant::SaysOtherName => "boiler",
            _ => "tank",
        };
        let link = LinkProfile {
            network: "A".into(),
            bandwidth: 1_000_000_000 - u64::from(self.differs && own == 1),
            mtu: 1500,
        };
        Setup {
            identity,
            profile: Profile {
                pair: pair.into(),
                node: ["left", "right"][own].into(),
                number: own as u8,
                payload_bytes: 1400,
                in_flight_max: 64,
                links: vec![link],
            },
            partners: vec![Partner {
                name: site.name(other),
                paths: vec![Path {
                    from: address(own),
                    to: SocketAddr::new(address(other), self.ports[other]),
                }],
                calls: own == 0,
            }],
            listen: vec![SocketAddr::new(address(own), self.ports[own])],
            key_lifetime: self.lifetime,
        }
    }

    /// The authority's list is brought.
    pub fn bring_list(&mut self, site: &mut Site, now: Instant) {
        let names = site.revoked[1 - self.at];
        if names != self.names {
            (self.names, self.since) = (names, now);
        }
        self.sound = true;
        site.put(&site.list(), &self.folder);
    }

    /// In its place comes one that cannot be used, once what it has counts: another authority's, or garbage.
    pub fn bring_unsound_list(&mut self, site: &mut Site, now: Instant, pair: &mut Pair) {
        if now > self.since + COUNTS_WITHIN && self.sound {
            self.sound = false;
            pair.unsound += 1;
            let list = match pair.unsound % 2 {
                0 => b"no list".to_vec(),
                _ => site.foreign_list(),
            };
            site.put(&list, &self.folder);
        }
    }

    pub fn set_clock(&mut self, days: i64, now: Instant) {
        if days != self.days {
            (self.days, self.set) = (days, now);
        }
        self.clock.set(days);
    }
}

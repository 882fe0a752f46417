//! The networks: what becomes of each datagram between two ends.

mod directory;
mod path;
mod record;
mod wide;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use bumpless_base::Random;
use bumpless_config::Config;

pub use self::directory::Directory;
pub use self::path::Path;
use self::path::is_of;
use self::record::Record;
pub use self::wide::{Came, Leg};
use self::wide::{Cargo, WIDE};
use crate::digest::digest;
use crate::distance::Distances;
use crate::echo::is_icmp;
use crate::queue::{Queue, What};
use crate::script::{End, Fault, Paths, Timed};
use crate::streams::{Purpose, stream};
use crate::wide::Forwarding;

/// On the way in a sound network: switch and cables, and what it varies by.
const BASE: u64 = 30_000;
const JITTER: u64 = 20_000;
const GIGABIT: u64 = 1_000_000_000;
/// A sender's interface queues no longer than this.
const QUEUE: u64 = 20_000_000;

/// A datagram, in a box that goes round: what is handed on all the way is one word.
pub type Parcel = Box<Datagram>;

/// How a datagram left its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number among all that were sent.
    pub number: u64,
    /// The network.
    pub network: usize,
    /// By whom.
    pub from: End,
    /// By which process of its.
    pub process: u32,
    /// For whom.
    pub to: End,
}

/// See [`Parcel`].
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The network.
    pub network: usize,
    /// Its source address.
    pub source: SocketAddr,
    /// Its destination's address.
    pub target: SocketAddr,
    /// Whose that is; `None`: nobody's.
    pub to: Option<End>,
    /// When it was sent, from when it is under way.
    pub sent: u64,
    /// How it left its sender; `None`: an attacker has invented it.
    pub sent_as: Option<Sent>,
    /// What its bytes were before something on its way may have changed them, as a digest.
    original: Option<u64>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Room for what is not a packet of a state, and for an ordinary frame.
const ROOM: [usize; 2] = [256, 2048];

/// Which of two kinds of boxes has room for `len` bytes without growing. Most of what waits for a node that stands
/// still is small, and memory that was never used before costs more than all that is done with it.
pub fn kind_of(len: usize) -> usize {
    usize::from(len > ROOM[0])
}

impl Datagram {
    /// An empty one with room for `len` bytes.
    pub fn with_room(len: usize) -> Self {
        let nowhere = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        Self {
            network: 0,
            source: nowhere,
            target: nowhere,
            to: None,
            sent: 0,
            sent_as: None,
            original: None,
            bytes: Vec::with_capacity(len.max(ROOM[kind_of(len)])),
        }
    }

    /// An empty one that nobody has sent.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.sent_as, self.original) = (None, None);
    }

    /// It leaves like this.
    pub fn leaves(&mut self, sent: Option<Sent>) {
        (self.sent_as, self.original) = (sent, None);
    }

    /// Its bytes may become others.
    pub fn is_changed_from_here(&mut self) {
        self.original.get_or_insert_with(|| digest(0, &self.bytes));
    }

    /// Whether its bytes are others than they were.
    pub fn is_altered(&self) -> bool {
        let now = || digest(0, &self.bytes);
        self.original.is_some_and(|original| original != now())
    }

    /// The same once more.
    fn copy(&self) -> Parcel {
        let mut copy = Box::new(Self::with_room(self.bytes.len()));
        self.copy_to(&mut copy);
        copy
    }

    /// Makes the empty `other` the same.
    pub fn copy_to(&self, other: &mut Self) {
        let mut bytes = std::mem::take(&mut other.bytes);
        bytes.extend_from_slice(&self.bytes);
        *other = Self { bytes, ..*self };
    }
}

/// All networks between all ends.
pub struct Network {
    directory: Directory,
    ends: usize,
    networks: usize,
    /// By network, sender, receiver.
    paths: Vec<Path>,
    sound: Vec<Path>,
    random: Vec<Random>,
    /// Until when each end's interface is busy, by network.
    busy: Vec<u64>,
    /// On their way to nodes, with their arrivals, the next first; by node, then network.
    coming: Vec<VecDeque<(u64, Parcel)>>,
    /// When the first of them arrives, by node; the end of time if there is none.
    next: Vec<u64>,
    /// On their way elsewhere.
    in_flight: Vec<Option<Parcel>>,
    vacant: Vec<u32>,
    /// What an eavesdropper keeps, if anything is replayed.
    record: Option<Record>,
    /// What the first network is, if it is more than its paths.
    wide: Option<Forwarding<Cargo>>,
    /// Datagrams handed to the networks.
    pub datagrams: u64,
}

impl Network {
    /// The networks of `config`; paths differ a little from each other, by `seed`. With `replays`, what is sent
    /// may be asked for again.
    pub fn new(config: &Config, seed: u64, replays: bool) -> Self {
        let nodes = config.nodes.len();
        let ends = nodes + config.references.len();
        let networks = config.networks.len();
        let count = networks * ends * ends;
        let mut random: Vec<_> = (0..count)
            .map(|at| stream(seed, Purpose::Path, at))
            .collect();
        let sound: Vec<_> = (0..count)
            .map(|at| {
                let skew = random[at].below(BASE);
                let bandwidth = config.networks[at / (ends * ends)].bandwidth;
                Path::new(BASE + skew, JITTER, bandwidth)
            })
            .collect();
        Self {
            directory: Directory::new(config),
            ends,
            networks,
            paths: sound.clone(),
            sound,
            random,
            busy: vec![0; networks * ends],
            coming: (0..nodes * networks).map(|_| VecDeque::new()).collect(),
            next: vec![u64::MAX; nodes],
            in_flight: Vec::new(),
            vacant: Vec::new(),
            record: replays.then(|| Record::new(stream(seed, Purpose::Junk, 0))),
            wide: None,
            datagrams: 0,
        }
    }

    /// Makes ways of every network longer.
    pub fn put_apart(&mut self, distances: &Distances) {
        let square = self.ends * self.ends;
        for &(one, other, takes) in &distances.between {
            let places = (0..self.networks).flat_map(|network| {
                [(one, other), (other, one)]
                    .map(|(from, to)| network * square + from * self.ends + to)
            });
            for at in places {
                self.paths[at].base += takes;
                self.sound[at].base += takes;
            }
        }
    }

    /// The address of `end` on `network`.
    pub fn address(&self, network: usize, end: End) -> Option<SocketAddr> {
        self.directory.address(network, end)
    }

    /// Whose address `address` is on `network`.
    pub fn at_address(&self, network: usize, address: SocketAddr) -> Option<End> {
        self.directory.at_address(network, address)
    }

    /// Makes every path sound but for `faults`.
    pub fn set_faults<'a>(&mut self, faults: impl Iterator<Item = &'a Timed>) {
        for (path, sound) in self.paths.iter_mut().zip(&self.sound) {
            path.heal(sound);
        }
        for Timed { until, fault, .. } in faults {
            if let Fault::Path { paths, fault } = fault {
                for at in 0..self.paths.len() {
                    if self.concerns(paths, at) {
                        self.paths[at].suffer(fault, *until);
                    }
                }
            }
        }
    }

    fn concerns(&self, paths: &Paths, at: usize) -> bool {
        let square = self.ends * self.ends;
        let (network, from, to) = (at / square, at % square / self.ends, at % self.ends);
        let fits = |wanted: Option<End>, index| {
            wanted.is_none_or(|end| self.directory.index(end) == index)
        };
        paths.network.is_none_or(|wanted| wanted == network)
            && (fits(paths.from, from) && fits(paths.to, to)
                || paths.both && fits(paths.from, to) && fits(paths.to, from))
    }

    /// Sends a datagram from `from` at `at`, which is now or a little later. Gives it back if it is lost, or
    /// its destination is nobody's address.
    pub fn send(
        &mut self,
        queue: &mut Queue,
        from: End,
        at: u64,
        mut parcel: Parcel,
    ) -> Option<Parcel> {
        self.datagrams += 1;
        let Some(to) = parcel.to else {
            return Some(parcel);
        };
        parcel.sent = at;
        if let Some(record) = &mut self.record {
            record.consider(&parcel);
        }
        let interface = parcel.network * self.ends + self.directory.index(from);
        let place = interface * self.ends + self.directory.index(to);
        let leaves = self.serialise(interface, place, parcel.bytes.len(), at);
        match leaves {
            Some(leaves) if !self.is_lost(place, leaves, &parcel.bytes) => {
                self.carry(queue, place, leaves, parcel)
            }
            _ => Some(parcel),
        }
    }

    /// When the datagram has left the sender's interface; `None` if that has no room.
    fn serialise(&mut self, interface: usize, place: usize, len: usize, at: u64) -> Option<u64> {
        let bandwidth = self.paths[place].bandwidth;
        if bandwidth == 0 {
            return Some(at);
        }
        let begins = self.busy[interface].max(at);
        if begins - at > QUEUE {
            return None;
        }
        let bits = (len as u64 + 66) * 8;
        let takes = match bandwidth {
            // One bit a nanosecond; most networks are that quick, and a division is slow.
            GIGABIT => bits,
            _ => bits * GIGABIT / bandwidth,
        };
        self.busy[interface] = begins + takes;
        Some(self.busy[interface])
    }

    fn is_lost(&mut self, place: usize, at: u64, bytes: &[u8]) -> bool {
        let path = &mut self.paths[place];
        if path.sound {
            return false;
        }
        let random = &mut self.random[place];
        if path.is_cut(at) || bytes.len() > path.mtu {
            return true;
        }
        if let Some(bursts) = path.bursts {
            let turns = match path.in_burst {
                true => bursts.leave,
                false => bursts.enter,
            };
            path.in_burst ^= random.chance(turns);
            let lost = match path.in_burst {
                true => bursts.within,
                false => bursts.between,
            };
            if random.chance(lost) {
                return true;
            }
        }
        let hit = |&(share, class): &(f64, _)| random.chance(share) && is_of(class, bytes);
        path.losses.iter().any(hit)
    }

    fn carry(
        &mut self,
        queue: &mut Queue,
        place: usize,
        leaves: u64,
        mut it: Parcel,
    ) -> Option<Parcel> {
        let (path, random) = (&mut self.paths[place], &mut self.random[place]);
        if path.sound {
            let arrival = leaves + path.base + random.below(path.jitter);
            path.last_arrival = arrival.max(path.last_arrival);
            let arrival = path.last_arrival;
            self.depart(queue, place, arrival, it);
            return None;
        }
        if path.corrupt > 0.0 || path.truncate > 0.0 || !path.bent.is_empty() {
            // Turned bits are found by frame check sequence and checksum.
            if random.chance(path.corrupt) {
                return Some(it);
            }
            it.is_changed_from_here();
            for bent in &path.bent {
                bent.bend(random, &mut it.bytes);
            }
            if random.chance(path.truncate) {
                let len = random.below(it.bytes.len() as u64) as usize;
                it.bytes.truncate(len);
            }
        }
        let mut arrival = (leaves + path.base + random.below(path.jitter)).max(path.held);
        if path.reorder.0 > 0.0 && random.chance(path.reorder.0) {
            arrival += random.below(path.reorder.1);
        } else {
            arrival = arrival.max(path.last_arrival);
            path.last_arrival = arrival;
        }
        let copy = (path.duplicate > 0.0 && random.chance(path.duplicate)).then(|| {
            let later = arrival + random.below(2 * JITTER + path.jitter);
            (later, it.copy())
        });
        self.depart(queue, place, arrival, it);
        if let Some((later, copy)) = copy {
            self.depart(queue, place, later, copy);
        }
        None
    }

    /// A datagram has left its computer; on a wide-area network the way only begins there.
    fn depart(&mut self, queue: &mut Queue, place: usize, at: u64, datagram: Parcel) {
        match &mut self.wide {
            Some(wide) if datagram.network == WIDE => {
                let ends = (place / self.ends, place % self.ends);
                wide::depart(wide, queue, (ends, at), datagram);
            }
            _ => self.launch(queue, at, datagram),
        }
    }

    /// What goes to a node is not among the events: it lies there until the node looks.
    fn launch(&mut self, queue: &mut Queue, arrival: u64, datagram: Parcel) {
        if let Some(End::Node(node)) = datagram.to
            && !is_icmp(datagram.source)
        {
            self.next[node] = self.next[node].min(arrival);
            let coming = &mut self.coming[node * self.networks + datagram.network];
            if coming.back().is_none_or(|last| last.0 <= arrival) {
                return coming.push_back((arrival, datagram));
            }
            let place = coming.partition_point(|it| it.0 <= arrival);
            return coming.insert(place, (arrival, datagram));
        }
        let packet = match self.vacant.pop() {
            Some(slot) => {
                self.in_flight[slot as usize] = Some(datagram);
                slot
            }
            None => {
                self.in_flight.push(Some(datagram));
                (self.in_flight.len() - 1) as u32
            }
        };
        queue.push(arrival, What::Arrival { packet });
    }

    /// Puts a datagram on the way that no end has sent.
    pub fn inject(&mut self, queue: &mut Queue, datagram: Parcel) {
        self.datagrams += 1;
        let at = queue.now() + BASE;
        self.launch(queue, at, datagram);
    }

    /// One of the datagrams that were sent to `to` before, if one is on record.
    pub fn recorded(&mut self, network: usize, to: End) -> Option<&Datagram> {
        self.record
            .as_mut()?
            .draw(|it| it.network == network && it.to == Some(to))
    }

    /// One of the datagrams that were sent on another network or to somebody else.
    pub fn recorded_elsewhere(&mut self, network: usize, to: End) -> Option<&Datagram> {
        self.record
            .as_mut()?
            .draw(|it| it.network != network || it.to != Some(to))
    }

    /// Takes what has arrived at `node` by `now`: each network's in the order of arrival, with when that was.
    pub fn arrived(&mut self, node: usize, now: u64, mut take: impl FnMut(u64, Parcel)) {
        if now < self.next[node] {
            return;
        }
        let mut next = u64::MAX;
        for coming in &mut self.coming[node * self.networks..][..self.networks] {
            while let Some((arrival, datagram)) =
                coming.pop_front_if(|(arrival, _)| *arrival <= now)
            {
                take(arrival, datagram);
            }
            next = coming.front().map_or(next, |front| next.min(front.0));
        }
        self.next[node] = next;
    }

    /// When the next datagram arrives at `node`; the end of time if none is on its way.
    pub fn next_arrival(&self, node: usize) -> u64 {
        self.next[node]
    }

    /// Takes a datagram that has arrived where no node is, or for its ICMP.
    pub fn arrive(&mut self, packet: u32) -> Option<Parcel> {
        let arrived = self.in_flight.get_mut(packet as usize)?.take()?;
        self.vacant.push(packet);
        Some(arrived)
    }

    /// How many networks there are.
    pub fn count(&self) -> usize {
        self.networks
    }
}

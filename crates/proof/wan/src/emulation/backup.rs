//! A second way from some hosts, the centres, to others, beside the network: a router of its own, with a cable to each, which
//! holds what it forwards for what the way takes.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bumpless_base::Random;
use bumpless_capture::netlink::{Message, Netlink};
use bumpless_capture::{Queue, queue_forwarded};

use super::cables::Cables;
use super::place::Running;
use super::{delay, link, namespace};
use crate::topology::{NodeId, Topology};

/// Addresses of backups are from here: two for each cable.
const FIRST: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 0);
/// How many bits of them are the same.
const PREFIX: u8 = 16;
/// Most hosts that one router is for.
const HOSTS_MAX: usize = 1 << 12;
const TABLE: &str = "bumpless_backup";
const QUEUE: u16 = 1;
const HELD_MAX: u32 = 1 << 16;

/// What a backup is like (fifth paper, table II).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Another cable: 1.8 ms in each direction.
    Ethernet,
    /// Radio of the fourth generation: each direction 24 ms and what is drawn from a log-normal distribution besides, so that
    /// there and back has a median of 81 ms, 59 at 1 % and 160 at 99 %. It stays so for 25 ms.
    Lte,
}

/// The distribution of LTE: milliseconds that each packet takes, and logarithms of what it takes besides.
const LTE: (f64, f64, f64) = (24.0, 2.7, 0.7);
/// A radio line is as it is for so long: what leaves within that of a draw takes as long as it said.
const LTE_STAYS: Duration = Duration::from_millis(25);
const ETHERNET: Duration = Duration::from_micros(1800);
/// Nothing takes longer.
const LONGEST_MS: f64 = 1000.0;

/// What the lines to the hosts are like; they change while packets pass.
#[derive(Clone, Debug)]
pub struct Lines(Arc<[AtomicU8]>);

impl Lines {
    /// Makes the line to the host of this place one like `line`.
    pub fn set(&self, place: usize, line: Line) {
        self.0[place].store(u8::from(line == Line::Lte), Ordering::Relaxed);
    }

    fn get(&self, place: usize) -> Line {
        match self.0[place].load(Ordering::Relaxed) {
            0 => Line::Ethernet,
            _ => Line::Lte,
        }
    }
}

/// The router, as long as this value lives.
#[derive(Debug)]
pub struct Backup {
    namespace: OwnedFd,
    queue: Queue,
    lines: Lines,
    centres: usize,
    cables: Cables,
}

impl Backup {
    /// A router with a cable to each of these hosts. The first `centres` are centres; the line to each other one is of its
    /// own kind.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn new(
        running: &Running,
        topology: &Topology,
        (hosts, centres): (&[NodeId], usize),
    ) -> io::Result<Self> {
        if hosts.len() > HOSTS_MAX {
            return Err(io::Error::other(format!(
                "a backup is for {HOSTS_MAX} hosts at most"
            )));
        }
        let made = || {
            let router = namespace::begin()?;
            namespace::set("ipv4/conf/all/rp_filter", "0")?;
            namespace::set("ipv4/conf/default/rp_filter", "0")?;
            namespace::set("ipv4/ip_forward", "1")?;
            let queue = Queue::hold(QUEUE, HELD_MAX)?;
            queue_forwarded(TABLE, false, QUEUE)?;
            let socket = namespace::socket()?;
            let mut ends = Vec::with_capacity(hosts.len());
            for (place, &host) in hosts.iter().enumerate() {
                let at = topology.links_at(host).len();
                let namespace = running.namespace(host.index());
                cable(&socket, place, (&File::open(&namespace)?, at))?;
                ends.push((namespace, link::number(at)));
            }
            let lines = hosts.iter().map(|_| AtomicU8::new(0)).collect();
            Ok(Self {
                cables: Cables::new((router.try_clone()?, QUEUE), ends),
                namespace: router,
                queue,
                lines: Lines(lines),
                centres,
            })
        };
        thread::scope(|scope| scope.spawn(made).join())
            .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
    }

    /// The address at which the host of this place is reached over its backup.
    pub fn address(place: usize) -> Ipv4Addr {
        Ipv4Addr::from_bits(FIRST.to_bits() + 2 * place as u32 + 1)
    }

    /// The first of all addresses, and how many bits they have in common.
    pub const fn network() -> (Ipv4Addr, u8) {
        (FIRST, PREFIX)
    }

    /// What its lines are like.
    pub fn lines(&self) -> Lines {
        self.lines.clone()
    }

    /// Its cables.
    pub fn cables(&self) -> Cables {
        self.cables.clone()
    }

    /// Carries packets on a thread of its own from here on. What is drawn is drawn from `seed`.
    pub fn carry(self, seed: u64) -> Carrying {
        let mut ways = Ways::new((self.lines, self.centres), seed);
        let (mut queues, router) = ([self.queue], self.namespace);
        Carrying::begin(move || {
            let _router = router;
            delay::hold(&mut queues, |_, come, header| ways.due(come, header))
        })
    }
}

/// A thread that carries packets, which nothing but an error ends.
#[derive(Debug)]
pub struct Carrying {
    thread: JoinHandle<()>,
    why: Arc<OnceLock<io::Error>>,
}

impl Carrying {
    fn begin(carry: impl FnOnce() -> io::Result<Infallible> + Send + 'static) -> Self {
        let why = Arc::new(OnceLock::new());
        let told = Arc::clone(&why);
        let thread = thread::spawn(move || {
            let Err(error) = carry();
            // Nobody else tells.
            let _ = told.set(error);
        });
        Self { thread, why }
    }

    /// Whether it carries packets still.
    ///
    /// # Errors
    /// Why not.
    pub fn stood(&self) -> Result<(), String> {
        if !self.thread.is_finished() {
            return Ok(());
        }
        let why = self.why.get().map(ToString::to_string);
        let why = why.unwrap_or_else(|| "a thread ended by a panic".to_owned());
        Err(format!("the second way carries nothing any more: {why}"))
    }
}

/// A cable from the router, in whose namespace the socket is, to the host.
fn cable(socket: &Netlink, place: usize, (host, at): (&File, usize)) -> io::Result<()> {
    let own = |end| link::hardware(usize::MAX / 2 - place, end);
    let end = |place, end| link::End {
        place,
        hardware: own(end),
    };
    let (near, far) = (
        IpAddr::V4(router_address(place)),
        IpAddr::V4(Backup::address(place)),
    );
    let number = link::number(place);
    let messages = link::cable(Message::new(), end(place, 0), end(at, 1), host.as_raw_fd());
    let messages = link::up(messages, number);
    let messages = link::address(messages, number, near, false);
    socket.transact(messages.bytes())?;
    socket.transact(link::neighbour(Message::new(), number, far, own(1)).bytes())?;
    namespace::enter(host)?;
    let (socket, number) = (namespace::socket()?, link::number(at));
    let messages = link::address(link::up(Message::new(), number), number, far, false);
    socket.transact(messages.bytes())?;
    let messages = link::neighbour(Message::new(), number, near, own(0));
    let all = (IpAddr::V4(FIRST), PREFIX);
    let messages = link::route(messages, all, (number, near), Some(far));
    socket.transact(messages.bytes())
}

fn router_address(place: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST.to_bits() + 2 * place as u32)
}

/// When packets are due.
struct Ways {
    lines: Lines,
    /// How many of the first places are centres, which have no line of their own.
    centres: usize,
    random: Random,
    /// For each line what is from its host, and what is for it.
    directions: Vec<[Direction; 2]>,
}

/// Packets of one direction do not overtake each other, as they do not on the radio.
#[derive(Clone, Copy, Default)]
struct Direction {
    /// When the last packet is due.
    last: Option<Instant>,
    /// What was drawn last, and when.
    drawn: Option<(Instant, Duration)>,
}

impl Ways {
    fn new((lines, centres): (Lines, usize), seed: u64) -> Self {
        Self {
            centres,
            directions: vec![<[Direction; 2]>::default(); lines.0.len()],
            lines,
            random: Random::new(seed),
        }
    }

    fn due(&mut self, come: Instant, header: &[u8]) -> Instant {
        let place = |address: Option<&[u8]>| {
            let address = address?.first_chunk::<4>()?;
            let number = u32::from_be_bytes(*address).checked_sub(FIRST.to_bits())? / 2;
            (self.centres..self.directions.len())
                .contains(&(number as usize))
                .then_some(number as usize)
        };
        let (from, to) = (place(header.get(12..16)), place(header.get(16..20)));
        // What is for a centre, or from one, has one other end.
        let Some(line) = from.or(to) else {
            return come;
        };
        let direction = usize::from(from.is_none());
        let takes = match self.lines.get(line) {
            Line::Ethernet => ETHERNET,
            Line::Lte => self.radio((line, direction), come),
        };
        let last = &mut self.directions[line][direction].last;
        let due = last.map_or(come + takes, |last| last.max(come + takes));
        *last = Some(due);
        due
    }

    fn radio(&mut self, (line, direction): (usize, usize), come: Instant) -> Duration {
        if let Some((at, takes)) = self.directions[line][direction].drawn
            && come.saturating_duration_since(at) < LTE_STAYS
        {
            return takes;
        }
        let (least, mean, spread) = LTE;
        let ms = least + (mean + spread * self.normal()).exp();
        let takes = Duration::from_secs_f64(ms.min(LONGEST_MS) / 1e3);
        self.directions[line][direction].drawn = Some((come, takes));
        takes
    }

    /// A number of the normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let mut unit = || -> f64 { (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 };
        let (one, other) = (1.0 - unit(), unit());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(from: Ipv4Addr, to: Ipv4Addr) -> [u8; 20] {
        let mut header = [0; 20];
        header[12..16].copy_from_slice(&from.octets());
        header[16..20].copy_from_slice(&to.octets());
        header
    }

    fn ways(line: Line) -> Ways {
        let lines = Lines((0..3).map(|_| AtomicU8::new(0)).collect());
        lines.set(2, line);
        Ways::new((lines, 1), 7)
    }

    #[test]
    fn a_radio_line_has_the_papers_round_trips() {
        let mut ways = ways(Line::Lte);
        let (there, back) = ([0, 2], [2, 0]);
        let mut now = Instant::now();
        let mut took: Vec<f64> = (0..20_000)
            .map(|_| {
                // So far apart that none waits for the one before.
                now += Duration::from_secs(2);
                let mut at = now;
                for [from, to] in [there, back] {
                    at = ways.due(at, &header(Backup::address(from), Backup::address(to)));
                }
                (at - now).as_secs_f64() * 1e3
            })
            .collect();
        took.sort_by(f64::total_cmp);
        let quantile = |share: f64| took[(share * took.len() as f64) as usize];
        let mean = took.iter().sum::<f64>() / took.len() as f64;
        // Table II: mean 86.6, median 81.1, 60.3 at 1 %, 157.9 at 99 %.
        for (is, paper) in [
            (mean, 86.6),
            (quantile(0.5), 81.1),
            (quantile(0.01), 60.3),
            (quantile(0.99), 157.9),
        ] {
            assert!((is / paper - 1.0).abs() < 0.04, "{is} beside {paper}");
        }
    }

    #[test]
    fn a_way_that_carries_nothing_any_more_says_why() {
        let ended = |carrying: &Carrying| {
            while !carrying.thread.is_finished() {
                thread::yield_now();
            }
            carrying.stood().unwrap_err()
        };
        let failed = Carrying::begin(|| Err(io::Error::other("no queue")));
        assert!(ended(&failed).ends_with("no queue"));
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let panicked = Carrying::begin(move || {
            let _ = ends.recv();
            panic!("as it was meant to")
        });
        assert_eq!(panicked.stood(), Ok(()));
        drop(end);
        assert!(ended(&panicked).ends_with("panic"));
    }

    #[test]
    fn packets_of_a_direction_keep_their_order_and_lines_their_kind() {
        let mut lte = ways(Line::Lte);
        let now = Instant::now();
        let to_radio = header(Backup::address(0), Backup::address(2));
        let step = LTE_STAYS / 5;
        let dues: Vec<_> = (0..1000)
            .map(|n| lte.due(now + step * n, &to_radio))
            .collect();
        assert!(dues.is_sorted());
        assert!(dues[0] - now >= Duration::from_millis(24));
        // Five at a time take as long as each other, unless they wait for one before.
        assert_eq!(dues[4] - dues[0], step * 4);
        let to_cable = header(Backup::address(1), Backup::address(0));
        assert_eq!(lte.due(now, &to_cable), now + ETHERNET);
        // From a second centre, a packet takes what the other end's line does.
        let mut of_two = ways(Line::Lte);
        of_two.centres = 2;
        let from_second = header(Backup::address(1), Backup::address(2));
        assert!(of_two.due(now, &from_second) - now >= Duration::from_millis(24));
        let stranger = header(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        assert_eq!(lte.due(now, &stranger), now);
        assert_eq!(lte.due(now, &[]), now);
    }
}

//! What passes nodes and links of a network that is up, in a file (`spec/wan.md`, U-39).

mod packets;
mod pcapng;
mod writer;

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use self::packets::Packets;
use self::writer::{Turn, Writer};
use super::place::Running;
use super::{link, namespace};
use crate::ends::ends_of;
use crate::topology::{NodeId, Topology};

/// Most places of one capture: each takes a socket with room of its own.
const NODES_MAX: usize = 64;
/// Room for what comes while this process does not run, bytes: of one place, and of all together.
const ROOM: usize = 16 << 20;
const ROOM_OF_ALL: usize = 64 << 20;
/// How often somebody who wants to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Where to capture: a node with all of its interfaces, or some of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    node: NodeId,
    /// Places of links at the node; all interfaces if there are none.
    links: Vec<usize>,
}

/// What a capture is at most.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the file.
    pub bytes: u64,
    /// How long.
    pub lasts: Duration,
    /// Bytes that are kept of each packet.
    pub packet: u32,
    /// Only packets from or to these addresses; all if there are none.
    pub with: Vec<IpAddr>,
}

/// Why a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    Time,
    /// The file was full.
    Size,
    /// Somebody wanted it to stop.
    Asked,
    /// The network ended.
    Network,
}

impl Ended {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Size => "size",
            Self::Asked => "asked",
            Self::Network => "network",
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// Each interface with what passed it.
    pub interfaces: Vec<Interface>,
    /// Packets that there was no room for.
    pub dropped: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// How long it was.
    pub lasted: Duration,
    /// Why it ended.
    pub ended: Ended,
}

/// An interface of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name: node and interface.
    pub name: String,
    /// What it leads to.
    pub leads: String,
    /// Packets that passed it.
    pub packets: u64,
    node: NodeId,
    number: u32,
}

/// The places that `what` means, each node once: `NODE`, all of its interfaces, or `NODE:NODE`, the first one's end of the links
/// between the two.
///
/// # Errors
/// Everything that is wrong.
pub fn points_of(topology: &Topology, what: &[String]) -> Result<Vec<Point>, Vec<String>> {
    let (mut points, mut wrong) = (Vec::<Point>::new(), Vec::new());
    for what in what {
        let links = match ends_of(topology, what) {
            Ok(links) => links,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        let (name, one_link) = what
            .split_once(':')
            .map_or((&**what, false), |(it, _)| (it, true));
        let Some(node) = topology.find(name) else {
            continue;
        };
        let at = topology.links_at(node).iter().enumerate();
        let places = at.filter(|(_, link)| links.contains(link));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let links = if one_link { places } else { Vec::new() };
        match points.iter_mut().find(|it| it.node == node) {
            None => points.push(Point { node, links }),
            Some(point) if point.links.is_empty() || links.is_empty() => point.links.clear(),
            Some(point) => point.links.extend(links),
        }
    }
    if points.len() > NODES_MAX {
        wrong.push(format!(
            "{} nodes at once are too many, {NODES_MAX} can be; begin another capture for the others",
            points.len()
        ));
    }
    match wrong.is_empty() {
        true => Ok(points),
        false => Err(wrong),
    }
}

/// Captures at these places until a limit is reached, `stop` says so, or the network ends; `ready` is called when it has begun.
/// The file has whole blocks however it ends but for a kill: then the last block may be cut, which readers leave out.
///
/// # Errors
/// A node cannot be entered, or the file cannot be written: that then ends with the last block that is whole. [`remedy`] says
/// what can be done.
pub fn capture(
    (running, topology): (&Running, &Topology),
    points: &[Point],
    (to, limits): (&mut File, Limits),
    stop: &dyn Fn() -> bool,
    ready: impl FnOnce(),
) -> io::Result<Captured> {
    let (sockets, interfaces): (Vec<_>, Vec<_>) =
        open(running, topology, (points, limits.packet as usize))?
            .into_iter()
            .unzip();
    let lasts = limits.lasts;
    let holder = Pid::from_raw(running.pid as i32).ok_or(io::ErrorKind::InvalidData)?;
    let holder = pidfd_open(holder, PidfdFlags::empty())?;
    let since = Instant::now();
    let mut writer = Writer {
        topology,
        to,
        limits,
        interfaces: Vec::new(),
        pending: pcapng::section(concat!("bumpless ", env!("CARGO_PKG_VERSION"))),
        written: 0,
    };
    // What nothing passes is in the file, too.
    for (point, numbers) in points.iter().zip(interfaces) {
        for number in numbers {
            let (_, head) = writer.interface(point.node, number);
            writer.begin(head);
        }
    }
    writer.flush()?;
    ready();
    let mut places: Vec<_> = points.iter().zip(sockets).collect();
    let ended = loop {
        if stop() {
            break Ended::Asked;
        }
        let left = lasts.saturating_sub(since.elapsed());
        if left.is_zero() {
            break Ended::Time;
        }
        let ready = wait(&places, &holder, left.min(LOOK))?;
        let mut full = false;
        for (place, (point, socket)) in places.iter_mut().enumerate() {
            if ready[place] && !full {
                full = writer.take(point, socket, u64::MAX)? == Turn::Full;
            }
        }
        writer.flush()?;
        if full {
            break Ended::Size;
        }
        if ready.last() == Some(&true) {
            break Ended::Network;
        }
    };
    let ended = match ended {
        Ended::Size => ended,
        _ => writer.drain(&mut places, unix_now())?.unwrap_or(ended),
    };
    let dropped = places.iter().map(|(_, socket)| socket.dropped()).sum();
    writer.statistics(dropped)?;
    Ok(Captured {
        interfaces: writer.interfaces,
        dropped,
        bytes: writer.written,
        lasted: since.elapsed(),
        ended,
    })
}

/// What can be done where a capture was refused or ended by this error.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => {
            "the network has ended; `bumpless wan status` says which are up"
        }
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
            "name fewer places, or permit more open files (`ulimit -n`)"
        }
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => {
            "make room on the disk, or name a file on another one; what the file has can be read"
        }
        Some(libc::EPERM | libc::EACCES) => "run as root",
        Some(libc::EEXIST) => "give a directory without captures",
        _ => "see what the system says of the network and of the disk (`dmesg`)",
    }
}

/// The addresses of version 4 that a node of a network that is up has, that of a second way beside the network included.
///
/// # Errors
/// It cannot be entered.
pub fn addresses_at(running: &Running, node: NodeId) -> io::Result<Vec<IpAddr>> {
    let all = || {
        namespace::enter(&File::open(running.namespace(node.index()))?)?;
        fs::read_to_string("/proc/thread-self/net/fib_trie")
    };
    let told = thread::scope(|scope| scope.spawn(all).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))?;
    Ok(own_addresses(&told))
}

/// The addresses that a kernel's table of routes (`fib_trie`) has as its own.
fn own_addresses(table: &str) -> Vec<IpAddr> {
    let (mut last, mut found) = (None, Vec::new());
    for line in table.lines() {
        if let Some(address) = line.trim().strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line.contains("/32 host LOCAL") {
            let own = last.filter(|it| !it.is_loopback()).map(IpAddr::V4);
            found.extend(own.filter(|it| !found.contains(it)));
        }
    }
    found
}

/// Nanoseconds since 1970.
fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// A socket at each place, all of them opened by one thread, with the numbers of the interfaces that are meant there.
fn open(
    running: &Running,
    topology: &Topology,
    (points, longest): (&[Point], usize),
) -> io::Result<Vec<(Packets, Vec<u32>)>> {
    let room = ROOM.min(ROOM_OF_ALL / points.len().max(1));
    let one = |point: &Point| {
        namespace::enter(&File::open(running.namespace(point.node.index()))?)?;
        let present = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let is_there = |place: &usize| {
            let name = link::name(*place);
            let mut lines = present.lines().filter_map(|line| line.split_once(':'));
            lines.any(|(it, _)| it.trim() == name)
        };
        let links = topology.links_at(point.node).len();
        // Behind those of its links a host may have one that leads beside the network.
        let places: Vec<usize> = match point.links.is_empty() {
            true => (0..=links).filter(is_there).collect(),
            false => point.links.clone(),
        };
        let numbers = places.into_iter().map(link::number).collect();
        Ok((Packets::open(longest, room)?, numbers))
    };
    thread::scope(|scope| scope.spawn(|| points.iter().map(one).collect()).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

/// Which of the sockets have something, and last whether the network's process has ended.
fn wait(
    places: &[(&Point, Packets)],
    holder: &impl std::os::fd::AsFd,
    patience: Duration,
) -> io::Result<Vec<bool>> {
    let mut ends: Vec<PollFd<'_>> = places
        .iter()
        .map(|(_, socket)| PollFd::new(socket, PollFlags::IN))
        .collect();
    ends.push(PollFd::new(holder, PollFlags::IN));
    let patience = Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match poll(&mut ends, Some(&patience)) {
        Err(rustix::io::Errno::INTR) | Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(ends.iter().map(|it| !it.revents().is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, generate};

    #[test]
    fn each_cause_of_an_end_has_a_remedy_of_its_own() {
        let of = |error| remedy(&io::Error::from_raw_os_error(error));
        assert!(of(libc::ESRCH).contains("network has ended"));
        assert!(of(libc::EMFILE).contains("fewer places"));
        assert!(of(libc::ENOSPC).contains("disk"));
        assert!(of(libc::EPERM).contains("root"));
    }

    #[test]
    fn a_hosts_own_addresses_are_those_that_its_kernel_takes_as_local() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.64.0.0\n        /30 link UNICAST\n     |-- 10.64.0.1\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 172.31.0.6\n        /32 host LOCAL\nLocal:\n     |-- 10.64.0.1\n        /32 host LOCAL\n";
        let own = ["10.64.0.1", "172.31.0.6"].map(|it| it.parse::<IpAddr>().unwrap());
        assert_eq!(own_addresses(table), own);
    }

    #[test]
    fn a_node_is_all_of_its_interfaces_and_a_link_is_its_first_ones_end() {
        let topology = generate(&Shape::default()).unwrap();
        let of = |what: &[&str]| {
            let what: Vec<_> = what.iter().map(|it| (*it).to_owned()).collect();
            points_of(&topology, &what)
        };
        let node = |name| topology.find(name).unwrap();
        let all = |name| Point {
            node: node(name),
            links: Vec::new(),
        };
        assert_eq!(
            of(&["centre-2", "s10-1-1"]).unwrap(),
            [all("centre-2"), all("s10-1-1")]
        );
        let [point] = &of(&["b00a:b19b", "b00a:b00b"]).unwrap()[..] else {
            panic!("one node");
        };
        let leads = |place: &usize| {
            let link = topology.links_at(point.node)[*place];
            &*topology.node(topology.links()[link].other(point.node)).name
        };
        assert_eq!(
            point.links.iter().map(leads).collect::<Vec<_>>(),
            ["b19b", "b00b"]
        );
        assert_eq!(of(&["b00a:b19b", "b00a"]).unwrap(), [all("b00a")]);
        let wrong = of(&["nobody", "b00a:s10-1-1"]).unwrap_err();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        let names: Vec<_> = topology.nodes().iter().map(|it| &*it.name).collect();
        assert!(of(&names).unwrap_err()[0].contains("64 can be"));
    }
}

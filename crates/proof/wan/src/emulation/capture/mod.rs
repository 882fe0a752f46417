//! What passes nodes and links of a network that is up, in a file (`spec/wan.md`, U-39).

mod packets;
mod pcapng;

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use self::packets::Packets;
use self::pcapng::{Packet, STATISTICS_LEN};
use super::place::Running;
use super::{link, namespace, outage};
use crate::topology::{NodeId, Topology};

/// Most places of one capture: each takes a socket with room of its own.
const NODES_MAX: usize = 64;
/// Packets that are read from one node before the next one's turn.
const TURN: usize = 512;
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
        let links = match outage::ends_of(topology, what) {
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
/// The file is whole at every moment: whatever ends the process, what was written can be read.
///
/// # Errors
/// A node cannot be entered, or the file cannot be written.
pub fn capture(
    (running, topology): (&Running, &Topology),
    points: &[Point],
    (to, limits): (&mut dyn Write, Limits),
    stop: &dyn Fn() -> bool,
    ready: impl FnOnce(),
) -> io::Result<Captured> {
    let sockets = open(running, points, limits.packet as usize)?;
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
                full = !writer.take(point, socket)?;
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

/// A socket at each place, all of them opened by one thread.
fn open(running: &Running, points: &[Point], longest: usize) -> io::Result<Vec<Packets>> {
    let one = |point: &Point| {
        namespace::enter(&File::open(running.namespace(point.node.index()))?)?;
        Packets::open(longest)
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

/// Whether a frame is from or to one of these addresses.
fn is_with(frame: &[u8], addresses: &[IpAddr]) -> bool {
    let v4 = |at: usize| {
        let octets = frame.get(at..)?.first_chunk::<4>()?;
        Some(IpAddr::from(*octets))
    };
    let v6 = |at: usize| {
        let octets = frame.get(at..)?.first_chunk::<16>()?;
        Some(IpAddr::from(*octets))
    };
    let ends = match frame.get(12..14) {
        Some([0x08, 0x00]) => [v4(26), v4(30)],
        Some([0x86, 0xdd]) => [v6(22), v6(38)],
        _ => return false,
    };
    ends.into_iter()
        .flatten()
        .any(|end| addresses.contains(&end))
}

/// The file and what is in it. Blocks are written whole, so that it can be read at every moment.
struct Writer<'a> {
    topology: &'a Topology,
    to: &'a mut dyn Write,
    limits: Limits,
    interfaces: Vec<Interface>,
    /// Whole blocks that are not written yet.
    pending: Vec<u8>,
    written: u64,
}

impl Writer<'_> {
    /// Takes what has come at a place; whether the file had room for it.
    fn take(&mut self, point: &Point, socket: &mut Packets) -> io::Result<bool> {
        for _ in 0..TURN {
            let read = match socket.read() {
                Ok(Some(read)) => read,
                Ok(None) => break,
                // An interface that is gone is one of a network that ends, which is seen elsewhere.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => break,
                Err(error) => return Err(error),
            };
            let wanted = |place: &usize| link::number(*place) == read.interface;
            let meant = point.links.is_empty() || point.links.iter().any(wanted);
            let with = self.limits.with.is_empty() || is_with(read.bytes, &self.limits.with);
            if read.interface == link::LOOPBACK || !meant || !with {
                continue;
            }
            let (place, head) = self.interface(point.node, read.interface);
            let packet = Packet {
                at_ns: read.at_ns,
                direction: read.direction,
                bytes: read.bytes,
                length: read.length,
            };
            let block = pcapng::packet(place as u32, packet);
            let interfaces = self.interfaces.len() as u64;
            let reserved = (interfaces + u64::from(head.is_some())) * STATISTICS_LEN;
            let all = self.written + (self.pending.len() + block.len()) as u64 + reserved;
            if all + head.as_ref().map_or(0, |(_, block)| block.len() as u64) > self.limits.bytes {
                return Ok(false);
            }
            if let Some((interface, block)) = head {
                self.interfaces.push(interface);
                self.pending.extend(block);
            }
            self.interfaces[place].packets += 1;
            self.pending.extend(block);
        }
        Ok(true)
    }

    /// The place of an interface in the file, and the interface with its block if it is not there yet.
    fn interface(&self, node: NodeId, number: u32) -> (usize, Option<(Interface, Vec<u8>)>) {
        let mut known = self.interfaces.iter();
        if let Some(place) = known.position(|it| (it.node, it.number) == (node, number)) {
            return (place, None);
        }
        let own = &self.topology.node(node).name;
        let place = (number - link::number(0)) as usize;
        let leads = match self.topology.links_at(node).get(place) {
            Some(&index) => {
                let other = self.topology.links()[index].other(node);
                self.topology.node(other).name.clone()
            }
            None => "a second way beside the network".to_owned(),
        };
        let interface = Interface {
            name: format!("{own}:{}", link::name(place)),
            leads,
            packets: 0,
            node,
            number,
        };
        let to = format!("{own} to {}", interface.leads);
        let block = pcapng::interface(&interface.name, &to, self.limits.packet);
        (self.interfaces.len(), Some((interface, block)))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.pending)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Ends the file with what was captured at each interface; what there was no room for is told with the first one, since the
    /// kernel counts it for all of a node.
    fn statistics(&mut self, dropped: u64) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos() as u64);
        for (place, interface) in self.interfaces.iter().enumerate() {
            let dropped = if place == 0 { dropped } else { 0 };
            let received = interface.packets + dropped;
            let block = pcapng::statistics(place as u32, now, (received, dropped));
            self.pending.extend(block);
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, generate};

    #[test]
    fn a_frame_is_with_the_addresses_of_its_ip_header_alone() {
        let [one, other] = ["10.64.0.1", "fd42::1"].map(|it| it.parse::<IpAddr>().unwrap());
        let mut frame = [0; 60];
        frame[12] = 8;
        frame[30..34].copy_from_slice(&[10, 64, 0, 1]);
        assert!(is_with(&frame, &[other, one]));
        assert!(!is_with(&frame, &[other]));
        frame[30..34].fill(0);
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(!is_with(&frame, &[one, other]));
        frame[22..24].copy_from_slice(&[0xfd, 0x42]);
        frame[37] = 1;
        assert!(is_with(&frame, &[other]));
        assert!(!is_with(&frame[..30], &[one]), "a frame that is cut");
        assert!(!is_with(&[], &[one]));
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

//! Background traffic: short messages from every substation to the control centre, over the links that it shares with what is
//! measured (fifth paper, V-B3; `spec/wan.md`, U-59).

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as Timeout;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, realtime};
use bumpless_wan::emulation;
use bumpless_wan::route::Ways;
use bumpless_wan::{Kind, NodeId, Topology};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::analysis::Trips;
use super::host::Host;
use super::plan::Site;
use super::result::{Background, Carried};
use super::stage::Stage;

/// Its real-time priority, the lowest: that of what is measured is above it.
pub const PRIORITY: u8 = 1;
/// Bytes of a message: what the paper takes for one of MMS.
const MESSAGE: usize = 157;
/// Where the control centre hears them.
const PORT: u16 = 4790;
/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(1);
/// What is late by more is not sent any more: a generator without a processor is not to send a burst afterwards.
const LATE_MAX: Duration = Duration::from_millis(20);
/// How long messages are waited for that are under way at the end.
const LINGER: Timeout = Timeout::from_millis(300);
/// How often whoever hears looks whether it is the end.
const LOOK: Timeout = Timeout::from_millis(50);
/// Room for what comes while the receiver does not run, bytes.
const ROOM: usize = 4 << 20;
/// Of so many messages the way of one is kept, and at most so many ways.
const SAMPLED: u64 = 16;
const SAMPLES_MAX: usize = 1 << 22;

/// Background traffic that goes on until this value ends.
#[derive(Debug)]
pub struct Traffic {
    began: Instant,
    each_second: u32,
    centre: String,
    /// For each substation that sends, whether an outage of a run is on its way.
    behind: Vec<bool>,
    /// Both ends stop by these: first the senders, then the receiver.
    ends: [Arc<AtomicBool>; 2],
    sending: Option<JoinHandle<Vec<Tally>>>,
    receiving: Option<JoinHandle<Heard>>,
}

/// What was sent or heard in a second: over ways without outages, and over others.
type Tally = [u32; 2];

#[derive(Debug, Default)]
struct Heard {
    /// By the second in which a message was sent.
    seconds: Vec<Tally>,
    /// What messages took over ways without outages, microseconds.
    ways: Vec<u32>,
}

impl Traffic {
    /// Has all substations together send so many messages in a second.
    ///
    /// # Errors
    /// A socket cannot be had.
    pub fn begin(stage: &Stage, each_second: u32) -> Result<Self, String> {
        let refused =
            |error: io::Error| format!("background traffic cannot be sent or heard: {error}");
        let senders = senders(&stage.topology, &stage.centre, &stage.sites);
        let to = (stage.centre.network, PORT).into();
        let ear = stage.centre.at(|| ear(to)).map_err(refused)?;
        let nodes: Vec<_> = senders.iter().map(|&(node, _)| node).collect();
        let sockets = open(stage, &nodes, to).map_err(refused)?;
        let behind: Vec<bool> = senders.into_iter().map(|(_, behind)| behind).collect();
        let ends = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let began = Clock.now();
        let [sending, receiving] = ends.clone();
        let (of, kinds) = (behind.clone(), behind.clone());
        Ok(Self {
            began,
            each_second,
            centre: stage.centre.name.clone(),
            behind,
            ends,
            sending: Some(thread::spawn(move || {
                send(&sockets, &of, (began, each_second), &sending)
            })),
            receiving: Some(thread::spawn(move || hear(&ear, &kinds, began, &receiving))),
        })
    }

    /// Ends it, and gives what came of it.
    pub fn end(mut self) -> Background {
        let [sending, receiving] = &self.ends;
        sending.store(true, Ordering::Relaxed);
        let sent = joined(self.sending.take());
        let lasted = Clock.now().since(self.began).as_nanos() as f64 / 1e9;
        thread::sleep(LINGER);
        receiving.store(true, Ordering::Relaxed);
        let heard = joined(self.receiving.take());
        let trips = Trips::of(heard.ways);
        let carried = |kind: usize| Carried {
            sent: sent.iter().map(|it| u64::from(it[kind])).sum(),
            received: heard.seconds.iter().map(|it| u64::from(it[kind])).sum(),
        };
        let of = |second: usize| heard.seconds.get(second).map_or(0, |it| it[0]);
        Background {
            each_second: self.each_second,
            message_bytes: MESSAGE,
            centre: self.centre.clone(),
            substations: self.behind.len(),
            behind_outages: self.behind.iter().filter(|it| **it).count(),
            seconds: lasted,
            clear: carried(0),
            behind: carried(1),
            p50_us: trips.percentile(50),
            p99_us: trips.percentile(99),
            max_us: trips.percentile(100),
            course: sent
                .iter()
                .enumerate()
                .map(|(second, it)| (it[0], of(second)))
                .collect(),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        for end in &self.ends {
            end.store(true, Ordering::Relaxed);
        }
    }
}

fn joined<T: Default>(thread: Option<JoinHandle<T>>) -> T {
    thread.map_or_else(T::default, |it| it.join().unwrap_or_default())
}

/// Every substation, and whether the way of its messages is one that an outage of a run cuts.
fn senders(topology: &Topology, centre: &Host, sites: &[(Host, Site)]) -> Vec<(NodeId, bool)> {
    let Some(centre) = topology.find(&centre.name) else {
        return Vec::new();
    };
    let ways = Ways::new(topology, centre);
    let hosts = topology
        .hosts()
        .filter(|&host| topology.node(host).kind == Kind::Substation);
    hosts
        .filter_map(|host| {
            let way = ways.way(host)?;
            let behind = sites.iter().any(|(_, site)| way.links.contains(&site.cut));
            Some((host, behind))
        })
        .collect()
}

fn ear(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    socket.set_read_timeout(Some(LOOK))?;
    // What of it is not granted is seen as messages that were lost.
    let _ = set_socket_recv_buffer_size_force(&socket, ROOM);
    Ok(socket)
}

/// A socket in the namespace of each of these nodes, all of them opened by one thread.
fn open(stage: &Stage, nodes: &[NodeId], to: SocketAddr) -> io::Result<Vec<UdpSocket>> {
    let one = |node: &NodeId| {
        emulation::enter(&File::open(stage.running.namespace(node.index()))?)?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    thread::scope(|scope| scope.spawn(|| nodes.iter().map(one).collect()).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

/// Sends what is due, from one substation after the other, until the end; gives what was sent in each second.
fn send(
    sockets: &[UdpSocket],
    behind: &[bool],
    (began, each_second): (Instant, u32),
    end: &AtomicBool,
) -> Vec<Tally> {
    // What is measured goes first: a message of others that cannot be sent in time is one less, and told as that.
    let _ = realtime::set_fifo(PRIORITY);
    let mut seconds: Vec<Tally> = Vec::new();
    let due_at = |now: Instant| {
        let nanos = u128::from(now.since(began).as_nanos());
        (nanos * u128::from(each_second) / 1_000_000_000) as u64
    };
    let late_max = u64::from(each_second) * LATE_MAX.as_nanos() / 1_000_000_000 + 1;
    let mut next = 0;
    while !end.load(Ordering::Relaxed) && !sockets.is_empty() {
        let now = Clock.now();
        let due = due_at(now);
        next = next.max(due.saturating_sub(late_max));
        for number in next..due {
            let place = number as usize % sockets.len();
            let now = Clock.now();
            // What the system does not take is not sent.
            if sockets[place].send(&message(place, now)).is_ok() {
                let second = now.since(began).as_nanos() / 1_000_000_000;
                count(&mut seconds, second, behind[place]);
            }
        }
        next = due;
        Clock.sleep_until(now + TICK);
    }
    seconds
}

/// Counts what comes until the end, by when it was sent.
fn hear(ear: &UdpSocket, behind: &[bool], began: Instant, end: &AtomicBool) -> Heard {
    let _ = realtime::set_fifo(PRIORITY);
    let mut heard = Heard::default();
    let mut datagram = [0; MESSAGE + 1];
    let mut number = 0;
    while !end.load(Ordering::Relaxed) {
        // Nothing has come, or what an earlier datagram met is told, which says nothing of the next one.
        let Ok(len) = ear.recv(&mut datagram) else {
            continue;
        };
        let Some((place, sent)) = read(&datagram[..len]) else {
            continue;
        };
        let Some(&behind) = behind.get(place) else {
            continue;
        };
        let since = sent.since(began).as_nanos();
        count(&mut heard.seconds, since / 1_000_000_000, behind);
        number += 1;
        if number % SAMPLED == 0 && !behind && heard.ways.len() < SAMPLES_MAX {
            let took = Clock.now().since(sent).as_nanos() / 1000;
            heard.ways.push(u32::try_from(took).unwrap_or(u32::MAX));
        }
    }
    heard
}

/// A study takes hours at most: no second is later.
const SECONDS_MAX: u64 = 1 << 20;

fn count(seconds: &mut Vec<Tally>, second: u64, behind: bool) {
    let second = second.min(SECONDS_MAX) as usize;
    if seconds.len() <= second {
        seconds.resize(second + 1, Tally::default());
    }
    seconds[second][usize::from(behind)] += 1;
}

/// A message: who sends it, when, and what nobody reads.
fn message(place: usize, now: Instant) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    bytes[..4].copy_from_slice(&(place as u32).to_be_bytes());
    bytes[4..12].copy_from_slice(&now.as_nanos().to_be_bytes());
    bytes
}

fn read(bytes: &[u8]) -> Option<(usize, Instant)> {
    let place = bytes.first_chunk::<4>()?;
    let sent = bytes.get(4..12)?.first_chunk::<8>()?;
    let whole = bytes.len() == MESSAGE;
    whole.then_some((
        u32::from_be_bytes(*place) as usize,
        Instant::from_nanos(u64::from_be_bytes(*sent)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends over loopback for so long, from a sender without outages on its way and one with them.
    fn traffic(each_second: u32, lasts: Timeout) -> (Vec<Tally>, Heard) {
        let ear = ear((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let to = ear.local_addr().unwrap();
        let sockets: Vec<_> = (0..2)
            .map(|_| {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                socket.connect(to).unwrap();
                socket
            })
            .collect();
        let behind = [false, true];
        let ends = [AtomicBool::new(false), AtomicBool::new(false)];
        let began = Clock.now();
        thread::scope(|scope| {
            let hearing = scope.spawn(|| hear(&ear, &behind, began, &ends[1]));
            let sending = scope.spawn(|| send(&sockets, &behind, (began, each_second), &ends[0]));
            thread::sleep(lasts);
            ends[0].store(true, Ordering::Relaxed);
            let sent = sending.join().unwrap();
            thread::sleep(LINGER);
            ends[1].store(true, Ordering::Relaxed);
            (sent, hearing.join().unwrap())
        })
    }

    #[test]
    fn what_is_sent_is_at_most_what_is_asked_and_each_is_counted_once() {
        let (sent, heard) = traffic(2_000, Timeout::from_millis(400));
        let all = |of: &[Tally]| of.iter().flatten().map(|&it| u64::from(it)).sum::<u64>();
        let total = all(&sent);
        // How much of it a busy machine sends is not this test's business.
        assert!(total > 0 && total <= 2_000, "{total}");
        assert_eq!(total, all(&heard.seconds));
        assert!(heard.ways.len() as u64 <= total / SAMPLED);
    }

    #[test]
    fn a_message_tells_who_sent_it_and_when_and_others_count_nothing() {
        let at = Instant::from_nanos(123_456_789_012);
        assert_eq!(read(&message(259, at)), Some((259, at)));
        assert_eq!(read(&message(259, at)[..MESSAGE - 1]), None);
        assert_eq!(read(&[]), None);
    }
}

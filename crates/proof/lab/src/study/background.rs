//! Background traffic: short messages from every substation to the control centre, over the links that it shares with what is
//! measured (fifth paper, V-B3; `spec/wan.md`, U-59).

use std::fs::File;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as Timeout;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, realtime};
use bumpless_wan::emulation::{self, Routing};
use bumpless_wan::route::Ways;
use bumpless_wan::{Kind, NodeId, Topology};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

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
/// What a message takes is told apart to the microsecond below this, which is a second.
const TOLD_APART_US: usize = 1 << 20;

/// Background traffic that goes on until this value ends.
#[derive(Debug)]
pub struct Traffic {
    began: Instant,
    each_second: u32,
    centre: String,
    /// Whether the ways of messages are others than those with the fewest hops.
    reckoned: bool,
    /// For each substation that sends, whether an outage of a run is on its way.
    behind: Vec<bool>,
    /// Both ends stop by these: first the senders, then the receiver.
    ends: [Arc<AtomicBool>; 2],
    sending: Option<JoinHandle<Sent>>,
    receiving: Option<JoinHandle<Heard>>,
}

/// What was sent or heard in a second: over ways without outages, and over others.
type Tally = [u32; 2];

#[derive(Debug, Default)]
struct Sent {
    seconds: Vec<Tally>,
    /// What the system did not take.
    refused: u64,
}

#[derive(Debug, Default)]
struct Heard {
    /// By the second in which a message was sent.
    seconds: Vec<Tally>,
    /// What messages took over ways without outages.
    ways: Taken,
    /// What the receiver's socket had no room for.
    overrun: u64,
}

/// What messages took, microseconds: how many took as long, however many there are.
#[derive(Debug, Default)]
struct Taken {
    counts: Vec<u32>,
    total: u64,
    longest: Option<u32>,
}

impl Taken {
    fn add(&mut self, us: u32) {
        self.counts.resize(TOLD_APART_US, 0);
        if let Some(count) = self.counts.get_mut(us as usize) {
            *count += 1;
        }
        self.total += 1;
        self.longest = self.longest.max(Some(us));
    }

    /// So much of a hundred took no longer (nearest rank); what took longer than is told apart is taken for the longest.
    fn percentile(&self, percent: u64) -> Option<u32> {
        let rank = (self.total * percent).div_ceil(100);
        let mut sum = 0;
        let place = self.counts.iter().position(|&count| {
            sum += u64::from(count);
            sum >= rank
        });
        let us = place.filter(|_| self.total > 0).map(|us| us as u32);
        us.or(self.longest)
    }
}

impl Traffic {
    /// Has all substations together send so many messages in a second.
    ///
    /// # Errors
    /// A socket cannot be had, with what can be done.
    pub fn begin(stage: &Stage, each_second: u32) -> Result<Self, String> {
        let refused = |error: io::Error| {
            format!(
                "background traffic cannot be sent to port {PORT} of {}, or heard there: {error}; --background 0 goes without it",
                stage.centre.name
            )
        };
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
            reckoned: stage.running.routing == Routing::Ospf,
            behind,
            ends,
            sending: Some(thread::spawn(move || {
                send(&sockets, &of, (began, each_second), &sending)
            })),
            receiving: Some(thread::spawn(move || hear(&ear, &kinds, began, &receiving))),
        })
    }

    /// Ends it, and gives what came of it.
    ///
    /// # Errors
    /// One of its ends ended by a panic: nothing is known of what it did.
    pub fn end(mut self) -> Result<Background, String> {
        let [sending, receiving] = &self.ends;
        sending.store(true, Ordering::Relaxed);
        let sent = joined(self.sending.take(), "sends")?;
        let lasted = Clock.now().since(self.began).as_nanos() as f64 / 1e9;
        thread::sleep(LINGER);
        receiving.store(true, Ordering::Relaxed);
        let heard = joined(self.receiving.take(), "hears")?;
        let carried = |kind: usize| Carried {
            sent: sent.seconds.iter().map(|it| u64::from(it[kind])).sum(),
            received: heard.seconds.iter().map(|it| u64::from(it[kind])).sum(),
        };
        let both = |it: &Tally| it[0] + it[1];
        let of = |second: usize| heard.seconds.get(second).map_or(0, both);
        Ok(Background {
            each_second: self.each_second,
            message_bytes: MESSAGE,
            centre: self.centre.clone(),
            substations: self.behind.len(),
            behind_outages: self.behind.iter().filter(|it| **it).count(),
            seconds: lasted,
            clear: carried(0),
            behind: carried(1),
            reckoned: self.reckoned,
            refused: sent.refused,
            overrun: heard.overrun,
            p50_us: heard.ways.percentile(50),
            p99_us: heard.ways.percentile(99),
            max_us: heard.ways.longest,
            course: sent
                .seconds
                .iter()
                .enumerate()
                .map(|(second, it)| (both(it), of(second)))
                .collect(),
        })
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        for end in &self.ends {
            end.store(true, Ordering::Relaxed);
        }
    }
}

fn joined<T>(thread: Option<JoinHandle<T>>, what: &str) -> Result<T, String> {
    let done = thread.and_then(|it| it.join().ok());
    done.ok_or_else(|| {
        format!("what {what} background traffic ended by a panic, which is a fault of this program and told above; --background 0 goes without it")
    })
}

/// Every substation, and whether the way of its messages is one that an outage of a run cuts: that with the fewest hops, which
/// is another than daemons may choose.
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
    // As much as is permitted, if more is not granted; what there is no room for is counted.
    if set_socket_recv_buffer_size_force(&socket, ROOM).is_err() {
        let _ = set_socket_recv_buffer_size(&socket, ROOM);
    }
    Ok(socket)
}

/// How many datagrams a socket has had no room for (`SO_MEMINFO`); 0 if the kernel does not tell.
#[allow(unsafe_code)]
fn overrun(socket: &UdpSocket) -> u64 {
    // The place of what was dropped among what is told (`SK_MEMINFO_DROPS`).
    const DROPS: usize = 8;
    let mut told = [0_u32; DROPS + 1];
    let mut size = mem::size_of_val(&told) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the array lives through the call with the size that is said.
    let asked = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            told.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if asked == 0 { told[DROPS].into() } else { 0 }
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
) -> Sent {
    // What is measured goes first: a message of others that cannot be sent in time is one less, and told as that.
    let _ = realtime::set_fifo(PRIORITY);
    let mut sent = Sent::default();
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
            match sockets[place].send(&message(place, now)) {
                Ok(_) => {
                    let second = now.since(began).as_nanos() / 1_000_000_000;
                    count(&mut sent.seconds, second, behind[place]);
                }
                Err(_) => sent.refused += 1,
            }
        }
        next = due;
        Clock.sleep_until(now + TICK);
    }
    sent
}

/// Counts what comes until the end, by when it was sent.
fn hear(ear: &UdpSocket, behind: &[bool], began: Instant, end: &AtomicBool) -> Heard {
    let _ = realtime::set_fifo(PRIORITY);
    let mut heard = Heard::default();
    let mut datagram = [0; MESSAGE + 1];
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
        if !behind {
            // A kernel's time of arrival would be from before the packet was held for its delay (U-34).
            let took = Clock.now().since(sent).as_nanos() / 1000;
            heard.ways.add(u32::try_from(took).unwrap_or(u32::MAX));
        }
    }
    heard.overrun = overrun(ear);
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
    fn traffic(each_second: u32, lasts: Timeout) -> (Sent, Heard, Duration) {
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
            let lasted = Clock.now().since(began);
            thread::sleep(LINGER);
            ends[1].store(true, Ordering::Relaxed);
            (sent, hearing.join().unwrap(), lasted)
        })
    }

    #[test]
    fn what_is_sent_is_at_most_what_is_asked_and_each_is_counted_once() {
        let (sent, heard, lasted) = traffic(2_000, Timeout::from_millis(400));
        let all = |of: &[Tally], kind: usize| of.iter().map(|it| u64::from(it[kind])).sum::<u64>();
        let of = |kind| (all(&sent.seconds, kind), all(&heard.seconds, kind));
        let [clear, behind] = [of(0), of(1)];
        // How much of it a busy machine sends is not this test's business.
        let total = clear.0 + behind.0;
        let asked = 2_000 * lasted.as_nanos() / 1_000_000_000;
        assert!((1..=asked).contains(&total), "{total} of {asked}");
        // UDP may lose one, and none comes twice.
        for (sent, heard) in [clear, behind] {
            assert!(0 < heard && heard <= sent, "{heard} of {sent}");
        }
        assert_eq!(
            heard.ways.total, clear.1,
            "each over a clear way was timed, whichever substation sent it"
        );
    }

    #[test]
    fn what_a_socket_has_no_room_for_is_counted_apart() {
        let ear = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        set_socket_recv_buffer_size(&ear, 4_096).unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for _ in 0..100 {
            let to = ear.local_addr().unwrap();
            sender.send_to(&[0; MESSAGE], to).unwrap();
        }
        ear.set_nonblocking(true).unwrap();
        let came = (0..100).filter(|_| ear.recv(&mut [0; MESSAGE]).is_ok());
        let came = came.count() as u64;
        assert!(came < 100, "{came}");
        assert_eq!(came + overrun(&ear), 100);
    }

    #[test]
    fn what_messages_took_is_told_of_all_and_the_longest_is_kept() {
        let mut taken = Taken::default();
        assert_eq!((taken.percentile(50), taken.longest), (None, None));
        (1..=200).for_each(|us| taken.add(us));
        assert_eq!(taken.percentile(50), Some(100));
        assert_eq!(taken.percentile(99), Some(198));
        taken.add(7_000_000);
        assert_eq!(taken.percentile(99), Some(199));
        assert_eq!(taken.percentile(100), Some(7_000_000));
        assert_eq!(taken.longest, Some(7_000_000));
    }

    #[test]
    fn an_end_that_panics_is_no_traffic_of_nothing() {
        let ended = thread::spawn(|| -> Sent { std::panic::resume_unwind(Box::new(())) });
        let why = joined(Some(ended), "sends").unwrap_err();
        assert!(why.contains("--background 0"), "{why}");
    }

    #[test]
    fn a_message_tells_who_sent_it_and_when_and_others_count_nothing() {
        let at = Instant::from_nanos(123_456_789_012);
        assert_eq!(read(&message(259, at)), Some((259, at)));
        assert_eq!(read(&message(259, at)[..MESSAGE - 1]), None);
        assert_eq!(read(&[]), None);
    }
}

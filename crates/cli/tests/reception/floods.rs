//! What a third host sends to a pair's nodes: all kinds of junk, beside the nodes' own work or before it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::FromRawFd;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_net_linux::realtime;

use crate::support::hosts::Hosts;

/// A flood ends by then, whatever it has sent.
const LONGEST: Duration = Duration::from_secs(6);

/// One kind of junk.
struct Junk {
    socket: UdpSocket,
    payload: Vec<u8>,
    port: u16,
    is_broadcast: bool,
}

/// All kinds, from sockets of the stranger's.
fn junk() -> Vec<Junk> {
    let udp = || UdpSocket::bind("0.0.0.0:0").unwrap();
    let of = |socket, length, port| Junk {
        socket,
        payload: vec![7; length],
        port,
        is_broadcast: false,
    };
    // SAFETY: socket() takes integers only.
    let raw = unsafe {
        libc::socket(
            libc::AF_INET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::IPPROTO_ICMP,
        )
    };
    assert!(raw >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor was just made, and nobody else owns it.
    let mut icmp = of(unsafe { UdpSocket::from_raw_fd(raw) }, 64, 0);
    // An echo request of zeros with its checksum.
    icmp.payload = [&[8, 0, 0xf7, 0xff][..], &[0; 60]].concat();
    let broadcast = udp();
    broadcast.set_broadcast(true).unwrap();
    vec![
        of(udp(), 60, 4700),
        of(udp(), 60, 9),
        // In pieces.
        of(udp(), 3000, 4700),
        icmp,
        Junk {
            is_broadcast: true,
            ..of(broadcast, 60, 4700)
        },
    ]
}

/// So many rounds of a flood in each millisecond, so that the sender is not what takes the processors away.
const ROUNDS_PER_MS: usize = 5;

/// Sends `each` of every kind to each node on each network; how many, and in what time.
pub fn flood(hosts: &Hosts, kinds: usize, each: usize) -> (usize, Duration) {
    hosts.at("twin", || {
        let junk = junk();
        let started = Instant::now();
        let mut sent = 0;
        for round in 0..each {
            let due = started + Duration::from_millis((round / ROUNDS_PER_MS) as u64);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            sent += send_round(&junk[..kinds]);
            if started.elapsed() > LONGEST {
                break;
            }
        }
        (sent, started.elapsed())
    })
}

/// Sends one of each kind to each node on each network; how many.
fn send_round(junk: &[Junk]) -> usize {
    let mut sent = 0;
    for it in junk {
        let nodes: &[u8] = if it.is_broadcast { &[255] } else { &[1, 2] };
        for (network, &node) in [1, 2]
            .into_iter()
            .flat_map(|it| nodes.iter().map(move |node| (it, node)))
        {
            // What the kernel has no room for is not sent; that is a flood all the same.
            let to = SocketAddr::from(([10, 77, network, node], it.port));
            sent += usize::from(it.socket.send_to(&it.payload, to).is_ok());
        }
    }
    sent
}

/// Above nodes with `[realtime]`, as a card's interrupts are.
pub const ABOVE: u8 = 50;
const TICK: Duration = Duration::from_millis(2);
/// So far behind its time a flood may be and catch up.
const BEHIND_MOST: Duration = Duration::from_millis(20);

/// What was sent so.
#[derive(Clone, Copy, Debug)]
pub struct Hammered {
    pub sent: usize,
    pub took: Duration,
}

impl Hammered {
    pub fn per_s(&self) -> f64 {
        self.sent as f64 / self.took.as_secs_f64()
    }
}

/// The same from two processors and before all that nodes do there, `rounds` in each tick on each: as from a host whose packets come
/// whether or not there is time for them. What the system refuses makes it an ordinary flood.
pub fn hammer(hosts: &Hosts, rounds: usize, lasts: Duration) -> Hammered {
    let from = |processor: usize| {
        let _ = realtime::pin(processor);
        let _ = realtime::set_fifo(ABOVE);
        let _ = realtime::tighten_timers();
        let junk = junk();
        let (started, mut sent, mut due) = (Instant::now(), 0, Instant::now());
        while started.elapsed() < lasts {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            sent += (0..rounds).map(|_| send_round(&junk)).sum::<usize>();
            let behind = Instant::now() - BEHIND_MOST;
            due = (due + TICK).max(behind);
        }
        (sent, started.elapsed())
    };
    // Threads are where the one is that starts them.
    hosts.at("twin", || {
        thread::scope(|scope| {
            let both = [0, 1].map(|it| scope.spawn(move || from(it)));
            let both = both.map(|it| it.join().unwrap());
            Hammered {
                sent: both.iter().map(|it| it.0).sum(),
                took: both.iter().map(|it| it.1).max().unwrap(),
            }
        })
    })
}

/// Has the calling thread, and what it starts, run on the processors from which [`hammer`] sends. Whether it has them.
pub fn stay_on_two_processors() -> bool {
    // SAFETY: a set of processors is numbers, and zeros are the empty one; the calls read and change what lives through them.
    unsafe {
        let mut both: libc::cpu_set_t = std::mem::zeroed();
        (0..2).for_each(|it| libc::CPU_SET(it, &mut both));
        libc::sched_setaffinity(0, size_of_val(&both), &raw const both) == 0
            && libc::sched_getaffinity(0, size_of_val(&both), &raw mut both) == 0
            && libc::CPU_COUNT(&both) == 2
    }
}

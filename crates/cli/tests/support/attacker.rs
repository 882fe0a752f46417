//! Somebody who has the switches of both networks: hears everything that the nodes say to each other, and puts what it likes
//! on the wire to either of them, as if it came from the other. It has no key.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bumpless_base::Random;
use bumpless_wire::EnvelopeHeader;

use super::hosts::Hosts;
use super::{let_run, wait_until};

pub const ETHERNET: usize = 14;
pub const IP: usize = 20;
const UDP: usize = 8;
pub const HEADERS: usize = ETHERNET + IP + UDP;
/// Bytes of a datagram that Ethernet takes whole.
const LONGEST: usize = 1472;
/// Bytes that a link of 1 Mbit/s takes in a millisecond.
const BYTES_OF_A_MBIT: usize = 125;

/// A way between the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// 0 or 1.
    pub network: usize,
    /// Whether from the left node to the right one.
    pub to_right: bool,
}

impl Way {
    pub const ALL: [Self; 4] = [
        Self::new(0, true),
        Self::new(0, false),
        Self::new(1, true),
        Self::new(1, false),
    ];

    pub const fn new(network: usize, to_right: bool) -> Self {
        Self { network, to_right }
    }

    /// The same network the other way.
    pub const fn back(self) -> Self {
        Self::new(self.network, !self.to_right)
    }

    /// The same way on the other network.
    pub const fn beside(self) -> Self {
        Self::new(1 - self.network, self.to_right)
    }

    /// Who is at its end.
    pub const fn target(self) -> &'static str {
        match self.to_right {
            true => "right",
            false => "left",
        }
    }

    const fn number(self) -> usize {
        self.network * 2 + self.to_right as usize
    }
}

/// See the module.
pub struct Attacker {
    /// By network, then the ports to the left and to the right node.
    ports: Vec<OwnedFd>,
    /// By way: frames as they were heard.
    heard: [Vec<Vec<u8>>; 4],
    /// Which frames it keeps.
    wanted: fn(&[u8]) -> bool,
}

impl Attacker {
    /// At the switches of `hosts`. It hears the nodes' datagrams.
    pub fn new(hosts: &Hosts) -> Self {
        Self::that_hears(hosts, is_datagram)
    }

    /// At the switches of `hosts`. It hears those frames that are `wanted`.
    pub fn that_hears(hosts: &Hosts, wanted: fn(&[u8]) -> bool) -> Self {
        let ports = ["a1", "a2", "b1", "b2"];
        let ports = hosts.at("switch", || ports.map(port));
        Self {
            ports: ports.into(),
            heard: Default::default(),
            wanted,
        }
    }

    /// Hears until it has `count` more datagrams of each way.
    pub fn listen(&mut self, count: usize) {
        let before = self.heard.each_ref().map(Vec::len);
        wait_until("the attacker has heard enough", || {
            self.hear();
            let more = |way: usize| self.heard[way].len() >= before[way] + count;
            (0..4).all(more)
        });
    }

    /// Hears all that is said while `work` is done.
    pub fn hear_while<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    self.hear();
                    let_run(1);
                }
            });
            // A panic ends the other thread, too.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            done.store(true, Ordering::Relaxed);
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn hear(&mut self) {
        for (at, port) in self.ports.iter().enumerate() {
            let (network, from_right) = (at / 2, at % 2 == 1);
            let way = Way::new(network, !from_right);
            while let Some(frame) = next(port) {
                if (self.wanted)(&frame) {
                    self.heard[way.number()].push(frame);
                }
            }
        }
    }

    /// The messages that went this way.
    pub fn heard(&self, way: Way) -> Vec<Vec<u8>> {
        let frames = self.heard[way.number()].iter();
        frames.map(|frame| frame[HEADERS..].to_vec()).collect()
    }

    /// The frames that went this way.
    pub fn frames(&self, way: Way) -> &[Vec<u8>] {
        &self.heard[way.number()]
    }

    /// Sends `message` this way, as if the node at its beginning had.
    pub fn send(&self, way: Way, message: &[u8]) {
        self.put(way, &like(&self.frames(way)[0], message));
    }

    /// Puts a frame on the wire as it is.
    pub fn put(&self, way: Way, frame: &[u8]) {
        let port = &self.ports[way.network * 2 + usize::from(way.to_right)];
        // SAFETY: the pointer is to a live buffer of the given length.
        let sent = unsafe { libc::send(port.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// Sends to both nodes on `network`, each millisecond as much as a link of so many Mbit/s takes, until `done`: what was said a
    /// moment ago again, changed, in the name of another process, or invented, whole or behind a header of theirs. `done` is
    /// asked each 100 ms.
    pub fn flood_until(
        &mut self,
        (network, mbit): (usize, usize),
        mut done: impl FnMut() -> bool,
    ) -> Flood {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flood = scope.spawn(|| self.flood((network, mbit), &over));
            // A panic ends the other thread, too.
            let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                while !done() {
                    let_run(100);
                }
            }));
            over.store(true, Ordering::Relaxed);
            let flood = flood.join().unwrap();
            waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            flood
        })
    }

    fn flood(&mut self, (network, mbit): (usize, usize), over: &AtomicBool) -> Flood {
        let mut maker = Maker::new();
        let mut flood = Flood::default();
        let began = Instant::now();
        let (mut due, mut latest) = (began, Vec::new());
        for millisecond in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            if millisecond % 100 == 0 {
                self.hear();
                latest = [true, false]
                    .map(|to_right| self.latest(network, to_right))
                    .into();
            }
            for (way, heard) in &latest {
                let mut room = mbit * BYTES_OF_A_MBIT;
                while room > 0 {
                    let made = maker.made_up(heard);
                    self.send(*way, &made);
                    let length = HEADERS + made.len();
                    room = room.saturating_sub(length);
                    flood.datagrams += 1;
                    flood.bytes += length;
                }
            }
            due += Duration::from_millis(1);
            let now = Instant::now();
            // A link makes nothing up for a pause.
            due = due.max(now - Duration::from_millis(2));
            std::thread::sleep(due.saturating_duration_since(now));
        }
        flood.took = began.elapsed();
        flood
    }

    /// What was said last on this way.
    fn latest(&self, network: usize, to_right: bool) -> (Way, Vec<Vec<u8>>) {
        let way = Way::new(network, to_right);
        let last = self.frames(way).iter().rev().take(4);
        (way, last.map(|frame| frame[HEADERS..].to_vec()).collect())
    }

    /// Sends these, in portions that a receive buffer takes.
    pub fn send_all(&self, way: Way, messages: &[Vec<u8>]) {
        for portion in messages.chunks(100) {
            portion.iter().for_each(|message| self.send(way, message));
            let_run(2);
        }
    }
}

/// A frame with `message` that is otherwise the datagram `frame`.
pub fn like(frame: &[u8], message: &[u8]) -> Vec<u8> {
    let mut frame = frame[..HEADERS].to_vec();
    frame.extend(message);
    let length = |from: usize| ((frame.len() - from) as u16).to_be_bytes();
    let (ip, udp) = (length(ETHERNET), length(ETHERNET + IP));
    frame[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&ip);
    frame[ETHERNET + 10..ETHERNET + 12].fill(0);
    let sum = checksum(&frame[ETHERNET..ETHERNET + IP]);
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum);
    let at = ETHERNET + IP;
    frame[at + 4..at + 6].copy_from_slice(&udp);
    // No checksum, which IPv4 permits.
    frame[at + 6..at + 8].fill(0);
    frame
}

/// What a flood was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flood {
    pub datagrams: usize,
    /// With all headers.
    pub bytes: usize,
    pub took: Duration,
}

impl Flood {
    pub fn and(self, next: Self) -> Self {
        Self {
            datagrams: self.datagrams + next.datagrams,
            bytes: self.bytes + next.bytes,
            took: self.took + next.took,
        }
    }

    /// To each of two nodes.
    pub fn mbit_per_s(&self) -> f64 {
        self.bytes as f64 * 8e-6 / 2.0 / self.took.as_secs_f64()
    }
}

/// Makes junk, quickly.
struct Maker {
    random: Random,
    noise: Vec<u8>,
}

impl Maker {
    fn new() -> Self {
        let mut random = Random::new(3);
        let noise = (0..1 << 16).map(|_| random.next_u64() as u8).collect();
        Self { random, noise }
    }

    /// `count` bytes that nobody has sent.
    fn noise(&mut self, count: usize) -> &[u8] {
        let from = self.random.below((self.noise.len() - count) as u64) as usize;
        &self.noise[from..][..count]
    }

    /// One of `messages` again, changed, of a process that nobody knows, or invented: whole, or behind its header and as long as can
    /// be. Most are long.
    fn made_up(&mut self, messages: &[Vec<u8>]) -> Vec<u8> {
        let message = &messages[self.random.below(messages.len() as u64) as usize];
        match self.random.below(8) {
            0 => message.clone(),
            1 => bent(message, &mut self.random),
            2 => {
                let mut other = message.clone();
                other[9..17].copy_from_slice(self.noise(8));
                other
            }
            3 => self.noise(LONGEST).to_vec(),
            _ => {
                let header = &message[..EnvelopeHeader::LEN];
                [header, self.noise(LONGEST - header.len())].concat()
            }
        }
    }
}

/// `message` with one to four bytes changed.
pub fn bent(message: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bent = message.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bent.len() as u64) as usize;
        bent[at] ^= 1 + random.below(255) as u8;
    }
    bent
}

fn port(name: &str) -> OwnedFd {
    let every = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: socket() takes integers only.
    let fd = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        libc::socket(libc::AF_PACKET, kind, every.into())
    };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: all zeros is a sound address; the name ends with a zero.
    let (mut address, index): (libc::sockaddr_ll, _) =
        unsafe { (std::mem::zeroed(), libc::if_nametoindex(name.as_ptr())) };
    assert!(index > 0, "{name:?}: {}", io::Error::last_os_error());
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = every;
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a live value of the given length.
    let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(bound, 0, "{}", io::Error::last_os_error());
    fd
}

/// The next frame that came in at `port`.
fn next(port: &OwnedFd) -> Option<Vec<u8>> {
    let mut frame = vec![0u8; 1 << 16];
    loop {
        // SAFETY: all zeros is a sound address.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: all pointers are to live values of the lengths that go with them.
        let got = unsafe {
            libc::recvfrom(
                port.as_raw_fd(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
                (&raw mut from).cast(),
                &raw mut length,
            )
        };
        let got = usize::try_from(got).ok()?;
        // What leaves by the port, it has heard or sent already.
        if from.sll_pkttype != libc::PACKET_OUTGOING {
            frame.truncate(got);
            return Some(frame);
        }
    }
}

/// Whether this is one whole UDP datagram of IPv4 between the nodes.
fn is_datagram(frame: &[u8]) -> bool {
    let whole = frame.len() > HEADERS && frame[12..14] == [8, 0] && frame[ETHERNET] == 0x45;
    let udp = whole && frame[ETHERNET + 9] == 17 && frame[ETHERNET + 6] & 0x3F == 0;
    // Several in one are for the network card to take apart.
    udp && frame.len() <= HEADERS + LONGEST && frame[ETHERNET + IP..][..2] == 4700u16.to_be_bytes()
}

/// RFC 1071.
fn checksum(header: &[u8]) -> [u8; 2] {
    let words = header
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

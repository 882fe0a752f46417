//! Ordinary programs: datagrams at an even rate from one host to the other, and what comes of them.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bumpless_base::Duration as Span;
use bumpless_net_linux::Clock;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use super::hosts::{Hosts, address};
use super::site::PORT;
use super::{LabError, impossible};

/// Flow and number, at the beginning of each datagram; then when it was sent.
const HEAD: usize = 4 + 4 + 8;
/// Room for what comes while the receiving program does not run, bytes.
const ROOM: usize = 8 << 20;
/// How long a receiver waits at a time.
const LOOK: Duration = Duration::from_millis(50);

/// What has come of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// When it was sent (nanoseconds of CLOCK_BOOTTIME).
    pub sent_ns: u64,
    /// When it came first.
    pub came_ns: u64,
    /// How often it came.
    pub times: u32,
}

/// By flow and number.
pub type Arrivals = BTreeMap<(u32, u32), Came>;

/// Programs that send on some flows.
pub struct Senders {
    sockets: Vec<(UdpSocket, SocketAddr)>,
    len: usize,
    next: Vec<u32>,
}

impl Senders {
    /// One for each of `flows`, with datagrams of `len` bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(hosts: &Hosts, flows: usize, len: usize) -> Result<Self, LabError> {
        let open = |flow: usize| {
            let socket = hosts.host(0).run(|| UdpSocket::bind((address(0, 0), 0)));
            let socket = socket.map_err(impossible)?.map_err(impossible)?;
            let to = SocketAddr::from((address(0, 1), PORT + flow as u16));
            Ok((socket, to))
        };
        let sockets: Result<Vec<_>, LabError> = (0..flows).map(open).collect();
        Ok(Self {
            sockets: sockets?,
            len: len.max(HEAD),
            next: vec![0; flows],
        })
    }

    /// Sends the next datagram of a flow; its number.
    pub fn send(&mut self, flow: usize) -> u32 {
        let number = self.next[flow];
        self.next[flow] += 1;
        let mut datagram = vec![0; self.len];
        datagram[..4].copy_from_slice(&(flow as u32).to_be_bytes());
        datagram[4..8].copy_from_slice(&number.to_be_bytes());
        datagram[8..HEAD].copy_from_slice(&Clock.now().as_nanos().to_be_bytes());
        let (socket, to) = &self.sockets[flow];
        // What the host itself refuses is lost, and is counted as such.
        let _ = socket.send_to(&datagram, to);
        number
    }

    /// Sends on all flows at an even rate, so many datagrams on each `every`, one flow after the other, until `done` says of
    /// the time that has passed that it is enough.
    pub fn stream(&mut self, every: Duration, mut done: impl FnMut(Duration) -> bool) {
        let flows = self.sockets.len();
        let step = Span::from_nanos(every.as_nanos() as u64 / flows.max(1) as u64);
        let (began, mut due, mut flow) = (Clock.now(), Clock.now(), 0);
        while !done(Clock.now().since(began).to_std()) {
            self.send(flow);
            flow = (flow + 1) % flows;
            due += step;
            Clock.sleep_until(due);
        }
    }

    /// Sends on one flow, a datagram `every`, until `done` says of the time that has passed that it is enough.
    pub fn stream_on(
        &mut self,
        flow: usize,
        every: Duration,
        mut done: impl FnMut(Duration) -> bool,
    ) {
        let step = Span::from_nanos(every.as_nanos() as u64);
        let (began, mut due) = (Clock.now(), Clock.now());
        while !done(Clock.now().since(began).to_std()) {
            self.send(flow);
            due += step;
            Clock.sleep_until(due);
        }
    }

    /// How many each flow has sent.
    pub fn sent(&self) -> &[u32] {
        &self.next
    }
}

/// A program that receives on all flows.
pub struct Receiver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Arrivals>>,
}

impl Receiver {
    /// Receives until it is asked what came.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(hosts: &Hosts, flows: usize) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let open = |flow: usize| {
            let at = (address(0, 1), PORT + flow as u16);
            let socket = hosts.host(1).run(|| UdpSocket::bind(at));
            socket.map_err(impossible)?.map_err(impossible)
        };
        let sockets: Result<Vec<UdpSocket>, LabError> = (0..flows).map(open).collect();
        let (sockets, stopping) = (sockets?, Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("receiver".into())
            .spawn(move || receive(&sockets, &stopping))
            .map_err(impossible)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// What came.
    pub fn end(mut self) -> Arrivals {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take();
        thread.and_then(|it| it.join().ok()).unwrap_or_default()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

fn receive(sockets: &[UdpSocket], stop: &AtomicBool) -> Arrivals {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    for socket in sockets {
        let _ = socket.set_nonblocking(true);
        // As much as the system permits.
        let _ = set_socket_recv_buffer_size(socket, ROOM);
        let _ = set_socket_recv_buffer_size_force(socket, ROOM);
    }
    let mut arrivals = Arrivals::new();
    let mut buffer = [0; 2048];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK.subsec_nanos().into(),
    };
    while !stop.load(Ordering::Acquire) {
        let mut files: Vec<_> = sockets
            .iter()
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let _ = poll(&mut files, Some(&timeout));
        let ready: Vec<_> = files
            .iter()
            .map(|file| !file.revents().is_empty())
            .collect();
        for (socket, _) in sockets.iter().zip(ready).filter(|(_, ready)| *ready) {
            while let Some((key, sent_ns)) = next(socket, &mut buffer) {
                let now = Clock.now().as_nanos();
                let came = arrivals.entry(key).or_insert(Came {
                    sent_ns,
                    came_ns: now,
                    times: 0,
                });
                came.times += 1;
            }
        }
    }
    arrivals
}

/// Flow and number of the next datagram, and when it was sent.
fn next(socket: &UdpSocket, buffer: &mut [u8]) -> Option<((u32, u32), u64)> {
    let length = match socket.recv(buffer) {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => socket.recv(buffer).ok()?,
        Err(_) => return None,
    };
    let datagram = buffer.get(..length)?;
    let flow = u32::from_be_bytes(*datagram.first_chunk()?);
    let number = u32::from_be_bytes(*datagram.get(4..)?.first_chunk()?);
    let sent = u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?);
    Some(((flow, number), sent))
}

//! Streams of phasors: a unit at each substation that sends to all centres, and a reader at each of these.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bumpless_base::{Duration as Span, Instant};
use bumpless_net_linux::Clock;
use socket2::SockRef;

use super::protocol::Protocol;
use super::seen::{Exchange, Seen};
use crate::study::host::Host;
use crate::synchrophasor::{frame, number_in};

const LOOK: Duration = Duration::from_millis(50);
/// Room for what comes while a reader has no processor, bytes.
const ROOM: usize = 4 << 20;

/// When each frame of each substation was sent, or came: nanoseconds of CLOCK_BOOTTIME, zero for one that never did.
type Times = Vec<Vec<u64>>;

/// Streams that run until they are ended, or dropped: their sockets keep the network of a host from going.
#[derive(Debug, Default)]
pub struct Streams {
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<Times>>,
    readers: Vec<JoinHandle<Times>>,
}

impl Streams {
    /// Begins one from each substation to each centre, at `rate` frames a second.
    ///
    /// # Errors
    /// A port cannot be had.
    pub fn begin(centres: &[Host], sites: &[Host], rate: u32) -> io::Result<Self> {
        let mut streams = Self::default();
        let port = Protocol::Phasors.port();
        let open = |host: &Host, port: u16| {
            let address: Ipv4Addr = host.network;
            host.at(|| UdpSocket::bind((address, port)))
        };
        for centre in centres {
            let socket = open(centre, port)?;
            // Above the system's limit, which is for who is not root; what is refused leaves less room.
            let _ = SockRef::from(&socket).set_recv_buffer_size(ROOM);
            socket.set_read_timeout(Some(LOOK))?;
            let (stop, count) = (Arc::clone(&streams.stop), sites.len());
            let reader = thread::spawn(move || read(&socket, (count, rate), &stop));
            streams.readers.push(reader);
        }
        let units: io::Result<Vec<_>> = sites.iter().map(|site| open(site, 0)).collect();
        let to: Vec<_> = centres
            .iter()
            .map(|centre| SocketAddrV4::new(centre.network, port))
            .collect();
        let (units, stop) = (units?, Arc::clone(&streams.stop));
        let sender = thread::spawn(move || send(&units, &to, rate, &stop));
        streams.sender = Some(sender);
        Ok(streams)
    }

    /// Ends them, and gives what each centre saw.
    pub fn end(mut self) -> Vec<Seen> {
        let (sent, came) = self.ended();
        came.iter().map(|came| seen(&sent, came)).collect()
    }

    /// What was sent, and what came at each centre. What is under way comes, or never will.
    fn ended(&mut self) -> (Times, Vec<Times>) {
        self.stop.store(true, Ordering::Relaxed);
        let times = |it: JoinHandle<Times>| it.join().unwrap_or_default();
        let sent = self.sender.take().map(times).unwrap_or_default();
        (sent, self.readers.drain(..).map(times).collect())
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.ended();
    }
}

fn seen(sent: &Times, came: &Times) -> Seen {
    let mut seen = Seen::default();
    for (site, times) in sent.iter().enumerate() {
        for (number, &sent) in times.iter().enumerate() {
            let at = came.get(site).and_then(|it| it.get(number)).copied();
            seen.exchanges.push(Exchange {
                site,
                sent,
                done: at.filter(|at| *at > 0),
            });
        }
    }
    seen
}

/// Sends from all units in turn, spread over the time between two frames of one.
fn send(units: &[UdpSocket], to: &[SocketAddrV4], rate: u32, stop: &AtomicBool) -> Times {
    let mut sent = vec![Vec::new(); units.len()];
    let between = Span::from_nanos(1_000_000_000 / (u64::from(rate) * units.len().max(1) as u64));
    let mut due: Instant = Clock.now();
    for number in 0.. {
        for (site, unit) in units.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return sent;
            }
            Clock.sleep_until(due);
            due += between;
            sent[site].push(Clock.now().as_nanos());
            let frame = frame(site as u16 + 1, rate, number);
            for to in to {
                // What the host itself refuses is lost, and is counted as such.
                let _ = unit.send_to(&frame, to);
            }
        }
    }
    sent
}

/// How long a reader goes on after the last frame was sent: longer than any way takes.
const LINGER: Duration = Duration::from_secs(1);

fn read(socket: &UdpSocket, (sites, rate): (usize, u32), stop: &AtomicBool) -> Times {
    let mut came: Times = vec![Vec::new(); sites];
    let (mut buffer, mut ended) = ([0; 256], None);
    while ended.is_none_or(|at: std::time::Instant| at.elapsed() < LINGER) {
        if ended.is_none() && stop.load(Ordering::Relaxed) {
            ended = Some(std::time::Instant::now());
        }
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let now = Clock.now().as_nanos();
        let Some((id, number)) = number_in(rate, &buffer[..length]) else {
            continue;
        };
        let place = usize::from(id).wrapping_sub(1);
        let Some(times) = came.get_mut(place) else {
            continue;
        };
        let number = number as usize;
        if times.len() <= number {
            times.resize(number + 1, 0);
        }
        if times[number] == 0 {
            times[number] = now;
        }
    }
    came
}

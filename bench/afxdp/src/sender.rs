//! Who sends: at given instants, never what was missed.

use std::net::SocketAddr;

use bumpless_net_linux::{Clock, Link, Segment, UdpConfig, UdpLink};

use crate::world::{HERE, THERE};

/// What a datagram begins with: its number, and when it was sent.
pub const HEADER: usize = 16;

pub fn read(datagram: &[u8]) -> (u64, u64) {
    let word = |at: usize| {
        datagram
            .get(at..at + 8)
            .and_then(|it| it.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    };
    (word(0), word(8))
}

/// Datagrams at even distances.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub port: u16,
    pub bytes: usize,
    pub per_second: u32,
    /// So many at a time.
    pub batch: usize,
    /// A batch is given to the kernel whole (UDP_SEGMENT).
    pub segments: bool,
}

struct Running {
    stream: Stream,
    link: UdpLink,
    to: SocketAddr,
    payload: Vec<u8>,
    headers: Vec<[u8; HEADER]>,
    next: u64,
    distance: u64,
    sent: u64,
    calls_ns: u64,
}

impl Running {
    fn open(stream: Stream, start: u64) -> Result<Self, String> {
        let local = format!("{THERE}:0").parse().expect("an address");
        let mut config = UdpConfig::new(local);
        config.segmentation = stream.segments;
        let batch = stream.batch as u64;
        Ok(Self {
            link: UdpLink::open(&config).map_err(|error| error.to_string())?,
            to: format!("{HERE}:{}", stream.port)
                .parse()
                .expect("an address"),
            payload: vec![7; stream.bytes - HEADER],
            headers: vec![[0; HEADER]; stream.batch],
            next: start,
            distance: batch * 1_000_000_000 / u64::from(stream.per_second),
            sent: 0,
            calls_ns: 0,
            stream,
        })
    }

    fn send(&mut self) {
        let now = Clock.now().as_nanos();
        for (at, header) in (self.sent..).zip(&mut self.headers) {
            header[..8].copy_from_slice(&at.to_le_bytes());
            header[8..].copy_from_slice(&now.to_le_bytes());
        }
        let payload = &self.payload;
        let segment = |header| Segment { header, payload };
        let mut segments = [Segment::default(); 64];
        for (segment_of, header) in segments.iter_mut().zip(&self.headers) {
            *segment_of = segment(header);
        }
        let outcome = self.link.send(self.to, &segments[..self.stream.batch]);
        self.calls_ns += Clock.now().as_nanos() - now;
        self.sent += outcome.sent as u64;
        self.next += self.distance;
        // Half a millisecond behind: the machine stood still, or this is the most that it sends.
        if now > self.next + 500_000 {
            self.next = now;
        }
    }
}

/// What was sent.
#[derive(Default)]
pub struct Sent {
    /// Datagrams of each stream.
    pub sent: Vec<u64>,
    /// Time in the calls that send, and for a pair of virtual interfaces without a thread of its own in working off what they sent.
    pub calls_ns: u64,
    /// The longest time between two looks at the clock the calls among it: longer than those take, the processor stood still.
    pub still_ns: u64,
}

/// Sends the streams side by side for so long.
pub fn send(streams: &[Stream], nanoseconds: u64) -> Result<Sent, String> {
    let start = Clock.now().as_nanos() + 1_000_000;
    let opened: Result<Vec<_>, _> = streams.iter().map(|it| Running::open(*it, start)).collect();
    let mut running = opened?;
    let (mut before, mut still_ns) = (start, 0);
    loop {
        let now = Clock.now().as_nanos();
        still_ns = still_ns.max(now.saturating_sub(before));
        before = now;
        if now >= start + nanoseconds {
            break;
        }
        for it in &mut running {
            if now >= it.next {
                it.send();
            }
        }
    }
    Ok(Sent {
        sent: running.iter().map(|it| it.sent).collect(),
        calls_ns: running.iter().map(|it| it.calls_ns).sum(),
        still_ns,
    })
}

/// Sends a state of so many datagrams, 44 at a time, with `distance` nanoseconds between the beginnings of those.
pub fn send_state(link: &mut UdpLink, state: &[u8], bytes: usize, distance: u64) {
    const TOGETHER: usize = 44;
    let to: SocketAddr = format!("{HERE}:4700").parse().expect("an address");
    let mut next = Clock.now().as_nanos();
    let began = next;
    let parts: Vec<_> = state.chunks(bytes - HEADER).collect();
    let mut number = 0u64;
    for parts in parts.chunks(TOGETHER) {
        while Clock.now().as_nanos() < next {}
        let headers: Vec<[u8; HEADER]> = (number..)
            .take(parts.len())
            .map(|at| {
                let mut header = [0; HEADER];
                header[..8].copy_from_slice(&at.to_le_bytes());
                header[8..].copy_from_slice(&began.to_le_bytes());
                header
            })
            .collect();
        let segments: Vec<_> = headers
            .iter()
            .zip(parts)
            .map(|(header, payload)| Segment { header, payload })
            .collect();
        link.send(to, &segments);
        number += parts.len() as u64;
        next += distance;
    }
}

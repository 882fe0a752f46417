//! What a network does to packets: it carries one after the other, and each arrives a fixed time later.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendOutcome};
use bumpless_plan::Link as Planned;
use bumpless_plan::rounding::nanos;

/// The driver's end: what the port sends lies here until the world takes it.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Datagrams in the order in which they were sent.
    pub sent: Vec<Vec<u8>>,
    /// Buffers that are used again.
    pub free: Vec<Vec<u8>>,
}

impl Link for Outbox {
    fn send(&mut self, _to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        for packet in packets {
            let mut bytes = self.free.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(packet.header);
            bytes.extend_from_slice(packet.payload);
            self.sent.push(bytes);
        }
        SendOutcome {
            sent: packets.len(),
            failure: None,
        }
    }

    fn receive(&mut self, _sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        ReceiveOutcome::default()
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn local_address(&self) -> SocketAddr {
        ADDRESS
    }
}

/// Everybody's address: nobody looks.
pub const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// The wire behind it.
#[derive(Debug)]
pub struct Wire {
    bandwidth: u64,
    overhead: usize,
    /// Time of another frame that has just begun whenever the wire would be free.
    other: u64,
    /// One way.
    delay: u64,
    busy_until: u64,
}

impl Wire {
    /// The wire of `link`, perhaps with other traffic in the way.
    pub fn new(link: &Planned, others: bool) -> Self {
        let other = u128::from(link.other_frame) * u128::from(others);
        Self {
            bandwidth: link.bandwidth,
            overhead: link.frame_overhead as usize,
            other: nanos(other, link.bandwidth) as u64,
            delay: link.round_trip.1.as_nanos() / 2,
            busy_until: 0,
        }
    }

    /// When a datagram of so many bytes that is handed over at `now` arrives.
    pub fn carry(&mut self, len: usize, now: u64) -> u64 {
        if self.busy_until <= now {
            self.busy_until = now + self.other;
        }
        // Rounded down: what is lost for each packet must not add up to more than a state takes.
        let bits = (len + self.overhead) as u64 * 8;
        self.busy_until += bits * 1_000_000_000 / self.bandwidth;
        self.busy_until + self.delay
    }

    /// When an answer that leaves at `now` is back.
    pub fn answer(&self, now: u64, round_trip: u64) -> u64 {
        now + round_trip - self.delay
    }
}

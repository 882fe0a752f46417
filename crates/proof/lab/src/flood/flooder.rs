//! Who sends: the flood, and a packet in each millisecond that the task waits for.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, realtime};

use super::stage::{HERE, PARTNER, PORT, PROMPT_PORT, STRANGER};

/// First byte of a packet that the task waits for. In one that is read at once, the time of the sender's call stands behind it.
pub const WANTED: u8 = 1;
/// Bytes of a packet: frames are of the smallest size.
const LEN: usize = 18;
/// Of who sends beside a flow that is read at once: nothing else runs on that processor meanwhile.
const PRIORITY: u8 = 30;
/// Packets leave at the beginning of each of these.
const TICK: Duration = Duration::from_millis(1);
const TICKS_PER_S: u64 = 1000;

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// Packets a second.
    pub rate: u64,
    /// It ends by itself after that.
    pub at_most: Duration,
    /// Where it runs.
    pub processor: u16,
    /// Whether there is a packet in each millisecond besides that is read at once.
    pub is_prompt: bool,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub flood: u64,
    pub wanted: u64,
    pub prompt: u64,
    pub lasted: Duration,
}

impl Flood {
    /// Sends until `ended`, from the calling thread, which is to be one of its own.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn send(&self, ended: &AtomicBool) -> Result<Sent, String> {
        let flood = open(STRANGER, PORT)?;
        let wanted = open(PARTNER, PORT)?;
        let prompt = open(PARTNER, PROMPT_PORT)?;
        // Elsewhere, and after others, it is no other flood, but fewer packets.
        let _ = realtime::pin(self.processor.into());
        if self.is_prompt {
            let _ = realtime::set_fifo(PRIORITY);
        }
        let _ = realtime::tighten_timers();
        let (begun, mut sent) = (Clock.now(), Sent::default());
        let mut due = begun;
        let (junk, word) = ([0; LEN], [WANTED; LEN]);
        while !ended.load(Ordering::Acquire) && Clock.now() < begun + self.at_most {
            Clock.sleep_until(due);
            let count = self.in_tick(due.since(begun));
            let mut flood = |count| {
                let sends = (0..count).filter(|_| flood.send(&junk).is_ok());
                sent.flood += sends.count() as u64;
            };
            // In the middle of the others.
            flood(count / 2);
            sent.wanted += u64::from(wanted.send(&word).is_ok());
            if self.is_prompt {
                sent.prompt += u64::from(prompt.send(&stamped(Clock.now())).is_ok());
            }
            flood(count - count / 2);
            due = next(due, Clock.now());
        }
        sent.lasted = Clock.now().since(begun);
        Ok(sent)
    }

    /// Packets of the tick that begins so long after the first one: over a second they are as many as asked for.
    const fn in_tick(&self, since: Duration) -> u64 {
        let tick = since.as_nanos() / TICK.as_nanos();
        self.rate * (tick + 1) / TICKS_PER_S - self.rate * tick / TICKS_PER_S
    }
}

/// The tick after the one at `due`. What was missed is not made up for: it would be another flood.
fn next(due: Instant, now: Instant) -> Instant {
    let missed = now.since(due).as_nanos() / TICK.as_nanos();
    due + TICK * missed.max(1)
}

/// A packet with the time of the sender's call.
fn stamped(now: Instant) -> [u8; LEN] {
    let mut packet = [WANTED; LEN];
    packet[1..9].copy_from_slice(&now.as_nanos().to_le_bytes());
    packet
}

/// The time in such a packet.
pub fn stamp(packet: &[u8]) -> Option<Instant> {
    let time = packet.get(1..9)?.first_chunk()?;
    Some(Instant::from_nanos(u64::from_le_bytes(*time)))
}

fn open(from: [u8; 4], port: u16) -> Result<UdpSocket, String> {
    let open = || {
        let socket = UdpSocket::bind(SocketAddr::from((from, 0)))?;
        socket.connect(SocketAddr::from((HERE, port)))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    open().map_err(|error: std::io::Error| format!("cannot open a socket to send: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_as_many_packets_as_asked_for_and_what_is_missed_is_not_made_up_for() {
        for rate in [0, 1, 999, 1000, 123_457] {
            let flood = Flood {
                rate,
                at_most: Duration::ZERO,
                processor: 0,
                is_prompt: false,
            };
            let ticks = (0..TICKS_PER_S).map(|it| flood.in_tick(TICK * it));
            assert_eq!(ticks.sum::<u64>(), rate);
        }
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        assert_eq!(next(at(0), at(10)), at(1000));
        assert_eq!(next(at(0), at(5300)), at(5000));
    }

    #[test]
    fn a_packet_says_when_it_was_sent_and_a_short_one_does_not() {
        let now = Instant::from_nanos(0x0102_0304_0506_0708);
        assert_eq!(stamp(&stamped(now)), Some(now));
        assert_eq!(stamp(&stamped(now)[..8]), None);
    }
}

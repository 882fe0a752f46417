//! Who sends: the flood, and a packet in each millisecond that the task waits for.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, realtime};

use super::stage::{HERE, PARTNER, PORT, STRANGER};

/// First byte of a packet that the task waits for.
pub const WANTED: u8 = 1;
/// Bytes of a packet: frames are of the smallest size.
const LEN: usize = 18;
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
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub flood: u64,
    pub wanted: u64,
    pub lasted: Duration,
}

impl Flood {
    /// Sends until `ended`, from the calling thread, which is to be one of its own.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn send(&self, ended: &AtomicBool) -> Result<Sent, String> {
        let sockets = [STRANGER, PARTNER].map(open);
        let [flood, wanted] = sockets;
        let (flood, wanted) = (flood?, wanted?);
        // Elsewhere it is no slower.
        let _ = realtime::pin(self.processor.into());
        let _ = realtime::tighten_timers();
        let (begun, mut sent) = (Clock.now(), Sent::default());
        let mut due = begun;
        let (junk, word) = ([0; LEN], [WANTED; LEN]);
        while !ended.load(Ordering::Acquire) && Clock.now() < begun + self.at_most {
            Clock.sleep_until(due);
            sent.wanted += u64::from(wanted.send(&word).is_ok());
            for _ in 0..self.in_tick(due.since(begun)) {
                sent.flood += u64::from(flood.send(&junk).is_ok());
            }
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

fn open(from: [u8; 4]) -> Result<UdpSocket, String> {
    let open = || {
        let socket = UdpSocket::bind(SocketAddr::from((from, 0)))?;
        socket.connect(SocketAddr::from((HERE, PORT)))?;
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
            };
            let ticks = (0..TICKS_PER_S).map(|it| flood.in_tick(TICK * it));
            assert_eq!(ticks.sum::<u64>(), rate);
        }
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        assert_eq!(next(at(0), at(10)), at(1000));
        assert_eq!(next(at(0), at(5300)), at(5000));
    }
}

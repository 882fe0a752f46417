//! Who reads a packet as soon as it is there, and how long each took.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::Duration;
use bumpless_impact::raised::Delays;
use bumpless_net_linux::{Clock, Stall, realtime};

use super::flooder::stamp;
use super::stage::{HERE, PROMPT_PORT};

/// Above who works packets off, as the text's urgent task is above its worker (5.5.4): below it, a packet that is there waits until the flood
/// that came with it is worked off.
const PRIORITY: u8 = 65;
/// What is on its way when all was sent has come after so long a silence.
const SILENCE: std::time::Duration = std::time::Duration::from_millis(20);

/// A packet that was read.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    /// When, nanoseconds of the clock.
    at: u64,
    /// How long it took since the sender's call.
    took: Duration,
}

/// The packets that were read.
#[derive(Debug, Default)]
pub struct Read {
    pub all: Vec<Delay>,
    /// What the system refused.
    pub weaknesses: Vec<String>,
}

/// A thread's socket.
pub struct Prompt(UdpSocket);

impl Prompt {
    /// In the calling thread's namespace.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub fn new() -> Result<Self, String> {
        let open = || {
            let socket = UdpSocket::bind(SocketAddr::from((HERE, PROMPT_PORT)))?;
            socket.set_read_timeout(Some(SILENCE))?;
            Ok(socket)
        };
        open()
            .map(Self)
            .map_err(|error: std::io::Error| format!("cannot open a socket to read from: {error}"))
    }

    /// Reads on the calling thread, which is to be one of its own, until all was sent and has come; `room` packets at most.
    pub fn read(&self, processor: u16, room: usize, sent_all: &AtomicBool) -> Read {
        let refused = [
            realtime::pin(processor.into()),
            realtime::set_fifo(PRIORITY),
            realtime::tighten_timers(),
        ];
        let refused = refused.into_iter().filter_map(Result::err);
        let mut read = Read {
            all: Vec::with_capacity(room),
            weaknesses: refused
                .map(|it| format!("who reads at once: {it}"))
                .collect(),
        };
        let mut packet = [0; 64];
        while read.all.len() < room {
            let was_all = sent_all.load(Ordering::Acquire);
            let length = match self.0.recv(&mut packet) {
                Ok(length) => length,
                Err(_) if was_all => break,
                Err(_) => continue,
            };
            let now = Clock.now();
            if let Some(sent) = stamp(&packet[..length]) {
                read.all.push(Delay {
                    at: now.as_nanos(),
                    took: now.since(sent),
                });
            }
        }
        read
    }
}

/// How long packets took, and those in whose time no processor stood still.
pub fn delays(all: &[Delay], stalls: &[Stall]) -> Delays {
    let of = |it: &Delay| it.took;
    let calm = all.iter().filter(|it| !is_disturbed(it, stalls));
    let (whole, calm) = (sorted(all.iter().map(of)), sorted(calm.map(of)));
    Delays {
        p50: share(&whole, 50),
        p99: share(&whole, 99),
        worst: share(&whole, 100),
        p99_calm: share(&calm, 99),
    }
}

fn is_disturbed(delay: &Delay, stalls: &[Stall]) -> bool {
    let from = delay.at - delay.took.as_nanos();
    let overlaps = |it: &Stall| it.asked.as_nanos() < delay.at && it.woke.as_nanos() > from;
    stalls.iter().any(overlaps)
}

fn sorted(all: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all
}

/// What so many of a hundred take at most.
fn share(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bumpless_base::Instant;

    use super::*;

    fn delay(at_ms: u64, took_ms: u64) -> Delay {
        Delay {
            at: at_ms * 1_000_000,
            took: Duration::from_millis(took_ms),
        }
    }

    #[test]
    fn what_a_stall_touched_is_not_among_the_calm_ones_and_is_among_all() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let stall = Stall {
            asked: at(100),
            woke: at(110),
        };
        let all = [delay(50, 1), delay(60, 2), delay(112, 9), delay(200, 3)];
        let delays = delays(&all, &[stall]);
        assert_eq!(delays.worst, Duration::from_millis(9));
        assert_eq!(delays.p99_calm, Duration::from_millis(3));
        assert_eq!(delays.p50, Duration::from_millis(2));
    }

    #[test]
    fn of_no_packets_nothing_is_said() {
        assert_eq!(delays(&[], &[]), Delays::default());
    }
}

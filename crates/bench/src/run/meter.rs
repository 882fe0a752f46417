//! The jitter meter beside a measurement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{JitterMeter, Stall};
use serde::{Deserialize, Serialize};

use crate::conversation::Miss;

const PERIOD: Duration = Duration::from_millis(1);
/// A wake-up later than this is a stall.
pub const THRESHOLD: Duration = Duration::from_micros(500);
const REMEMBERED: usize = 65_536;

/// What the meter saw during a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// Wake-ups, one each millisecond.
    pub wakes: u64,
    /// How many were late by half a millisecond or more.
    pub stalled: u64,
    /// The latest, nanoseconds.
    pub longest_ns: u64,
    /// The stalls: nanoseconds from the measurement's beginning to when the wake-up was due, and how late
    /// it was.
    pub stalls: Vec<(u64, u64)>,
}

/// Runs `work` with the meter beside it; gives what both have found.
pub fn beside<T>(work: impl FnOnce() -> T) -> (T, JitterMeter) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let meter = scope.spawn(|| {
            let mut meter = JitterMeter::new(THRESHOLD, REMEMBERED);
            meter.run(PERIOD, &stop);
            meter
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        let meter = meter
            .join()
            .unwrap_or_else(|_| JitterMeter::new(THRESHOLD, 1));
        (result, meter)
    })
}

/// Whether `stalls` between the release of what was missed and its end add up to what it was late by; of what
/// was given up, to so much that what was left until the deadline was less than states `take` there.
pub fn explains<'a>(
    stalls: impl Iterator<Item = &'a Stall>,
    miss: &Miss,
    deadline: Duration,
    take: Duration,
) -> bool {
    let late = miss.late.map(Duration::from_nanos);
    let from = Instant::from_nanos(miss.released);
    let to = from + deadline + late.unwrap_or_default();
    let within = |stall: &Stall| stall.woke.min(to).since(stall.asked.max(from));
    let stood_still: u64 = stalls.map(|stall| within(stall).as_nanos()).sum();
    let enough = match late {
        Some(late) => late.as_nanos(),
        None => deadline.as_nanos().saturating_sub(take.as_nanos()),
    };
    stood_still >= enough.max(1)
}

/// What `meter` saw, told relative to `began`.
pub fn told(meter: &JitterMeter, began: Instant) -> Jitter {
    Jitter {
        wakes: meter.wakes(),
        stalled: meter.stalled(),
        longest_ns: meter.longest().as_nanos(),
        stalls: meter
            .stalls()
            .map(|stall| {
                (
                    stall.asked.since(began).as_nanos(),
                    stall.length().as_nanos(),
                )
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_the_machines_only_if_that_stood_still_for_as_long_as_it_was_late() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let stall = |from, to| Stall {
            asked: at(from),
            woke: at(to),
        };
        let miss = |late| Miss {
            released: 100_000_000,
            late,
            periods: 1,
        };
        let deadline = Duration::from_millis(10);
        let judge = |stalls: &[Stall], late: Option<u64>| {
            let late = late.map(|millis| millis * 1_000_000);
            explains(
                stalls.iter(),
                &miss(late),
                deadline,
                Duration::from_millis(4),
            )
        };
        assert!(judge(&[stall(102, 105)], Some(3)));
        assert!(judge(&[stall(101, 103), stall(109, 110)], Some(3)));
        assert!(!judge(&[stall(102, 104)], Some(3)));
        // Only what lies between release and acknowledgement counts.
        assert!(!judge(&[stall(90, 101), stall(112, 140)], Some(3)));
        assert!(!judge(&[], Some(1)));
        // Given up, where states take 4 ms of 10.
        assert!(judge(&[stall(101, 107)], None));
        assert!(!judge(&[stall(101, 106)], None));
    }
}

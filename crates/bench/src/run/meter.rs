//! The jitter meter beside a measurement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::JitterMeter;
use serde::{Deserialize, Serialize};

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

//! When processors stood still: what the machine itself adds to each delay.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use bumpless_base::Duration;
use bumpless_net_linux::{JitterMeter, Stall, realtime};

/// Above all that is measured, so that only the machine keeps it waiting.
const PRIORITY: u8 = 70;
/// A wake-up so late is a stall.
const STALL: Duration = Duration::from_micros(300);
const SLEEP: Duration = Duration::from_millis(1);
const STALLS_MAX: usize = 1 << 12;

/// Looks for stalls on these processors while `work` goes on.
pub fn beside<T>(processors: [u16; 2], work: impl FnOnce() -> T) -> (T, Vec<Stall>) {
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let meters = processors.map(|it| scope.spawn(move || meter(it, stop)));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        let seen = meters.map(ScopedJoinHandle::join).into_iter().flatten();
        (done, seen.flatten().collect())
    })
}

fn meter(processor: u16, stop: &AtomicBool) -> Vec<Stall> {
    let _ = realtime::pin(processor.into());
    let _ = realtime::set_fifo(PRIORITY);
    let _ = realtime::tighten_timers();
    let mut meter = JitterMeter::new(STALL, STALLS_MAX);
    meter.run(SLEEP, stop);
    meter.stalls().copied().collect()
}

//! Measures stalls of the machine while a run goes on: on each processor one thread that sleeps and
//! notes when it woke too late.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bumpless_base::Duration;
use bumpless_net_linux::{JitterMeter, realtime};

use super::configuration::PRIORITY;
use crate::runlog::Stall;

/// Lateness from which on a wake-up is a stall.
const STALL: Duration = Duration::from_millis(2);
/// How long each thread sleeps at a time.
const SLEEP: Duration = Duration::from_millis(1);
/// Stalls that are remembered per processor.
const STALLS_MAX: usize = 1 << 16;
/// Processors that are watched at most; the pair does not use more.
const PROCESSORS_MAX: usize = 16;

/// The threads that measure how late they wake.
pub struct Meter {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<JitterMeter>>,
}

impl Meter {
    /// Starts measuring, by threads as prompt as the processes whose stalls they are to explain.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start() -> io::Result<Self> {
        Self::with(Some(PRIORITY))
    }

    /// Starts measuring by threads of this priority, above a load that is part of what is judged: its own doing is no stall.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn above(priority: u8) -> io::Result<Self> {
        Self::with(Some(priority))
    }

    /// Starts measuring by threads without real-time priority, for processes without.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn patient() -> io::Result<Self> {
        Self::with(None)
    }

    fn with(priority: Option<u8>) -> io::Result<Self> {
        let mut meter = Self {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for cpu in 0..processors.min(PROCESSORS_MAX) {
            let stop = Arc::clone(&meter.stop);
            let watch = move || {
                // A thread that may not be pinned there still measures where it happens to run.
                let _ = realtime::pin(cpu);
                let _ = realtime::tighten_timers();
                if let Some(priority) = priority {
                    let _ = realtime::set_fifo(priority);
                }
                let mut meter = JitterMeter::new(STALL, STALLS_MAX);
                meter.run(SLEEP, &stop);
                meter
            };
            let name = format!("stall-meter-{cpu}");
            meter
                .threads
                .push(thread::Builder::new().name(name).spawn(watch)?);
        }
        Ok(meter)
    }

    /// Ends measuring, and gives what was measured.
    pub fn end(mut self) -> Vec<Stall> {
        self.stop.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads);
        let seen = threads.into_iter().enumerate().filter_map(|(cpu, thread)| {
            let seen_by = format!("the meter on processor {cpu}");
            thread.join().ok().map(|meter| (meter, seen_by))
        });
        seen.flat_map(|(meter, seen_by)| {
            let stall = |stall: &bumpless_net_linux::Stall| Stall {
                time_ns: stall.woke.as_nanos(),
                length_ns: stall.length().as_nanos(),
                seen_by: seen_by.clone(),
            };
            meter.stalls().map(stall).collect::<Vec<_>>()
        })
        .collect()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

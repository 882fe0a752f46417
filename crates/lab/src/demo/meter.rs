//! Measures stalls of the machine while a run goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bumpless_base::Duration;
use bumpless_net_linux::JitterMeter;

/// Lateness from which on a wake-up is a stall.
const STALL: Duration = Duration::from_millis(2);
/// Stalls that are remembered.
const STALLS_MAX: usize = 1 << 16;

/// The thread that measures how late it wakes.
pub struct Meter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<JitterMeter>,
}

impl Meter {
    /// Starts measuring.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("stall-meter".into())
            .spawn(move || {
                let mut meter = JitterMeter::new(STALL, STALLS_MAX);
                meter.run(Duration::from_millis(1), &stopping);
                meter
            })?;
        Ok(Self { stop, thread })
    }

    /// Ends measuring, and gives what was measured.
    pub fn end(self) -> Option<JitterMeter> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}

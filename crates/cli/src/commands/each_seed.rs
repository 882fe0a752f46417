//! Consecutive seeds, shared by threads, with a line of how far they have come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bumpless_bench::run::progress::{ProgressLine, left};

/// Which seeds, and how many at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// At the same time.
    pub jobs: u16,
}

impl Seeds {
    /// Does `one` for each of them until all are done or `stop`; what came of them in whatever order. `ended` says what has ended
    /// of how many.
    pub fn all<T: Send>(
        self,
        stop: &AtomicBool,
        one: impl Fn(u64) -> T + Sync,
        ended: &str,
    ) -> Vec<T> {
        let next = AtomicU64::new(0);
        let done = Mutex::new(Vec::new());
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= self.count {
                    return;
                }
                let result = one(self.first.wrapping_add(at));
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(result);
            }
        };
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            let mut line = ProgressLine::sparing();
            while jobs.iter().any(|job| !job.is_finished()) {
                std::thread::sleep(Duration::from_millis(20));
                line.show(|spent| {
                    let so_far = done.lock().unwrap_or_else(PoisonError::into_inner).len();
                    let share = self.count as f64 / so_far as f64 - 1.0;
                    format!(
                        "{so_far} of {} {ended}, {}",
                        self.count,
                        left(spent.as_secs_f64() * share)
                    )
                });
            }
            line.end();
        });
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

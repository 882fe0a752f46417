//! The critical task: so much work in each period.

use std::net::{SocketAddr, UdpSocket};
use std::ops::Add;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, realtime, sockets};

use super::PERIOD;
use super::flooder::WANTED;
use super::stage::{HERE, PORT};

/// Of the task; who works packets off is above it.
const PRIORITY: u8 = 40;
/// Between its beginning and its first job.
const BEGINNING: Duration = Duration::from_millis(20);
/// Most datagrams that a job takes from its socket: as many as may wait there are less.
const DATAGRAMS_MAX: usize = 4096;

/// What the task did.
#[derive(Debug, Default)]
pub struct Done {
    pub jobs: u64,
    pub late: u64,
    pub lateness: Duration,
    pub worst: Duration,
    /// What it read.
    pub had: Had,
    /// What the system refused it.
    pub weaknesses: Vec<String>,
}

/// Datagrams that the task read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// Those that it waits for.
    pub wanted: u64,
    pub of_flood: u64,
}

impl Add for Had {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            wanted: self.wanted + more.wanted,
            of_flood: self.of_flood + more.of_flood,
        }
    }
}

/// The task, with its socket.
pub struct Task {
    socket: UdpSocket,
    processor: u16,
    work: Duration,
}

impl Task {
    /// A task in the calling thread's namespace.
    ///
    /// # Errors
    /// Its socket cannot be opened.
    pub fn new(processor: u16, work: Duration) -> Result<Self, String> {
        let open = || {
            let socket = UdpSocket::bind(SocketAddr::from((HERE, PORT)))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open()
            .map_err(|error: std::io::Error| format!("cannot open the task's socket: {error}"))?;
        Ok(Self {
            socket,
            processor,
            work,
        })
    }

    /// Runs jobs for so long on the calling thread, which is to be the task's own. A late job is finished, and the next one begins at once
    /// (V-41); one that has not ended by then counts as the model counts it: if it is late already, as late as it is.
    pub fn run(&self, lasts: Duration, stop: &AtomicBool) -> Done {
        let refused = [
            realtime::pin(self.processor.into()),
            realtime::set_fifo(PRIORITY),
            realtime::tighten_timers(),
        ];
        let refused = refused.into_iter().filter_map(Result::err);
        let mut done = Done {
            weaknesses: refused.map(|it| format!("the task: {it}")).collect(),
            ..Done::default()
        };
        let mut release = Clock.now() + BEGINNING;
        let until = release + lasts;
        while release < until && !stop.load(Ordering::Acquire) {
            Clock.sleep_until(release);
            release = match self.job(&mut done.had, until) {
                Some(ended) => done.note(release, ended),
                None => done.note_open(release, until),
            };
        }
        done
    }

    /// Reads what has come, and computes until it has had the processor for as long as a job takes: when, or `None` if that is not
    /// before `until`.
    fn job(&self, had: &mut Had, until: Instant) -> Option<Instant> {
        let begun = Clock.computed();
        *had = *had + self.read();
        loop {
            let has_computed = Clock.computed() - begun >= self.work;
            let now = Clock.now();
            if now >= until {
                return None;
            }
            if has_computed {
                return Some(now);
            }
            std::hint::spin_loop();
        }
    }

    /// The datagrams that wait.
    fn read(&self) -> Had {
        let mut datagram = [0; 64];
        let mut next = || self.socket.recv(&mut datagram).ok().map(|_| datagram[0]);
        let mut had = Had::default();
        for kind in std::iter::from_fn(&mut next).take(DATAGRAMS_MAX) {
            match kind {
                WANTED => had.wanted += 1,
                _ => had.of_flood += 1,
            }
        }
        had
    }

    /// What waits after the last job.
    pub fn had_besides(&self) -> Had {
        self.read()
    }

    /// Datagrams that came while its socket was full, as the kernel counts them in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn overflowed(&self) -> Result<u64, String> {
        let queues = sockets::queues()
            .map_err(|error| format!("what found no room at the task is not told: {error}"))?;
        let of_task = queues.get(&PORT);
        of_task
            .map(|it| it.lost)
            .ok_or_else(|| "the kernel does not show the task's socket".to_owned())
    }
}

impl Done {
    /// Notes a job that was released at `release` and has ended `now`; when the next one is released.
    fn note(&mut self, release: Instant, now: Instant) -> Instant {
        let target = release + PERIOD;
        let late = now.since(target);
        self.jobs += 1;
        self.late += u64::from(late > Duration::ZERO);
        self.lateness = self.lateness + late;
        self.worst = self.worst.max(late);
        target.max(now)
    }

    /// Notes a job that was released at `release` and has not ended at the end; when the next one would be released.
    fn note_open(&mut self, release: Instant, end: Instant) -> Instant {
        match end > release + PERIOD {
            true => self.note(release, end),
            false => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_job_is_finished_and_the_next_one_begins_at_once() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut done = Done::default();
        assert_eq!(done.note(at(0), at(8)), at(10));
        assert_eq!(done.note(at(10), at(25)), at(25));
        assert_eq!(done.note(at(25), at(35)), at(35));
        assert_eq!(
            (done.jobs, done.late, done.lateness, done.worst),
            (3, 1, Duration::from_millis(5), Duration::from_millis(5))
        );
    }

    #[test]
    fn a_job_that_the_end_finds_open_counts_if_it_is_late() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut done = Done::default();
        assert_eq!(done.note_open(at(990), at(1_000)), at(1_000));
        assert_eq!(done.jobs, 0);
        assert_eq!(done.note_open(at(10), at(1_000)), at(1_000));
        assert_eq!((done.jobs, done.worst), (1, Duration::from_millis(980)));
    }
}

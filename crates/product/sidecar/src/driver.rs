//! Field drivers: started, watched, started again (spec/field-driver.md, J-20 to J-27).
//!
//! A thread for each makes its process, hears that it is ready, and hands the connection over to whoever gives the orders.
//! It ends with its handle, and its process with it.

mod board;
mod cause;
mod process;

pub use board::{DriverBoard, DriverState};
pub use cause::DriverCause;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

use bumpless_base::{Duration, Instant};
use bumpless_controller::{DriverFault, DriverLink};
use bumpless_field_driver::{Direction, Point, now};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;

use process::Process;

/// The wait before another start, doubled by each further failure; and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Who has run for so long has not failed at the start.
const PROVEN: Duration = Duration::from_secs(10);

/// A driver, and what it is for.
#[derive(Clone, Debug)]
pub struct DriverOrder {
    /// The program that is started.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What messages for people call the device.
    pub device: String,
    /// Where it is.
    pub address: String,
    /// What else the configuration says.
    pub options: Vec<(String, String)>,
    /// What it reads and writes, in their order.
    pub points: Vec<Point>,
}

impl DriverOrder {
    fn count(&self, direction: Direction) -> u32 {
        let own = self.points.iter();
        own.filter(|point| point.direction == direction).count() as u32
    }
}

/// What the thread and its handle share. Whoever gives orders never waits for it.
struct Common {
    board: DriverBoard,
    ending: AtomicBool,
    /// There is something in `ready`.
    is_ready: AtomicBool,
    ready: Mutex<Option<OwnedFd>>,
    given_up: Mutex<Option<DriverFault>>,
    /// There is something in `failure`.
    has_failed: AtomicBool,
    failure: Mutex<Option<Arc<str>>>,
    /// Wakes the thread.
    wake: OwnedFd,
}

impl Common {
    fn wake(&self) {
        // It is full only when the thread is about to wake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

/// What is in `place`, if nobody else looks at it just now.
fn glance<T>(flag: &AtomicBool, place: &Mutex<Option<T>>) -> Option<T> {
    if !flag.load(Ordering::Acquire) {
        return None;
    }
    let mut place = match place.try_lock() {
        Ok(place) => place,
        Err(TryLockError::Poisoned(place)) => place.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    flag.store(false, Ordering::Release);
    place.take()
}

fn put<T>(flag: &AtomicBool, place: &Mutex<Option<T>>, what: T) {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    *place = Some(what);
    flag.store(true, Ordering::Release);
}

/// The handle of a driver.
pub struct Driver {
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Begins to start it; how it fares stands on `board`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(order: DriverOrder, board: DriverBoard) -> io::Result<Self> {
        let common = Arc::new(Common {
            board,
            ending: AtomicBool::new(false),
            is_ready: AtomicBool::new(false),
            ready: Mutex::default(),
            given_up: Mutex::default(),
            has_failed: AtomicBool::new(false),
            failure: Mutex::default(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let keeper = Keeper {
            order,
            common: Arc::clone(&common),
        };
        let thread = thread::Builder::new()
            .name("field driver".into())
            .spawn(move || keeper.run())?;
        Ok(Self {
            common,
            thread: Some(thread),
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.common.ending.store(true, Ordering::Release);
        self.common.wake();
        if let Some(thread) = self.thread.take() {
            // Its waits end when it is woken, and it waits for no process that the kernel does not let die.
            let _ = thread.join();
        }
    }
}

impl DriverLink for Driver {
    fn take(&mut self) -> Option<OwnedFd> {
        glance(&self.common.is_ready, &self.common.ready)
    }

    fn give_up(&mut self, fault: DriverFault) {
        let given_up = self.common.given_up.try_lock();
        // The thread reads it only when it has been woken.
        if let Ok(mut given_up) = given_up {
            *given_up = Some(fault);
        }
        self.common.wake();
    }

    fn note(&mut self, text: &str) -> bool {
        self.common.board.try_note(text)
    }

    fn failure(&mut self) -> Option<Arc<str>> {
        glance(&self.common.has_failed, &self.common.failure)
    }
}

struct Keeper {
    order: DriverOrder,
    common: Arc<Common>,
}

impl Keeper {
    fn run(self) {
        let mut pause = PAUSE_MIN;
        while !self.common.is_ending() {
            let began = now();
            let cause = self.live();
            // What was handed over, and not taken, belongs to a process that is gone.
            glance(&self.common.is_ready, &self.common.ready);
            let Some(cause) = cause else { break };
            if Duration::from_nanos(now() - began) >= PROVEN {
                pause = PAUSE_MIN;
            }
            let words = format!(
                "field driver of {} ({}): {cause}; it is started again in {} ms",
                self.order.device,
                self.order.address,
                pause.as_millis()
            );
            self.common.board.failed(&words, Instant::from_nanos(now()));
            put(
                &self.common.has_failed,
                &self.common.failure,
                Arc::from(words),
            );
            self.rest(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.common.board.ended();
    }

    /// One process from its start to its end; `None`: it is not wanted any more.
    fn live(&self) -> Option<DriverCause> {
        let unwanted = || self.common.is_ending();
        // What was said of an earlier process is past.
        self.given_up();
        self.drain();
        self.common.board.starts();
        let (process, socket) = match Process::start(&self.order) {
            Ok(started) => started,
            Err(error) => return Some(DriverCause::Start(error)),
        };
        let what = match process.ready(&socket, &self.order, &self.common.wake, &unwanted) {
            Ok(what) => what,
            Err(cause) => {
                process.end();
                return cause.filter(|_| !unwanted());
            }
        };
        self.common.board.runs(process.id(), &what);
        put(&self.common.is_ready, &self.common.ready, socket);
        let cause = loop {
            if process.wait(&self.common.wake, None) {
                break Some(DriverCause::Ended(process.how()));
            }
            self.drain();
            if unwanted() {
                break None;
            }
            if let Some(fault) = self.given_up() {
                break Some(fault.into());
            }
        };
        process.end();
        cause
    }

    fn given_up(&self) -> Option<DriverFault> {
        let given_up = self.common.given_up.lock();
        given_up.unwrap_or_else(PoisonError::into_inner).take()
    }

    fn drain(&self) {
        // Nothing there is what was wanted.
        let _ = rustix::io::read(&self.common.wake, &mut [0; 8]);
    }

    /// Waits for `pause`, or until it is not wanted any more.
    fn rest(&self, pause: Duration) {
        let until = now() + pause.as_nanos();
        while !self.common.is_ending() {
            let Some(left) = until.checked_sub(now()).filter(|left| *left > 0) else {
                return;
            };
            let mut woken = [PollFd::new(&self.common.wake, PollFlags::IN)];
            let _ = poll(&mut woken, Some(&timespec(left)));
            self.drain();
        }
    }
}

fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: (nanos / 1_000_000_000).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    }
}

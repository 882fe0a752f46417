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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bumpless_atomic_box::AtomicBox;
use bumpless_base::{Duration, Instant};
use bumpless_controller::{DriverFailures, DriverFault, DriverLink, DriverNumber};
use bumpless_field_driver::{Direction, Point, now};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;

use process::Process;

/// The wait before another start, doubled by each further failure; and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Who has run for so long has not failed at the start.
const PROVEN: Duration = Duration::from_secs(10);
/// How long one whose connection is gone may take to end, so that it is known how it did.
const LEAVING: Duration = Duration::from_millis(100);

static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A driver, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The connection with a process, and which one that is.
    ready: AtomicBox<(u64, OwnedFd)>,
    /// Which process is given up, and why.
    given_up: AtomicBox<(u64, DriverFault)>,
    /// What has not been told yet.
    failures: AtomicBox<DriverFailures>,
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

    /// Shows a failure, and leaves it for whoever gives orders.
    fn failed(&self, words: &str) {
        self.board.failed(words, Instant::from_nanos(now()));
        let before = self.failures.swap(None).map_or(0, |before| before.count);
        let failures = DriverFailures {
            count: before + 1,
            why: Arc::from(words),
        };
        self.failures.swap(Some(Box::new(failures)));
    }
}

/// The handle of a driver.
pub struct Driver {
    common: Arc<Common>,
    number: DriverNumber,
    /// Which process gave the connection that was taken last.
    process: u64,
    /// Whom it goes on with instead of beginning; and what it begins with, should that one not come.
    heir_to: Option<(DriverNumber, DriverOrder)>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Begins to start it; how it fares stands on `board`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(order: DriverOrder, board: DriverBoard) -> io::Result<Self> {
        let mut driver = Self::new(board)?;
        driver.keep(order)?;
        Ok(driver)
    }

    /// Leads to the driver `before` as soon as that is handed over, which was begun with an equal `order`. If it is used
    /// without that, a driver of its own begins.
    ///
    /// # Errors
    /// The system gives no file.
    pub fn heir(before: DriverNumber, order: DriverOrder, board: DriverBoard) -> io::Result<Self> {
        let mut driver = Self::new(board)?;
        driver.heir_to = Some((before, order));
        Ok(driver)
    }

    fn new(board: DriverBoard) -> io::Result<Self> {
        let common = Arc::new(Common {
            board,
            ending: AtomicBool::new(false),
            ready: AtomicBox::default(),
            given_up: AtomicBox::default(),
            failures: AtomicBox::default(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        Ok(Self {
            common,
            number: DriverNumber(1 + BEGUN.fetch_add(1, Ordering::Relaxed)),
            process: 0,
            heir_to: None,
            thread: None,
        })
    }

    fn keep(&mut self, order: DriverOrder) -> io::Result<()> {
        let common = Arc::clone(&self.common);
        let keeper = Keeper { order, common };
        let thread = thread::Builder::new().name("field driver".into());
        self.thread = Some(thread.spawn(move || keeper.run())?);
        Ok(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // Its waits end when it is woken, and it waits for no process that the kernel does not let die.
            let _ = thread.join();
        }
    }
}

impl DriverLink for Driver {
    fn take(&mut self) -> Option<OwnedFd> {
        if let Some((_, order)) = self.heir_to.take()
            && let Err(error) = self.keep(order)
        {
            let words = format!("field driver: the system gives no thread: {error}");
            self.common.failed(&words);
        }
        let (process, socket) = *self.common.ready.swap(None)?;
        self.process = process;
        Some(socket)
    }

    fn give_up(&mut self, fault: DriverFault) {
        let given_up = Box::new((self.process, fault));
        self.common.given_up.swap(Some(given_up));
        self.common.wake();
    }

    fn note(&mut self, text: &str) -> bool {
        self.common.board.try_note(text)
    }

    fn failures(&mut self) -> Option<DriverFailures> {
        self.common.failures.swap(None).map(|failures| *failures)
    }

    fn number(&self) -> DriverNumber {
        self.number
    }

    fn heir_to(&self) -> Option<DriverNumber> {
        self.heir_to.as_ref().map(|(before, _)| *before)
    }

    fn end(&mut self) {
        self.common.ending.store(true, Ordering::Release);
        self.common.wake();
    }
}

struct Keeper {
    order: DriverOrder,
    common: Arc<Common>,
}

impl Keeper {
    fn run(self) {
        let mut pause = PAUSE_MIN;
        let mut process = 0;
        while !self.common.is_ending() {
            let began = now();
            process += 1;
            let cause = self.live(process);
            // What was handed over, and not taken, belongs to a process that is gone.
            self.common.ready.swap(None);
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
            self.common.failed(&words);
            self.rest(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.common.board.ended();
    }

    /// The process with this number from its start to its end; `None`: it is not wanted any more.
    fn live(&self, number: u64) -> Option<DriverCause> {
        let unwanted = || self.common.is_ending();
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
        self.common.ready.swap(Some(Box::new((number, socket))));
        let cause = self.watch(&process, number);
        process.end();
        cause
    }

    /// Until it has ended, or is to.
    fn watch(&self, process: &Process, number: u64) -> Option<DriverCause> {
        let ended = || Some(DriverCause::Ended(process.how()));
        loop {
            if process.wait(&self.common.wake, None) {
                return ended();
            }
            self.drain();
            if self.common.is_ending() {
                return None;
            }
            // What was said of an earlier process is past.
            let given_up = self.common.given_up.swap(None).map(|it| *it);
            match given_up.filter(|(process, _)| *process == number) {
                Some((_, DriverFault::LetGo)) if process.ends_within(LEAVING) => return ended(),
                Some((_, fault)) => return Some(fault.into()),
                None => {}
            }
        }
    }

    fn drain(&self) {
        process::drain(&self.common.wake);
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

//! The thread that starts a program, watches it, clears away after it and starts it again (H-13 to H-15).
//!
//! It lives as long as its handle: a program dies with the thread that started it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

use crate::process::{Attached, Process};
use crate::{Command, Limits, Shape, StartCause};

/// A process that is ready for its first cycle.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub process: Arc<Process>,
    pub attached: Attached,
}

/// What the thread and its handle share. It is looked at when a program is not running, never in a good cycle.
#[derive(Debug, Default)]
struct Board {
    ready: Option<Ready>,
    /// The process that is watched.
    current: Option<Arc<Process>>,
    /// Why there is none.
    cause: Option<StartCause>,
    starts: u64,
    ending: bool,
    ended: bool,
}

#[derive(Debug, Default)]
struct Common {
    board: Mutex<Board>,
    changed: Condvar,
}

impl Common {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle.
#[derive(Debug)]
pub(crate) struct Keeper {
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
}

/// Between two looks at whether a start is still wanted.
const LOOK: StdDuration = StdDuration::from_millis(20);
/// How long a program gets to leave by itself.
const LEAVING: StdDuration = StdDuration::from_millis(100);
/// How long clearing away is waited for. A process that the kernel does not let die is left to it.
const CLEARING: StdDuration = StdDuration::from_secs(2);

impl Keeper {
    /// Begins to start the program.
    pub fn begin(command: Command, shape: Shape, limits: Limits) -> io::Result<Self> {
        let common = Arc::new(Common::default());
        let work = Work {
            command,
            shape,
            limits,
            common: common.clone(),
        };
        let thread = thread::Builder::new()
            .name("sidecar".into())
            .spawn(move || work.run())?;
        Ok(Self {
            common,
            thread: Some(thread),
        })
    }

    /// Waits for what comes of the first start, for as long as that is wanted.
    pub fn first(&self, wanted: &dyn Fn() -> bool) -> Result<Ready, StartCause> {
        let mut board = self.common.board();
        while board.ready.is_none() && board.cause.is_none() && wanted() {
            let waited = self.common.changed.wait_timeout(board, LOOK);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match board.ready.take() {
            Some(ready) => Ok(ready),
            None => Err(board.cause.take().unwrap_or(StartCause::Unwanted)),
        }
    }

    /// A process that has become ready, else why there is none, if that is known.
    pub fn take(&self) -> Result<Ready, Option<String>> {
        let mut board = self.common.board();
        match board.ready.take() {
            Some(ready) => Ok(ready),
            None => Err(board.cause.as_ref().map(ToString::to_string)),
        }
    }

    /// Whether a process has become ready that has attached like this.
    pub fn has_ready(&self, attached: Attached) -> bool {
        let board = self.common.board();
        let ready = board.ready.as_ref();
        ready.is_some_and(|ready| ready.attached == attached)
    }

    /// How often it was started.
    pub fn starts(&self) -> u64 {
        self.common.board().starts
    }

    /// Ends the program, in good order while that takes no longer than it may: `leave` asks it to.
    pub fn end(&mut self, leave: impl FnOnce()) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let mut board = self.common.board();
        board.ending = true;
        if let Some(unused) = board.ready.take() {
            unused.process.kill();
        }
        self.common.changed.notify_all();
        drop(board);
        leave();
        if !self.has_ended(LEAVING) {
            self.kill_current();
        }
        if self.has_ended(CLEARING) {
            let _ = thread.join();
        }
    }

    fn kill_current(&self) {
        let board = self.common.board();
        if let Some(process) = &board.current {
            process.kill();
        }
    }

    fn has_ended(&self, within: StdDuration) -> bool {
        let board = self.common.board();
        let waited = self
            .common
            .changed
            .wait_timeout_while(board, within, |board| !board.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}

/// What became of a process.
enum Life {
    NeverReady,
    /// It was, and no cycle ended well.
    Unproven,
    Proven,
}

struct Work {
    command: Command,
    shape: Shape,
    limits: Limits,
    common: Arc<Common>,
}

impl Work {
    fn run(self) {
        let mut failures = 0;
        while self.pause(failures) {
            match self.start_and_watch() {
                // What does not even begin is told to whoever wants it begun.
                Life::NeverReady if self.common.board().starts == 1 => break,
                Life::Proven => failures = 1,
                Life::NeverReady | Life::Unproven => failures += 1,
            }
        }
        self.tell(|board| board.ended = true);
    }

    /// Waits before the next start; whether it is wanted.
    fn pause(&self, failures: u32) -> bool {
        let wait = match failures {
            0 | 1 => StdDuration::ZERO,
            more => {
                StdDuration::from_millis(10 << (more - 2).min(7)).min(StdDuration::from_secs(1))
            }
        };
        let board = self.common.board();
        let waited = self
            .common
            .changed
            .wait_timeout_while(board, wait, |board| !board.ending);
        !waited.unwrap_or_else(PoisonError::into_inner).0.ending
    }

    /// From a start to its end.
    fn start_and_watch(&self) -> Life {
        self.common.board().starts += 1;
        let process = match Process::start(&self.command, self.shape, self.limits) {
            Ok(process) => Arc::new(process),
            Err(cause) => {
                self.tell(|board| board.cause = Some(cause));
                return Life::NeverReady;
            }
        };
        self.tell(|board| board.current = Some(process.clone()));
        let wanted = || !self.common.board().ending;
        let attached = process.attached(self.shape, self.limits.start, &wanted);
        let was_ready = attached.is_ok();
        if let (true, Some(priority)) = (was_ready, self.command.realtime) {
            process.raise(priority);
        }
        match attached {
            Ok(attached) => self.tell(|board| {
                board.cause = None;
                // Who ends it has looked for it before it was there.
                if board.ending {
                    process.kill();
                    return;
                }
                board.ready = Some(Ready {
                    process: process.clone(),
                    attached,
                });
            }),
            Err(cause) => {
                process.kill();
                self.tell(|board| board.cause = Some(cause));
            }
        }
        process.watch_to_the_end();
        self.tell(|board| {
            board.current = None;
            // Nobody has taken it up, and nobody should.
            board.ready = None;
        });
        match (was_ready, process.is_proven()) {
            (false, _) => Life::NeverReady,
            (true, false) => Life::Unproven,
            (true, true) => Life::Proven,
        }
    }

    fn tell(&self, change: impl FnOnce(&mut Board)) {
        change(&mut self.common.board());
        self.common.changed.notify_all();
    }
}

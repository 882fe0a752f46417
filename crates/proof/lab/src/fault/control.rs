//! The socket through which faults are ordered: one plan per connection, answered by what was done
//! so far, so that the one who orders knows that it holds.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::FaultPlan;
use super::state::{FaultState, Injected};

const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest order in bytes.
const ORDER_MAX: u64 = 64 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Injected(Injected),
    Error(String),
}

/// The listening end; its socket is removed when this is dropped.
#[derive(Debug)]
pub struct FaultControl {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FaultControl {
    /// Listens at `path`, replacing what a killed process left there, and stores plans in `state`.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn start(path: &Path, state: Arc<FaultState>) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let serve_all = move || {
            for stream in listener.incoming().flatten() {
                if stopping.load(Ordering::Acquire) {
                    return;
                }
                // A caller that goes away concerns nobody but itself.
                let _ = serve(&stream, &state);
            }
        };
        let thread = thread::Builder::new()
            .name("faults".into())
            .spawn(serve_all)?;
        Ok(Self {
            path: path.to_owned(),
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for FaultControl {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn serve(stream: &UnixStream, state: &FaultState) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(Read::take(stream, ORDER_MAX)).read_line(&mut line)?;
    let done = serde_json::from_str(&line)
        .map_err(|error| format!("the order is no fault plan: {error}"))
        .and_then(|plan| state.set(&plan));
    let answer = match done {
        Ok(()) => Answer::Injected(state.injected()),
        Err(error) => Answer::Error(error),
    };
    writeln!(&*stream, "{}", serde_json::to_string(&answer)?)
}

/// Orders `plan` from the process that listens at `path`. When it returns, the plan holds.
///
/// # Errors
/// If nobody listens there, or the plan does not fit the process.
pub fn apply(path: &Path, plan: &FaultPlan) -> io::Result<Injected> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    writeln!(&stream, "{}", serde_json::to_string(plan)?)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    match serde_json::from_str(&line)? {
        Answer::Injected(injected) => Ok(injected),
        Answer::Error(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
    }
}

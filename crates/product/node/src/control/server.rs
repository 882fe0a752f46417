//! The listening end: one thread, many callers, none of whom can keep another from being answered.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, Poller, Waker};
use serde::Serialize;

use super::access;
use super::{Handler, refusal};

/// Longest request line, in bytes.
const REQUEST_MAX: usize = 4096;
/// How long a caller has for its whole request, and for taking the reply.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// Most bytes of a reply that are written at once. The kernel waits anew for room for each 32 KiB.
const PIECE: usize = 32 * 1024;
/// Most callers who have not finished their request; one more takes the place of whoever has been silent for longest.
pub const CALLERS_MAX: usize = 32;
/// Between two attempts to accept where the process or the system has no file left to open.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    thread: Option<thread::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    waker: Waker,
}

impl ControlServer {
    /// Listens at `path`, which this user may open, and the members of `group` if one is named. A socket left behind by a
    /// killed process is replaced; the caller holds the instance lock, so nobody else can be listening there.
    ///
    /// # Errors
    /// There is no such group, or the socket, its group, the thread, or what wakes it is refused.
    pub fn start(path: &Path, group: Option<&str>, handler: impl Handler) -> io::Result<Self> {
        let listener = put_socket(path, group, |draft| UnixListener::bind(draft))?;
        listener.set_nonblocking(true)?;
        let (stop, waker) = (Arc::new(AtomicBool::new(false)), Waker::new()?);
        let reception = Reception {
            listener,
            callers: Vec::with_capacity(CALLERS_MAX),
            handler,
            waker: waker.clone(),
        };
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("control".into())
            .spawn(move || reception.run(&stopping))?;
        Ok(Self {
            path: path.to_owned(),
            thread: Some(thread),
            stop,
            waker,
        })
    }
}

/// A socket that gets its name when its rights are as they are to be: this user may open it, and the members of `group` if one is
/// named. `bind` binds one to the path that it is given; what is at `path` is replaced.
///
/// # Errors
/// There is no such group, or the socket or its group is refused.
pub fn put_socket<T>(
    path: &Path,
    group: Option<&str>,
    bind: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    super::short_enough(path)?;
    let mut draft = path.to_owned().into_os_string();
    draft.push("~");
    let draft = PathBuf::from(draft);
    remove(&draft)?;
    let listener = bind(&draft)?;
    let admit = || -> io::Result<()> {
        if let Some(group) = group {
            chown(&draft, None, Some(access::group(group)?))?;
        }
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        fs::set_permissions(&draft, fs::Permissions::from_mode(mode))?;
        fs::rename(&draft, path)
    };
    admit().inspect_err(|_| {
        let _ = remove(&draft);
    })?;
    Ok(listener)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Somebody who has not finished their request.
struct Caller {
    stream: UnixStream,
    request: Vec<u8>,
    until: Instant,
}

/// What became of reading from a caller.
enum Heard {
    /// More is to come.
    More,
    /// This is the whole request.
    Request(Vec<u8>),
    /// Nothing is to come.
    Nothing,
}

struct Reception<H> {
    listener: UnixListener,
    /// The longest silent first.
    callers: Vec<Caller>,
    handler: H,
    waker: Waker,
}

impl<H: Handler> Reception<H> {
    fn run(mut self, stop: &AtomicBool) {
        loop {
            self.wait();
            if stop.load(Ordering::Acquire) {
                return;
            }
            self.listen_to_callers();
            let now = Clock.now();
            self.callers.retain(|caller| now < caller.until);
            self.accept();
        }
    }

    fn wait(&self) {
        let callers = self.callers.iter().map(|caller| caller.stream.as_raw_fd());
        let descriptors: Vec<RawFd> = std::iter::once(self.listener.as_raw_fd())
            .chain(callers)
            .collect();
        let until = self.callers.iter().map(|caller| caller.until).min();
        let mut poller = Poller::new(&descriptors, self.waker.clone());
        // A failed wait (out of kernel memory) must not become a busy loop.
        if poller.wait(until.unwrap_or(Instant::FAR_FUTURE)).is_err() {
            thread::sleep(PAUSE.to_std());
        }
    }

    /// Reads what has come, and answers every request that is whole.
    fn listen_to_callers(&mut self) {
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.read() {
                Heard::More => self.callers.push(caller),
                // A caller that went away or sent rubbish concerns nobody but itself.
                Heard::Request(request) => drop(self.answer(&caller.stream, &request)),
                Heard::Nothing => {}
            }
        }
    }

    /// Lets in who is waiting, as many in a turn as there are places.
    fn accept(&mut self) {
        for _ in 0..CALLERS_MAX {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if is_of_the_caller(&error) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Out of files or memory: a caller fewer is a file more.
                    if self.callers.is_empty() {
                        thread::sleep(PAUSE.to_std());
                    } else {
                        self.callers.remove(0);
                    }
                    return;
                }
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.callers.len() == CALLERS_MAX {
                self.callers.remove(0);
            }
            self.callers.push(Caller {
                stream,
                request: Vec::new(),
                until: Clock.now() + REQUEST_TIMEOUT,
            });
        }
    }

    fn answer(&mut self, stream: &UnixStream, request: &[u8]) -> io::Result<()> {
        let reply = match serde_json::from_slice(request) {
            Ok(request) => match access::judge(stream, H::is_order(&request)) {
                Ok(()) => Ok(self.handler.handle(request)),
                Err(refused) => Err(refusal(refused)),
            },
            Err(error) => Err(refusal(format_args!("request not understood: {error}"))),
        };
        stream.set_nonblocking(false)?;
        match reply {
            Ok(reply) => write_line(stream, &reply),
            Err(refusal) => write_line(stream, &refusal),
        }
    }
}

/// Writes `reply` piece by piece as it is made: the whole text may be of many megabytes.
fn write_line(stream: &UnixStream, reply: &impl Serialize) -> io::Result<()> {
    let patience = Patience {
        stream,
        left: REQUEST_TIMEOUT,
    };
    let mut out = BufWriter::with_capacity(PIECE, patience);
    let written = serde_json::to_writer(&mut out, reply).map_err(io::Error::from);
    let written = written
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    if written.is_err() {
        // Who did not take a part of it is not waited for once more.
        let _ = out.into_parts();
    }
    written
}

/// Waits for a caller who takes what is written, and no longer in all than that has time: whoever takes it bit by bit would keep all
/// others waiting. The time in which the reply is made is not the caller's.
struct Patience<'a> {
    stream: &'a UnixStream,
    left: Duration,
}

impl Write for Patience<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == Duration::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_write_timeout(Some(self.left.to_std()))?;
        let began = Clock.now();
        // A long string comes here as it is.
        let written = self.stream.write(&bytes[..bytes.len().min(PIECE)]);
        self.left = self.left.saturating_sub(Clock.now().since(began));
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether it was the caller who left, or a signal that came.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
    )
}

impl Caller {
    /// Takes what has come; a request ends with its line, with what the caller sends, or with the room for it.
    fn read(&mut self) -> Heard {
        let mut piece = [0; 512];
        loop {
            let piece = match self.stream.read(&mut piece) {
                Ok(0) if self.request.is_empty() => return Heard::Nothing,
                Ok(0) => break,
                Ok(length) => &piece[..length],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::More,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Heard::Nothing,
            };
            let end = piece.iter().position(|&byte| byte == b'\n');
            self.request
                .extend_from_slice(&piece[..end.map_or(piece.len(), |end| end + 1)]);
            if end.is_some() || self.request.len() >= REQUEST_MAX {
                break;
            }
        }
        Heard::Request(std::mem::take(&mut self.request))
    }
}

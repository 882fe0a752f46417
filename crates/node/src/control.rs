//! The control socket: one JSON request per line, one JSON reply per line, on a Unix socket that
//! only the owner of the process may open.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest request line, in bytes.
const REQUEST_MAX: usize = 4096;
/// How long a caller has for its whole request, while others wait.
const REQUEST_PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked of a running node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The node's state, as `bumpless.status/1`.
    Status,
    /// Hand the primary role of `group` to the other node.
    Switchover {
        /// Name of the group; may be left out where the configuration has only one.
        #[serde(default)]
        group: Option<String>,
    },
    /// Prepare the change to another configuration, which is made when the partner has prepared it, too.
    Apply {
        /// Absolute path of its file, on the node's machine.
        file: PathBuf,
    },
    /// Give up the change that is prepared.
    Withdraw,
}

/// Answers requests; runs in the control thread and may block briefly.
pub trait Handler: Send + 'static {
    /// The reply to `request`.
    fn handle(&mut self, request: Request) -> Value;
}

/// A reply that says what went wrong and what to do.
pub fn refusal(message: impl std::fmt::Display) -> Value {
    json!({"schema": "bumpless.error/1", "error": message.to_string()})
}

/// The listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    thread: Option<thread::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl ControlServer {
    /// Listens at `path`. A socket left behind by a killed process is replaced; the caller holds the
    /// instance lock, so nobody else can be listening there.
    pub fn start(path: &Path, mut handler: impl Handler) -> io::Result<Self> {
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                for stream in listener.incoming() {
                    if stopping.load(Ordering::Acquire) {
                        return;
                    }
                    if let Ok(stream) = stream {
                        // A caller that went away or sent rubbish concerns nobody but itself.
                        let _ = serve(stream, &mut handler);
                    }
                }
            })?;
        Ok(Self {
            path: path.to_owned(),
            thread: Some(thread),
            stop,
        })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take()
            && woken
        {
            let _ = thread.join();
        }
    }
}

fn serve(stream: UnixStream, handler: &mut impl Handler) -> io::Result<()> {
    stream.set_write_timeout(Some(REQUEST_PATIENCE))?;
    let line = read_request(&stream)?;
    if line.is_empty() {
        return Ok(());
    }
    let reply = match serde_json::from_slice(&line) {
        Ok(request) => handler.handle(request),
        Err(error) => refusal(format_args!("request not understood: {error}")),
    };
    writeln!(&stream, "{reply}")
}

fn read_request(mut stream: &UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + REQUEST_PATIENCE;
    let mut request = Vec::new();
    let mut piece = [0; 512];
    while request.len() < REQUEST_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let piece = match stream.read(&mut piece)? {
            0 => break,
            length => &piece[..length],
        };
        if let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            request.extend_from_slice(&piece[..=end]);
            break;
        }
        request.extend_from_slice(piece);
    }
    Ok(request)
}

/// Sends `request` to the node whose control socket is `path` and waits for the reply.
pub fn request(path: &Path, request: &Request) -> io::Result<Value> {
    let stream = UnixStream::connect(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "is the node running?",
            io::ErrorKind::PermissionDenied => "run this as the user who runs the node",
            _ => "see the node's log",
        };
        io::Error::new(
            error.kind(),
            format!("no node answers at {}: {error}; {hint}", path.display()),
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    writeln!(&stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .map_err(|error| no_answer(path, &error))?;
    if !line.ends_with('\n') {
        return Err(no_answer(path, &io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(serde_json::from_str(&line)?)
}

fn no_answer(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!(
            "the node at {} took the request and did not answer: {error}; try again, see its log",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;
    impl Handler for Echo {
        fn handle(&mut self, request: Request) -> Value {
            serde_json::to_value(request).unwrap()
        }
    }

    #[test]
    fn a_socket_left_by_a_killed_process_does_not_hurt_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let server = ControlServer::start(&path, Echo).unwrap();
        let order = Request::Switchover {
            group: Some("tank".into()),
        };
        assert_eq!(request(&path, &order).unwrap()["group"], "tank");
        drop(server);
        assert!(!path.exists());
        assert!(
            request(&path, &order)
                .unwrap_err()
                .to_string()
                .contains("is the node running?")
        );
    }

    #[test]
    fn rubbish_is_answered_and_does_not_end_the_service() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let _server = ControlServer::start(&path, Echo).unwrap();
        for rubbish in ["{}\n", "\u{0}\n", "{\"command\":\"format\"}\n", "x"] {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(rubbish.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            assert!(reply.contains("request not understood"), "{reply}");
        }
        assert_eq!(
            request(&path, &Request::Status).unwrap()["command"],
            "status"
        );
    }
    #[test]
    fn half_a_reply_of_a_node_that_is_killed_is_told_as_no_answer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let node = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"{\"schema\":").unwrap();
            let _ = BufReader::new(&stream).read_line(&mut String::new());
        });
        let error = request(&path, &Request::Status).unwrap_err();
        assert!(error.to_string().contains("did not answer"), "{error}");
        node.join().unwrap();
    }
}

//! The asking end, in another process.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bumpless_base::NodeId;
use bumpless_config::Config;
use serde::Serialize;
use serde_json::Value;

use super::Request;
use super::holder::udp_holder;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A node as another process on its machine reaches it.
#[derive(Clone, Debug)]
pub struct Station {
    socket: PathBuf,
    addresses: Vec<SocketAddr>,
}

impl Station {
    /// Where `node` of `config` is reached, if this user runs it.
    pub fn of(config: &Config, node: NodeId) -> Self {
        let known = config.nodes.get(usize::from(node.0));
        let addresses = known.map(|node| node.addresses.iter().flatten().copied().collect());
        Self {
            socket: config.control_socket(node),
            addresses: addresses.unwrap_or_default(),
        }
    }

    /// Whether there is a socket: a node runs, or was killed.
    pub fn exists(&self) -> bool {
        self.socket.exists()
    }

    /// Sends `request` and waits for the reply.
    ///
    /// # Errors
    /// Nobody answers; whether the node does not run, or runs as another user, is told.
    pub fn request(&self, request: &Request) -> io::Result<Value> {
        let stream = UnixStream::connect(&self.socket)
            .map_err(|error| not_reached(&self.socket, &self.addresses, &error))?;
        ask(&stream, &self.socket, request)
    }
}

/// Sends `request` to the node whose control socket is `path` and waits for the reply.
///
/// # Errors
/// Nobody answers.
pub fn request(path: &Path, request: &impl Serialize) -> io::Result<Value> {
    let stream = UnixStream::connect(path).map_err(|error| not_reached(path, &[], &error))?;
    ask(&stream, path, request)
}

fn not_reached(path: &Path, addresses: &[SocketAddr], error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => match udp_holder(addresses) {
            None => "is the node running?".to_owned(),
            Some((address, holder)) if holder == own_user() => format!(
                "a process of yours has its address {address}: was it started with another control path, or \
                     another XDG_RUNTIME_DIR?"
            ),
            Some((address, holder)) => format!(
                "it runs as another user: its address {address} is user {holder}'s; {}",
                as_that_user(holder)
            ),
        },
        io::ErrorKind::PermissionDenied => {
            let owner = fs::metadata(path).ok().map(|socket| socket.uid());
            let holder = owner.or_else(|| udp_holder(addresses).map(|(_, user)| user));
            match holder {
                Some(user) => format!("it runs as another user ({user}); {}", as_that_user(user)),
                None => "it runs as another user; run this as that one".to_owned(),
            }
        }
        _ => "see the node's log".to_owned(),
    };
    io::Error::new(
        error.kind(),
        format!("no node answers at {}: {error}; {hint}", path.display()),
    )
}

fn as_that_user(user: u32) -> String {
    format!("run this as that one (`sudo -u '#{user}' ...`), who alone may command the node")
}

fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |process| process.uid())
}

fn ask(stream: &UnixStream, path: &Path, request: &impl Serialize) -> io::Result<Value> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut writer = stream;
    writeln!(writer, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(stream)
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

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

use super::holder::udp_holder;
use super::{Request, short_enough};

const TIMEOUT: Duration = Duration::from_secs(5);
const NODE: &str = "node";

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

    /// Who runs it although nobody answers at its socket, as far as its addresses show that, and what to do then.
    pub fn elsewhere(&self) -> Option<String> {
        held(&self.addresses)
    }

    /// Sends `request` and waits for the reply.
    ///
    /// # Errors
    /// Nobody answers; whether the node does not run, or runs as another user, is told.
    pub fn request(&self, request: &Request) -> io::Result<Value> {
        short_enough(&self.socket)?;
        let stream = UnixStream::connect(&self.socket)
            .map_err(|error| not_reached(NODE, &self.socket, &self.addresses, &error))?;
        ask(NODE, &stream, &self.socket, request)
    }
}

/// Sends `request` to the node whose control socket is `path` and waits for the reply.
///
/// # Errors
/// Nobody answers.
pub fn request(path: &Path, request: &impl Serialize) -> io::Result<Value> {
    request_of(NODE, path, request)
}

/// The same for a process that is no node, but `what`, such as "guard".
///
/// # Errors
/// Nobody answers.
pub fn request_of(what: &str, path: &Path, request: &impl Serialize) -> io::Result<Value> {
    short_enough(path)?;
    let stream = UnixStream::connect(path).map_err(|error| not_reached(what, path, &[], &error))?;
    ask(what, &stream, path, request)
}

/// What to do about a node's process that has one of `addresses`.
fn held(addresses: &[SocketAddr]) -> Option<String> {
    let (address, holder) = udp_holder(addresses)?;
    Some(match holder == own_user() {
        true => format!(
            "a process of yours has its address {address}: was it started with another control path, or \
             another XDG_RUNTIME_DIR?"
        ),
        false => format!(
            "it runs as another user: its address {address} is user {holder}'s; {}",
            as_that_user(NODE, holder)
        ),
    })
}

fn not_reached(what: &str, path: &Path, addresses: &[SocketAddr], error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            held(addresses).unwrap_or_else(|| format!("is the {what} running?"))
        }
        io::ErrorKind::PermissionDenied => {
            let owner = fs::metadata(path).ok().map(|socket| socket.uid());
            let holder = owner.or_else(|| udp_holder(addresses).map(|(_, user)| user));
            match holder {
                Some(user) => format!(
                    "it runs as another user ({user}); {}",
                    as_that_user(what, user)
                ),
                None => "it runs as another user; run this as that one".to_owned(),
            }
        }
        _ => format!("see the {what}'s log"),
    };
    io::Error::new(
        error.kind(),
        format!("no {what} answers at {}: {error}; {hint}", path.display()),
    )
}

fn as_that_user(what: &str, user: u32) -> String {
    format!("run this as that one (`sudo -u '#{user}' ...`), who alone may command the {what}")
}

fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |process| process.uid())
}

fn ask(
    what: &str,
    stream: &UnixStream,
    path: &Path,
    request: &impl Serialize,
) -> io::Result<Value> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut writer = stream;
    writeln!(writer, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(stream)
        .read_line(&mut line)
        .map_err(|error| no_answer(what, path, &error))?;
    if !line.ends_with('\n') {
        return Err(no_answer(what, path, &io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(serde_json::from_str(&line)?)
}

fn no_answer(what: &str, path: &Path, error: &io::Error) -> io::Error {
    let path = path.display();
    let said = match error.kind() {
        // So the system calls a wait that is over.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
            "the {what} at {path} took the request and did not answer within {} s: it hangs, or is stopped (`ps` shows T); \
             see its log, let it go on (`kill -CONT`) or start it anew",
            TIMEOUT.as_secs()
        ),
        _ => format!(
            "the {what} at {path} took the request and did not answer: {error}; try again, see its log"
        ),
    };
    io::Error::new(error.kind(), said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_that_hangs_the_time_that_was_waited_is_told() {
        let hangs = no_answer(
            NODE,
            Path::new("/run/left.sock"),
            &io::ErrorKind::WouldBlock.into(),
        );
        let said = hangs.to_string();
        for words in ["/run/left.sock", "within 5 s", "hangs", "kill -CONT"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains("os error"), "{said}");
    }

    #[test]
    fn what_does_not_answer_is_called_what_it_is() {
        let path = Path::new("/nowhere/g.sock");
        let told = |what: &str, kind: io::ErrorKind| {
            not_reached(what, path, &[], &kind.into()).to_string()
        };
        for kind in [
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::NotFound,
            io::ErrorKind::TimedOut,
        ] {
            let guard = told("guard", kind);
            assert!(guard.starts_with("no guard answers at /nowhere/g.sock"));
            assert!(!guard.contains("node"), "{guard}");
            assert!(told(NODE, kind).starts_with("no node answers at"));
        }
        let silent = no_answer("guard", path, &io::ErrorKind::TimedOut.into()).to_string();
        assert!(silent.contains("the guard at") && !silent.contains("node"));
        assert!(as_that_user("guard", 0).ends_with("command the guard"));
    }
}

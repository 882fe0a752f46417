//! The control socket: one JSON request per line, one JSON reply per line, on a Unix socket that
//! only the owner of the process may open, and a group if the configuration names one.

mod access;
mod client;
mod entry;
mod holder;
mod server;

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use self::access::group;
pub use self::client::{Station, request, request_of};
pub(crate) use self::entry::{folder_of, lets_in, make_for};
pub use self::server::{CALLERS_MAX, ControlServer, put_socket};

/// What can be asked of a running node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The node's state, as `bumpless.status/1`.
    Status,
    /// What applications have read and written last, as `bumpless.values/1`.
    Values {
        /// Name of one; left out: all that run here.
        #[serde(default)]
        application: Option<String>,
    },
    /// Hand the primary role of `group` over.
    Switchover {
        /// Name of the group; may be left out where the configuration has only one.
        #[serde(default)]
        group: Option<String>,
        /// The node that is to be primary, so that two orders of the same wish are one. Left out: whichever of the two
        /// is not primary when the order is carried out.
        #[serde(default)]
        to: Option<String>,
    },
    /// Prepare the change to another configuration, which is made when the partner has prepared it, too.
    Apply {
        /// Absolute path of its file, on the node's machine.
        file: PathBuf,
    },
    /// Give up the change that is prepared.
    Withdraw,
    /// Let a program go on that has failed and is stopped on this node.
    Resume {
        /// Name of the application.
        application: String,
        /// Whether it may begin from its initial state where the one that it went back to is too old.
        #[serde(default)]
        from_initial: bool,
    },
}

/// Answers requests; runs in the control thread and may block briefly.
pub trait Handler: Send + 'static {
    /// What can be asked.
    type Request: DeserializeOwned;
    /// What is answered: an object of JSON, made while it is written.
    type Reply: Serialize;
    /// Whether `request` is an order, which only the owner of the process and root may give.
    fn is_order(request: &Self::Request) -> bool;
    /// The reply to `request`.
    fn handle(&mut self, request: Self::Request) -> Self::Reply;
}

/// The path of the control socket of a daemon that a host has once: as its file says, `named`, with paths that begin at
/// `folder`; else `bumpless/USUAL.sock` below `$XDG_RUNTIME_DIR`, else below `/run`.
pub fn socket_of_host(named: Option<&Path>, folder: &Path, usual: &str) -> PathBuf {
    if let Some(path) = named {
        // A file that is named without a folder is in this one; a path without any folder could not be made.
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        return folder.join(path);
    }
    usual_socket(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), usual)
}

/// Below the folder `runtime`, if that is absolute: a relative one is invalid by its specification, since each process would have
/// another folder.
fn usual_socket(runtime: Option<PathBuf>, usual: &str) -> PathBuf {
    let runtime = runtime.filter(|folder| folder.is_absolute());
    let runtime = runtime.unwrap_or_else(|| PathBuf::from("/run"));
    runtime.join("bumpless").join(usual).with_extension("sock")
}

/// Longest path of a control socket, bytes: what `sun_path` has room for (unix(7)), without the zero at its end and the character
/// that its draft has more.
pub const SOCKET_PATH_MAX: usize = 106;

/// Refuses a path that no control socket can have.
fn short_enough(path: &Path) -> io::Result<()> {
    let length = path.as_os_str().len();
    if length <= SOCKET_PATH_MAX {
        return Ok(());
    }
    let path = path.display();
    let said = format!(
        "the path of a control socket has at most {SOCKET_PATH_MAX} bytes, and {path} has {length}; set XDG_RUNTIME_DIR to a shorter \
         folder, or give a shorter path in the file (`control` of a node, `socket` of a daemon)"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, said))
}

/// A reply that says what went wrong and what to do.
pub fn refusal(message: impl std::fmt::Display) -> Value {
    json!({"schema": "bumpless.error/1", "error": message.to_string()})
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use super::*;

    struct Echo;
    impl Handler for Echo {
        type Request = Request;
        type Reply = Value;
        fn is_order(request: &Request) -> bool {
            *request != Request::Status
        }
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
        let server = ControlServer::start(&path, None, Echo).unwrap();
        let order = Request::Switchover {
            group: Some("tank".into()),
            to: None,
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
    fn a_socket_beside_a_file_that_is_named_without_a_folder_is_in_this_one() {
        let at =
            |folder: &str| socket_of_host(Some(Path::new("a.sock")), Path::new(folder), "usual");
        assert_eq!(at(""), Path::new("./a.sock"));
        assert_eq!(at("/etc"), Path::new("/etc/a.sock"));
        assert!(at("").parent().is_some_and(Path::exists));
        let usual = socket_of_host(None, Path::new("/etc"), "usual");
        assert!(
            usual.ends_with("bumpless/usual.sock"),
            "{}",
            usual.display()
        );
    }

    #[test]
    fn a_relative_runtime_folder_is_ignored_and_one_too_long_for_a_socket_is_told() {
        let at = |folder: &str| usual_socket(Some(folder.into()), "guard");
        assert_eq!(
            at("/run/user/1"),
            Path::new("/run/user/1/bumpless/guard.sock")
        );
        for folder in ["", "run", "./run"] {
            assert_eq!(
                at(folder),
                Path::new("/run/bumpless/guard.sock"),
                "{folder}"
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory
            .path()
            .join("l".repeat(SOCKET_PATH_MAX))
            .join("left.sock");
        let started = ControlServer::start(&path, None, Echo).err().unwrap();
        let asked = request(&path, &Request::Status).unwrap_err();
        for said in [started.to_string(), asked.to_string()] {
            for words in [path.to_str().unwrap(), "at most 106", "XDG_RUNTIME_DIR"] {
                assert!(said.contains(words), "{said}");
            }
        }
        // What is as long as one may be is taken.
        let rest = SOCKET_PATH_MAX - directory.path().as_os_str().len() - 1;
        let longest = directory.path().join("s".repeat(rest));
        drop(ControlServer::start(&longest, None, Echo).unwrap());
    }

    #[test]
    fn rubbish_is_answered_and_does_not_end_the_service() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let _server = ControlServer::start(&path, None, Echo).unwrap();
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

    /// A reply that no socket takes at once.
    struct Long;
    impl Handler for Long {
        type Request = Request;
        type Reply = Vec<u32>;
        fn is_order(_: &Request) -> bool {
            false
        }
        fn handle(&mut self, _: Request) -> Vec<u32> {
            (0..500_000).collect()
        }
    }

    #[test]
    fn a_reply_that_no_socket_takes_at_once_comes_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let _server = ControlServer::start(&path, None, Long).unwrap();
        // On a machine that stalls a caller may be too slow for a part of it.
        let whole = || {
            let reply = request(&path, &Request::Status).ok()?;
            Some(reply.as_array()?.len())
        };
        assert!((0..20).any(|_| whole() == Some(500_000)));
    }

    #[test]
    fn whoever_takes_a_reply_bit_by_bit_is_given_up() {
        take_bit_by_bit(Long);
    }

    #[test]
    fn nor_is_one_waited_for_who_takes_a_long_string_bit_by_bit() {
        /// A reply of one piece.
        struct OneText;
        impl Handler for OneText {
            type Request = Request;
            type Reply = String;
            fn is_order(_: &Request) -> bool {
                false
            }
            fn handle(&mut self, _: Request) -> String {
                "a".repeat(3_000_000)
            }
        }
        take_bit_by_bit(OneText);
    }

    fn take_bit_by_bit(handler: impl Handler) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let _server = ControlServer::start(&path, None, handler).unwrap();
        let mut slow = UnixStream::connect(&path).unwrap();
        slow.write_all(b"{\"command\":\"status\"}\n").unwrap();
        let (mut bit, mut whole) = (vec![0; 64 * 1024], Vec::new());
        loop {
            // Always well before the next part would be given up.
            thread::sleep(std::time::Duration::from_millis(150));
            match slow.read(&mut bit) {
                Ok(0) | Err(_) => break,
                Ok(length) => whole.extend_from_slice(&bit[..length]),
            }
        }
        // Half a second's bits and what the kernel holds are far less.
        assert!(whole.len() < 1_500_000, "{} bytes", whole.len());
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

    #[test]
    fn any_number_of_callers_who_say_nothing_keep_nobody_from_being_answered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let server = ControlServer::start(&path, None, Echo).unwrap();
        // More than the kernel lets wait: the server takes them for more to come.
        let _silent: Vec<_> = (0..10 * CALLERS_MAX)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        for _ in 0..3 {
            let reply = request(&path, &Request::Status).unwrap();
            assert_eq!(reply["command"], "status");
        }
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn a_request_that_comes_in_two_parts_is_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.sock");
        let _server = ControlServer::start(&path, None, Echo).unwrap();
        let ask = || {
            let mut slow = UnixStream::connect(&path)?;
            slow.write_all(b"{\"command\":")?;
            // Answered after the first part was heard.
            request(&path, &Request::Status)?;
            slow.write_all(b"\"status\"}\n")?;
            let mut reply = String::new();
            BufReader::new(&slow).read_line(&mut reply)?;
            Ok::<_, std::io::Error>(reply)
        };
        // A machine that stalls between the parts uses the caller's time up.
        let understood = || ask().is_ok_and(|reply| reply == "{\"command\":\"status\"}\n");
        assert!((0..20).any(|_| understood()));
    }
}

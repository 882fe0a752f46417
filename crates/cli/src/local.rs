//! A daemon of this host, as another command reaches it.

use std::io;
use std::path::{Path, PathBuf};

use bumpless_node::control;
use serde::Serialize;
use serde_json::Value;

use crate::output::Failure;

/// The daemon that runs on this host with a file.
pub struct Local {
    file: PathBuf,
    socket: PathBuf,
    /// What it is, such as "guard".
    what: &'static str,
    /// The command that starts it.
    starts: &'static str,
}

impl Local {
    /// The `what` that `starts` runs with `file`, at `socket`.
    pub fn new(file: &Path, socket: PathBuf, what: &'static str, starts: &'static str) -> Self {
        let file = file.to_owned();
        Self {
            file,
            socket,
            what,
            starts,
        }
    }

    /// Its answer to `request`.
    ///
    /// # Errors
    /// Nobody answers, or it refuses.
    pub fn ask(&self, request: &impl Serialize) -> Result<Value, Failure> {
        let reply = control::request_of(self.what, &self.socket, request);
        let reply = reply.map_err(|error| self.not_reached(&error))?;
        match reply["error"].as_str() {
            Some(error) => Err(Failure::refused(error)),
            None => Ok(reply),
        }
    }

    fn not_reached(&self, error: &io::Error) -> Failure {
        let (file, socket) = (self.file.display(), self.socket.display());
        let Self { what, starts, .. } = self;
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Failure::refused(format_args!(
                    "no {what} runs on this host with {file} (nobody answers at {socket}): start it with `sudo {starts} {file}`, \
                     or name the file with which it runs"
                ))
            }
            _ => Failure::refused(error),
        }
    }
}

//! What can be asked of a running daemon, at its control socket: one JSON request per line, one JSON reply per line.

use std::path::{Path, PathBuf};

use bumpless_node::control::socket_of_host;
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Its state, as `bumpless.guard.status/1`.
    Status,
    /// Read the file again and follow it, whole or not at all: `bumpless.guard.reload/1`.
    Reload,
}

/// The path of the daemon's control socket: as the configuration says, with paths that begin at `folder`, else the usual one.
pub fn socket_path(config: &Config, folder: &Path) -> PathBuf {
    socket_of_host(config.host.socket.as_deref(), folder, "guard")
}

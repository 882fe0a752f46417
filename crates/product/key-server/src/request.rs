//! What can be asked of a running server, at its control socket: one JSON request per line, one JSON reply per line.

use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use bumpless_node::control::socket_of_host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Its state, as `bumpless.key-server.status/1`.
    Status,
    /// Give up the keys of a group before their time, those given in advance included: `bumpless.key-server.roll/1`.
    Roll {
        /// The group; may be left out where there is only one.
        #[serde(default)]
        group: Option<String>,
    },
}

/// The path of the server's control socket: as its file says, with paths that begin at `folder`, else the usual one.
pub fn socket_path(config: &Config, folder: &Path) -> PathBuf {
    socket_of_host(config.socket.as_deref(), folder, "key-server")
}

/// What somebody asks for, and where the answer goes.
pub type Order = (Request, SyncSender<Value>);

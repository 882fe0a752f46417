//! What can be asked of a running daemon, at its control socket: one JSON request per line, one JSON reply per line.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bumpless_node::control::socket_of_host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;
use crate::status::Status;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Its state, as `bumpless.iprp.status/1`.
    Status,
    /// Read the file again.
    Reload,
    /// Begin to measure the way to a host; the reply has the ping's number.
    Ping {
        /// One of its addresses.
        host: IpAddr,
        /// Rounds.
        count: u32,
        /// Between two rounds, milliseconds.
        every_ms: u32,
    },
    /// Where a host is reached on each network, as `bumpless.iprp.ways/1`; a host that is not known is asked to show itself.
    Ways {
        /// One of its addresses.
        host: IpAddr,
    },
    /// What is known of a ping, as `bumpless.iprp.ping/1`.
    PingResult {
        /// Its number.
        id: u32,
    },
}

/// What is answered.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// To [`Request::Status`].
    Status(Box<Status>),
    /// To all else, and why there is no status.
    Other(Value),
}

/// The path of the daemon's control socket: as the configuration says, with paths that begin at `folder`, else the usual one.
pub fn socket_path(config: &Config, folder: &Path) -> PathBuf {
    socket_of_host(config.host.socket.as_deref(), folder, "iprp")
}

//! What can be asked of a running daemon, at its control socket: one JSON request per line, one JSON reply per line.

use std::env;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Config;

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

/// The path of the daemon's control socket: as the configuration says, with paths that begin at `folder`; else below
/// `$XDG_RUNTIME_DIR`, else below `/run`.
pub fn socket_path(config: &Config, folder: &Path) -> PathBuf {
    if let Some(path) = &config.host.socket {
        // A file that is named without a folder is in this one; a path without any folder could not be made.
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        return folder.join(path);
    }
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    let runtime = runtime.map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    runtime.join("bumpless/iprp.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_beside_a_file_that_is_named_without_a_folder_is_in_this_one() {
        let text = "[host]\nsocket = \"a.sock\"\n[security]\nkeys = [\"k\"]\n[[network]]\nind = 1\ninterface = \"a\"\n";
        let config = Config::parse(text, "a.toml").unwrap();
        let at = |folder: &str| socket_path(&config, Path::new(folder));
        assert_eq!(at(""), Path::new("./a.sock"));
        assert_eq!(at("/etc"), Path::new("/etc/a.sock"));
        assert!(at("").parent().is_some_and(Path::exists));
    }
}

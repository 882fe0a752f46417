//! What can be asked of a running daemon, at its control socket: one JSON request per line, one JSON reply per line.

use std::env;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Config;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Its state, as `bumpless.guard.status/1`.
    Status,
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
    runtime.join("bumpless/guard.sock")
}

//! Why a server does not start, in words.

use std::fmt;
use std::io;
use std::path::PathBuf;

use bumpless_node::LockError;
use bumpless_pki::{BadName, Problems};

use crate::store::StoreError;

/// Why a server did not start.
#[derive(Debug)]
pub enum RunError {
    /// There is no folder with its certificate.
    NoFolder(PathBuf, String),
    /// Everything that is wrong with the files in it.
    Identity(Problems),
    /// A name that no certificate can have.
    Name(BadName),
    /// One runs already with its state, or that cannot be locked.
    Lock(LockError),
    /// One runs already that is asked at its control socket, or that cannot be made.
    Control(LockError),
    /// Its state cannot be read or kept.
    Store(StoreError),
    /// What was kept cannot be used.
    State(PathBuf, String),
    /// The system refuses something.
    System(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder(folder, name) => write!(
                f,
                "{}: there is no such folder, so this server has no certificate; make it where the authority is:\n    \
                 bumpless pki issue {name}\nand bring the folder here",
                folder.display()
            ),
            Self::Identity(problems) => problems.fmt(f),
            Self::Name(error) => error.fmt(f),
            Self::Lock(LockError::Running { path, .. }) => write!(
                f,
                "a key server with this state runs already on this computer; stop it first (lock {})",
                path.display()
            ),
            Self::Control(LockError::Running { path, .. }) => write!(
                f,
                "a key server that is asked at this one's control socket runs already on this computer; stop it first, or give \
                 this one a `socket` of its own (lock {})",
                path.display()
            ),
            Self::Lock(error) => error.fmt(f),
            Self::Control(error) => write!(f, "{error}: `socket` in its file"),
            Self::Store(error) => error.fmt(f),
            Self::State(path, why) => write!(
                f,
                "{}: {why}; move it away: then keys begin anew",
                path.display()
            ),
            Self::System(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

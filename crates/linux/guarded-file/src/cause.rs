//! Why a file cannot be used or made.

use std::io;
use std::path::Path;

use bumpless_net_linux::errno::explained;

use crate::Guard;

/// Why a file cannot be used or made. Nothing of what it holds is in here.
#[derive(Debug)]
pub enum Cause {
    /// There is none.
    Missing,
    /// A folder, a device, a pipe or a socket.
    NotRegular,
    /// It has more bytes than any such file.
    TooLong,
    /// Others than its owner may do with it what they must not.
    Exposed {
        /// Its permission bits.
        mode: u32,
        /// What it needs.
        guard: Guard,
    },
    /// It belongs to this user, who is neither the one that runs this nor root.
    Owner(u32),
    /// The system does not give it.
    Unreadable(io::Error),
    /// It was to be made and is there already.
    Exists,
    /// It cannot be made.
    NotMade(io::Error),
}

impl Cause {
    /// What is wrong, without the file's name.
    pub fn wrong(&self) -> String {
        match self {
            Self::Missing => "is not there".into(),
            Self::NotRegular => "is no regular file".into(),
            Self::TooLong => "is longer than any such file".into(),
            Self::Exposed {
                mode,
                guard: Guard::Secret,
            } => format!("may be read or written by others than its owner (mode {mode:03o})"),
            Self::Exposed { mode, .. } => {
                format!("may be written by others than its owner (mode {mode:03o})")
            }
            Self::Owner(user) => format!("belongs to another user ({user}), who may replace it"),
            Self::Unreadable(error) => format!("cannot be read: {}", explained(error)),
            Self::Exists => "is there already, and nothing is overwritten".into(),
            Self::NotMade(error) => format!("cannot be made: {}", explained(error)),
        }
    }

    /// What would be right for the file at `path`, as far as that does not hang on what the file is for.
    pub fn remedy(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Missing | Self::NotRegular | Self::TooLong => {
                "give the path of the right file".into()
            }
            Self::Exposed {
                guard: Guard::Secret,
                ..
            } => format!(
                "if nobody has read it, `chmod 600 {path}`; otherwise make another one in its place"
            ),
            Self::Exposed { .. } => {
                format!("if nobody has changed it, `chmod go-w {path}`")
            }
            Self::Owner(_) => {
                format!("give it to the user that runs bumpless: `chown USER {path}`")
            }
            Self::Unreadable(_) => "make it readable for the user that runs bumpless".into(),
            Self::Exists => "give another name".into(),
            Self::NotMade(_) => {
                "give a name in a folder that is there, that this user may write to, and whose file system keeps \
                 permissions"
                    .into()
            }
        }
    }
}

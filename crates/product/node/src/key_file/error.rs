//! Why a key file cannot be used or made.

use std::fmt;
use std::io;
use std::path::PathBuf;

use bumpless_secure::KeyringError;

use super::format::KIND;
use crate::explained;

/// A key file that cannot be used or made. Nothing of what it holds is in here.
#[derive(Debug)]
pub struct KeyFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: KeyFileCause,
}

/// What is wrong with a key file.
#[derive(Debug)]
pub enum KeyFileCause {
    /// There is none.
    Missing,
    /// A folder, a device, a pipe or a socket.
    NotRegular,
    /// It has more bytes than any key file.
    TooLong,
    /// It is not a key file, or has been changed.
    NoSecret,
    /// It is of a version that this program does not know.
    OtherVersion,
    /// Others than its owner may read or write it, by these permission bits.
    Exposed(u32),
    /// It belongs to this user, who is neither the one that runs this nor root.
    Owner(u32),
    /// It has the same secret as this file.
    Same(PathBuf),
    /// By chance its secret has the same identifier as that of this file.
    SameIdentifier(PathBuf, u16),
    /// The system does not give it.
    Unreadable(io::Error),
    /// It was to be made and is there already.
    Exists,
    /// It cannot be made.
    NotMade(io::Error),
    /// The keys cannot be used together.
    Keyring(KeyringError),
}

impl KeyFileError {
    /// What is wrong, without the file's name.
    pub fn wrong(&self) -> String {
        match &self.cause {
            KeyFileCause::Missing => "is not there".into(),
            KeyFileCause::NotRegular => "is no regular file".into(),
            KeyFileCause::TooLong => "is longer than any key file".into(),
            KeyFileCause::NoSecret => {
                format!(
                    "does not have the one line of a key file, {KIND} and 64 hexadecimal digits"
                )
            }
            KeyFileCause::OtherVersion => {
                format!("is of another version than {KIND}")
            }
            KeyFileCause::Exposed(mode) => {
                format!("may be read or written by others than its owner (mode {mode:03o})")
            }
            KeyFileCause::Owner(user) => {
                format!("belongs to another user ({user}), who may replace it")
            }
            KeyFileCause::Same(other) => format!("has the same secret as {}", other.display()),
            KeyFileCause::SameIdentifier(other, id) => {
                format!(
                    "has by chance the same identifier as {}, {id:04x}",
                    other.display()
                )
            }
            KeyFileCause::Unreadable(error) => format!("cannot be read: {}", explained(error)),
            KeyFileCause::Exists => "is there already, and a key is never overwritten".into(),
            KeyFileCause::NotMade(error) => format!("cannot be made: {}", explained(error)),
            KeyFileCause::Keyring(error) => error.to_string(),
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        let path = self.path.display();
        match &self.cause {
            KeyFileCause::Missing => format!(
                "make it with `bumpless key new {path}` on one computer of the pair and copy it to the others; to go \
                 without protection, write packets = \"open\" in [security] and start witnesses with --open"
            ),
            KeyFileCause::NotRegular => "give the path of a file from `bumpless key new`".into(),
            KeyFileCause::TooLong | KeyFileCause::NoSecret => {
                "copy it again from where it was made, or make another one for all computers of the pair with \
                 `bumpless key new`"
                    .into()
            }
            KeyFileCause::OtherVersion => {
                "use the version of bumpless that made it, or make another one for all computers of the pair".into()
            }
            KeyFileCause::Exposed(_) => format!(
                "if nobody has read it, `chmod 600 {path}`; otherwise make another one for all computers of the pair"
            ),
            KeyFileCause::Owner(_) => {
                format!("give it to the user that runs bumpless: `chown USER {path}`")
            }
            KeyFileCause::Same(_) => "name each key once".into(),
            KeyFileCause::SameIdentifier(..) => {
                "make one of the two anew with `bumpless key new`".into()
            }
            KeyFileCause::Unreadable(_) => {
                "make it readable for the user that runs bumpless, and for nobody else".into()
            }
            KeyFileCause::Exists => {
                "give another name; `bumpless key show` tells which key it is".into()
            }
            KeyFileCause::NotMade(_) => {
                "give a name in a folder that is there, that this user may write to, and whose file system keeps \
                 permissions"
                    .into()
            }
            KeyFileCause::Keyring(_) => "name each key of the pair once".into(),
        }
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "key file {path}: {}; {}", self.wrong(), self.remedy())
    }
}

impl std::error::Error for KeyFileError {}

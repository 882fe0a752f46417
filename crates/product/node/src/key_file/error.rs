//! Why a key file cannot be used or made.

use std::fmt;
use std::path::PathBuf;

use bumpless_guarded_file::Cause;
use bumpless_secure::KeyringError;

use super::format::KIND;

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
    /// The file itself: missing, exposed, of another owner, there already.
    File(Cause),
    /// It is not a key file, or has been changed.
    NoSecret,
    /// It is of a version that this program does not know.
    OtherVersion,
    /// It has the same secret as this file.
    Same(PathBuf),
    /// By chance its secret has the same identifier as that of this file.
    SameIdentifier(PathBuf, u16),
    /// The keys cannot be used together.
    Keyring(KeyringError),
}

impl KeyFileError {
    /// What is wrong, without the file's name.
    pub fn wrong(&self) -> String {
        match &self.cause {
            KeyFileCause::File(Cause::Exists) => {
                "is there already, and a key is never overwritten".into()
            }
            KeyFileCause::File(cause) => cause.wrong(),
            KeyFileCause::NoSecret => {
                format!(
                    "does not have the one line of a key file, {KIND} and 64 hexadecimal digits"
                )
            }
            KeyFileCause::OtherVersion => {
                format!("is of another version than {KIND}")
            }
            KeyFileCause::Same(other) => format!("has the same secret as {}", other.display()),
            KeyFileCause::SameIdentifier(other, id) => {
                format!(
                    "has by chance the same identifier as {}, {id:04x}",
                    other.display()
                )
            }
            KeyFileCause::Keyring(error) => error.to_string(),
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        let path = self.path.display();
        match &self.cause {
            KeyFileCause::File(Cause::Missing) => format!(
                "make it with `bumpless key new {path}` on one computer of the pair and copy it to the others; to go \
                 without protection, write packets = \"open\" in [security] and start witnesses with --open"
            ),
            KeyFileCause::File(Cause::NotRegular) => "give the path of a file from `bumpless key new`".into(),
            KeyFileCause::File(Cause::TooLong) | KeyFileCause::NoSecret => {
                "copy it again from where it was made, or make another one for all computers of the pair with \
                 `bumpless key new`"
                    .into()
            }
            KeyFileCause::OtherVersion => {
                "use the version of bumpless that made it, or make another one for all computers of the pair".into()
            }
            KeyFileCause::File(Cause::Exposed { .. }) => format!(
                "if nobody has read it, `chmod 600 {path}`; otherwise make another one for all computers of the pair"
            ),
            KeyFileCause::File(Cause::Exists) => {
                "give another name; `bumpless key show` tells which key it is".into()
            }
            KeyFileCause::File(cause) => cause.remedy(&self.path),
            KeyFileCause::Same(_) => "name each key once".into(),
            KeyFileCause::SameIdentifier(..) => {
                "make one of the two anew with `bumpless key new`".into()
            }
            KeyFileCause::Keyring(_) => "name each key of the pair once".into(),
        }
    }
}

impl From<Cause> for KeyFileCause {
    fn from(cause: Cause) -> Self {
        Self::File(cause)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "key file {path}: {}; {}", self.wrong(), self.remedy())
    }
}

impl std::error::Error for KeyFileError {}

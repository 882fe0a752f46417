//! Why a session, or its connection, ends.

use std::fmt;
use std::io;

use bumpless_pki::rustls;
use bumpless_pki::{Refusal, explain};

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The other end is not believed, does not believe this one, or does not speak TLS.
    Refused(Refusal),
    /// It says something that it must not.
    Malformed,
    /// It says that it is another one than its certificate says, or of another pair. What it says.
    OtherName(String),
    /// It has ended the session.
    Closed,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Malformed => f.write_str(
                "the other end says what this version does not understand; run one version of bumpless at both ends",
            ),
            Self::OtherName(said) => write!(
                f,
                "the other end says that it is {said}, and its certificate is another's; give each node its own certificate and name"
            ),
            Self::Closed => f.write_str("the other end has ended the session"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<rustls::Error> for SessionError {
    fn from(error: rustls::Error) -> Self {
        Self::Refused(explain(&error))
    }
}

/// Why a connection ends.
#[derive(Debug)]
pub enum Ended {
    /// The session says so.
    Session(SessionError),
    /// The system says so.
    System(io::Error),
    /// Nothing has come for too long, or what was said was not taken.
    Silent,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::System(error) => write!(f, "{error}"),
            Self::Silent => f.write_str("nothing came for seconds"),
        }
    }
}

impl From<SessionError> for Ended {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

//! What protects messages on the networks.

use std::path::PathBuf;

use bumpless_base::Duration;
use bumpless_wire::EnvelopeHeader;

/// What protects messages between nodes, and between nodes and witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Each is sealed in an envelope (`spec/security.md`) with the secret in the first of these files, and opened with
    /// any of them. A path that is not absolute begins at the configuration's folder.
    Protected(Vec<PathBuf>),
    /// Each is sealed with secrets that nodes agree on by themselves, in sessions in which each shows its certificate
    /// (`spec/management.md`).
    Certificates(Certificates),
    /// Nothing.
    Open,
}

/// Where certificates are, and how long keys last that are agreed on with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// A folder with one for each node, NODE.PAIR. A path that is not absolute begins at the configuration's folder.
    pub folder: PathBuf,
    /// After this a key is replaced.
    pub key_lifetime: Duration,
}

impl Security {
    /// Bytes that it adds to each message.
    pub const fn overhead(&self) -> u16 {
        match self {
            Self::Protected(_) | Self::Certificates(_) => EnvelopeHeader::OVERHEAD as u16,
            Self::Open => 0,
        }
    }
}

//! What protects messages on the networks.

use std::path::PathBuf;

use bumpless_wire::EnvelopeHeader;

/// What protects messages between nodes, and between nodes and witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Each is sealed in an envelope (`spec/security.md`) with the secret in the first of these files, and opened with
    /// any of them. A path that is not absolute begins at the configuration's folder.
    Protected(Vec<PathBuf>),
    /// Nothing.
    Open,
}

impl Security {
    /// Bytes that it adds to each message.
    pub const fn overhead(&self) -> u16 {
        match self {
            Self::Protected(_) => EnvelopeHeader::OVERHEAD as u16,
            Self::Open => 0,
        }
    }
}

//! How what a partner sends differs from what this node expects.

use std::fmt;

/// How what a partner sends differs from what this node expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Its messages are not protected, and must be.
    Unprotected,
    /// Its messages are protected, and this node's are not.
    Protected,
    /// It seals with the key of this identifier, which this node does not have.
    UnknownKey(u16),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unprotected => f.write_str(
                "its messages are open and ours protected; give both the same [security]",
            ),
            Self::Protected => f.write_str(
                "its messages are protected and ours open; give both the same [security]",
            ),
            Self::UnknownKey(key) => {
                write!(
                    f,
                    "it seals with key {key:04x}, which is not among ours; give both the same keys"
                )
            }
        }
    }
}

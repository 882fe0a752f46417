//! Why states are not opened.

use core::fmt;

/// Why a state is not opened. It must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRefusal {
    /// It is not sealed, or by another layout.
    NotSealed,
    /// It is sealed in another way than this one is to be.
    OtherMethod,
    /// It is of another channel, or by another node.
    Misdirected,
    /// It is sealed with a secret that is not here.
    UnknownKey(u16),
    /// Its check sequence is wrong.
    Damaged,
    /// Nobody with the secret has sealed it.
    Forged,
    /// A later one was opened before.
    Replayed,
    /// It is older than it may be.
    Old,
    /// It is from the future.
    Future,
}

impl fmt::Display for StateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSealed => {
                f.write_str("it is not sealed; give both nodes the same configuration")
            }
            Self::OtherMethod => {
                f.write_str("it is sealed in another way; give both nodes the same configuration")
            }
            Self::Misdirected => f.write_str("it is of another channel or node"),
            Self::UnknownKey(key) => write!(
                f,
                "it is sealed with the key {key:04x}, which is not here; give both nodes the same keys"
            ),
            Self::Damaged => {
                f.write_str("its check sequence is wrong: memory or program has changed it")
            }
            Self::Forged => {
                f.write_str("its tag is wrong: it was changed, or made without the key")
            }
            Self::Replayed => f.write_str("a later one was opened before"),
            Self::Old => {
                f.write_str("by its time it is too old; compare the clocks of both computers")
            }
            Self::Future => f.write_str(
                "by its time it is from the future; compare the clocks of both computers",
            ),
        }
    }
}

impl core::error::Error for StateRefusal {}

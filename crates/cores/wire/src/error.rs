//! Why a datagram was refused.

use bumpless_base::Counter;
use core::fmt;

/// A field whose value its clause in `spec/wire.md` forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// `ChId` is 0, which means "no channel" (W-8).
    Channel,
    /// `Link` is not the number of a link (W-15).
    Link,
    /// A reserved bit of a `Flags` field is set, or the flags contradict each other (W-16, W-19).
    Flags,
    /// `Trigger` is not 0 although the flags say that there is none (W-19).
    Trigger,
    /// `Received` is below the number of packets that the blocks acknowledge (W-20).
    Received,
    /// `AckBlocks` is above 145 (W-11).
    AckBlocks,
    /// A block's `LowAck` is above its `HighAck`, or at most one above the `HighAck` before it (W-12).
    Blocks,
    /// Bytes follow the last field (W-4).
    Length,
    /// A session is 0, which means "none" where sessions are echoed (W-22).
    Session,
    /// A heartbeat has more than 32 group entries (W-24).
    Groups,
    /// `Role` is not one of the four roles (W-25).
    Role,
    /// `Candidates` is 0 (W-26).
    Candidates,
    /// `Form` is neither of the two forms of a heartbeat (W-21).
    Form,
    /// `Kind` is not one of the seven requests (W-26).
    Kind,
    /// `Granted` has another bit than 0 and 1 set (W-27).
    Granted,
}

impl Field {
    /// The field's name in `spec/wire.md`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Channel => "ChId",
            Self::Link => "Link",
            Self::Flags => "Flags",
            Self::Trigger => "Trigger",
            Self::Received => "Received",
            Self::AckBlocks => "AckBlocks",
            Self::Blocks => "LowAck/HighAck",
            Self::Length => "length",
            Self::Session => "Session",
            Self::Groups => "Groups",
            Self::Role => "Role",
            Self::Candidates => "Candidates",
            Self::Form => "Form",
            Self::Kind => "Kind",
            Self::Granted => "Granted",
        }
    }
}

/// Why a datagram was refused. The sender of the datagram is to blame, never the caller of
/// [`parse`](crate::parse), and refusing changes no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireError {
    /// Shorter than its type, its version and its own counts say (bytes).
    Truncated {
        /// Least length that the bytes read so far call for.
        needed: usize,
        /// The datagram's length.
        got: usize,
    },
    /// `HType` is none of ours.
    UnknownType(u16),
    /// The type is known, this version of it is not.
    UnknownVersion {
        /// `HType`.
        htype: u16,
        /// `HVer`.
        version: u16,
    },
    /// A field has a value that its clause forbids.
    Malformed(Field),
    /// The checksum of a heartbeat or witness message is wrong (W-31).
    Corrupt,
}

impl WireError {
    /// The counter to add one to.
    pub const fn counter(&self) -> Counter {
        match self {
            Self::Truncated { .. } => Counter::DiscardTruncated,
            Self::UnknownType(_) => Counter::DiscardUnknownType,
            Self::UnknownVersion { .. } => Counter::DiscardUnknownVersion,
            Self::Corrupt => Counter::DiscardCorrupt,
            Self::Malformed(_) => Counter::DiscardMalformed,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, got } => write!(
                f,
                "datagram of {got} bytes is too short, its fields call for {needed}: \
                 something on the path cuts datagrams, or they are not ours"
            ),
            Self::UnknownType(htype) => write!(
                f,
                "HType 0x{htype:04x} is unknown: another program sends to this port"
            ),
            Self::UnknownVersion { htype, version } => write!(
                f,
                "HVer {version} of HType 0x{htype:04x} is unknown: run the same release on all nodes"
            ),
            Self::Malformed(field) => write!(
                f,
                "{} has a forbidden value: the sender is faulty or not ours",
                field.name()
            ),
            Self::Corrupt => f.write_str(
                "the checksum is wrong: something on the path changes datagrams and UDP's checksum does not see it",
            ),
        }
    }
}

impl core::error::Error for WireError {}

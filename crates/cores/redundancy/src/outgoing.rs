//! What leaves next, for whom.

use crate::id::ReferenceId;
use bumpless_base::{LinkId, PeerId};

/// Something to be sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The first `len` bytes of the buffer go to this partner on this link; `padded`: followed by zeros up to the
    /// length of the link's longest packets.
    Heartbeat {
        /// The partner.
        peer: PeerId,
        /// The link.
        link: LinkId,
        /// Bytes written.
        len: usize,
        /// Whether it is to have full length.
        padded: bool,
    },
    /// The first `len` bytes of the buffer go to this witness.
    Witness {
        /// The witness.
        reference: ReferenceId,
        /// Bytes written.
        len: usize,
    },
    /// An ICMP echo request with this sequence number goes to this address.
    Ping {
        /// The address.
        reference: ReferenceId,
        /// Comes back in [`handle_ping_reply`](crate::Redundancy::handle_ping_reply).
        sequence: u16,
    },
}

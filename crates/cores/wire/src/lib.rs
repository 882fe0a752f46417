//! Wire formats: state transfer versions 1 and 2, heartbeats, witness messages.
//!
//! One module per message, each opening with its byte layout; clauses W-1, W-2, ... are those of
//! `spec/wire.md`, test vectors are in `spec/vectors`. Every integer is big endian. Every message
//! starts with its type and the version of that type:
//!
//! ```text
//! offset bytes field
//!      0     2 HType   0x0001 data, 0x1001 ack, 0x2001 heartbeat, 0x2002 and 0x2003 witness
//!      2     2 HVer    1 or 2 (data, ack), 3 (heartbeat), 2 (witness)
//! ```
//!
//! [`parse`] takes any bytes, never panics, copies nothing and allocates nothing. Bytes after the
//! last field: in a data packet they are the payload, in a padded heartbeat they mean nothing; in every
//! other message the length is exact, and more is [`Malformed`](WireError::Malformed) as [`Field::Length`].
#![no_std]
#![forbid(unsafe_code)]

mod bytes;
mod check;

pub mod ack;
pub mod data;
pub mod envelope;
pub mod error;
pub mod heartbeat;
pub mod witness;

pub use ack::{Ack, AckHeader, MAX_ACK_BLOCKS, MAX_ACK_LEN, ack_len, encode_ack};
pub use bumpless_base::Role;
pub use data::{DataHeader, WireVersion, max_state_size, packet_count, piece};
pub use envelope::EnvelopeHeader;
pub use error::{Field, WireError};
pub use heartbeat::{
    GroupEntry, GroupFlags, Heartbeat, HeartbeatHeader, MAX_GROUPS, MAX_HEARTBEAT_LEN,
    NO_REFERENCE, encode_heartbeat, heartbeat_len,
};
pub use witness::{NO_HOLDER, WitnessKind, WitnessReply, WitnessRequest};

use bytes::Reader;

/// `HType` and `HVer`, common to all messages.
const PREFIX_LEN: usize = 4;

/// A message. Borrows from the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A piece of a state.
    Data {
        /// What stands before the payload.
        header: DataHeader,
        /// The piece itself; empty only in the one packet of an empty state.
        payload: &'a [u8],
    },
    /// What the receiver of a state has got.
    Ack(Ack<'a>),
    /// A sign of life with roles, from node to node.
    Heartbeat(Heartbeat<'a>),
    /// From a candidate to a witness.
    WitnessRequest(WitnessRequest),
    /// From a witness to a candidate.
    WitnessReply(WitnessReply),
}

/// Reads the header and the payload of a data packet of either version; `None` for anything else, and
/// where [`parse`] reports an error.
#[inline(always)]
pub fn parse_data(datagram: &[u8]) -> Option<(DataHeader, &[u8])> {
    let mut prefix = Reader::new(datagram, PREFIX_LEN).ok()?;
    let (htype, version) = (prefix.u16().ok()?, prefix.u16().ok()?);
    let version = WireVersion::from_number(version).filter(|_| htype == data::HTYPE)?;
    data::parse(version, datagram).ok()
}

/// Reads one datagram.
///
/// # Errors
/// [`WireError`] says what is wrong and which counter it belongs to. Checked in this order, and the
/// first that fails is reported: length of type and version, type, version, length of the fixed
/// fields, the checksum of messages that have one, the fixed fields in their order, length of what follows,
/// and what follows (W-3).
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, WireError> {
    let mut prefix = Reader::new(datagram, PREFIX_LEN)?;
    let (htype, version) = (prefix.u16()?, prefix.u16()?);
    let unknown_version = WireError::UnknownVersion { htype, version };
    match htype {
        data::HTYPE | ack::HTYPE => {
            let version = WireVersion::from_number(version).ok_or(unknown_version)?;
            if htype == data::HTYPE {
                let (header, payload) = data::parse(version, datagram)?;
                return Ok(Packet::Data { header, payload });
            }
            ack::parse(version, datagram).map(Packet::Ack)
        }
        heartbeat::HTYPE if version == heartbeat::HVER => {
            heartbeat::parse(datagram).map(Packet::Heartbeat)
        }
        witness::REQUEST_HTYPE if version == witness::HVER => {
            WitnessRequest::parse(datagram).map(Packet::WitnessRequest)
        }
        witness::REPLY_HTYPE if version == witness::HVER => {
            WitnessReply::parse(datagram).map(Packet::WitnessReply)
        }
        heartbeat::HTYPE | witness::REQUEST_HTYPE | witness::REPLY_HTYPE => Err(unknown_version),
        _ => Err(WireError::UnknownType(htype)),
    }
}

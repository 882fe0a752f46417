//! The checksum of heartbeats and witness messages (W-31).
//!
//! UDP's checksum does not see every damage on the way, and routers may recompute it. These messages decide
//! roles, so they bring one that finds every burst up to 32 bits and every three flipped bits: CRC-32C
//! (Castagnoli), as in RFC 3385.

use crate::error::WireError;
use crc::{CRC_32_ISCSI, Crc, Table};

/// Bytes of the field.
const LEN: usize = 4;

const CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The checksum of a message.
pub(crate) struct Check;

impl Check {
    /// Of all bytes of `message` but those of the field, which stands at `at`.
    pub(crate) fn of(message: &[u8], at: usize) -> u32 {
        let mut digest = CRC.digest();
        digest.update(message.get(..at).unwrap_or(message));
        digest.update(message.get(at + LEN..).unwrap_or_default());
        digest.finalize()
    }

    /// Compares the field at `at` with what it must be.
    pub(crate) fn verify(message: &[u8], at: usize) -> Result<(), WireError> {
        let field = message.get(at..at + LEN).unwrap_or_default();
        match field == Self::of(message, at).to_be_bytes() {
            true => Ok(()),
            false => Err(WireError::Corrupt),
        }
    }
}

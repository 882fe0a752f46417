//! Envelopes: what protects a whole message on its way.
//!
//! 23 bytes, then the message, enciphered, then 16 bytes of tag over both:
//!
//! ```text
//! offset bytes field
//!      0     2 HType    0x3001
//!      2     2 HVer     1
//!      4     2 KeyId    names the secret from which the packet's key derives
//!      6     1 From     who sends: a node, or 255 for a witness
//!      7     1 To       whom it is for: a node, or 255 for a witness
//!      8     1 Link     link on which it is sent, 0..=7
//!      9     8 Origin   random for each start of the sender on a link
//!     17     6 Counter  counts the sender's packets
//!     23       the message, enciphered
//!    end    16 Tag      over all before it
//! ```

use crate::bytes::{Reader, Writer};
use crate::error::{Field, WireError};
use bumpless_base::{LinkId, MAX_LINKS};

pub(crate) const HTYPE: u16 = 0x3001;
pub(crate) const HVER: u16 = 1;

/// `From` or `To` of a witness.
pub const WITNESS: u8 = u8::MAX;
/// The greatest `Counter`: 48 bits.
pub const MAX_COUNTER: u64 = (1 << 48) - 1;

/// What stands before the message in an envelope (W-32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeHeader {
    /// The secret from which the packet's key derives.
    pub key: u16,
    /// The sender: a node's number, or [`WITNESS`].
    pub from: u8,
    /// The addressee: a node's number, or [`WITNESS`].
    pub to: u8,
    /// The link on which it is sent.
    pub link: LinkId,
    /// Random for each start of the sender's process and each of its links.
    pub origin: u64,
    /// Counts the packets of the origin, at most [`MAX_COUNTER`].
    pub counter: u64,
}

impl EnvelopeHeader {
    /// Bytes before the message.
    pub const LEN: usize = 23;
    /// Bytes after the message.
    pub const TAG_LEN: usize = 16;
    /// Bytes that an envelope adds to a message.
    pub const OVERHEAD: usize = Self::LEN + Self::TAG_LEN;

    /// The bytes before the message.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let mut writer = Writer::new(&mut out);
        writer.u16(HTYPE);
        writer.u16(HVER);
        writer.u16(self.key);
        writer.u8(self.from);
        writer.u8(self.to);
        writer.u8(self.link.0);
        writer.u64(self.origin);
        writer.u16((self.counter >> 32) as u16);
        writer.u32(self.counter as u32);
        out
    }

    /// Reads what stands before the message. `datagram` may be anything; of an envelope it has everything.
    ///
    /// # Errors
    /// In the order of W-3: too short, another type or version, a link that is none.
    pub fn parse(datagram: &[u8]) -> Result<Self, WireError> {
        let mut prefix = Reader::new(datagram, crate::PREFIX_LEN)?;
        let (htype, version) = (prefix.u16()?, prefix.u16()?);
        if htype != HTYPE {
            return Err(WireError::UnknownType(htype));
        }
        if version != HVER {
            return Err(WireError::UnknownVersion { htype, version });
        }
        let mut reader = Reader::after_prefix(datagram, Self::OVERHEAD)?;
        let header = Self {
            key: reader.u16()?,
            from: reader.u8()?,
            to: reader.u8()?,
            link: LinkId(reader.u8()?),
            origin: reader.u64()?,
            counter: u64::from(reader.u16()?) << 32 | u64::from(reader.u32()?),
        };
        match usize::from(header.link.0) < MAX_LINKS {
            true => Ok(header),
            false => Err(WireError::Malformed(Field::Link)),
        }
    }

    /// Whether `datagram` says that it is an envelope, of whatever version.
    pub fn is_one(datagram: &[u8]) -> bool {
        datagram.first_chunk() == Some(&HTYPE.to_be_bytes())
    }
}

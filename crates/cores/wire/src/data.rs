//! Data packets: pieces of a state on their way to the backup.
//!
//! Version 1 is table 17 of the first paper, 18 bytes, then the payload:
//!
//! ```text
//! offset bytes field
//!      0     2 HType      0x0001
//!      2     2 HVer       1
//!      4     2 ChId       channel, 1..=65535
//!      6     2 TCycle     transfer cycle, wraps
//!      8     2 SeqNo      packet within the transfer cycle, from 0
//!     10     4 TtlSzCyc   payload bytes of the whole transfer cycle
//!     14     2 ExpInMs    the state expires in so many milliseconds
//!     16     2 FAckCh     channel to acknowledge at once, 0 = none
//! ```
//!
//! Version 2, 30 bytes, then the payload:
//!
//! ```text
//! offset bytes field
//!      0     2 HType      0x0001
//!      2     2 HVer       2
//!      4     4 Tag        session
//!      8     2 ChId       channel, 1..=65535
//!     10     1 Link       link on which the packet is sent, 0..=7
//!     11     1 Flags      0x01 retransmission, 0x02 short pieces, others 0
//!     12     4 TCycle     transfer cycle, wraps
//!     16     4 SeqNo      packet within the transfer cycle, from 0
//!     20     4 TtlSzCyc   payload bytes of the whole transfer cycle
//!     24     4 ExpInUs    the state expires in so many microseconds
//!     28     2 FAckCh     channel to acknowledge at once, 0 = none
//! ```

use crate::bytes::{Reader, Writer};
use crate::envelope::EnvelopeHeader;
use crate::error::{Field, WireError};
use bumpless_base::{ChannelId, Duration, LinkId, MAX_LINKS};

pub(crate) const HTYPE: u16 = 0x0001;
pub(crate) const FLAG_RETRANSMISSION: u8 = 0x01;
const FLAG_SHORT: u8 = 0x02;

const V1_LEN: usize = 18;
const V2_LEN: usize = 30;

/// The version of data packets and acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireVersion {
    /// The first paper's tables 17 and 18, to the byte.
    V1,
    /// With session tag, link, 32-bit numbers and microseconds (W-14).
    #[default]
    V2,
}

impl WireVersion {
    /// `HVer`.
    pub const fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// Bytes of a data packet's header.
    pub const fn header_len(self) -> u16 {
        DataHeader::len(self) as u16
    }

    /// Most packets in one transfer cycle: the sequence number's range.
    pub const fn max_packets(self) -> u64 {
        match self {
            Self::V1 => 1 << 16,
            Self::V2 => 1 << 32,
        }
    }

    /// The longest expiry that the header can carry: 16 bits of milliseconds (table 17), or 32 bits of microseconds.
    pub const fn max_expiry(self) -> Duration {
        match self {
            Self::V1 => Duration::from_millis(u16::MAX as u64),
            Self::V2 => Duration::from_micros(u32::MAX as u64),
        }
    }

    pub(crate) const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }
}

/// What stands before the payload of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Wire version; decides which of the fields below are carried.
    pub version: WireVersion,
    /// Session of the sender with the receiver. Version 1 carries none: read as 0.
    pub tag: u32,
    /// The state's channel.
    pub channel: ChannelId,
    /// The link on which this copy is sent; below [`MAX_LINKS`], or the receiver refuses it.
    /// Version 1 carries none: read as link 0.
    pub link: LinkId,
    /// Whether the packet was sent before on this link. Version 1: read as `false`.
    pub retransmission: bool,
    /// Whether the state is cut into pieces that every path passes ([`piece`]). Version 1: read as `false`.
    pub short: bool,
    /// Transfer cycle, a serial number; version 1 carries its low 16 bits.
    pub cycle: u32,
    /// Packet within the transfer cycle, from 0. Version 1 carries 16 bits; the sender keeps within
    /// [`max_state_size`], so that nothing is cut off.
    pub sequence: u32,
    /// Payload bytes of the whole transfer cycle.
    pub total_size: u32,
    /// How long the state stays valid, counted from sending. Carried in whole milliseconds
    /// (version 1, at most 65,535) or microseconds (version 2, at most 2^32 - 1), rounded down and
    /// stopping at the largest, so that a receiver never takes a state for fresher than it is.
    pub expiry: Duration,
    /// Channel whose reception the receiver is to report at once.
    pub force_ack: Option<ChannelId>,
}

impl DataHeader {
    /// Bytes of the longest header.
    pub const MAX_LEN: usize = V2_LEN;

    /// Bytes of the header in `version`.
    pub const fn len(version: WireVersion) -> usize {
        match version {
            WireVersion::V1 => V1_LEN,
            WireVersion::V2 => V2_LEN,
        }
    }

    /// Writes the header to the front of `out` and returns its length; the payload follows it.
    pub fn encode(&self, out: &mut [u8; Self::MAX_LEN]) -> usize {
        let mut w = Writer::new(out);
        w.u16(HTYPE);
        w.u16(self.version.number());
        match self.version {
            WireVersion::V1 => self.encode_v1(&mut w),
            WireVersion::V2 => self.encode_v2(&mut w),
        }
        w.u16(self.force_ack.map_or(0, ChannelId::get));
        w.len()
    }

    fn encode_v1(&self, w: &mut Writer<'_>) {
        debug_assert!(
            self.sequence <= u32::from(u16::MAX),
            "state beyond max_state_size of version 1"
        );
        w.u16(self.channel.get());
        w.u16(self.cycle as u16);
        w.u16(self.sequence as u16);
        w.u32(self.total_size);
        w.u16(self.expiry.as_millis().min(u64::from(u16::MAX)) as u16);
    }

    fn encode_v2(&self, w: &mut Writer<'_>) {
        w.u32(self.tag);
        w.u16(self.channel.get());
        w.u8(self.link.0);
        let mark = |set: bool, flag: u8| if set { flag } else { 0 };
        w.u8(mark(self.retransmission, FLAG_RETRANSMISSION) | mark(self.short, FLAG_SHORT));
        w.u32(self.cycle);
        w.u32(self.sequence);
        w.u32(self.total_size);
        w.u32(self.expiry.as_micros().min(u64::from(u32::MAX)) as u32);
    }

    #[inline(always)]
    fn parse_v1(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            version: WireVersion::V1,
            tag: 0,
            channel: channel(r.u16()?)?,
            link: LinkId(0),
            retransmission: false,
            short: false,
            cycle: r.u16()?.into(),
            sequence: r.u16()?.into(),
            total_size: r.u32()?,
            expiry: Duration::from_millis(r.u16()?.into()),
            force_ack: ChannelId::new(r.u16()?),
        })
    }

    #[inline(always)]
    fn parse_v2(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (tag, channel, link) = (r.u32()?, channel(r.u16()?)?, link(r.u8()?)?);
        let flags = flags(r.u8()?, FLAG_RETRANSMISSION | FLAG_SHORT)?;
        Ok(Self {
            version: WireVersion::V2,
            tag,
            channel,
            link,
            retransmission: flags & FLAG_RETRANSMISSION != 0,
            short: flags & FLAG_SHORT != 0,
            cycle: r.u32()?,
            sequence: r.u32()?,
            total_size: r.u32()?,
            expiry: Duration::from_micros(r.u32()?.into()),
            force_ack: ChannelId::new(r.u16()?),
        })
    }
}

/// Reads a data packet whose type and version are known.
#[inline(always)]
pub(crate) fn parse(
    version: WireVersion,
    datagram: &[u8],
) -> Result<(DataHeader, &[u8]), WireError> {
    let mut r = Reader::after_prefix(datagram, DataHeader::len(version))?;
    let header = match version {
        WireVersion::V1 => DataHeader::parse_v1(&mut r)?,
        WireVersion::V2 => DataHeader::parse_v2(&mut r)?,
    };
    Ok((header, r.rest()))
}

/// `ChId`, which is never 0.
pub(crate) fn channel(raw: u16) -> Result<ChannelId, WireError> {
    ChannelId::new(raw).ok_or(WireError::Malformed(Field::Channel))
}

/// `Link`, a number below [`MAX_LINKS`].
pub(crate) fn link(raw: u8) -> Result<LinkId, WireError> {
    if usize::from(raw) < MAX_LINKS {
        Ok(LinkId(raw))
    } else {
        Err(WireError::Malformed(Field::Link))
    }
}

/// `Flags` of version 2, of which only those in `known` may be set.
pub(crate) const fn flags(raw: u8, known: u8) -> Result<u8, WireError> {
    match raw & !known {
        0 => Ok(raw),
        _ => Err(WireError::Malformed(Field::Flags)),
    }
}

/// Bytes of a state in each packet of a transfer cycle but its last one, where the configured payload is `payload_size`
/// (W-10). Short pieces are those with which a protected packet fits the smallest MTU of IPv6 (RFC 8200), or
/// `payload_size` if that is less.
pub const fn piece(payload_size: u16, short: bool) -> u16 {
    if short && payload_size > SHORT_PIECE {
        SHORT_PIECE
    } else {
        payload_size
    }
}

/// 1,280 bytes less the headers of IPv6 (40) and UDP (8), the envelope and the header of version 2.
const SHORT_PIECE: u16 = 1_280 - 40 - 8 - EnvelopeHeader::OVERHEAD as u16 - V2_LEN as u16;

/// Packets of a state of `total_size` bytes in pieces of `payload_size` bytes (first paper, 7.3.2).
/// At least 1: an empty state is one empty packet, or nobody would hear of it.
/// A `payload_size` of 0 counts as 1.
pub const fn packet_count(total_size: u32, payload_size: u16) -> u32 {
    let piece = if payload_size == 0 { 1 } else { payload_size };
    let packets = total_size.div_ceil(piece as u32);
    if packets == 0 { 1 } else { packets }
}

/// The largest state, in bytes, that `version` can carry in pieces of `payload_size` bytes:
/// 65,536 packets in version 1, and in both versions what `TtlSzCyc` can say.
pub const fn max_state_size(version: WireVersion, payload_size: u16) -> u32 {
    let bytes = version.max_packets() * payload_size as u64;
    if bytes > u32::MAX as u64 {
        u32::MAX
    } else {
        bytes as u32
    }
}

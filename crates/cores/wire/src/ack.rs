//! Acknowledgements: what the receiver of a state has got.
//!
//! Version 1 is table 18 of the first paper, 9 bytes, then 4 for each block:
//!
//! ```text
//! offset bytes field
//!      0     2 HType      0x1001
//!      2     2 HVer       1
//!      4     2 ChId       channel, 1..=65535
//!      6     2 TCycle     transfer cycle
//!      8     1 AckBlocks  number of blocks that follow, 0..=145
//!      9     2 LowAck     first block: lowest sequence number received
//!     11     2 HighAck    first block: highest sequence number received
//! ```
//!
//! Version 2, 25 bytes, then 8 for each block:
//!
//! ```text
//! offset bytes field
//!      0     2 HType      0x1001
//!      2     2 HVer       2
//!      4     4 Tag        session
//!      8     2 ChId       channel, 1..=65535
//!     10     1 Link       link on which the triggering packet arrived, 0..=7, 255 = none
//!     11     1 Flags      0x01 that packet was a retransmission, 0x02 Trigger is valid,
//!                         others 0
//!     12     4 TCycle     transfer cycle
//!     16     4 Trigger    sequence number of the triggering packet, 0 without flag 0x02
//!     20     4 Received   distinct packets received in this transfer cycle
//!     24     1 AckBlocks  number of blocks that follow, 0..=145
//!     25     4 LowAck     first block: lowest sequence number received
//!     29     4 HighAck    first block: highest sequence number received
//! ```

use crate::bytes::{Reader, Writer};
use crate::data::{self, FLAG_RETRANSMISSION, WireVersion};
use crate::error::{Field, WireError};
use bumpless_base::{ChannelId, LinkId};
use core::ops::Deref;

pub(crate) const HTYPE: u16 = 0x1001;
const FLAG_TRIGGER: u8 = 0x02;
const NO_LINK: u8 = u8::MAX;

const V1_LEN: usize = 9;
const V2_LEN: usize = 25;

/// Most blocks in one acknowledgement (first paper, table 18).
pub const MAX_ACK_BLOCKS: usize = 145;

/// Bytes of the longest acknowledgement; it fits the smallest MTU of IPv6.
pub const MAX_ACK_LEN: usize = V2_LEN + MAX_ACK_BLOCKS * 8;

/// Bytes of an acknowledgement in `version` with so many blocks.
pub const fn ack_len(version: WireVersion, blocks: usize) -> usize {
    match version {
        WireVersion::V1 => V1_LEN + blocks * 4,
        WireVersion::V2 => V2_LEN + blocks * 8,
    }
}

/// What stands before the blocks of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckHeader {
    /// Wire version; decides which of the fields below are carried.
    pub version: WireVersion,
    /// Session of the data packets that are acknowledged. Version 1 carries none: read as 0.
    pub tag: u32,
    /// The state's channel.
    pub channel: ChannelId,
    /// The link on which the packet that triggered this acknowledgement arrived, if one did.
    /// Version 1: `None`.
    pub link: Option<LinkId>,
    /// Whether the triggering packet was marked as a retransmission; carried only with `trigger`.
    /// Version 1: `false`.
    pub retransmission: bool,
    /// Transfer cycle, a serial number; version 1 carries its low 16 bits.
    pub cycle: u32,
    /// Sequence number of the triggering packet, if that was of this channel and transfer cycle
    /// (an acknowledgement that another channel's packet forced has none). Version 1: `None`.
    pub trigger: Option<u32>,
    /// Distinct packets received in this transfer cycle, also those that the blocks leave out when
    /// there are more than [`MAX_ACK_BLOCKS`]. Version 2: always `Some` when read, and `None` is sent
    /// as what the blocks add up to. Version 1: `None`.
    pub received: Option<u32>,
}

/// An acknowledgement. Its header's fields are read as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// What stands before the blocks.
    pub header: AckHeader,
    blocks: &'a [u8],
}

impl Deref for Ack<'_> {
    type Target = AckHeader;
    fn deref(&self) -> &AckHeader {
        &self.header
    }
}

impl<'a> Ack<'a> {
    /// The ranges of sequence numbers received, both ends included: ascending, and at least one
    /// number is missing between two ranges. None at all: nothing was received in this cycle.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + Clone + use<'a> {
        let version = self.header.version;
        self.blocks
            .chunks_exact(block_len(version))
            .map(move |block| read_block(version, block))
    }

    /// Number of blocks, at most [`MAX_ACK_BLOCKS`].
    pub const fn block_count(&self) -> usize {
        self.blocks.len() / block_len(self.header.version)
    }
}

const fn block_len(version: WireVersion) -> usize {
    match version {
        WireVersion::V1 => 4,
        WireVersion::V2 => 8,
    }
}

fn read_block(version: WireVersion, block: &[u8]) -> (u32, u32) {
    match (version, block) {
        (WireVersion::V1, &[a, b, c, d]) => (
            u16::from_be_bytes([a, b]).into(),
            u16::from_be_bytes([c, d]).into(),
        ),
        (WireVersion::V2, &[a, b, c, d, e, f, g, h]) => (
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        ),
        // Blocks are cut to their version's length, so this is not reached.
        _ => (0, 0),
    }
}

/// Reads an acknowledgement whose type and version are known.
pub(crate) fn parse(version: WireVersion, datagram: &[u8]) -> Result<Ack<'_>, WireError> {
    let (header, count, r) = match version {
        WireVersion::V1 => parse_v1(datagram)?,
        WireVersion::V2 => parse_v2(datagram)?,
    };
    if usize::from(count) > MAX_ACK_BLOCKS {
        return Err(WireError::Malformed(Field::AckBlocks));
    }
    let ack = Ack {
        header,
        blocks: r.exactly(usize::from(count) * block_len(version))?,
    };
    let acknowledged = checked_sum(&ack)?;
    match header.received {
        Some(received) if u64::from(received) < acknowledged => {
            Err(WireError::Malformed(Field::Received))
        }
        _ => Ok(ack),
    }
}

fn parse_v1(datagram: &[u8]) -> Result<(AckHeader, u8, Reader<'_>), WireError> {
    let mut r = Reader::after_prefix(datagram, V1_LEN)?;
    let header = AckHeader {
        version: WireVersion::V1,
        tag: 0,
        channel: data::channel(r.u16()?)?,
        link: None,
        retransmission: false,
        cycle: r.u16()?.into(),
        trigger: None,
        received: None,
    };
    let count = r.u8()?;
    Ok((header, count, r))
}

fn parse_v2(datagram: &[u8]) -> Result<(AckHeader, u8, Reader<'_>), WireError> {
    let mut r = Reader::after_prefix(datagram, V2_LEN)?;
    let tag = r.u32()?;
    let channel = data::channel(r.u16()?)?;
    let link = match r.u8()? {
        NO_LINK => None,
        raw => Some(data::link(raw)?),
    };
    let flags = data::flags(r.u8()?, FLAG_RETRANSMISSION | FLAG_TRIGGER)?;
    if flags == FLAG_RETRANSMISSION {
        return Err(WireError::Malformed(Field::Flags));
    }
    let cycle = r.u32()?;
    let trigger = match (r.u32()?, flags & FLAG_TRIGGER != 0) {
        (sequence, true) => Some(sequence),
        (0, false) => None,
        _ => return Err(WireError::Malformed(Field::Trigger)),
    };
    let header = AckHeader {
        version: WireVersion::V2,
        tag,
        channel,
        link,
        retransmission: flags & FLAG_RETRANSMISSION != 0,
        cycle,
        trigger,
        received: Some(r.u32()?),
    };
    let count = r.u8()?;
    Ok((header, count, r))
}

/// Packets that the blocks acknowledge, once they are known to be ascending and maximal.
fn checked_sum(ack: &Ack<'_>) -> Result<u64, WireError> {
    // The lowest number at which the next block may start.
    let mut floor = 0u64;
    let mut sum = 0;
    for (low, high) in ack.blocks() {
        if low > high || u64::from(low) < floor {
            return Err(WireError::Malformed(Field::Blocks));
        }
        sum += u64::from(high - low) + 1;
        floor = u64::from(high) + 2;
    }
    Ok(sum)
}

/// Writes an acknowledgement to the front of `out` and returns its length.
///
/// Takes the first [`MAX_ACK_BLOCKS`] of `blocks`, which must be ascending and maximal as
/// [`Ack::blocks`] gives them, and in version 1 below 65,536; a receiver refuses others.
pub fn encode_ack(
    header: &AckHeader,
    blocks: impl IntoIterator<Item = (u32, u32)>,
    out: &mut [u8; MAX_ACK_LEN],
) -> usize {
    let mut w = Writer::new(out);
    w.u16(HTYPE);
    w.u16(header.version.number());
    match header.version {
        WireVersion::V1 => {
            w.u16(header.channel.get());
            w.u16(header.cycle as u16);
        }
        WireVersion::V2 => encode_v2_fields(header, &mut w),
    }
    let count_at = w.len();
    w.u8(0);
    let (mut count, mut sum) = (0u8, 0u32);
    for (low, high) in blocks.into_iter().take(MAX_ACK_BLOCKS) {
        match header.version {
            WireVersion::V1 => {
                w.u16(low as u16);
                w.u16(high as u16);
            }
            WireVersion::V2 => {
                w.u32(low);
                w.u32(high);
            }
        }
        count += 1;
        sum = sum.saturating_add(high.saturating_sub(low).saturating_add(1));
    }
    w.patch(count_at, [count]);
    if header.version == WireVersion::V2 && header.received.is_none() {
        w.patch(V2_RECEIVED_AT, sum.to_be_bytes());
    }
    w.len()
}

const V2_RECEIVED_AT: usize = 20;

fn encode_v2_fields(header: &AckHeader, w: &mut Writer<'_>) {
    let mut flags = 0;
    if header.trigger.is_some() {
        flags |= FLAG_TRIGGER;
        if header.retransmission {
            flags |= FLAG_RETRANSMISSION;
        }
    }
    w.u32(header.tag);
    w.u16(header.channel.get());
    w.u8(header.link.map_or(NO_LINK, |link| link.0));
    w.u8(flags);
    w.u32(header.cycle);
    w.u32(header.trigger.unwrap_or(0));
    w.u32(header.received.unwrap_or(0));
}

//! Witness messages: a candidate asks a witness for the primary role of a group, and its answer.
//!
//! Request, 57 bytes:
//!
//! ```text
//! offset bytes field
//!      0     2 HType       0x2002
//!      2     2 HVer        2
//!      4     4 Pair        hash of the configuration's name
//!      8     2 Group       group
//!     10     1 Node        asking node
//!     11     1 Candidates  number of candidates of the group, not 0
//!     12     4 Epoch       held, or highest known
//!     16     8 Session     asking node's session, not 0
//!     24     8 SentAt      asking node's clock at sending, ns
//!     32     8 Token       to tell the answer to this request from others
//!     40     8 WitnessSession  the witness's session as last heard, 0 = none
//!     48     4 Lease       length of the lease asked for, us
//!     52     1 Kind        1 renew, 2 acquire, 3 release, 4 observe, 5 renew in simplex, 6 acquire lone,
//!                          7 yield
//!     53     4 Check       CRC-32C of all before
//! ```
//!
//! Reply, 54 bytes:
//!
//! ```text
//! offset bytes field
//!      0     2 HType           0x2003
//!      2     2 HVer            2
//!      4     4 Pair            as in the request
//!      8     2 Group           as in the request
//!     10     1 Node            as in the request
//!     11     1 Kind            as in the request
//!     12     1 Granted         0x01 granted, 0x02 old, others 0
//!     13     1 Holder          node that holds the role, 255 = none
//!     14     4 Epoch           highest granted or known
//!     18     4 HolderSilent    since the holder's last renewal, us
//!     22     4 RetryAfter      ask again no sooner than after this, us
//!     26     8 EchoSentAt      SentAt of the request
//!     34     8 WitnessSession  the witness's session, random for each start, not 0
//!     42     8 Token           as in the request
//!     50     4 Check           CRC-32C of all before
//! ```

use crate::bytes::{Reader, Writer};
use crate::check::Check;
use crate::error::{Field, WireError};
use crate::heartbeat::session;
use bumpless_base::{Epoch, NodeId};

pub(crate) const REQUEST_HTYPE: u16 = 0x2002;
pub(crate) const REPLY_HTYPE: u16 = 0x2003;
pub(crate) const HVER: u16 = 2;

/// [`WitnessReply::holder`] when nobody holds the role.
pub const NO_HOLDER: u8 = u8::MAX;

/// What a candidate asks of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WitnessKind {
    /// Extend the lease that the asking node holds.
    Renew = 1,
    /// Lease the role to the asking node.
    Acquire = 2,
    /// Give the lease back.
    Release = 3,
    /// Say who holds the role; changes nothing.
    Observe = 4,
    /// As [`Renew`](Self::Renew), and the holder goes on in simplex: what its partner holds is old.
    RenewSimplex = 5,
    /// As [`Acquire`](Self::Acquire), by a node that does not claim to hold a fresh state.
    AcquireLone = 6,
    /// The holder's right has run out, and it has written nothing whose state others lack: whoever has a
    /// fresh state may take the role. The holder stays on record.
    Yield = 7,
}

impl WitnessKind {
    fn parse(raw: u8) -> Result<Self, WireError> {
        match raw {
            1 => Ok(Self::Renew),
            2 => Ok(Self::Acquire),
            3 => Ok(Self::Release),
            4 => Ok(Self::Observe),
            5 => Ok(Self::RenewSimplex),
            6 => Ok(Self::AcquireLone),
            7 => Ok(Self::Yield),
            _ => Err(WireError::Malformed(Field::Kind)),
        }
    }

    /// Whether it asks for a lease, new or longer.
    pub const fn is_lease(self) -> bool {
        !matches!(self, Self::Release | Self::Observe | Self::Yield)
    }
}

/// From a candidate to a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessRequest {
    /// Hash of the configuration's name.
    pub pair: u32,
    /// The group, as its position in the configuration.
    pub group: u16,
    /// The asking node.
    pub node: NodeId,
    /// How many candidates the group has, at least 1; epochs are dealt out by it.
    pub candidates: u8,
    /// The asking node's session, never 0.
    pub session: u64,
    /// What it asks for.
    pub kind: WitnessKind,
    /// The epoch that it holds, or the highest that it knows.
    pub epoch: Epoch,
    /// Length of the lease that it asks for, microseconds.
    pub lease_us: u32,
    /// When this was sent, nanoseconds on the asking node's clock; only to be echoed.
    pub sent_at: u64,
    /// Echoed, so that the answer to this request is told from others.
    pub token: u64,
    /// The witness's session as it was last heard, 0 for none: what was sent to an earlier
    /// incarnation of the witness is recognised.
    pub witness_session: u64,
}

impl WitnessRequest {
    /// Bytes of a request.
    pub const LEN: usize = 57;

    /// Writes the request.
    pub fn encode(&self, out: &mut [u8; Self::LEN]) -> usize {
        let mut w = Writer::new(out);
        w.u16(REQUEST_HTYPE);
        w.u16(HVER);
        w.u32(self.pair);
        w.u16(self.group);
        w.u8(self.node.0);
        w.u8(self.candidates);
        w.u32(self.epoch.0);
        w.u64(self.session);
        w.u64(self.sent_at);
        w.u64(self.token);
        w.u64(self.witness_session);
        w.u32(self.lease_us);
        w.u8(self.kind as u8);
        w.u32(0);
        w.seal(Self::LEN - 4)
    }

    pub(crate) fn parse(datagram: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::after_prefix(datagram, Self::LEN)?;
        if let Some(whole) = datagram.get(..Self::LEN) {
            Check::verify(whole, Self::LEN - 4)?;
        }
        let (pair, group, node) = (r.u32()?, r.u16()?, NodeId(r.u8()?));
        let candidates = match r.u8()? {
            0 => return Err(WireError::Malformed(Field::Candidates)),
            n => n,
        };
        let request = Self {
            pair,
            group,
            node,
            candidates,
            epoch: Epoch(r.u32()?),
            session: session(r.u64()?)?,
            sent_at: r.u64()?,
            token: r.u64()?,
            witness_session: r.u64()?,
            lease_us: r.u32()?,
            kind: WitnessKind::parse(r.u8()?)?,
        };
        r.exactly(4)?;
        Ok(request)
    }
}

/// From a witness to a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessReply {
    /// As in the request.
    pub pair: u32,
    /// As in the request.
    pub group: u16,
    /// The node that asked.
    pub node: NodeId,
    /// What it asked for.
    pub kind: WitnessKind,
    /// Whether that was granted.
    pub granted: bool,
    /// Whether what the asking node has is not known to be the newest: it is not the holder, and the
    /// holder said that it goes on in simplex, or the witness has not heard otherwise since its start. It then
    /// gets the role by [`WitnessKind::AcquireLone`] only. In the answer to a
    /// [`RenewSimplex`](WitnessKind::RenewSimplex): whether that holds of every other node.
    pub old: bool,
    /// The node that holds the role, [`NO_HOLDER`] for nobody.
    pub holder: u8,
    /// The highest epoch that was granted or heard of.
    pub epoch: Epoch,
    /// `sent_at` of the request.
    pub echo_sent_at: u64,
    /// Microseconds since the holder's last renewal.
    pub holder_silent_us: u32,
    /// Microseconds before which asking again is of no use.
    pub retry_after_us: u32,
    /// The witness's session: random for each start of its process, never 0.
    pub witness_session: u64,
    /// As in the request.
    pub token: u64,
}

impl WitnessReply {
    /// Bytes of a reply.
    pub const LEN: usize = 54;

    /// Writes the reply.
    pub fn encode(&self, out: &mut [u8; Self::LEN]) -> usize {
        let mut w = Writer::new(out);
        w.u16(REPLY_HTYPE);
        w.u16(HVER);
        w.u32(self.pair);
        w.u16(self.group);
        w.u8(self.node.0);
        w.u8(self.kind as u8);
        w.u8(u8::from(self.granted) | u8::from(self.old) << 1);
        w.u8(self.holder);
        w.u32(self.epoch.0);
        w.u32(self.holder_silent_us);
        w.u32(self.retry_after_us);
        w.u64(self.echo_sent_at);
        w.u64(self.witness_session);
        w.u64(self.token);
        w.u32(0);
        w.seal(Self::LEN - 4)
    }

    pub(crate) fn parse(datagram: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::after_prefix(datagram, Self::LEN)?;
        if let Some(whole) = datagram.get(..Self::LEN) {
            Check::verify(whole, Self::LEN - 4)?;
        }
        let (pair, group, node) = (r.u32()?, r.u16()?, NodeId(r.u8()?));
        let kind = WitnessKind::parse(r.u8()?)?;
        let outcome = match r.u8()? {
            outcome @ 0..=3 => outcome,
            _ => return Err(WireError::Malformed(Field::Granted)),
        };
        let reply = Self {
            pair,
            group,
            node,
            kind,
            granted: outcome & 1 != 0,
            old: outcome & 2 != 0,
            holder: r.u8()?,
            epoch: Epoch(r.u32()?),
            holder_silent_us: r.u32()?,
            retry_after_us: r.u32()?,
            echo_sent_at: r.u64()?,
            witness_session: session(r.u64()?)?,
            token: r.u64()?,
        };
        r.exactly(4)?;
        Ok(reply)
    }
}

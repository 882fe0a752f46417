//! Heartbeats: signs of life between nodes, with sessions, measured times and the groups' roles.
//!
//! One for each partner and link, 101 bytes, then 20 for each group that the two nodes share:
//!
//! ```text
//! offset bytes field
//!      0     2 HType          0x2001
//!      2     2 HVer           3
//!      4     4 Pair           hash of the configuration's name
//!      8     8 Fingerprint    hash of the configuration that both must share
//!     16     1 From           sending node
//!     17     1 To             receiving node
//!     18     1 Link           link on which it is sent, 0..=7
//!     19     1 Groups         number of group entries that follow, 0..=32
//!     20     8 Session        sender's session, random for each start, not 0
//!     28     8 Challenge      sender's challenge to the receiver
//!     36     8 EchoSession    receiver's session that the sender has adopted, 0 = none
//!     44     8 EchoChallenge  last challenge heard from the receiver, 0 = none
//!     52     8 SentAt         sender's clock at sending, ns
//!     60     8 EchoSentAt     latest SentAt heard from the receiver on this link, 0 = none
//!     68     8 LeaseEcho      highest SentAt heard from the receiver on any link, 0 = none
//!     76     4 EchoDelay      from hearing EchoSentAt to sending this, us
//!     80     8 Next           hash of the configuration that the sender has prepared, 0 = none
//!     88     8 FullEcho       latest SentAt of a full-length heartbeat heard on this link, 0 = none
//!     96     1 Form           0 ends after the entries, 1 padded to the link's full length
//!     97     4 Check          CRC-32C of all else up to the end of the entries
//!
//! group entry
//!      0     2 Group             group
//!      2     1 Role              0 starting, 1 backup, 2 primary, 3 stopped
//!      3     2 Flags             0x001 synced, 0x002 granting, 0x004 switchover request,
//!                                0x008 handing over, 0x010 eligible, 0x020 simplex,
//!                                0x040 duplicate, 0x080 lapsed, 0x100 newest, 0x200 unfit,
//!                                0x400 held, 0x800 held all, others 0
//!      5     4 Epoch             highest known
//!      9     4 Used              highest in which somebody is known to have been primary
//!     13     4 Token             of the switchover in progress
//!     17     2 ReferenceVersion  version of the choice of reference point
//!     19     1 Reference         agreed reference point, 255 = none
//! ```

use crate::bytes::{Reader, Writer};
use crate::check::Check;
use crate::data;
use crate::error::{Field, WireError};
use bumpless_base::{Epoch, LinkId, NodeId, Role};
use core::ops::Deref;

pub(crate) const HTYPE: u16 = 0x2001;
pub(crate) const HVER: u16 = 3;

const HEADER_LEN: usize = 101;
const GROUPS_AT: usize = 19;
const CHECK_AT: usize = 97;
const ENTRY_LEN: usize = 20;

/// Most groups in one heartbeat, hence most groups that two nodes can share.
pub const MAX_GROUPS: usize = 32;

/// Bytes of the longest heartbeat; it fits the smallest MTU of IPv6.
pub const MAX_HEARTBEAT_LEN: usize = heartbeat_len(MAX_GROUPS);

/// Bytes of a heartbeat between nodes that share so many groups.
pub const fn heartbeat_len(groups: usize) -> usize {
    HEADER_LEN + groups * ENTRY_LEN
}

/// [`GroupEntry::reference`] when no reference point is agreed.
pub const NO_REFERENCE: u8 = u8::MAX;

/// What else a node says about a group: a set of the flags below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupFlags(u16);

impl GroupFlags {
    /// No flag.
    pub const EMPTY: Self = Self(0);
    /// The sender holds a fresh state of every application of the group, and can run them.
    pub const SYNCED: Self = Self(1);
    /// The sender promises not to take the primary role while the lease lasts that counts from
    /// [`HeartbeatHeader::lease_echo`].
    pub const GRANTING: Self = Self(2);
    /// The sender asks for a switchover.
    pub const SWITCHOVER_REQUEST: Self = Self(4);
    /// The sender, primary, has written its last output and hands over.
    pub const HANDING_OVER: Self = Self(8);
    /// The sender may become primary.
    pub const ELIGIBLE: Self = Self(16);
    /// The sender is or was primary, and may write, or with [`LAPSED`](Self::LAPSED) may have written,
    /// outputs whose state is not safe at the receiver: what the receiver holds is old.
    pub const SIMPLEX: Self = Self(32);
    /// The sender has proof that two processes use the receiver's name.
    pub const DUPLICATE: Self = Self(64);
    /// The sender, primary, has no right to write at present, and has given up every promise that names
    /// a heartbeat of it from before it said so.
    pub const LAPSED: Self = Self(128);
    /// The sender holds the newest state of every application, made in the primary role of
    /// [`GroupEntry::used`], as far as it knows, and may go on from it.
    pub const NEWEST: Self = Self(256);
    /// Some application of the group cannot run on the sender: its field device does not answer.
    pub const UNFIT: Self = Self(512);
    /// The sender holds a state of some application that is young enough to go on from, whether or not it is the
    /// newest.
    pub const HELD: Self = Self(1024);
    /// The sender holds such a state of every application, of which no field device shows a later output.
    pub const HELD_ALL: Self = Self(2048);

    const ALL: u16 = 0xFFF;

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// `self` with the flags of `other` set if `on`, cleared if not.
    #[must_use]
    pub const fn with(self, other: Self, on: bool) -> Self {
        if on {
            Self(self.0 | other.0)
        } else {
            Self(self.0 & !other.0)
        }
    }
    /// The bits on the wire.
    pub const fn bits(self) -> u16 {
        self.0
    }

    const fn from_bits(bits: u16) -> Option<Self> {
        if bits & !Self::ALL == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }
}

/// What a node says about one group that it shares with the partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupEntry {
    /// The group, as its position in the configuration.
    pub group: u16,
    /// The sender's role.
    pub role: Role,
    /// Highest epoch that the sender knows.
    pub epoch: Epoch,
    /// Highest epoch in which the sender knows that somebody was primary, 0 for none.
    pub used: Epoch,
    /// What else it says.
    pub flags: GroupFlags,
    /// Index of the agreed reference point, [`NO_REFERENCE`] for none.
    pub reference: u8,
    /// Version of the choice of `reference`.
    pub reference_version: u16,
    /// Names the switchover that is asked for or in progress.
    pub token: u32,
}

impl GroupEntry {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u16(self.group);
        w.u8(self.role as u8);
        w.u16(self.flags.0);
        w.u32(self.epoch.0);
        w.u32(self.used.0);
        w.u32(self.token);
        w.u16(self.reference_version);
        w.u8(self.reference);
    }

    fn parse(entry: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(entry, ENTRY_LEN)?;
        let group = r.u16()?;
        let role = Role::from_number(r.u8()?).ok_or(WireError::Malformed(Field::Role))?;
        let flags = GroupFlags::from_bits(r.u16()?).ok_or(WireError::Malformed(Field::Flags))?;
        Ok(Self {
            group,
            role,
            flags,
            epoch: Epoch(r.u32()?),
            used: Epoch(r.u32()?),
            token: r.u32()?,
            reference_version: r.u16()?,
            reference: r.u8()?,
        })
    }
}

/// What stands before the group entries of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatHeader {
    /// Hash of the configuration's name: a foreign pair's heartbeats are not ours.
    pub pair: u32,
    /// Hash of the configuration that both must share: nodes that differ say so.
    pub fingerprint: u64,
    /// Sending node.
    pub from: NodeId,
    /// Node that it is meant for.
    pub to: NodeId,
    /// The sender's number of the link on which it sends this.
    pub link: LinkId,
    /// The sender's session: random for each start of its process, never 0.
    pub session: u64,
    /// Random, renewed each time the sender adopts another session of the receiver.
    pub challenge: u64,
    /// The receiver's session that the sender has adopted, 0 for none.
    pub echo_session: u64,
    /// The last challenge heard from the receiver, 0 for none.
    pub echo_challenge: u64,
    /// When this was sent, nanoseconds on the sender's clock; only to be echoed.
    pub sent_at: u64,
    /// Latest `sent_at` heard from the receiver on this link, 0 for none.
    pub echo_sent_at: u64,
    /// Microseconds from hearing `echo_sent_at` to sending this, rounded down by who fills it in.
    pub echo_delay: u32,
    /// Highest `sent_at` heard from the receiver on any link, 0 for none. What the group entries
    /// promise counts from that moment.
    pub lease_echo: u64,
    /// Hash of the configuration that the sender has prepared to change to, 0 for none.
    pub next: u64,
    /// Latest `sent_at` of a full-length heartbeat heard from the receiver on this link, 0 for none:
    /// proof that packets as long as those of states pass.
    pub full_echo: u64,
    /// Whether it goes to the link at the link's full length: whoever sends it appends zeros.
    pub padded: bool,
}

/// A heartbeat. Its header's fields are read as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// What stands before the group entries.
    pub header: HeartbeatHeader,
    groups: &'a [u8],
}

impl Deref for Heartbeat<'_> {
    type Target = HeartbeatHeader;
    fn deref(&self) -> &HeartbeatHeader {
        &self.header
    }
}

impl<'a> Heartbeat<'a> {
    /// The group entries, in the sender's order.
    pub fn groups(&self) -> impl Iterator<Item = GroupEntry> + Clone + use<'a> {
        // Each entry was checked when the heartbeat was read, so none is left out here.
        self.groups
            .chunks_exact(ENTRY_LEN)
            .filter_map(|entry| GroupEntry::parse(entry).ok())
    }

    /// Number of group entries, at most [`MAX_GROUPS`].
    pub const fn group_count(&self) -> usize {
        self.groups.len() / ENTRY_LEN
    }
}

/// Reads a heartbeat whose type and version are known.
pub(crate) fn parse(datagram: &[u8]) -> Result<Heartbeat<'_>, WireError> {
    let mut r = Reader::after_prefix(datagram, HEADER_LEN)?;
    let end = verify(datagram)?;
    let (pair, fingerprint) = (r.u32()?, r.u64()?);
    let (from, to, link) = (NodeId(r.u8()?), NodeId(r.u8()?), data::link(r.u8()?)?);
    r.u8()?;
    let header = HeartbeatHeader {
        pair,
        fingerprint,
        from,
        to,
        link,
        session: session(r.u64()?)?,
        challenge: r.u64()?,
        echo_session: r.u64()?,
        echo_challenge: r.u64()?,
        sent_at: r.u64()?,
        echo_sent_at: r.u64()?,
        lease_echo: r.u64()?,
        echo_delay: r.u32()?,
        next: r.u64()?,
        full_echo: r.u64()?,
        padded: padded(r.u8()?)?,
    };
    if !header.padded && datagram.len() > end {
        return Err(WireError::Malformed(Field::Length));
    }
    let groups = datagram.get(HEADER_LEN..end).unwrap_or_default();
    for entry in groups.chunks_exact(ENTRY_LEN) {
        GroupEntry::parse(entry)?;
    }
    Ok(Heartbeat { header, groups })
}

/// Checks length and checksum; returns where the entries end. What pads a full-length heartbeat is not
/// looked at.
fn verify(datagram: &[u8]) -> Result<usize, WireError> {
    let count = datagram.get(GROUPS_AT).map_or(0, |&count| count.into());
    if count > MAX_GROUPS {
        return Err(WireError::Malformed(Field::Groups));
    }
    let end = heartbeat_len(count);
    let whole = datagram.get(..end).ok_or(WireError::Truncated {
        needed: end,
        got: datagram.len(),
    })?;
    Check::verify(whole, CHECK_AT)?;
    Ok(end)
}

const fn padded(form: u8) -> Result<bool, WireError> {
    match form {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Malformed(Field::Form)),
    }
}

/// A session, which is never 0.
pub(crate) const fn session(raw: u64) -> Result<u64, WireError> {
    if raw == 0 {
        Err(WireError::Malformed(Field::Session))
    } else {
        Ok(raw)
    }
}

/// Writes a heartbeat to the front of `out` and returns its length. Takes the first [`MAX_GROUPS`]
/// of `groups`.
pub fn encode_heartbeat(
    header: &HeartbeatHeader,
    groups: impl IntoIterator<Item = GroupEntry>,
    out: &mut [u8; MAX_HEARTBEAT_LEN],
) -> usize {
    let mut w = Writer::new(out);
    w.u16(HTYPE);
    w.u16(HVER);
    w.u32(header.pair);
    w.u64(header.fingerprint);
    w.u8(header.from.0);
    w.u8(header.to.0);
    w.u8(header.link.0);
    w.u8(0);
    w.u64(header.session);
    w.u64(header.challenge);
    w.u64(header.echo_session);
    w.u64(header.echo_challenge);
    w.u64(header.sent_at);
    w.u64(header.echo_sent_at);
    w.u64(header.lease_echo);
    w.u32(header.echo_delay);
    w.u64(header.next);
    w.u64(header.full_echo);
    w.u8(u8::from(header.padded));
    w.u32(0);
    let mut count = 0u8;
    for entry in groups.into_iter().take(MAX_GROUPS) {
        entry.encode(&mut w);
        count += 1;
    }
    w.patch(GROUPS_AT, [count]);
    w.seal(CHECK_AT)
}

//! What one rule does, expression by expression. Values pass through registers.

use super::rules::{Side, Watched};
use crate::netlink::Message;
use crate::sighting::SNAPSHOT;

/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's.
const UDP: u8 = 17;

/// Registers of four bytes; the first one is also the first of those of sixteen.
const REGISTER: u32 = 8;

/// Where a verdict stands, and the one that ends a packet's way through a chain.
const VERDICT: u32 = 0;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;

const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
const BELOW: u32 = 2;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;

const META_MARK: u32 = 3;
const META_INTERFACE: u32 = 4;
const META_INTERFACE_OUT: u32 = 5;
const META_USER: u32 = 10;
const NEXT_HOP_V4: u32 = 1;
const NEXT_HOP_V6: u32 = 2;
const META_PROTOCOL: u32 = 16;

/// The loopback device has this number in every network namespace, in the machine's byte order.
const LOOPBACK: u32 = 1;

const UDP_LENGTH: u32 = 4;
const TCP_FLAGS: u32 = 13;
const SYN: u8 = 2;
/// TCP's option for the longest segment (RFC 9293, 3.7.1).
const OPTION_MSS: u8 = 2;

/// Packets a second that are shown at most, and at once: a flood of them must not keep the process busy.
const SHOWN_A_SECOND: u64 = 2_000;
const SHOWN_AT_ONCE: u32 = 500;

/// Kernels have the one, or what iptables uses, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// nf_tables' own expression.
    Native,
    /// iptables' target, by `nft_compat`.
    Target,
}

/// Expressions of one rule, which are a list of attributes.
pub struct Expressions(pub Message);

impl Expressions {
    fn add(self, name: &str, data: impl FnOnce(Message) -> Message) -> Self {
        Self(self.0.nested(1, |it| it.text(1, name).nested(2, data)))
    }

    fn meta(self, key: u32, register: u32) -> Self {
        self.add("meta", |it| it.number(1, register).number(2, key))
    }

    fn load(self, base: u32, offset: u32, len: u32, register: u32) -> Self {
        self.add("payload", |it| {
            it.number(1, register)
                .number(2, base)
                .number(3, offset)
                .number(4, len)
        })
    }

    fn compare(self, how: u32, value: &[u8]) -> Self {
        self.add("cmp", |it| {
            it.number(1, REGISTER)
                .number(2, how)
                .nested(3, |it| it.attribute(1, value))
        })
    }

    fn protocol(self, protocol: u8) -> Self {
        self.meta(META_PROTOCOL, REGISTER)
            .compare(EQUAL, &[protocol])
    }

    fn port(self, offset: u32, first: u16, last: u16) -> Self {
        self.load(TRANSPORT, offset, 2, REGISTER)
            .compare(AT_LEAST, &first.to_be_bytes())
            .compare(AT_MOST, &last.to_be_bytes())
    }

    /// Packets that did not come from this host itself: those that are given back to it are not seen again.
    pub fn except_from_loopback(self) -> Self {
        self.meta(META_INTERFACE, REGISTER)
            .compare(UNEQUAL, &LOOPBACK.to_ne_bytes())
    }

    /// Packets that may leave this host, or have come from another one: those to a group that stay here have no hop to take.
    pub fn except_kept_on_host(self, v6: bool) -> Self {
        let at = if v6 { 7 } else { 8 };
        self.load(NETWORK, at, 1, REGISTER).compare(UNEQUAL, &[0])
    }

    /// Datagrams of UDP that are not longer than this, their header included.
    pub fn datagrams_up_to(self, longest: u16) -> Self {
        self.protocol(UDP)
            .load(TRANSPORT, UDP_LENGTH, 2, REGISTER)
            .compare(AT_MOST, &longest.to_be_bytes())
    }

    /// Packets to one host.
    pub fn except_to_groups(self, v6: bool) -> Self {
        let (at, last) = if v6 { (24, 0xFE) } else { (16, 223) };
        self.load(NETWORK, at, 1, REGISTER)
            .compare(AT_MOST, &[last])
    }

    /// Packets with this mark.
    pub fn marked(self, mark: u32) -> Self {
        self.meta(META_MARK, REGISTER)
            .compare(EQUAL, &mark.to_ne_bytes())
    }

    /// Packets that a socket of a process has sent: the others, such as a tunnel's, have no user.
    pub fn of_a_socket(self) -> Self {
        self.meta(META_USER, REGISTER)
    }

    /// Packets that would leave by an interface and a next hop in `set`.
    pub fn leaving_by(self, set: &str, v6: bool) -> Self {
        let next_hop = if v6 { NEXT_HOP_V6 } else { NEXT_HOP_V4 };
        self.meta(META_INTERFACE_OUT, REGISTER)
            .add("rt", |it| it.number(1, REGISTER + 1).number(2, next_hop))
            .add("lookup", |it| it.text(1, set).number(2, REGISTER))
    }

    /// Gives packets a mark.
    pub fn mark(self, mark: u32) -> Self {
        self.add("immediate", |it| {
            it.number(1, REGISTER)
                .nested(2, |it| it.attribute(1, &mark.to_ne_bytes()))
        })
        .add("meta", |it| it.number(3, REGISTER).number(2, META_MARK))
    }

    /// Ends the packets' way through this chain: they go on.
    pub fn accept(self) -> Self {
        self.verdict(ACCEPT)
    }

    /// Ends the packets' way: they are lost.
    pub fn drop(self) -> Self {
        self.verdict(DROP)
    }

    fn verdict(self, verdict: u32) -> Self {
        self.add("immediate", |it| {
            it.number(1, VERDICT)
                .nested(2, |it| it.nested(2, |it| it.number(1, verdict)))
        })
    }

    /// Packets that come in by the interface with this number.
    pub fn coming_in_by(self, interface: u32) -> Self {
        self.meta(META_INTERFACE, REGISTER)
            .compare(EQUAL, &interface.to_ne_bytes())
    }

    /// So many packets of each `whole`, drawn at random.
    pub fn share(self, part: u32, whole: u32) -> Self {
        const RANDOM: u32 = 1;
        const TO_NETWORK_ORDER: u32 = 1;
        self.add("numgen", |it| {
            it.number(1, REGISTER).number(2, whole).number(3, RANDOM)
        })
        // What is compared byte by byte must have its highest byte first.
        .add("byteorder", |it| {
            it.number(1, REGISTER)
                .number(2, REGISTER)
                .number(3, TO_NETWORK_ORDER)
                .number(4, 4)
                .number(5, 4)
        })
        .compare(BELOW, &part.to_be_bytes())
    }

    /// Incoming packets that are watched.
    pub fn coming(self, watched: &Watched) -> Self {
        self.protocol(watched.protocol)
            .port(offset(watched.side), watched.first, watched.last)
    }

    /// Outgoing segments by which this host says how long those may be that it will watch.
    pub fn opening_of(self, watched: &Watched) -> Self {
        let back = match watched.side {
            Side::Destination => Side::Source,
            Side::Source => Side::Destination,
        };
        self.protocol(watched.protocol)
            .port(offset(back), watched.first, watched.last)
            .load(TRANSPORT, TCP_FLAGS, 1, REGISTER)
            .add("bitwise", |it| {
                it.number(1, REGISTER)
                    .number(2, REGISTER)
                    .number(3, 1)
                    .nested(4, |it| it.attribute(1, &[SYN]))
                    .nested(5, |it| it.attribute(1, &[0]))
            })
            .compare(UNEQUAL, &[0])
    }

    /// Lowers the longest segment to `mss` where it is above.
    pub fn clamp(self, mss: u16) -> Self {
        self.add("immediate", |it| {
            it.number(1, REGISTER)
                .nested(2, |it| it.attribute(1, &mss.to_be_bytes()))
        })
        .add("exthdr", |it| {
            it.attribute(2, &[OPTION_MSS])
                .number(3, 2)
                .number(4, 2)
                .number(6, 1)
                .number(7, REGISTER)
        })
    }

    /// Packets whose protocol, destination and port are in `set`.
    pub fn look_up(self, set: &str, side: Side, v6: bool) -> Self {
        let (at, len) = if v6 { (24, 16) } else { (16, 4) };
        self.meta(META_PROTOCOL, REGISTER)
            .load(NETWORK, at, len, REGISTER + 1)
            .load(TRANSPORT, offset(side), 2, REGISTER + 1 + len / 4)
            .add("lookup", |it| it.text(1, set).number(2, REGISTER))
    }

    /// Hands packets to a queue, and lets them pass where nobody has it.
    pub fn queue(self, kind: QueueKind, number: u16) -> Self {
        const BYPASS: u16 = 1;
        match kind {
            QueueKind::Native => self.add("queue", |it| {
                it.attribute(1, &number.to_be_bytes())
                    .attribute(2, &1u16.to_be_bytes())
                    .attribute(3, &BYPASS.to_be_bytes())
            }),
            QueueKind::Target => {
                // struct xt_NFQ_info_v3, padded as the kernel does.
                let words = [number, 1, BYPASS, 0].map(u16::to_ne_bytes).concat();
                self.add("target", |it| {
                    it.text(1, "NFQUEUE").number(2, 3).attribute(3, &words)
                })
            }
        }
    }

    /// Shows the head of packets to a group, not too many a second.
    pub fn show(self, group: u16) -> Self {
        self.add("limit", |it| {
            it.attribute(1, &SHOWN_A_SECOND.to_be_bytes())
                .attribute(2, &1u64.to_be_bytes())
                .number(3, SHOWN_AT_ONCE)
        })
        .add("log", |it| {
            it.attribute(1, &group.to_be_bytes()).number(3, SNAPSHOT)
        })
    }
}

/// Where a port lies in the header above IP.
const fn offset(side: Side) -> u32 {
    match side {
        Side::Source => 0,
        Side::Destination => 2,
    }
}

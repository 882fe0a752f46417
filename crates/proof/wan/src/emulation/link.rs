//! What is said to the kernel of interfaces, addresses and routes (rtnetlink(7), linux/rtnetlink.h, linux/pkt_sched.h).

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::RawFd;

use bumpless_capture::netlink::{Message, attributes};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const NEW_QUEUEING: u16 = 36;
const DELETE_QUEUEING: u16 = 37;
/// The question for all queueing disciplines.
pub const GET_QUEUEING: u16 = 38;

const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;
const REPLACE: u16 = 0x100;
const DUMP: u16 = 0x300;

/// The loopback device has this number in every namespace.
pub const LOOPBACK: u32 = 1;
/// The number of the interface on a node's first link; the next ones follow.
const FIRST: u32 = 2;

const UP: u32 = 1;
const PERMANENT: u16 = 0x80;
/// No question whether somebody has the address already.
const NO_DAD: u8 = 2;

/// Bytes of a message of routes in front of its attributes.
const ROUTE_LEN: usize = 12;
const ROOT: u32 = u32::MAX;
/// The handle of the queue that limits an interface's rate.
const LIMIT: u32 = 1 << 16;
/// A link layer of which the kernel knows how long a packet takes.
const ETHERNET: u8 = 1;
/// Bytes of a full frame.
const FRAME: u32 = 1514;
/// Bytes that a limited interface sends at once, and keeps, at least.
const LEAST_BURST: u32 = 2 * FRAME;
const LEAST_QUEUE: u32 = 10 * FRAME;
/// Bytes of a queueing message in front of its attributes.
pub const QUEUEING_LEN: usize = 20;
/// Nanoseconds of one of the ticks in which netem is told times.
const TICK_NS: u64 = 64;
/// Packets that netem holds on one end of a link.
const NETEM_LIMIT: u32 = 100_000;

/// Number of the interface on the link at this place of a node.
pub fn number(place: usize) -> u32 {
    FIRST + place as u32
}

/// Its name, as containerlab counts.
pub fn name(place: usize) -> String {
    format!("eth{}", place + 1)
}

/// Hardware address of an end of a link: one of those that nobody has been given.
pub fn hardware(link: usize, end: usize) -> [u8; 6] {
    let [_, a, b, c] = (link as u32).to_be_bytes();
    [0x02, 0xb7, a, b, c, end as u8]
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 2 } else { 10 }
}

/// Bits of an address that is one alone.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn interface(number: u32, flags: u32) -> Vec<u8> {
    let words = [0, number, flags, flags].map(u32::to_ne_bytes);
    words.concat()
}

/// One end of a cable under construction.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Place of the link at its node.
    pub place: usize,
    /// Its hardware address.
    pub hardware: [u8; 6],
}

/// A cable from the namespace of the socket to that of the descriptor `other`. One queue is enough for each end.
pub fn cable(messages: Message, here: End, there: End, other: RawFd) -> Message {
    let named = |it: Message, end: End| {
        it.text(3, &name(end.place))
            .attribute(1, &end.hardware)
            .attribute(31, &1u32.to_ne_bytes())
            .attribute(32, &1u32.to_ne_bytes())
    };
    named(
        messages
            .begin_quiet(NEW_LINK, CREATE | EXCLUSIVE)
            .raw(&interface(number(here.place), 0)),
        here,
    )
    .nested(18, |it| {
        it.text(1, "veth").nested(2, |it| {
            it.nested(1, |it| {
                named(it.raw(&interface(number(there.place), 0)), there)
                    .attribute(28, &other.to_ne_bytes())
            })
        })
    })
}

/// Switches an interface on.
pub fn up(messages: Message, number: u32) -> Message {
    messages
        .begin_quiet(NEW_LINK, 0)
        .raw(&interface(number, UP))
}

/// Gives an interface an address, with `prefix` bits in common with the other end; all of them if it is one alone.
pub fn address(messages: Message, number: u32, address: IpAddr, alone: bool) -> Message {
    let prefix = bits(address) - u8::from(!alone);
    messages
        .begin_quiet(NEW_ADDRESS, CREATE | REPLACE)
        .raw(&[family(address), prefix, NO_DAD, 0])
        .raw(&number.to_ne_bytes())
        .attribute(2, &octets(address))
        .attribute(1, &octets(address))
}

/// Says once and for all which hardware address the other end has: nobody asks, and a table for those who are asked for
/// does not overflow.
pub fn neighbour(messages: Message, number: u32, address: IpAddr, hardware: [u8; 6]) -> Message {
    let [low, high] = PERMANENT.to_ne_bytes();
    messages
        .begin_quiet(NEW_NEIGHBOUR, CREATE | REPLACE)
        .raw(&[family(address), 0, 0, 0])
        .raw(&number.to_ne_bytes())
        .raw(&[low, high, 0, 0])
        .attribute(1, &octets(address))
        .attribute(2, &hardware)
}

/// A route to `first` and all that begins with its first `prefix` bits, by way of `gateway`; what this node itself sends
/// is from `source`.
pub fn route(
    messages: Message,
    (first, prefix): (IpAddr, u8),
    (number, gateway): (u32, IpAddr),
    source: Option<IpAddr>,
) -> Message {
    // Main table, by an administrator, to anywhere, an ordinary route.
    let header = [family(first), prefix, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let made = messages
        .begin_quiet(NEW_ROUTE, CREATE | REPLACE)
        .raw(&header)
        .attribute(1, &octets(first))
        .attribute(4, &number.to_ne_bytes())
        .attribute(5, &octets(gateway));
    from(made, source)
}

fn from(route: Message, source: Option<IpAddr>) -> Message {
    match source {
        Some(source) => route.attribute(7, &octets(source)),
        None => route,
    }
}

/// A route over several links at once, each with the gateway at its other end: the kernel chooses by a packet's hash.
pub fn route_over(
    messages: Message,
    (first, prefix): (IpAddr, u8),
    over: &[(u32, IpAddr)],
    source: Option<IpAddr>,
) -> Message {
    let header = [family(first), prefix, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let made = messages
        .begin_quiet(NEW_ROUTE, CREATE | REPLACE)
        .raw(&header)
        .attribute(1, &octets(first));
    // A `struct rtnexthop` each: its length, no flags, a weight of one, the interface; and its gateway.
    let mut hops = Vec::new();
    for (number, gateway) in over {
        let gateway = octets(*gateway);
        let lengths = [8 + 4 + gateway.len(), 4 + gateway.len()].map(|it| it as u16);
        hops.extend(lengths[0].to_ne_bytes());
        hops.extend([0, 0]);
        hops.extend(number.to_ne_bytes());
        hops.extend(lengths[1].to_ne_bytes());
        hops.extend(5u16.to_ne_bytes());
        hops.extend(gateway);
    }
    from(made.attribute(9, &hops), source)
}

/// Where an interface's queue hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// At the interface itself.
    Root,
    /// Behind the limit of its rate.
    Behind,
}

fn queueing(
    messages: Message,
    (kind, flags): (u16, u16),
    (number, handle): (u32, u32),
    slot: Slot,
) -> Message {
    let parent = match slot {
        Slot::Root => ROOT,
        Slot::Behind => LIMIT | 1,
    };
    messages.begin(kind, flags).raw(
        &[0, number, handle, parent, 0]
            .map(u32::to_ne_bytes)
            .concat(),
    )
}

/// A queue that takes the place of whatever is there.
fn queue(messages: Message, place: (u32, u32), slot: Slot) -> Message {
    queueing(messages, (NEW_QUEUEING, CREATE | REPLACE), place, slot)
}

/// Makes an interface lose whatever it is given to send: a queue with no room.
pub fn lose(messages: Message, number: u32, slot: Slot) -> Message {
    queue(messages, (number, 0), slot)
        .text(1, LOSES)
        .attribute(2, &0u32.to_ne_bytes())
}

/// The kind of queue that [`lose`] makes.
pub const LOSES: &str = "pfifo";

/// Makes an interface send at once again.
pub fn send_at_once(messages: Message, number: u32) -> Message {
    queueing(messages, (DELETE_QUEUEING, 0), (number, 0), Slot::Root)
}

/// Makes an interface hold what it sends for so long, by the kernel's netem; `rate`: behind such a limit, if there is one.
pub fn delay(messages: Message, number: u32, delay_us: u32, rate: Option<u32>) -> Message {
    let ticks = (u64::from(delay_us) * 1000 / TICK_NS) as u32;
    let (limit, slot) = match rate {
        Some(rate) => (packets_of(rate, delay_us), Slot::Behind),
        None => (NETEM_LIMIT, Slot::Root),
    };
    let options = [ticks, limit, 0, 0, 0, 0].map(u32::to_ne_bytes);
    queue(messages, (number, 0), slot)
        .text(1, "netem")
        .attribute(2, &options.concat())
}

/// Packets that netem holds at most behind a limit: in full frames, what is on its way and what waits in [`wait`].
fn packets_of(bytes_per_s: u32, delay_us: u32) -> u32 {
    let under_way = u64::from(bytes_per_s) * u64::from(delay_us) / 1_000_000;
    let bytes = under_way + u64::from(queue_of(bytes_per_s));
    let packets = bytes.div_ceil(u64::from(FRAME));
    packets.min(u64::from(NETEM_LIMIT)) as u32
}

/// Makes an interface send at most so many bytes a second (the kernel's token bucket), and keep what it sends in 50 ms for which
/// there is no room yet; or nothing, if it `loses` everything. What is behind it stays if there is such a limit already, with
/// as much room.
pub fn limit(messages: Message, number: u32, bytes_per_s: u32, loses: bool) -> Message {
    // struct tc_ratespec: nothing of the cell, Ethernet, no overhead, no least size, the rate; none for a peak.
    let rate = [0, ETHERNET, 0, 0, 0, 0, 0, 0].into_iter();
    let rate = rate.chain(bytes_per_s.to_ne_bytes());
    let room = if loses { 0 } else { queue_of(bytes_per_s) };
    let parms: Vec<u8> = rate
        .chain([0; 12])
        .chain([room, 0, 0].into_iter().flat_map(u32::to_ne_bytes))
        .collect();
    let burst = (bytes_per_s / 1000).max(LEAST_BURST);
    queue(messages, (number, LIMIT), Slot::Root)
        .text(1, LIMITS)
        .nested(2, |it| {
            it.attribute(1, &parms).attribute(6, &burst.to_ne_bytes())
        })
}

/// Bytes that wait at most for a limit.
fn queue_of(bytes_per_s: u32) -> u32 {
    (bytes_per_s / 20).max(LEAST_QUEUE)
}

/// Has what comes wait behind such a limit. *A queue that is removed there leaves one that loses everything.*
pub fn wait(messages: Message, number: u32, bytes_per_s: u32) -> Message {
    queue(messages, (number, 0), Slot::Behind)
        .text(1, "bfifo")
        .attribute(2, &queue_of(bytes_per_s).to_ne_bytes())
}

/// The kind of queue that [`limit`] makes.
pub const LIMITS: &str = "tbf";

/// The rate that a queue of [`LIMITS`] has, by its options, bytes a second.
pub fn limit_of(options: &[u8]) -> Option<u32> {
    let (_, parms) = attributes(options, 0).find(|(kind, _)| *kind == 1)?;
    parms
        .get(8..12)?
        .first_chunk()
        .map(|it| u32::from_ne_bytes(*it))
}

/// The question which routes there are.
pub fn routes() -> Message {
    let mut header = [0; ROUTE_LEN];
    header[0] = family(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Message::new().begin_quiet(GET_ROUTE, DUMP).raw(&header)
}

/// The question which queues there are.
pub fn queues() -> Message {
    Message::new()
        .begin_quiet(GET_QUEUEING, DUMP)
        .raw(&[0; QUEUEING_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netem_behind_a_limit_holds_what_is_under_way_and_what_waits_50_ms() {
        const MBIT: u32 = 125_000;
        // Ten frames at least.
        assert_eq!(packets_of(MBIT, 0), 10);
        // 62,500 bytes wait, and 12,500 are under way for 10 ms.
        assert_eq!(packets_of(10 * MBIT, 10_000), 75_000u32.div_ceil(FRAME));
        // Of a link for which that is more than an unlimited one holds.
        assert_eq!(packets_of(30_000 * MBIT, u32::MAX), NETEM_LIMIT);
        let held = |rate| {
            let message = delay(Message::new(), 2, 10_000, rate);
            let (_, body) = bumpless_capture::netlink::messages(message.bytes())
                .next()
                .unwrap();
            let (_, options) = attributes(body, QUEUEING_LEN)
                .find(|(kind, _)| *kind == 2)
                .unwrap();
            u32::from_ne_bytes(*options[4..].first_chunk().unwrap())
        };
        assert_eq!(held(Some(10 * MBIT)), packets_of(10 * MBIT, 10_000));
        assert_eq!(held(None), NETEM_LIMIT);
    }
}

//! Bytes of packets at the data port (`spec/iprp.md`, I-10 to I-17): data, and what a receiver answers.

use crate::counters::Discard;
use crate::flow::{Flow, UDP, ports};
use crate::ind::Ind;
use bumpless_secure::{Nonce, Tag};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The version of packets and messages.
pub(crate) const VERSION: u8 = 1;
/// Bytes that are not enciphered.
pub(crate) const CLEAR: usize = 18;
/// Bytes of the tag that ends a packet.
pub(crate) const TAG: usize = size_of::<Tag>();
/// Longest head of what is enciphered: protocol, two ports, two IPv6 addresses.
const MAX_INNER: usize = 1 + 4 + 32;
/// What a deciphered packet is of, and where what it carries begins.
pub(crate) struct Inner {
    pub flow: Flow,
    /// It carries nothing and only asks.
    pub probe: bool,
    pub at: usize,
}

/// Bytes that a copy has beside what it carries, at most: those of UDP over IPv6. IPv4 takes 24 less, other protocols 4
/// less, whose ports are in what they carry.
pub const MAX_OVERHEAD: usize = CLEAR + MAX_INNER + TAG;
/// The same of IPv4.
pub const MAX_OVERHEAD_IPV4: usize = MAX_OVERHEAD - 24;
/// Bytes of a datagram that answers.
pub const FEEDBACK_LEN: usize = CLEAR + 8 + 16 + TAG;

/// In the place of the protocol's number (255 is reserved by IANA): nothing is carried, what follows says for whom it is.
pub(crate) const PROBE: u8 = 255;

const FEEDBACK: u8 = 0x80;
const GROUP: u8 = 0x40;
const ASK: u8 = 0x20;
const IPV6: u8 = 0x10;

/// Whether a datagram at the data port answers a sender (for [`Sender::handle_feedback`](crate::Sender::handle_feedback))
/// instead of carrying a packet (for [`Receiver::handle_data`](crate::Receiver::handle_data)). One bit says so, which the
/// core that gets it has authenticated with the rest.
pub fn is_feedback(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|byte| byte & FEEDBACK != 0)
}

/// Which key, whose packet, the how manyth: what is not enciphered, but authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The network on which the copy is sent.
    pub ind: Ind,
    /// Whether it answers a sender.
    pub feedback: bool,
    /// Whether a group's key seals it.
    pub group: bool,
    /// Whether the receiver is to answer.
    pub ask: bool,
    /// Whether addresses are IPv6.
    pub ipv6: bool,
    /// The low four bits of the key's number.
    pub key: u8,
    /// For whom the key was made: of a receiver's choosing, or the group's secret and the sender's process.
    pub tag: u64,
    /// Which session of that sender.
    pub space: u32,
    /// The how manyth packet of the session; of an answer, the how manyth answer.
    pub number: u32,
}

impl Header {
    /// What the first bytes of `datagram` say.
    #[inline]
    pub(crate) fn decode(datagram: &[u8]) -> Result<Self, Discard> {
        let head: &[u8; CLEAR] = datagram.first_chunk().ok_or(Discard::Truncated)?;
        if head[0] >> 4 != VERSION {
            return Err(Discard::Version);
        }
        let [_, second, a, b, c, d, e, f, g, h, rest @ ..] = *head;
        let [i, j, k, l, m, n, o, p] = rest;
        let header = Self {
            ind: Ind::of_low_bits(head[0]),
            feedback: second & FEEDBACK != 0,
            group: second & GROUP != 0,
            ask: second & ASK != 0,
            ipv6: second & IPV6 != 0,
            key: second & 15,
            tag: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            space: u32::from_be_bytes([i, j, k, l]),
            number: u32::from_be_bytes([m, n, o, p]),
        };
        // A group's receivers do not answer, and its secret is named by its tag alone.
        let is_strange = header.group && (header.ask || header.key != 0);
        let answers_strangely = header.feedback && (header.group || header.ask || header.ipv6);
        match is_strange || answers_strangely {
            true => Err(Discard::Malformed),
            false => Ok(header),
        }
    }

    #[inline]
    pub(crate) fn encode(&self) -> [u8; CLEAR] {
        let flag = |is: bool, bit| if is { bit } else { 0 };
        let mut bytes = [0; CLEAR];
        bytes[0] = VERSION << 4 | self.ind.get();
        bytes[1] = flag(self.feedback, FEEDBACK)
            | flag(self.group, GROUP)
            | flag(self.ask, ASK)
            | flag(self.ipv6, IPV6)
            | self.key & 15;
        bytes[2..10].copy_from_slice(&self.tag.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.space.to_be_bytes());
        bytes[14..18].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// No two packets of one key have the same: the network, the session, the number; the flags, since a packet that is
    /// repeated on its network with another question is another packet.
    #[inline]
    pub(crate) fn nonce(&self) -> Nonce {
        let mut nonce = [0; 12];
        let bytes = self.encode();
        nonce[..2].copy_from_slice(&bytes[..2]);
        nonce[4..].copy_from_slice(&bytes[10..]);
        nonce
    }
}

/// The head of what is enciphered: where the packet comes from and goes. Its bytes, and how many they are.
#[inline]
pub(crate) fn encode_flow(flow: &Flow) -> ([u8; MAX_INNER], usize) {
    let mut bytes = [0; MAX_INNER];
    bytes[0] = flow.protocol;
    let mut at = 1;
    let mut put = |part: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + part.len()) {
            place.copy_from_slice(part);
            at += part.len();
        }
    };
    if flow.protocol == UDP {
        put(&flow.source_port.to_be_bytes());
        put(&flow.destination_port.to_be_bytes());
    }
    for address in [flow.source, flow.destination] {
        match address {
            IpAddr::V4(address) => put(&address.octets()),
            IpAddr::V6(address) => put(&address.octets()),
        }
    }
    (bytes, at)
}

/// Bytes of the head of what is enciphered.
pub(crate) const fn flow_len(protocol: u8, ipv6: bool) -> usize {
    let ports = if protocol == UDP { 4 } else { 0 };
    let address = if ipv6 { 16 } else { 4 };
    1 + ports + 2 * address
}

/// What the head of a deciphered packet says.
#[inline]
pub(crate) fn decode_flow(body: &[u8], ipv6: bool) -> Result<Inner, Discard> {
    let malformed = Discard::Malformed;
    let probe = body.first() == Some(&PROBE);
    let body = if probe {
        body.get(1..).unwrap_or_default()
    } else {
        body
    };
    let (&protocol, mut rest) = body.split_first().ok_or(malformed)?;
    if protocol == PROBE {
        return Err(malformed);
    }
    let mut take = |len: usize| {
        let (part, after) = rest.split_at_checked(len).ok_or(malformed)?;
        rest = after;
        Ok(part)
    };
    let own_ports = match protocol {
        UDP => Some(ports(UDP, take(4)?).ok_or(malformed)?),
        _ => None,
    };
    let (source, destination) = match ipv6 {
        false => (address_v4(take(4)?), address_v4(take(4)?)),
        true => (address_v6(take(16)?), address_v6(take(16)?)),
    };
    let (source_port, destination_port) = match own_ports {
        Some(ports) => ports,
        // A probe has none, but a session of a port wants to be found.
        None if probe => ports(protocol, rest).unwrap_or_default(),
        None => ports(protocol, rest).ok_or(malformed)?,
    };
    let flow = Flow {
        protocol,
        source,
        destination,
        source_port,
        destination_port,
    };
    Ok(Inner {
        flow,
        probe,
        at: flow_len(protocol, ipv6) + usize::from(probe),
    })
}

fn address_v4(bytes: &[u8]) -> IpAddr {
    let bytes = bytes.first_chunk().copied().unwrap_or_default();
    IpAddr::V4(Ipv4Addr::from_octets(bytes))
}

fn address_v6(bytes: &[u8]) -> IpAddr {
    let bytes = bytes.first_chunk().copied().unwrap_or_default();
    IpAddr::V6(Ipv6Addr::from_octets(bytes))
}

/// What a receiver answers: which packets of a session have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The packet that asked.
    pub asked: u32,
    /// The highest number that has come.
    pub high: u32,
    /// Which of the 64 before it have come, the one right before it in the lowest bit.
    pub behind: u64,
}

impl Answer {
    pub(crate) fn encode(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.asked.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.high.to_be_bytes());
        bytes[8..].copy_from_slice(&self.behind.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h, ref behind @ ..] = bytes.first_chunk::<16>()?;
        Some(Self {
            asked: u32::from_be_bytes([a, b, c, d]),
            high: u32::from_be_bytes([e, f, g, h]),
            behind: u64::from_be_bytes(*behind),
        })
    }
}

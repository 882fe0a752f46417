//! Packet captures in the classic pcap format, nanosecond variant, link type RAW: IPv4 or IPv6 with UDP or ICMP, as
//! Wireshark opens them.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::echo::is_icmp;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINK_TYPE_RAW: u32 = 101;
const SNAPLEN: u32 = 65_535;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;
const PROTOCOL_UDP: u8 = 17;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// A capture that is being written.
pub struct Capture(Box<dyn Write>);

impl Capture {
    /// Writes the file header.
    pub fn begin(mut to: Box<dyn Write>) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        header.extend_from_slice(&2u16.to_le_bytes());
        header.extend_from_slice(&4u16.to_le_bytes());
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&SNAPLEN.to_le_bytes());
        header.extend_from_slice(&LINK_TYPE_RAW.to_le_bytes());
        to.write_all(&header)?;
        Ok(Self(to))
    }

    /// Writes a datagram sent at `at`.
    pub fn datagram(
        &mut self,
        at: u64,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
    ) -> io::Result<()> {
        let packet = packet(from, to, bytes);
        let len = packet.len() as u32;
        let mut record = Vec::with_capacity(16 + packet.len());
        for word in [
            (at / 1_000_000_000) as u32,
            (at % 1_000_000_000) as u32,
            len,
            len,
        ] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        record.extend_from_slice(&packet);
        self.0.write_all(&record)
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// `bytes` with the headers of UDP, or none for an ICMP message, and of IP.
fn packet(from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let icmp = is_icmp(from) || is_icmp(to);
    let mut payload = Vec::with_capacity(UDP + bytes.len());
    if !icmp {
        payload.extend_from_slice(&from.port().to_be_bytes());
        payload.extend_from_slice(&to.port().to_be_bytes());
        payload.extend_from_slice(&((UDP + bytes.len()) as u16).to_be_bytes());
        // None: permitted over IPv4 (RFC 768).
        payload.extend_from_slice(&[0, 0]);
    }
    payload.extend_from_slice(bytes);
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else {
        let (source, destination) = (v6(from), v6(to));
        let protocol = if icmp { PROTOCOL_ICMPV6 } else { PROTOCOL_UDP };
        if icmp {
            as_icmpv6(source, destination, &mut payload);
        } else {
            // Zero would mean that there is none, which only IPv4 permits.
            let sum = match sum_v6(source, destination, protocol, &payload) {
                0 => 0xffff,
                sum => sum,
            };
            payload[6..8].copy_from_slice(&sum.to_be_bytes());
        }
        let mut packet = ipv6_header(source, destination, protocol, payload.len() as u16).to_vec();
        packet.append(&mut payload);
        return packet;
    };
    let protocol = if icmp { PROTOCOL_ICMP } else { PROTOCOL_UDP };
    let len = (IPV4 + payload.len()) as u16;
    let mut packet = ipv4_header(source, destination, protocol, len).to_vec();
    packet.append(&mut payload);
    packet
}

/// RFC 791, 3.1; `len` is that of the whole packet.
fn ipv4_header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, len: u16) -> [u8; IPV4] {
    let mut header = [0; IPV4];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let sum = !folded(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// RFC 8200, 3; `len` is that of what follows.
fn ipv6_header(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, len: u16) -> [u8; IPV6] {
    let mut header = [0; IPV6];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&len.to_be_bytes());
    header[6] = protocol;
    header[7] = 64;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
    header
}

/// Turns an echo message of RFC 792, as which all travel in the simulated networks, into the same one of
/// RFC 4443: another type, and a checksum over the addresses as well. One that was damaged stays as it is.
fn as_icmpv6(from: Ipv6Addr, to: Ipv6Addr, message: &mut [u8]) {
    let kind = match message {
        [8, 0, _, _, ..] => ECHO_REQUEST_V6,
        [0, 0, _, _, ..] => ECHO_REPLY_V6,
        _ => return,
    };
    if folded(message) != 0xffff {
        return;
    }
    message[..4].copy_from_slice(&[kind, 0, 0, 0]);
    let sum = sum_v6(from, to, PROTOCOL_ICMPV6, message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum that UDP and ICMPv6 have over IPv6 (RFC 8200, 8.1), of `payload` with a zero in its place.
fn sum_v6(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, payload: &[u8]) -> u16 {
    let mut summed = Vec::with_capacity(IPV6 + payload.len());
    summed.extend_from_slice(&from.octets());
    summed.extend_from_slice(&to.octets());
    summed.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    summed.extend_from_slice(&u32::from(protocol).to_be_bytes());
    summed.extend_from_slice(payload);
    !folded(&summed)
}

/// The one's complement sum of RFC 1071 over 16-bit words, an odd byte filled up with zero.
fn folded(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| match *word {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn v6(address: SocketAddr) -> Ipv6Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn over_ipv4_the_header_checksum_folds_to_zero_and_udp_has_none() {
        let (from, to) = (address("10.0.1.1:4700"), address("10.0.1.2:4701"));
        let packet = packet(from, to, &[7; 100]);
        assert_eq!((packet.len(), packet[0], packet[9]), (128, 0x45, 17));
        assert_eq!(folded(&packet[..IPV4]), 0xffff);
        assert_eq!(packet[2..4], 128u16.to_be_bytes());
        assert_eq!(packet[20..28], [0x12, 0x5c, 0x12, 0x5d, 0, 108, 0, 0]);
    }

    #[test]
    fn over_ipv6_udp_has_its_addresses_and_a_checksum_that_folds_to_zero() {
        let (from, to) = (
            address("[2001:db8:b::14]:4700"),
            address("[2001:db8:b::15]:4700"),
        );
        let packet = packet(from, to, &[9; 101]);
        assert_eq!((packet.len(), packet[0], packet[6]), (149, 0x60, 17));
        assert_eq!(packet[4..6], 109u16.to_be_bytes());
        assert_eq!(packet[8..24], v6(from).octets());
        assert_eq!(packet[24..40], v6(to).octets());
        let mut summed = packet[8..40].to_vec();
        summed.extend_from_slice(&[0, 0, 0, 109, 0, 0, 0, 17]);
        summed.extend_from_slice(&packet[40..]);
        assert_eq!(folded(&summed), 0xffff);
    }

    /// An echo message as it travels in the simulated networks.
    fn echo(kind: u8) -> Vec<u8> {
        let mut message = vec![kind, 0, 0, 0, 0x12, 0x34, 0, 7];
        let sum = !folded(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        message
    }

    #[test]
    fn over_ipv6_echo_messages_are_those_of_rfc_4443() {
        let ends = ["[2001:db8:b::14]:0", "[2001:db8:b::fe]:0"].map(address);
        for (kind, wanted) in [(8, 128), (0, 129)] {
            let packet = packet(ends[0], ends[1], &echo(kind));
            assert_eq!((packet.len(), packet[6]), (48, 58));
            assert_eq!(packet[40..42], [wanted, 0]);
            assert_eq!(packet[44..], [0x12, 0x34, 0, 7]);
            let mut summed = packet[8..40].to_vec();
            summed.extend_from_slice(&[0, 0, 0, 8, 0, 0, 0, 58]);
            summed.extend_from_slice(&packet[40..]);
            assert_eq!(folded(&summed), 0xffff);
        }
    }

    #[test]
    fn an_echo_message_stays_as_it_is_over_ipv4_and_where_it_is_damaged() {
        let v4 = ["10.0.1.1:0", "10.0.1.254:0"].map(address);
        let sent = packet(v4[0], v4[1], &echo(8));
        assert_eq!((sent[9], &sent[20..]), (1, &echo(8)[..]));
        let v6 = ["[2001:db8:b::14]:0", "[2001:db8:b::fe]:0"].map(address);
        let mut damaged = echo(8);
        damaged[7] ^= 1;
        for message in [&damaged[..], &[8, 0], &[]] {
            assert_eq!(packet(v6[0], v6[1], message)[40..], *message);
        }
    }
}

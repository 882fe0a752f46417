//! IP packets: read up to their ports, and made anew with their checksums (RFC 791, 8200, 768, 9293, 1071).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol numbers.
const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
pub(crate) const UDP_LEN: usize = 8;
/// Where the checksum of TCP lies.
const TCP_CHECKSUM: usize = 16;
/// Hops of a packet that is made: it goes to this host only.
const HOPS: u8 = 64;
/// Those of one to a group, which the kernel keeps on the host by that.
const KEPT_HOPS: u8 = 0;
const IPV4_HOPS: usize = 8;
const IPV6_HOPS: usize = 7;

/// A packet that was read: whole, or its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Number of the protocol above IP.
    pub protocol: u8,
    /// Source port; 0 for a protocol without ports.
    pub source_port: u16,
    /// Destination port; 0 for a protocol without ports.
    pub destination_port: u16,
    /// What follows the UDP header, or else the IP header.
    pub payload: &'a [u8],
}

/// Reads a packet. `None` for what is no whole IP packet, a fragment, or one whose protocol is behind extension headers.
pub fn parse(packet: &[u8]) -> Option<Parsed<'_>> {
    read(packet, true)
}

/// As [`parse`], where of the packet only the first bytes are there.
pub fn parse_head(packet: &[u8]) -> Option<Parsed<'_>> {
    read(packet, false)
}

fn read(packet: &[u8], whole: bool) -> Option<Parsed<'_>> {
    let (source, destination, protocol, above) = match packet.first()? >> 4 {
        4 => read_ipv4(packet, whole)?,
        6 => read_ipv6(packet, whole)?,
        _ => return None,
    };
    let (source_port, destination_port, payload) = match protocol {
        UDP => {
            let (header, rest) = above.split_first_chunk::<UDP_LEN>()?;
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let rest = match whole {
                true => rest.get(..length.checked_sub(UDP_LEN)?)?,
                false => rest,
            };
            (port(header, 0), port(header, 2), rest)
        }
        TCP => {
            let header = above.first_chunk::<4>()?;
            (port(header, 0), port(header, 2), above)
        }
        _ => (0, 0, above),
    };
    Some(Parsed {
        source,
        destination,
        protocol,
        source_port,
        destination_port,
        payload,
    })
}

type Network<'a> = (IpAddr, IpAddr, u8, &'a [u8]);

fn read_ipv4(packet: &[u8], whole: bool) -> Option<Network<'_>> {
    let header: &[u8; IPV4_LEN] = packet.first_chunk()?;
    let begin = usize::from(header[0] & 15) * 4;
    let end = match whole {
        true => usize::from(u16::from_be_bytes([header[2], header[3]])),
        false => packet.len(),
    };
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF;
    if begin < IPV4_LEN || fragment != 0 {
        return None;
    }
    let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|i| header[at + i])).into();
    Some((address(12), address(16), header[9], packet.get(begin..end)?))
}

fn read_ipv6(packet: &[u8], whole: bool) -> Option<Network<'_>> {
    let (header, rest) = packet.split_first_chunk::<IPV6_LEN>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let above = match whole {
        true => rest.get(..length)?,
        false => rest,
    };
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|i| header[at + i]);
        Ipv6Addr::from(octets).into()
    };
    Some((address(8), address(24), header[6], above))
}

fn port(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Makes the packet in `out` and returns its length. `None` if there is no room, the addresses are of two families, or it
/// would be longer than a packet can be.
pub fn build(packet: &Parsed<'_>, out: &mut [u8]) -> Option<usize> {
    let udp = packet.protocol == UDP;
    let above_len = packet.payload.len() + if udp { UDP_LEN } else { 0 };
    let ip_len = match packet.source {
        IpAddr::V4(_) => IPV4_LEN,
        IpAddr::V6(_) => IPV6_LEN,
    };
    let length = ip_len + above_len;
    u16::try_from(length).ok()?;
    let (ip, above) = out.get_mut(..length)?.split_at_mut(ip_len);
    let sum = match (packet.source, packet.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            write_ipv4(ip, packet.protocol, (source, destination), length)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            write_ipv6(ip, packet.protocol, (source, destination), above_len)
        }
        _ => return None,
    };
    if udp {
        above[..2].copy_from_slice(&packet.source_port.to_be_bytes());
        above[2..4].copy_from_slice(&packet.destination_port.to_be_bytes());
        above[4..6].copy_from_slice(&(above_len as u16).to_be_bytes());
        above[6..8].fill(0);
        above[UDP_LEN..].copy_from_slice(packet.payload);
        let sum = match checksum(sum, above) {
            // Zero says that there is none.
            0 => 0xFFFF,
            sum => sum,
        };
        above[6..8].copy_from_slice(&sum.to_be_bytes());
        return Some(length);
    }
    above.copy_from_slice(packet.payload);
    if packet.protocol == TCP {
        let field = TCP_CHECKSUM..TCP_CHECKSUM + 2;
        above.get_mut(field.clone())?.fill(0);
        let sum = checksum(sum, above);
        above[field].copy_from_slice(&sum.to_be_bytes());
    }
    Some(length)
}

/// Writes the header; returns the sum of what the checksum above also covers.
fn write_ipv4(
    ip: &mut [u8],
    protocol: u8,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    length: usize,
) -> u32 {
    ip.fill(0);
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    // It is not to be fragmented.
    ip[6] = 0x40;
    ip[IPV4_HOPS] = hops(destination.is_multicast());
    ip[9] = protocol;
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&destination.octets());
    let sum = checksum(0, ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    add(0, &ip[12..20]) + u32::from(protocol) + (length - IPV4_LEN) as u32
}

/// As [`write_ipv4`].
fn write_ipv6(
    ip: &mut [u8],
    protocol: u8,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    above_len: usize,
) -> u32 {
    ip.fill(0);
    ip[0] = 0x60;
    ip[4..6].copy_from_slice(&(above_len as u16).to_be_bytes());
    ip[6] = protocol;
    ip[IPV6_HOPS] = hops(destination.is_multicast());
    ip[8..24].copy_from_slice(&source.octets());
    ip[24..40].copy_from_slice(&destination.octets());
    add(0, &ip[8..40]) + u32::from(protocol) + above_len as u32
}

const fn hops(is_to_group: bool) -> u8 {
    match is_to_group {
        true => KEPT_HOPS,
        false => HOPS,
    }
}

/// How many hops a whole packet may take; 0 for what is none.
pub fn hops_of(packet: &[u8]) -> u8 {
    let at = match packet.first().map(|first| first >> 4) {
        Some(4) => IPV4_HOPS,
        _ => IPV6_HOPS,
    };
    packet.get(at).copied().unwrap_or(0)
}

/// Lets a packet to a group go no further than to programs of this host.
pub fn keep_on_host(packet: &mut [u8]) {
    if packet.first().is_some_and(|first| first >> 4 == 6) {
        if let Some(hops) = packet.get_mut(IPV6_HOPS) {
            *hops = KEPT_HOPS;
        }
        return;
    }
    let len = packet
        .first()
        .map_or(0, |first| usize::from(first & 15) * 4);
    let Some(header) = packet.get_mut(..len).filter(|_| len >= IPV4_LEN) else {
        return;
    };
    header[IPV4_HOPS] = KEPT_HOPS;
    header[10..12].fill(0);
    let sum = checksum(0, header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Adds the 16-bit words of `bytes`. A packet has too few of them for 32 bits to overflow.
pub(crate) fn add(sum: u32, bytes: &[u8]) -> u32 {
    let (words, last) = bytes.as_chunks::<2>();
    let sum = words
        .iter()
        .fold(sum, |sum, word| sum + u32::from(u16::from_be_bytes(*word)));
    last.first()
        .map_or(sum, |&last| sum + (u32::from(last) << 8))
}

/// The internet checksum of `bytes`, which begins with `sum` (RFC 1071).
pub(crate) fn checksum(sum: u32, bytes: &[u8]) -> u16 {
    let sum = add(sum, bytes);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<'a>(v6: bool, protocol: u8, payload: &'a [u8]) -> Parsed<'a> {
        let (source, destination) = match v6 {
            false => ("10.1.2.3", "10.9.8.7"),
            true => ("fd00::1", "fd00:2::9"),
        };
        let (source_port, destination_port) = match protocol {
            UDP => (4000, 5000),
            TCP => (0x0102, 0x0304),
            _ => (0, 0),
        };
        Parsed {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol,
            source_port,
            destination_port,
            payload,
        }
    }

    #[test]
    fn what_is_made_is_read_back_and_its_checksums_are_right() {
        let bytes: Vec<u8> = (1..=255).cycle().take(1400).collect();
        for v6 in [false, true] {
            for protocol in [TCP, UDP, 47] {
                for length in [20, 21, 1399, 1400] {
                    let packet = parsed(v6, protocol, &bytes[..length]);
                    let mut out = [0xAA; 1500];
                    let made = build(&packet, &mut out).unwrap();
                    let read = parse(&out[..made]).unwrap();
                    if protocol == TCP {
                        // Its own checksum is another one.
                        assert_eq!(read.payload.len(), length);
                        assert_eq!(read.payload[..16], packet.payload[..16]);
                        assert_eq!(read.payload[18..], packet.payload[18..]);
                    } else {
                        assert_eq!(read, packet);
                    }
                    assert!(
                        is_right(&out[..made], v6, protocol),
                        "{v6} {protocol} {length}"
                    );
                }
            }
        }
    }

    /// As a receiver sees it: the sum over everything, with the checksum in it, has all bits set.
    fn is_right(packet: &[u8], v6: bool, protocol: u8) -> bool {
        let ip = if v6 { 40 } else { 20 };
        let folded = |sum: u32| {
            let mut sum = sum;
            while sum >> 16 != 0 {
                sum = (sum >> 16) + (sum & 0xFFFF);
            }
            sum
        };
        let addresses = if v6 { &packet[8..40] } else { &packet[12..20] };
        let pseudo = add(0, addresses) + u32::from(protocol) + (packet.len() - ip) as u32;
        let header = v6 || folded(add(0, &packet[..ip])) == 0xFFFF;
        let above =
            protocol != UDP && protocol != TCP || folded(add(pseudo, &packet[ip..])) == 0xFFFF;
        header && above
    }

    #[test]
    fn a_packet_by_hand_has_the_checksum_that_it_had_on_the_wire() {
        // A DNS query as captured: 192.168.0.5 to 192.168.0.1, made by a kernel.
        let wire = [
            0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0xB9, 0x75, 192, 168, 0, 5, 192, 168, 0, 1,
            0x30, 0x39, 0, 53, 0, 12, 0x1C, 0x5A, b'a', b'b', b'c', b'd',
        ];
        let read = parse(&wire).unwrap();
        assert_eq!((read.source_port, read.destination_port), (12345, 53));
        let mut out = [0; 64];
        let length = build(&read, &mut out).unwrap();
        assert_eq!(length, 32);
        // Computed with pencil: words 4500 0020 4000 4011 c0a8 0005 c0a8 0001.
        let sum: u32 = [0x4500, 0x20, 0x4000, 0x4011, 0xC0A8, 5, 0xC0A8, 1]
            .iter()
            .sum();
        let sum = (sum >> 16) + (sum & 0xFFFF);
        assert_eq!(out[10..12], (!(sum as u16)).to_be_bytes());
    }

    #[test]
    fn a_packet_to_a_group_stays_on_the_host() {
        let mut packet = parsed(false, UDP, b"to a group");
        packet.destination = "239.1.2.3".parse().unwrap();
        let mut out = [0; 64];
        let made = build(&packet, &mut out).unwrap();
        assert_eq!(hops_of(&out[..made]), 0);
        // One that an application has sent.
        out[IPV4_HOPS] = 16;
        assert_eq!(hops_of(&out[..made]), 16);
        keep_on_host(&mut out[..made]);
        assert_eq!(hops_of(&out[..made]), 0);
        assert!(is_right(&out[..made], false, UDP));
        let mut v6 = parsed(true, UDP, b"to a group");
        v6.destination = "ff05::3".parse().unwrap();
        let made = build(&v6, &mut out).unwrap();
        assert_eq!(hops_of(&out[..made]), 0);
        out[IPV6_HOPS] = 16;
        keep_on_host(&mut out[..made]);
        assert_eq!(hops_of(&out[..made]), 0);
        assert!(is_right(&out[..made], true, UDP));
        keep_on_host(&mut [0x60]);
        keep_on_host(&mut []);
    }

    #[test]
    fn what_is_no_whole_packet_is_not_read() {
        let packet = parsed(false, UDP, b"abcdef");
        let mut out = [0; 64];
        let length = build(&packet, &mut out).unwrap();
        for cut in 0..length {
            assert_eq!(parse(&out[..cut]), None, "{cut}");
        }
        // The head is enough to see whose it is.
        assert_eq!(parse_head(&out[..28]).unwrap().destination_port, 5000);
        let mut fragment = out;
        fragment[6] = 0x20;
        assert_eq!(parse(&fragment[..length]), None);
        let mut short = out;
        short[0] = 0x44;
        assert_eq!(parse(&short[..length]), None);
        for first in [0, 0x50, 0xFF] {
            assert_eq!(parse(&[first; 80]), None);
        }
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let mut out = [0; 100];
        let long = [0; 100];
        assert_eq!(build(&parsed(false, UDP, &long), &mut out), None);
        let mut mixed = parsed(false, UDP, b"a");
        mixed.destination = "fd00::1".parse().unwrap();
        assert_eq!(build(&mixed, &mut out), None);
        // A TCP header that has no room for its checksum.
        assert_eq!(build(&parsed(false, TCP, &[0; 17]), &mut out), None);
        let huge = vec![0; 65_530];
        let mut room = vec![0; 70_000];
        assert_eq!(build(&parsed(false, UDP, &huge), &mut room), None);
    }

    #[test]
    fn a_udp_checksum_of_zero_is_written_as_all_ones() {
        let mut out = [0; 64];
        // Find a payload whose checksum comes out as zero, and look at what is written.
        let found = (0..=u16::MAX).any(|word| {
            let bytes = word.to_be_bytes();
            let length = build(&parsed(false, UDP, &bytes), &mut out).unwrap();
            let sum = u16::from_be_bytes([out[26], out[27]]);
            assert_ne!(sum, 0);
            assert!(is_right(&out[..length], false, UDP));
            sum == 0xFFFF
        });
        assert!(found);
    }
}

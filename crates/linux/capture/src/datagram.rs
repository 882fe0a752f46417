//! Datagrams of UDP as their sockets have given them to the kernel, which leaves some work to network cards: several in one that are to
//! be cut, and checksums that are to be put in.

use crate::packet::{UDP, UDP_LEN, add, checksum};

const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
/// Where the checksum lies in the header of UDP.
const CHECKSUM: std::ops::Range<usize> = 6..8;

/// Bytes of the IP header of a datagram, and whether it is IPv6's.
fn ip_header(packet: &[u8]) -> Option<(usize, bool)> {
    let first = packet.first()?;
    let (len, at, v6) = match first >> 4 {
        4 => (usize::from(first & 15) * 4, 9, false),
        6 => (IPV6_LEN, 6, true),
        _ => return None,
    };
    let is_whole = len >= IPV4_LEN && packet.len() >= len + UDP_LEN;
    (is_whole && packet[at] == UDP).then_some((len, v6))
}

/// Puts the checksum of UDP in. That of a packet whose sender wants none stays away.
pub fn complete(packet: &mut [u8]) {
    let Some((len, v6)) = ip_header(packet) else {
        return;
    };
    let (ip, above) = packet.split_at_mut(len);
    let addresses = if v6 { &ip[8..40] } else { &ip[12..20] };
    if !v6 && above[CHECKSUM] == [0, 0] {
        return;
    }
    above[CHECKSUM].fill(0);
    let pseudo = add(0, addresses) + u32::from(UDP) + above.len() as u32;
    let sum = match checksum(pseudo, above) {
        // Zero says that there is none.
        0 => 0xFFFF,
        sum => sum,
    };
    above[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
}

/// Cuts a packet into datagrams of `segment_len` bytes, of which the last may be shorter, as far as `out` has room for them without
/// growing. Tells where in `out` each one is, begin and length; their checksums are left open.
pub fn cut(
    packet: &[u8],
    segment_len: usize,
    out: &mut Vec<u8>,
    mut tell: impl FnMut(usize, usize),
) {
    let Some((ip, v6)) = ip_header(packet) else {
        return;
    };
    let (headers, payload) = packet.split_at(ip + UDP_LEN);
    for part in payload.chunks(segment_len.max(1)) {
        let (begin, len) = (out.len(), headers.len() + part.len());
        if begin + len > out.capacity() {
            return;
        }
        out.extend_from_slice(headers);
        out.extend_from_slice(part);
        let made = &mut out[begin..];
        let (at, told) = if v6 { (4, len - IPV6_LEN) } else { (2, len) };
        made[at..at + 2].copy_from_slice(&(told as u16).to_be_bytes());
        let udp = (UDP_LEN + part.len()) as u16;
        made[ip + 4..ip + 6].copy_from_slice(&udp.to_be_bytes());
        tell(begin, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Parsed, build, parse};

    fn made(v6: bool, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = match v6 {
            false => ("10.1.2.3", "10.9.8.7"),
            true => ("fd00::1", "fd00:2::9"),
        };
        let packet = Parsed {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: UDP,
            source_port: 4000,
            destination_port: 5000,
            payload,
        };
        let mut out = vec![0; 2000];
        let len = build(&packet, &mut out).unwrap();
        out.truncate(len);
        out
    }

    #[test]
    fn a_checksum_that_was_left_to_the_card_becomes_that_of_the_whole_packet() {
        for v6 in [false, true] {
            for len in [0, 1, 2, 280, 1399] {
                let right = made(v6, &vec![0xA7; len]);
                let at = if v6 { 46 } else { 26 };
                let mut left = right.clone();
                left[at..at + 2].copy_from_slice(&[0x12, 0x34]);
                complete(&mut left);
                assert_eq!(left, right, "{v6} {len}");
            }
        }
        let mut without = made(false, b"wants none");
        without[26..28].fill(0);
        let before = without.clone();
        complete(&mut without);
        assert_eq!(without, before);
        for len in 0..28 {
            complete(&mut made(false, b"cut")[..len]);
        }
    }

    #[test]
    fn datagrams_that_were_given_in_one_are_those_that_the_card_would_make() {
        let payload: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for v6 in [false, true] {
            let whole = made(v6, &payload);
            for segment_len in [1, 99, 100, 999, 1000, 5000] {
                let mut out = Vec::with_capacity(100_000);
                let mut places = Vec::new();
                cut(&whole, segment_len, &mut out, |begin, len| {
                    places.push((begin, len))
                });
                assert_eq!(places.len(), 1000_usize.div_ceil(segment_len));
                let mut joined = Vec::new();
                for (begin, len) in places {
                    let mut one = out[begin..begin + len].to_vec();
                    complete(&mut one);
                    let read = parse(&one).unwrap();
                    assert_eq!((read.source_port, read.destination_port), (4000, 5000));
                    assert_eq!(
                        one[if v6 { 40 } else { 20 }..],
                        made(v6, read.payload)[if v6 { 40 } else { 20 }..]
                    );
                    joined.extend_from_slice(read.payload);
                }
                assert_eq!(joined, payload);
            }
        }
        let mut small = Vec::with_capacity(300);
        let mut count = 0;
        cut(&made(false, &payload), 100, &mut small, |_, _| count += 1);
        assert_eq!((count, small.len()), (2, 256));
    }
}

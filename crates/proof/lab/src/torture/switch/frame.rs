//! What the switch has to know of an Ethernet frame: where it goes, and the datagram in it.

use std::ops::Range;

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
/// The two bytes of the IPv4 header that tell a fragment: "more fragments" and the offset.
const FRAGMENT: u16 = 0x3fff;

/// Begin of every address that the networks give out: locally administered.
const MAC: [u8; 4] = [0x02, 0x62, 0x75, 0x6d];

/// The address of the end at `port` of `network`.
pub const fn mac(network: usize, port: usize) -> [u8; 6] {
    [MAC[0], MAC[1], MAC[2], MAC[3], network as u8, port as u8]
}

/// The port that `frame` is for, if it is for one end of this network alone.
pub fn destination(frame: &[u8], network: usize) -> Option<usize> {
    let to = frame.get(..6)?;
    (to[..4] == MAC && usize::from(to[4]) == network).then_some(usize::from(to[5]))
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Length of the IPv4 packet in `frame`.
pub fn packet_length(frame: &[u8]) -> Option<u16> {
    match frame.get(12..14)? == IPV4 {
        true => word(frame, ETHERNET + 2),
        false => None,
    }
}

/// Where in `frame` the payload of a whole UDP datagram lies.
pub fn payload(frame: &[u8]) -> Option<Range<usize>> {
    let length = usize::from(packet_length(frame)?);
    let header = usize::from(frame.get(ETHERNET)? & 0x0f) * 4;
    let whole = word(frame, ETHERNET + 6)? & FRAGMENT == 0;
    if *frame.get(ETHERNET + 9)? != UDP || !whole || ETHERNET + length > frame.len() {
        return None;
    }
    let from = ETHERNET + header + UDP_HEADER;
    (from <= ETHERNET + length).then_some(from..ETHERNET + length)
}

/// The type with which a message of ours begins (W-2), of the datagram in `frame`.
pub fn message_type(frame: &[u8]) -> Option<u16> {
    word(&frame[payload(frame)?], 0)
}

/// Inverts the bits of `mask` in byte `index` of the datagram's payload, and makes its checksum right
/// again: as a memory fault in a switch does, which forms the checksum anew.
pub fn flip(frame: &mut [u8], index: usize, mask: u8) -> Option<()> {
    let at = payload(frame)?.start + index;
    let checksum_at = payload(frame)?.start - 2;
    let old = *frame.get(at)?;
    frame[at] = old ^ mask;
    // The payload begins at an even distance from what the checksum covers.
    let in_word = |byte: u8| u32::from(byte) << if index.is_multiple_of(2) { 8 } else { 0 };
    let checksum = word(frame, checksum_at)?;
    if checksum != 0 {
        // RFC 1624, equation 3.
        let mut sum = u32::from(!checksum) + (!in_word(old) & 0xffff) + in_word(old ^ mask);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let right = match !(sum as u16) {
            0 => 0xffff,
            other => other,
        };
        frame[checksum_at..checksum_at + 2].copy_from_slice(&right.to_be_bytes());
    }
    Some(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A frame from port 0 to port `to` of network 0 with a UDP datagram that carries `payload`.
    pub fn frame(to: usize, payload: &[u8]) -> Vec<u8> {
        let mut frame = [mac(0, to), mac(0, 0)].concat();
        frame.extend(IPV4);
        let length = (20 + UDP_HEADER + payload.len()) as u16;
        frame.extend([0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 77, 1, 1, 10, 77, 1, 2]);
        frame.extend([0x12, 0x5c, 0x12, 0x5c]);
        frame.extend((length - 20).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        let checksum = checksum(&frame);
        frame[40..42].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    /// The checksum that a datagram should have, from its definition (RFC 768).
    fn checksum(frame: &[u8]) -> u16 {
        let udp = &frame[34..];
        let mut bytes = frame[26..34].to_vec();
        bytes.extend([0, UDP]);
        bytes.extend((udp.len() as u16).to_be_bytes());
        bytes.extend(udp);
        bytes[12 + 6] = 0;
        bytes[12 + 7] = 0;
        if bytes.len() % 2 == 1 {
            bytes.push(0);
        }
        let words = bytes
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        match !(sum as u16) {
            0 => 0xffff,
            other => other,
        }
    }

    #[test]
    fn a_flipped_bit_has_a_right_checksum_wherever_it_is() {
        for length in [1usize, 2, 7, 105] {
            let original = frame(1, &(0..length as u8).collect::<Vec<_>>());
            for index in 0..length {
                for bit in 0..8 {
                    let mut flipped = original.clone();
                    flip(&mut flipped, index, 1 << bit).unwrap();
                    let differs = flipped[42..].iter().zip(&original[42..]);
                    assert_eq!(differs.filter(|(a, b)| a != b).count(), 1);
                    assert_eq!(
                        word(&flipped, 40),
                        Some(checksum(&flipped)),
                        "{index} {bit}"
                    );
                }
            }
        }
    }

    #[test]
    fn nothing_is_read_beyond_a_frame_that_was_cut_off() {
        let whole = frame(2, &[0x20, 0x01, 0, 2]);
        assert_eq!(message_type(&whole), Some(0x2001));
        assert_eq!(destination(&whole, 0), Some(2));
        assert_eq!(destination(&whole, 1), None);
        for length in 0..whole.len() {
            assert_eq!(payload(&whole[..length]), None, "{length}");
        }
        let mut fragment = whole.clone();
        fragment[20] |= 0x20;
        assert_eq!(payload(&fragment), None);
    }
}

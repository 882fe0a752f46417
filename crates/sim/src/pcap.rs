//! Packet captures in the classic pcap format, nanosecond variant, link type RAW: IPv4 with UDP or ICMP, as
//! Wireshark opens them.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::echo::is_icmp;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINK_TYPE_RAW: u32 = 101;
const SNAPLEN: u32 = 65_535;
const IPV4: usize = 20;
const UDP: usize = 8;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_UDP: u8 = 17;

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

    /// Writes a datagram sent at `at`. IPv6 addresses are shown as those of the unspecified IPv4
    /// host, the ports as they are.
    pub fn datagram(
        &mut self,
        at: u64,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
    ) -> io::Result<()> {
        let icmp = is_icmp(from) || is_icmp(to);
        let header = if icmp { IPV4 } else { IPV4 + UDP };
        let len = (header + bytes.len()) as u32;
        let mut record = Vec::with_capacity(16 + len as usize);
        for word in [
            (at / 1_000_000_000) as u32,
            (at % 1_000_000_000) as u32,
            len,
            len,
        ] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        let protocol = if icmp { PROTOCOL_ICMP } else { PROTOCOL_UDP };
        record.extend_from_slice(&ip_header(from, to, protocol, len as u16));
        if !icmp {
            record.extend_from_slice(&from.port().to_be_bytes());
            record.extend_from_slice(&to.port().to_be_bytes());
            record.extend_from_slice(&((UDP + bytes.len()) as u16).to_be_bytes());
            // No checksum: permitted over IPv4 (RFC 768).
            record.extend_from_slice(&[0, 0]);
        }
        record.extend_from_slice(bytes);
        self.0.write_all(&record)
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn ip_header(from: SocketAddr, to: SocketAddr, protocol: u8, len: u16) -> [u8; IPV4] {
    let mut header = [0; IPV4];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&v4(from).octets());
    header[16..20].copy_from_slice(&v4(to).octets());
    let (words, _) = header.as_chunks::<2>();
    let sum: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    header
}

fn v4(address: SocketAddr) -> Ipv4Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_checksum_is_the_published_example() {
        // RFC 1071's sum over this header folds to zero with its checksum in place.
        let header = ip_header(
            "10.0.1.1:4700".parse().unwrap(),
            "10.0.1.2:4700".parse().unwrap(),
            PROTOCOL_UDP,
            128,
        );
        let (words, _) = header.as_chunks::<2>();
        let sum: u32 = words
            .iter()
            .map(|w| u32::from(u16::from_be_bytes(*w)))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}

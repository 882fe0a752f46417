//! What a frame is for, from its header alone (soft early demultiplexing, 5.4.3).
//!
//! The checks are those without which a receiver drops the frame anyway: versions, and lengths that contain one
//! another. Checksums are left to the hardware or the receiver.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// So many IPv6 extension headers are looked through; a packet with more is unknown. RFC 8200 names no more kinds in one packet.
pub const MAX_EXTENSIONS: usize = 8;

/// So many VLAN tags are looked through: one, or two stacked ones (IEEE 802.1ad).
const MAX_TAGS: usize = 2;

const ETHERNET: usize = 14;
const TAG: usize = 4;
const IPV6: usize = 40;
const UDP: usize = 8;
const TCP: usize = 20;

/// Protocols with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Finding link-layer addresses: ARP, and IPv6's neighbour discovery, without which nobody reaches this node. The
    /// latter is ICMPv6 of the types 133 to 137 with the hop limit 255, which no router lets through (RFC 4861).
    Resolution {
        /// Who asks or answers: the sender of ARP for IPv4 over Ethernet (RFC 826), the packet's source of neighbour discovery. `None`: ARP
        /// of another kind, or cut.
        remote: Option<IpAddr>,
    },
    /// What answers an echo request (ICMP type 0, RFC 792; ICMPv6 type 129, RFC 4443).
    EchoReply {
        /// The sender's address.
        remote: IpAddr,
    },
    /// The rest of ICMP and ICMPv6.
    Icmp,
    /// A piece of an IP packet. Which one it belongs to is not known without putting it together (5.4.7).
    Fragment,
    /// A segment or datagram to a port.
    Port {
        /// Its protocol.
        transport: Transport,
        /// The sender's address.
        remote: IpAddr,
        /// The sender's port.
        remote_port: u16,
        /// The port here.
        port: u16,
    },
    /// Anything else, and whatever contradicts itself.
    Unknown,
}

/// What the frame of `len` bytes is for that begins with `header` at the destination's Ethernet address.
///
/// `header` may be the whole frame. If it is only the beginning and ends before the ports, the frame is unknown: 128 bytes suffice
/// for everything but long chains of extension headers.
pub fn classify(header: &[u8], len: usize) -> Purpose {
    let frame = Frame {
        header,
        len: len.max(header.len()),
    };
    frame.purpose().unwrap_or(Purpose::Unknown)
}

/// The beginning of a frame, and how long the frame is. What is not there is `None`.
#[derive(Clone, Copy)]
struct Frame<'a> {
    header: &'a [u8],
    len: usize,
}

impl Frame<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.header.get(at).copied()
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.header.get(at..)?.first_chunk().copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_be_bytes)
    }

    fn purpose(&self) -> Option<Purpose> {
        let mut at = ETHERNET;
        for _ in 0..=MAX_TAGS {
            match self.word(at - 2)? {
                0x0800 => return self.ipv4(at),
                0x86dd => return self.ipv6(at),
                0x0806 => return Some(self.arp(at)),
                0x8100 | 0x88a8 | 0x9100 => at += TAG,
                _ => return None,
            }
        }
        None
    }

    #[cold]
    fn arp(&self, at: usize) -> Purpose {
        /// Ethernet, IPv4, and the lengths of their addresses.
        const OF_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
        /// Behind these, what is wanted, and the sender's Ethernet address.
        const SENDER: usize = 14;
        let of_ipv4 = self.array(at) == Some(OF_IPV4);
        let sender = self.array::<4>(at + SENDER).filter(|_| of_ipv4);
        Purpose::Resolution {
            remote: sender.map(IpAddr::from),
        }
    }

    fn ipv4(&self, at: usize) -> Option<Purpose> {
        let header: [u8; 20] = self.array(at)?;
        let header_len = usize::from(header[0] & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_sound = header[0] >> 4 == 4 && header_len >= 20 && total >= header_len;
        if !is_sound || at + total > self.len {
            return None;
        }
        // More fragments follow, or this one is not the first.
        if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
            return Some(Purpose::Fragment);
        }
        let remote = Ipv4Addr::new(header[12], header[13], header[14], header[15]).into();
        match header[9] {
            1 => Some(self.icmp(remote, (at + header_len, at + total))),
            protocol => self.ports(protocol, remote, (at + header_len, at + total)),
        }
    }

    fn ipv6(&self, at: usize) -> Option<Purpose> {
        let end = at + IPV6 + usize::from(self.word(at + 4)?);
        if self.byte(at)? >> 4 != 6 || end > self.len {
            return None;
        }
        let remote: IpAddr = Ipv6Addr::from(self.array::<16>(at + 8)?).into();
        let mut next = self.byte(at + 6)?;
        let mut start = at + IPV6;
        for place in 0..=MAX_EXTENSIONS {
            let extension_len = match next {
                // Options for every hop stand first or nowhere.
                0 if place == 0 => self.extension_len(start)?,
                43 | 60 => self.extension_len(start)?,
                44 => {
                    let offset = self.word(start + 2)?;
                    if start + 8 > end {
                        return None;
                    }
                    if offset & 0xfff9 != 0 {
                        return Some(Purpose::Fragment);
                    }
                    8
                }
                58 => return Some(self.icmpv6((at, remote), (start, end))),
                _ => return self.ports(next, remote, (start, end)),
            };
            if start + extension_len > end {
                return None;
            }
            next = self.byte(start)?;
            start += extension_len;
        }
        None
    }

    fn extension_len(&self, at: usize) -> Option<usize> {
        Some((usize::from(self.byte(at + 1)?) + 1) * 8)
    }

    /// The type of a message that reaches from `start` to `end`.
    fn icmp_type(&self, (start, end): (usize, usize)) -> Option<u8> {
        self.byte(start).filter(|_| start < end)
    }

    /// Out of the way of what has ports, which nearly every frame does.
    #[cold]
    fn icmp(&self, remote: IpAddr, message: (usize, usize)) -> Purpose {
        match self.icmp_type(message) {
            Some(0) => Purpose::EchoReply { remote },
            _ => Purpose::Icmp,
        }
    }

    #[cold]
    fn icmpv6(&self, (ip, remote): (usize, IpAddr), message: (usize, usize)) -> Purpose {
        match self.icmp_type(message) {
            Some(129) => Purpose::EchoReply { remote },
            Some(133..=137) if self.byte(ip + 7) == Some(255) => Purpose::Resolution {
                remote: Some(remote),
            },
            _ => Purpose::Icmp,
        }
    }

    fn ports(&self, protocol: u8, remote: IpAddr, (start, end): (usize, usize)) -> Option<Purpose> {
        let (transport, least) = match protocol {
            17 => (Transport::Udp, UDP),
            6 => (Transport::Tcp, TCP),
            _ => return None,
        };
        if start + least > end {
            return None;
        }
        if transport == Transport::Tcp {
            let header_len = usize::from(self.byte(start + 12)? >> 4) * 4;
            if header_len < TCP || start + header_len > end {
                return None;
            }
        }
        let [a, b, c, d] = self.array(start)?;
        Some(Purpose::Port {
            transport,
            remote,
            remote_port: u16::from_be_bytes([a, b]),
            port: u16::from_be_bytes([c, d]),
        })
    }
}

//! The beginning of a frame as an interface sees it: what the guard decides by.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::script::Aim;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMPV6: u8 = 58;
const FRAGMENT: u8 = 44;

/// A port at which nobody listens.
const CLOSED_PORT: u16 = 9;

/// Where packets of strangers come from, by the family of who gets them (RFC 5737, RFC 3849).
pub const fn stranger(to: SocketAddr) -> SocketAddr {
    let address = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 66)),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x66)),
    };
    SocketAddr::new(address, 6666)
}

/// The headers of a packet with `len` bytes behind them, filled up with zeros: it is as long as it says.
pub fn frame(from: SocketAddr, to: SocketAddr, aim: Aim, len: usize, into: &mut Vec<u8>) {
    into.clear();
    into.resize(12, 2);
    if aim == Aim::Resolution {
        into.extend_from_slice(&0x0806u16.to_be_bytes());
        into.resize(ETHERNET + 46, 0);
        return;
    }
    let icmp = matches!(aim, Aim::Icmp);
    let payload = UDP + len;
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let protocol = if icmp { PROTOCOL_ICMP } else { PROTOCOL_UDP };
            let total = (IPV4 + payload) as u16;
            // More fragments follow.
            let flags: u8 = if aim == Aim::Fragments { 0x20 } else { 0 };
            into.extend_from_slice(&0x0800u16.to_be_bytes());
            into.extend_from_slice(&[0x45, 0]);
            into.extend_from_slice(&total.to_be_bytes());
            into.extend_from_slice(&[0, 0, flags, 0, 64, protocol, 0, 0]);
            into.extend_from_slice(&from.octets());
            into.extend_from_slice(&to.octets());
        }
        (from, to) => {
            let v6 = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let protocol = if icmp { PROTOCOL_ICMPV6 } else { PROTOCOL_UDP };
            let fragment = aim == Aim::Fragments;
            let (next, total) = match fragment {
                true => (FRAGMENT, payload + 8),
                false => (protocol, payload),
            };
            into.extend_from_slice(&0x86ddu16.to_be_bytes());
            into.extend_from_slice(&[0x60, 0, 0, 0]);
            into.extend_from_slice(&(total as u16).to_be_bytes());
            into.extend_from_slice(&[next, 64]);
            into.extend_from_slice(&v6(from).octets());
            into.extend_from_slice(&v6(to).octets());
            if fragment {
                into.extend_from_slice(&[protocol, 0, 0, 1, 0, 0, 0, 0]);
            }
        }
    }
    let begin = into.len();
    if icmp {
        // An echo reply, as reference points send them.
        into.extend_from_slice(&[if to.is_ipv6() { 129 } else { 0 }, 0]);
    } else {
        let port = if aim == Aim::ClosedPort {
            CLOSED_PORT
        } else {
            to.port()
        };
        into.extend_from_slice(&from.port().to_be_bytes());
        into.extend_from_slice(&port.to_be_bytes());
        into.extend_from_slice(&(payload as u16).to_be_bytes());
    }
    into.resize(begin + payload, 0);
}

#[cfg(test)]
mod tests {
    use bumpless_guard::{Purpose, Transport, classify};

    use super::*;

    #[test]
    fn the_guard_takes_each_frame_for_what_the_script_says_that_it_is() {
        for (from, to) in [
            ("10.0.1.2:4701", "10.0.1.1:4700"),
            ("[fd00::2]:4701", "[fd00::1]:4700"),
        ] {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let port = |port| Purpose::Port {
                transport: Transport::Udp,
                remote: from.ip(),
                remote_port: 4701,
                port,
            };
            for (aim, purpose) in [
                (Aim::DataPort, port(4700)),
                (Aim::ClosedPort, port(CLOSED_PORT)),
                (Aim::Fragments, Purpose::Fragment),
                (Aim::Icmp, Purpose::EchoReply { remote: from.ip() }),
                (Aim::Resolution, Purpose::Resolution { remote: None }),
            ] {
                for len in [0, 1, 18, 1400] {
                    let mut bytes = Vec::new();
                    frame(from, to, aim, len, &mut bytes);
                    assert_eq!(classify(&bytes, bytes.len()), purpose, "{aim:?} {len} {to}");
                }
            }
        }
    }
}

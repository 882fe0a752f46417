//! Which user's process has a UDP address on this machine, as the kernel's tables tell.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first of `addresses` that a socket on this machine is bound to, and whose it is; `None`: none is, or the kernel
/// does not tell.
pub fn udp_holder(addresses: &[SocketAddr]) -> Option<(SocketAddr, u32)> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"];
    tables.iter().find_map(|table| {
        let text = fs::read_to_string(table).unwrap_or_default();
        holder_in(&text, addresses)
    })
}

fn holder_in(table: &str, addresses: &[SocketAddr]) -> Option<(SocketAddr, u32)> {
    table.lines().find_map(|line| {
        let mut columns = line.split_whitespace();
        let address = bound(columns.nth(1)?)?;
        let user = columns.nth(5)?.parse().ok()?;
        addresses.contains(&address).then_some((address, user))
    })
}

/// An address as the kernel writes it: words of 32 bits as this machine has them in memory, and the port.
fn bound(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let words = address.as_bytes().chunks(8);
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        let word = std::str::from_utf8(word).ok()?;
        place.copy_from_slice(&u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    let address = match (address.len(), bytes) {
        (8, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        (32, bytes) => IpAddr::V6(Ipv6Addr::from(bytes)),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_user_who_has_an_address_is_found_in_the_kernels_own_tables() {
        let own = fs::metadata("/proc/self").unwrap().uid();
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(local) else {
                continue;
            };
            let address = socket.local_addr().unwrap();
            let other = "192.0.2.1:9".parse().unwrap();
            assert_eq!(udp_holder(&[other, address]), Some((address, own)));
            assert_eq!(udp_holder(&[other]), None);
        }
    }

    #[test]
    fn a_table_that_is_not_as_expected_tells_nothing() {
        let address = "127.0.0.1:9".parse().unwrap();
        for table in [
            "",
            "a b c d e f g h\n",
            "1: 0100007F:0009\n",
            "1: 01:09 0 0 0 0 0 0\n",
            "1: äääää:09 0 0 0 0 0 0",
        ] {
            assert_eq!(holder_in(table, &[address]), None, "{table}");
        }
    }
}

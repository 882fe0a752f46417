//! Where a witness is.

use core::net::{IpAddr, SocketAddr};

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// The place of a witness with this address: FNV-1a, 32 bits, over the address as one of IPv6 and the port (N-5). All
/// witnesses have one number; by this, what is meant for one does not open at another, and what one answers does not pass
/// for another's answer.
pub fn place(address: SocketAddr) -> u32 {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let port = address.port().to_be_bytes();
    let bytes = ip.octets().into_iter().chain(port);
    bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(PRIME)
    })
}

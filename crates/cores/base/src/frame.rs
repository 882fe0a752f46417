//! What a datagram takes of an Ethernet beyond its payload, bytes.

/// Ethernet's share of every frame: preamble and delimiter 8, header 14, check sequence 4,
/// inter-frame gap 12 (IEEE 802.3, untagged).
pub const ETHERNET: u16 = 38;
/// IPv4's header without options.
pub const IPV4: u16 = 20;
/// IPv6's header without extensions.
pub const IPV6: u16 = 40;
/// UDP's header.
pub const UDP: u16 = 8;
/// A full frame of a network with the usual MTU of 1,500 bytes, on the wire.
pub const FULL: u16 = 1500 + ETHERNET;

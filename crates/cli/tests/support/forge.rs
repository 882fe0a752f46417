//! Datagrams with a sender that is not theirs, and a listener to what others send. Both need root.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const IP_LEN: usize = 20;
const UDP_LEN: usize = 8;

fn raw_socket(protocol: i32) -> OwnedFd {
    // SAFETY: socket() takes integers only.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor was just made and belongs to nobody else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Sends IPv4 datagrams from anybody.
pub struct Forger(OwnedFd);

impl Forger {
    pub fn new() -> Self {
        Self(raw_socket(libc::IPPROTO_RAW))
    }

    /// Sends `payload` to `to` as if `from` had.
    pub fn send(&self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let total = IP_LEN + UDP_LEN + payload.len();
        let mut packet = vec![0x45, 0];
        packet.extend((total as u16).to_be_bytes());
        // No identification, no fragments, 64 hops, UDP; the kernel fills the checksum in.
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        packet.extend(from.ip().octets());
        packet.extend(to.ip().octets());
        packet.extend(from.port().to_be_bytes());
        packet.extend(to.port().to_be_bytes());
        packet.extend(((UDP_LEN + payload.len()) as u16).to_be_bytes());
        // No checksum, which IPv4 permits.
        packet.extend([0, 0]);
        packet.extend(payload);
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr {
                s_addr: u32::from(*to.ip()).to_be(),
            },
            sin_zero: [0; 8],
        };
        // SAFETY: both pointers are to live values of the lengths that go with them.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_in>() as libc::socklen_t,
            )
        };
        assert_eq!(
            sent,
            packet.len() as isize,
            "{}",
            io::Error::last_os_error()
        );
    }
}

/// Hears a copy of every UDP datagram on this machine.
pub struct Listener(OwnedFd);

impl Listener {
    pub fn new() -> Self {
        Self(raw_socket(libc::IPPROTO_UDP))
    }

    /// The next datagram from `from` to `to` that was sent since this listener was made.
    pub fn next(&self, from: SocketAddrV4, to: SocketAddrV4) -> Option<Vec<u8>> {
        let mut packet = vec![0u8; 1 << 16];
        loop {
            // SAFETY: the pointer is to a live buffer of the given length.
            let length = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    packet.as_mut_ptr().cast(),
                    packet.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            let length = usize::try_from(length).ok()?;
            let heard = &packet[..length];
            if length < IP_LEN + UDP_LEN || heard[0] != 0x45 {
                continue;
            }
            let address = |ip: usize, port: usize| {
                let octets: [u8; 4] = heard[ip..ip + 4].try_into().unwrap();
                let port = u16::from_be_bytes([heard[port], heard[port + 1]]);
                SocketAddrV4::new(Ipv4Addr::from(octets), port)
            };
            if address(12, 20) == from && address(16, 22) == to {
                return Some(heard[IP_LEN + UDP_LEN..].to_vec());
            }
        }
    }
}

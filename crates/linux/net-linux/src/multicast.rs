//! Memberships of multicast groups, by interface and with a source or without, of both families alike (RFC 3678, 5.1).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;

use crate::sys::{RawAddress, check};

/// linux/in.h; the same numbers at both levels.
const JOIN: c_int = 42;
const LEAVE: c_int = 45;
const JOIN_SOURCE: c_int = 46;
const LEAVE_SOURCE: c_int = 47;

/// `struct sockaddr_storage` as the kernel has it, aligned as an address is.
#[derive(Clone, Copy)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(8)))]
#[cfg_attr(target_pointer_width = "32", repr(C, align(4)))]
struct Storage([u8; 128]);

/// `struct group_source_req`, of which `struct group_req` is the beginning.
#[repr(C)]
struct Request {
    interface: u32,
    group: Storage,
    source: Storage,
}

/// Length of `struct group_req`.
const WITHOUT_SOURCE: usize = std::mem::offset_of!(Request, source);

/// Makes `socket` a member of `group` on the interface with the kernel's number `on`: for packets of any source, or of one beside those that it
/// has joined for.
///
/// # Errors
/// There is no such interface, the socket is of another family, or the kernel permits no more.
pub fn join(socket: &impl AsFd, on: u32, group: IpAddr, source: Option<IpAddr>) -> io::Result<()> {
    set(socket, (JOIN, JOIN_SOURCE), on, group, source)
}

/// Ends what [`join`] has made.
///
/// # Errors
/// There is no such membership, as after the interface has gone.
pub fn leave(socket: &impl AsFd, on: u32, group: IpAddr, source: Option<IpAddr>) -> io::Result<()> {
    set(socket, (LEAVE, LEAVE_SOURCE), on, group, source)
}

fn set(
    socket: &impl AsFd,
    (of_any, of_one): (c_int, c_int),
    on: u32,
    group: IpAddr,
    source: Option<IpAddr>,
) -> io::Result<()> {
    let request = Request {
        interface: on,
        group: stored(group),
        source: source.map_or(Storage([0; 128]), stored),
    };
    let (name, len) = match source {
        None => (of_any, WITHOUT_SOURCE),
        Some(_) => (of_one, size_of::<Request>()),
    };
    let level = match group {
        IpAddr::V4(_) => libc::IPPROTO_IP,
        IpAddr::V6(_) => libc::IPPROTO_IPV6,
    };
    let (fd, value) = (socket.as_fd().as_raw_fd(), (&raw const request).cast());
    // SAFETY: `value` points to `len` bytes at least, which live through the call.
    check(unsafe { libc::setsockopt(fd, level, name, value, len as libc::socklen_t) })?;
    Ok(())
}

fn stored(address: IpAddr) -> Storage {
    let raw = RawAddress::new(SocketAddr::new(address, 0));
    let mut bytes = [0; 128];
    bytes[..raw.bytes.len()].copy_from_slice(&raw.bytes);
    Storage(bytes)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_request_has_the_kernels_layout() {
        let aligned = size_of::<usize>();
        assert_eq!(std::mem::offset_of!(Request, group), aligned);
        let lengths = (aligned + 128, aligned + 256);
        assert_eq!((WITHOUT_SOURCE, size_of::<Request>()), lengths);
    }

    #[test]
    fn a_membership_is_held_until_it_is_left_and_of_one_source_beside_another() {
        const LOOPBACK: u32 = 1;
        for (bound, group, sources) in [
            ("127.0.0.1:0", "239.77.9.1", ["127.0.0.2", "127.0.0.3"]),
            ("[::1]:0", "ff15::7709", ["fd00::2", "fd00::3"]),
        ] {
            let Ok(socket) = UdpSocket::bind(bound) else {
                eprintln!("skipped: this host has no address {bound}");
                continue;
            };
            let group = group.parse().unwrap();
            let [one, other] = sources.map(|it| Some(it.parse().unwrap()));
            for source in [one, other] {
                join(&socket, LOOPBACK, group, source).unwrap();
            }
            let again = join(&socket, LOOPBACK, group, one).map_err(|it| it.kind());
            assert_eq!(again, Err(io::ErrorKind::AddrNotAvailable));
            for source in [one, other] {
                leave(&socket, LOOPBACK, group, source).unwrap();
                assert!(leave(&socket, LOOPBACK, group, source).is_err());
            }
            join(&socket, LOOPBACK, group, None).unwrap();
            leave(&socket, LOOPBACK, group, None).unwrap();
            let nowhere = join(&socket, u32::MAX >> 1, group, None);
            assert!(nowhere.is_err());
        }
    }
}

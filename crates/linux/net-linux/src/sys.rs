//! What several drivers need of the kernel interface: sockets, options, addresses, control data.

use crate::errno::Errno;
use libc::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A system call's result: a negative one becomes the error number.
pub(crate) fn check(result: c_int) -> Result<c_int, Errno> {
    if result < 0 {
        Err(Errno::last())
    } else {
        Ok(result)
    }
}

/// As [`check`], for the calls that return a length.
pub(crate) fn check_len(result: isize) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::last())
}

/// Opens a non-blocking socket that child processes do not inherit.
pub(crate) fn socket(family: c_int, kind: c_int, protocol: c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: socket() takes integers only.
    let fd = unsafe {
        libc::socket(
            family,
            kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            protocol,
        )
    };
    let fd = check(fd)?;
    // SAFETY: the kernel just handed out `fd` and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an integer socket option.
pub(crate) fn set_option(
    fd: impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> Result<(), Errno> {
    let value = &raw const value;
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `value` points to a c_int that lives through the call, and `len` is its size.
    check(unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, value.cast(), len) })?;
    Ok(())
}

/// Reads an integer socket option.
pub(crate) fn option(fd: &OwnedFd, level: c_int, name: c_int) -> Result<c_int, Errno> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    let out = (&raw mut value).cast();
    // SAFETY: `out` has room for `len` bytes, and both live through the call.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, out, &raw mut len) })?;
    Ok(value)
}

/// Packets that the kernel dropped because the socket's receive buffer was full, or seldom because a checksum was
/// wrong.
pub(crate) fn receive_drops(fd: &OwnedFd) -> Result<u32, Errno> {
    /// Position of the drop count in what SO_MEMINFO returns (linux/sock_diag.h).
    const SK_MEMINFO_DROPS: usize = 8;
    let mut values = [0u32; SK_MEMINFO_DROPS + 1];
    let mut len = size_of_val(&values) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_MEMINFO);
    let out = values.as_mut_ptr().cast();
    // SAFETY: `out` has room for `len` bytes, and both live through the call.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, out, &raw mut len) })?;
    // An emulator of the kernel may know less of the option.
    match len as usize == size_of_val(&values) {
        true => Ok(values[SK_MEMINFO_DROPS]),
        false => Err(Errno(libc::ENOPROTOOPT)),
    }
}

/// Has what arrives pass a program of classic BPF, in place of the one before.
pub(crate) fn attach_filter(fd: &OwnedFd, program: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno(libc::EINVAL))?,
        filter: program.as_ptr().cast_mut(),
    };
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    let len = size_of_val(&program) as libc::socklen_t;
    // SAFETY: `program` lives through the call, `len` is its size, and it points to as many steps as it says, which the kernel
    // copies and does not change.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const program).cast(),
            len,
        )
    };
    check(result).map(drop)
}

/// Has everything pass; that nothing is attached is no failure.
pub(crate) fn detach_filter(fd: &OwnedFd) -> Result<(), Errno> {
    match set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0) {
        Err(Errno(libc::ENOENT)) => Ok(()),
        other => other,
    }
}

/// The address family's number of an address.
pub(crate) const fn family(ip: &IpAddr) -> c_int {
    match ip {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    }
}

/// Binds a socket to an address.
pub(crate) fn bind(fd: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    let raw = RawAddress::new(address);
    // SAFETY: `raw` holds a socket address of `raw.len` bytes and lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len) })?;
    Ok(())
}

/// The address to which a socket is bound.
pub(crate) fn local_address(fd: &OwnedFd) -> Result<SocketAddr, Errno> {
    let mut raw = RawAddress::EMPTY;
    let name = raw.bytes.as_mut_ptr().cast();
    // SAFETY: `name` has room for `raw.len` bytes, and both live through the call.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), name, &raw mut raw.len) })?;
    raw.get().ok_or(Errno(libc::EAFNOSUPPORT))
}

/// An IPv4 or IPv6 socket address in the kernel's layout (ip(7), ipv6(7)).
///
/// Kept as bytes, so that reading one that the kernel wrote needs no union:
/// family(2, host order) port(2) then for IPv4 address(4), for IPv6 flow(4) address(16)
/// scope(4, host order).
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct RawAddress {
    pub(crate) bytes: [u8; 28],
    pub(crate) len: libc::socklen_t,
}

impl RawAddress {
    const V4_LEN: usize = 16;
    /// Room for an address of either family.
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; 28],
        len: 28,
    };

    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut raw = Self::EMPTY;
        let family = family(&address.ip()) as libc::sa_family_t;
        raw.bytes[..2].copy_from_slice(&family.to_ne_bytes());
        raw.bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(v4) => {
                raw.bytes[4..8].copy_from_slice(&v4.ip().octets());
                raw.len = Self::V4_LEN as libc::socklen_t;
            }
            SocketAddr::V6(v6) => {
                raw.bytes[8..24].copy_from_slice(&v6.ip().octets());
                raw.bytes[24..].copy_from_slice(&v6.scope_id().to_ne_bytes());
            }
        }
        raw
    }

    /// The address, or `None` if it is of another family or too short.
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        let len = self.len as usize;
        match c_int::from(u16::from_ne_bytes([self.bytes[0], self.bytes[1]])) {
            libc::AF_INET if len >= Self::V4_LEN => {
                let octets: [u8; 4] = self.bytes[4..8].try_into().ok()?;
                Some(SocketAddrV4::new(Ipv4Addr::from(octets), port).into())
            }
            libc::AF_INET6 if len >= self.bytes.len() => {
                let octets: [u8; 16] = self.bytes[8..24].try_into().ok()?;
                let scope = u32::from_ne_bytes(self.bytes[24..].try_into().ok()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(octets), port, 0, scope).into())
            }
            _ => None,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        self.bytes.as_ptr().cast()
    }
}

/// One control message with a small integer, in the kernel's layout (cmsg(3)).
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Control<T> {
    pub(crate) len: usize,
    pub(crate) level: c_int,
    pub(crate) kind: c_int,
    pub(crate) value: T,
}

impl<T> Control<T> {
    /// Length up to the end of the value, as CMSG_LEN gives it. The struct's own size, with its
    /// padding, is what CMSG_SPACE gives.
    pub(crate) const LEN: usize = std::mem::offset_of!(Self, value) + size_of::<T>();
}

impl Control<c_int> {
    /// The size of the datagrams that the kernel has coalesced into a message (UDP_GRO), if this is what it says. `whole`:
    /// it has written so many bytes of control messages.
    pub(crate) fn segment_size(&self, whole: bool) -> Option<usize> {
        let told = whole && (self.level, self.kind) == (libc::SOL_UDP, libc::UDP_GRO);
        let size = usize::try_from(self.value).ok()?;
        (told && size > 0).then_some(size)
    }
}

/// A message header without anything in it.
pub(crate) const fn empty_message() -> libc::mmsghdr {
    // SAFETY: mmsghdr is plain data; null pointers with zero lengths are valid in it.
    unsafe { std::mem::zeroed() }
}

/// A descriptor's number, for calls that take it so.
pub(crate) fn raw(fd: &OwnedFd) -> RawFd {
    fd.as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_to_the_kernels_layout_and_back() {
        for text in [
            "127.0.1.1:4700",
            "0.0.0.0:0",
            "[::1]:65535",
            "[fe80::1%7]:1",
        ] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(RawAddress::new(address).get(), Some(address));
        }
        assert_eq!(RawAddress::EMPTY.get(), None);
        let mut short = RawAddress::new("[::1]:1".parse().unwrap());
        short.len = 16;
        assert_eq!(short.get(), None);
    }

    #[test]
    fn control_messages_have_the_layout_of_the_c_macros() {
        // SAFETY: these macros only compute lengths.
        let (len, space) = unsafe { (libc::CMSG_LEN(2) as usize, libc::CMSG_SPACE(2) as usize) };
        assert_eq!(
            (Control::<u16>::LEN, size_of::<Control<u16>>()),
            (len, space)
        );
    }
}

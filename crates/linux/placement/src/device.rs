//! What the kernel says of an interface at a socket (netdevice(7), linux/ethtool.h), in the thread's network namespace.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const HARDWARE_ADDRESS: libc::c_ulong = 0x8927;
const ETHTOOL: libc::c_ulong = 0x8946;
const RING: u32 = 0x10;
/// Bytes of an interface's name, with the zero behind it.
const NAME_LEN: usize = 16;

/// How many packets wait in an interface's receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// At most, as it is set.
    pub packets: u32,
    /// At most, if it is set so.
    pub most: u32,
}

/// Of `struct ifreq`: the name, and what belongs to the request.
#[repr(C)]
struct Request<T> {
    name: [u8; NAME_LEN],
    of_request: T,
}

/// The kernel copies this much of a request in and out, whatever it is about.
const REQUEST_LEN: usize = 40;

/// As long as the longest of what a request is about.
#[repr(C)]
union OfRequest {
    bytes: [u8; REQUEST_LEN - NAME_LEN],
    pointer: *mut u32,
}

fn request(name: &str, of_request: OfRequest) -> Option<Request<OfRequest>> {
    let mut request = Request {
        name: [0; NAME_LEN],
        of_request,
    };
    // One byte less than there is room for: the zero.
    let fits = (1..NAME_LEN).contains(&name.len());
    fits.then(|| request.name[..name.len()].copy_from_slice(name.as_bytes()))?;
    Some(request)
}

fn ask(kind: libc::c_ulong, request: &mut Request<OfRequest>) -> io::Result<()> {
    const { assert!(size_of::<Request<OfRequest>>() == REQUEST_LEN) };
    let socket = socket()?;
    // SAFETY: `request` is as long as the kernel's structure and lives through the call, and so does what a pointer in it points to.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), kind as _, std::ptr::from_mut(request)) };
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: socket() takes integers only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    match socket {
        // SAFETY: the kernel has just made this descriptor, and nobody else owns it.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(socket) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The receive ring of an interface; `None`: its driver has none or does not tell.
pub fn ring(name: &str) -> Option<Ring> {
    // struct ethtool_ringparam: what is asked; most to receive, of mini and jumbo, to send; then the same as it is set.
    let mut words = [RING, 0, 0, 0, 0, 0, 0, 0, 0];
    let pointer = words.as_mut_ptr();
    let mut request = request(name, OfRequest { pointer })?;
    ask(ETHTOOL, &mut request).ok()?;
    let ring = Ring {
        packets: words[5],
        most: words[1],
    };
    (ring.packets > 0).then_some(ring)
}

/// The hardware address of an interface, as the kernel's files write it; `None`: there is no such interface.
pub fn hardware_address(name: &str) -> Option<String> {
    let bytes = [0; REQUEST_LEN - NAME_LEN];
    let mut request = request(name, OfRequest { bytes })?;
    ask(HARDWARE_ADDRESS, &mut request).ok()?;
    // SAFETY: the kernel has written an address there, of bytes.
    let bytes = unsafe { request.of_request.bytes };
    // Behind the family's two bytes.
    let shown: Vec<_> = bytes[2..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(shown.join(":"))
}

/// The kernel's number of the interface; `None`: there is no such interface.
pub fn number(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is a string that lives through the call.
    let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_or_has_no_ring_has_none() {
        for name in ["", "no-such-one", "a-name-that-is-too-long"] {
            assert_eq!(
                (ring(name), hardware_address(name), number(name)),
                (None, None, None)
            );
        }
        assert_eq!(ring("lo"), None);
    }
}

//! Having the kernel note which pages of the state are written (H-17).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// `struct uffdio_api` of `linux/userfaultfd.h`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

const USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xAA;
/// Write protection, of shared memory, of pages that are not there yet, undone by the kernel at the first write.
const FEATURES: u64 = 1 | 1 << 12 | 1 << 13 | 1 << 15;
const UFFDIO_API: libc::c_ulong = 0xC018_AA3F;
const UFFDIO_REGISTER: libc::c_ulong = 0xC020_AA00;
const MODE_WP: u64 = 2;

/// Registers `len` bytes from `start` on, both whole pages, for as long as the descriptor is open.
pub(crate) fn writes(start: NonNull<u8>, len: usize) -> io::Result<OwnedFd> {
    // SAFETY: the call takes flags alone. User mode suffices: no system call writes into the state on our behalf
    // that asynchronous protection would not let through.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_userfaultfd,
            libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY,
        )
    };
    let Ok(fd @ 0..) = i32::try_from(fd) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the kernel has just made it, and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut api = Api {
        api: UFFD_API,
        features: FEATURES,
        ioctls: 0,
    };
    // SAFETY: the request reads and writes one `uffdio_api`, which `Api` is.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), UFFDIO_API, &raw mut api) })?;
    let mut register = Register {
        start: start.as_ptr() as u64,
        len: len as u64,
        mode: MODE_WP,
        ioctls: 0,
    };
    // SAFETY: the request reads and writes one `uffdio_register`; protection that the kernel undoes by itself
    // changes nothing for whoever writes to the range.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), UFFDIO_REGISTER, &raw mut register) })?;
    Ok(fd)
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

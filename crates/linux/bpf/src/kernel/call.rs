//! Calls of bpf(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const INFO: libc::c_long = 15;

/// One call. `attribute` is one of the kernel's structures, without padding that is not written.
pub fn bpf<T>(command: libc::c_long, attribute: &mut T) -> io::Result<i32> {
    let pointer = std::ptr::from_mut(attribute);
    // SAFETY: `attribute` is a `repr(C)` structure of the kernel's that lives through the call, its size is told, and every
    // address in it is that of memory of the caller's that does, too, and is as long as the lengths beside it say.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    match result {
        0.. => Ok(result as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The same for calls that make a descriptor.
pub fn bpf_opening<T>(command: libc::c_long, attribute: &mut T) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attribute)?;
    // SAFETY: the kernel has just made this descriptor (with close-on-exec), and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

pub fn short_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(name.bytes().take(15)) {
        *to = from;
    }
    bytes
}
#[repr(C)]
struct InfoArguments {
    descriptor: u32,
    len: u32,
    info: u64,
}

pub fn info<const N: usize>(descriptor: &OwnedFd) -> io::Result<[u8; N]> {
    let mut info = [0; N];
    let mut arguments = InfoArguments {
        descriptor: descriptor.as_raw_fd() as u32,
        len: N as u32,
        info: info.as_mut_ptr() as u64,
    };
    bpf(INFO, &mut arguments)?;
    Ok(info)
}

//! Memory of a map, which the kernel and this process share.

use std::io;
use std::ptr::NonNull;

use crate::kernel::Map;

/// Memory that is shared with the kernel, until this is dropped.
#[derive(Debug)]
pub struct Mapped {
    at: NonNull<u8>,
    len: usize,
}

impl Mapped {
    /// `len` bytes of a map's memory from `offset` on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(map: &Map, len: usize, protection: i32, offset: usize) -> io::Result<Self> {
        // All of it at once, so that no record waits for a page, and memory does not grow when the first ones come.
        let (flags, descriptor) = (libc::MAP_SHARED | libc::MAP_POPULATE, map.number());
        let offset = offset as libc::off_t;
        // SAFETY: a place for it is asked for and none is replaced; the descriptor is open, and outlived by what it maps.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                flags,
                descriptor,
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, len })
    }

    /// Where it begins: the begin of a page.
    pub const fn at(&self) -> NonNull<u8> {
        self.at
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and whatever borrowed from it has ended with `self`.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

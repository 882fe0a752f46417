//! Having the kernel note which pages of the state are written, and telling the host (H-17).

use core::sync::atomic::Ordering;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use rustix::param::page_size;

use crate::layout::{ALL, Header, RANGES_MAX};

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

/// `struct pm_scan_arg` of `linux/fs.h`.
#[derive(Default)]
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xAA;
/// Write protection, of shared memory, of pages that are not there yet, undone by the kernel at the first write.
const FEATURES: u64 = 1 | 1 << 12 | 1 << 13 | 1 << 15;
const UFFDIO_API: libc::c_ulong = 0xC018_AA3F;
const UFFDIO_REGISTER: libc::c_ulong = 0xC020_AA00;
const MODE_WP: u64 = 2;
const PAGEMAP_SCAN: libc::c_ulong = 0xC060_6610;
/// Protect again what is reported, and refuse a range that is not registered for that.
const SCAN_FLAGS: u64 = 1 | 2;
const PAGE_IS_WRITTEN: u64 = 2;

/// The kernel's notes on a range of memory.
pub(crate) struct Tracker {
    /// The range is tracked for as long as it is open.
    _registered: OwnedFd,
    pagemap: File,
    start: u64,
    end: u64,
    regions: Box<[Region]>,
}

impl Tracker {
    /// Of `len` bytes from `start` on, both whole pages.
    pub fn of(start: NonNull<u8>, len: usize) -> io::Result<Self> {
        let start = start.as_ptr() as u64;
        Ok(Self {
            _registered: register(start, len as u64)?,
            pagemap: File::open("/proc/self/pagemap")?,
            start,
            end: start + len as u64,
            regions: vec![Region::default(); RANGES_MAX].into_boxed_slice(),
        })
    }

    /// Tells the host which pages were written since this was last called. *By the writer itself: were another process
    /// to protect its pages again, its processor would have to be interrupted.*
    pub fn tell(&mut self, header: &Header) {
        let count = self.scan().unwrap_or(ALL);
        let page = page_size() as u64;
        for (range, region) in header.ranges.iter().zip(&self.regions).take(count as usize) {
            let first = (region.start - self.start) / page;
            range[0].store(first as u32, Ordering::Relaxed);
            range[1].store(
                ((region.end - region.start) / page) as u32,
                Ordering::Relaxed,
            );
        }
        header.changes.store(count, Ordering::Relaxed);
    }

    /// How many regions there are, if that is all of them.
    fn scan(&mut self) -> Option<u32> {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: SCAN_FLAGS,
            start: self.start,
            end: self.end,
            vec: self.regions.as_mut_ptr() as u64,
            vec_len: self.regions.len() as u64,
            category_mask: PAGE_IS_WRITTEN,
            return_mask: PAGE_IS_WRITTEN,
            ..Scan::default()
        };
        // SAFETY: the request reads and writes one `pm_scan_arg`, which `Scan` is, and at most `vec_len` regions
        // from `vec` on, which are ours for the length of the call.
        let count = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
        u32::try_from(count)
            .ok()
            .filter(|_| scan.walk_end >= self.end)
    }
}

fn register(start: u64, len: u64) -> io::Result<OwnedFd> {
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
        start,
        len,
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

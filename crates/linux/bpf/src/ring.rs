//! Records that a program hands to this process, in memory that both share (BPF_MAP_TYPE_RINGBUF; linux/bpf.h,
//! Documentation/bpf/ringbuf.rst): no call of the kernel's is needed to read one.
//!
//! The ring is a page in which this process says how far it has read, a page in which the kernel says how far there is something, and
//! the records, mapped twice in a row so that none of them has a gap.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::kernel::{Map, MapKind};
use crate::mapped::Mapped;

/// What the kernel puts before each record, bytes.
pub const RECORD_HEADER: usize = 8;
/// The record is being written.
const BUSY: u32 = 1 << 31;
/// The program has given the record up.
const GIVEN_UP: u32 = 1 << 30;

/// What stands at a place of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A record.
    Whole(&'a [u8]),
    /// One that the program has given up.
    GivenUp,
}

/// Where in a ring a record begins. Places grow for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

/// The end of a ring at which records are read.
#[derive(Debug)]
pub struct Ring {
    map: Map,
    /// Where this process says how far it has read.
    read: Mapped,
    /// Where the kernel says how far there is something; records begin a page behind.
    filled: Mapped,
    page: usize,
    size: usize,
}

// SAFETY: the memory is nobody's but this value's and the kernel's, and no thread has a claim to it.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of `size` bytes: a power of two, and whole pages.
    ///
    /// # Errors
    /// The kernel has no rings (before 5.8), or the right to them is missing.
    pub fn new(name: &str, size: usize) -> io::Result<Self> {
        let map = Map::new(name, MapKind::Ring, 0, 0, size)?;
        // SAFETY: sysconf() takes an integer only.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(io::Error::other)?;
        let read = Mapped::new(&map, page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let filled = Mapped::new(&map, page + 2 * size, libc::PROT_READ, page)?;
        Ok(Self {
            map,
            read,
            filled,
            page,
            size,
        })
    }

    /// The descriptor of the map, as programs name it.
    pub fn number(&self) -> i32 {
        self.map.number()
    }

    fn read_up_to(&self) -> &AtomicU64 {
        // SAFETY: the kernel keeps an aligned number of eight bytes at the page's begin, which it only reads; it is read and written in
        // one step here. The page lives as long as `self`.
        unsafe { self.read.at().cast::<AtomicU64>().as_ref() }
    }

    fn filled_up_to(&self) -> u64 {
        // SAFETY: as in `read_up_to`; the kernel writes this one, in one step, and this process never.
        let filled = unsafe { self.filled.at().cast::<AtomicU64>().as_ref() };
        filled.load(Ordering::Acquire)
    }

    /// The place of the first record that was not given back.
    pub fn begin(&self) -> Place {
        Place(self.read_up_to().load(Ordering::Relaxed))
    }

    /// The record at `place`, which is [`Self::begin`] or what this said of the one before it, and the place behind it. `None`: there
    /// is none yet.
    pub fn record(&self, place: Place) -> Option<(Record<'_>, Place)> {
        let (begin, filled) = (self.begin(), self.filled_up_to());
        if place < begin || place.0 >= filled {
            return None;
        }
        let Place(place) = place;
        let at = self.page + (place % self.size as u64) as usize;
        // SAFETY: `at` is aligned to eight bytes, and within the first copy of the records. The kernel writes a record's header in one
        // step after the record itself.
        let header = unsafe { self.filled.at().add(at).cast::<AtomicU32>().as_ref() };
        let header = header.load(Ordering::Acquire);
        if header & BUSY != 0 {
            return None;
        }
        let len = (header & !GIVEN_UP) as usize;
        let behind = place + (RECORD_HEADER + len).next_multiple_of(8) as u64;
        if behind > filled {
            return None;
        }
        if header & GIVEN_UP != 0 {
            return Some((Record::GivenUp, Place(behind)));
        }
        // SAFETY: the record lies between what was read and what is filled, so within the two copies of the records, and the kernel
        // writes to it no more until it is given back, which takes `self` for itself.
        let bytes = unsafe {
            let first = self.filled.at().add(at + RECORD_HEADER);
            std::slice::from_raw_parts(first.as_ptr(), len)
        };
        Some((Record::Whole(bytes), Place(behind)))
    }

    /// Gives everything before `place` back to the kernel. A place before the begin, or where nothing is yet, changes nothing.
    pub fn give_back(&mut self, place: Place) {
        if (self.begin()..=Place(self.filled_up_to())).contains(&place) {
            self.read_up_to().store(place.0, Ordering::Release);
        }
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.map.number()
    }
}

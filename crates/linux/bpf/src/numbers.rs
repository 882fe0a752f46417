//! Numbers that programs and this process share.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernel::{Map, MapKind};
use crate::mapped::Mapped;

/// Numbers of eight bytes, one behind the other, zero at first. Programs have them by
/// [`Assembler::map_value`](crate::Assembler::map_value).
#[derive(Debug)]
pub struct Numbers {
    map: Map,
    memory: Mapped,
    count: usize,
}

// SAFETY: the memory is shared with the kernel's programs anyway, and read and written in atomic numbers.
unsafe impl Send for Numbers {}
// SAFETY: as above.
unsafe impl Sync for Numbers {}

impl Numbers {
    /// So many of them.
    ///
    /// # Errors
    /// The kernel has no such memory (before 5.5), or the right to it is missing.
    pub fn new(name: &str, count: usize) -> io::Result<Self> {
        let len = count * size_of::<u64>();
        let map = Map::new(name, MapKind::SharedArray, size_of::<u32>(), len, 1)?;
        let memory = Mapped::new(&map, len, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        Ok(Self { map, memory, count })
    }

    /// The descriptor of the map, as programs name it.
    pub fn number(&self) -> i32 {
        self.map.number()
    }

    /// Sets one of them.
    ///
    /// # Panics
    /// There are not so many.
    pub fn store(&self, place: usize, value: u64) {
        self.at(place).store(value, Ordering::SeqCst);
    }

    /// One of them.
    ///
    /// # Panics
    /// There are not so many.
    pub fn load(&self, place: usize) -> u64 {
        self.at(place).load(Ordering::SeqCst)
    }

    fn at(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.count, "{place} of {}", self.count);
        // SAFETY: the memory begins with a page, has `count` numbers, and lives as long as `self`.
        unsafe { self.memory.at().cast::<AtomicU64>().add(place).as_ref() }
    }
}

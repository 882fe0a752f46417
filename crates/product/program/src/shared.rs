//! The memory as it is mapped into one of the two processes.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::AsFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{HEADER_SIZE, Header, MAGIC, STATE_ALIGNMENT, VERSION, result};

/// Where the areas lie and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// Most bytes of the state.
    pub state_max: usize,
}

impl Areas {
    /// Offset of the outputs.
    pub fn outputs_at(self) -> usize {
        // Another cache line than the inputs.
        (HEADER_SIZE + self.inputs * 8).next_multiple_of(64)
    }

    /// Offset of the state.
    pub fn state_at(self) -> usize {
        (self.outputs_at() + self.outputs * 8).next_multiple_of(STATE_ALIGNMENT)
    }

    /// Size of the whole memory.
    pub fn total(self) -> usize {
        self.state_at() + self.state_max.next_multiple_of(STATE_ALIGNMENT)
    }
}

/// Why a memory cannot be used.
#[derive(Debug)]
pub enum Misfit {
    /// The system does not map it.
    System(io::Error),
    /// It does not begin as such a memory does.
    Magic,
    /// It has another version.
    Version(u32),
    /// Its areas contradict its size, or one another.
    Areas,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "it cannot be mapped: {error}"),
            Self::Magic => f.write_str("it is no memory of a Bumpless host"),
            Self::Version(found) => write!(
                f,
                "the host speaks version {found} of the protocol and this program version {VERSION}: \
                 build it with the library of the host's release"
            ),
            Self::Areas => f.write_str("its sizes contradict one another"),
        }
    }
}

/// The memory, mapped. What it is made of does not change, whatever the other side writes into the header.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<u8>,
    total: usize,
    areas: Areas,
}

// SAFETY: the mapping belongs to the process, not to a thread, and this value alone unmaps it. Header and values
// are atomic; who copies or borrows the state says why he may.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps a memory of the host's own making and writes what its header says of it.
    ///
    /// # Errors
    /// The system does not map it.
    pub fn create(memory: impl AsFd, areas: Areas) -> io::Result<Self> {
        let shared = Self::map(memory, areas.total(), areas)?;
        let header = shared.header();
        header.magic.store(MAGIC, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.total.store(areas.total() as u64, Ordering::Relaxed);
        // Their number is limited far below 2^32 by the size of the memory.
        header.inputs.store(areas.inputs as u32, Ordering::Relaxed);
        header
            .outputs
            .store(areas.outputs as u32, Ordering::Relaxed);
        header
            .inputs_at
            .store(HEADER_SIZE as u64, Ordering::Relaxed);
        header
            .outputs_at
            .store(areas.outputs_at() as u64, Ordering::Relaxed);
        header
            .state_at
            .store(areas.state_at() as u64, Ordering::Relaxed);
        header
            .state_max
            .store(areas.state_max as u64, Ordering::Relaxed);
        Ok(shared)
    }

    /// Maps the memory that a host has made, which has `size` bytes by the file's own account.
    ///
    /// # Errors
    /// It is none, of another version, or contradicts itself. With another version the program's own is told in
    /// the header first, and that it does not fit.
    pub fn attach(memory: impl AsFd, size: usize) -> Result<Self, Misfit> {
        if size < HEADER_SIZE {
            return Err(Misfit::Magic);
        }
        let none = Areas {
            inputs: 0,
            outputs: 0,
            state_max: 0,
        };
        let mut shared = Self::map(memory, size, none).map_err(Misfit::System)?;
        let header = shared.header();
        if header.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(Misfit::Magic);
        }
        header.program_version.store(VERSION, Ordering::Relaxed);
        let version = header.version.load(Ordering::Relaxed);
        if version != VERSION {
            header.answer(result::VERSION);
            return Err(Misfit::Version(version));
        }
        let areas = Areas {
            inputs: header.inputs.load(Ordering::Relaxed) as usize,
            outputs: header.outputs.load(Ordering::Relaxed) as usize,
            state_max: usize::try_from(header.state_max.load(Ordering::Relaxed))
                .map_err(|_| Misfit::Areas)?,
        };
        // One layout for one set of sizes: offsets need no judging of their own. The sum cannot overflow.
        let fits = areas.state_max <= size
            && areas.total() == size
            && header.total.load(Ordering::Relaxed) == size as u64
            && header.inputs_at.load(Ordering::Relaxed) == HEADER_SIZE as u64
            && header.outputs_at.load(Ordering::Relaxed) == areas.outputs_at() as u64
            && header.state_at.load(Ordering::Relaxed) == areas.state_at() as u64;
        if !fits {
            return Err(Misfit::Areas);
        }
        shared.areas = areas;
        Ok(shared)
    }

    fn map(memory: impl AsFd, total: usize, areas: Areas) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping at an address that the kernel chooses touches no memory that is in use.
        let base = unsafe {
            mmap(
                core::ptr::null_mut(),
                total,
                protection,
                MapFlags::SHARED,
                memory,
                0,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, total, areas })
    }

    /// The front of the memory.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping is at least `HEADER_SIZE` long, aligned to a page, and lives as long as `self`; all
        // fields are atomic, and any bytes are a value of theirs.
        unsafe { self.base.cast().as_ref() }
    }

    /// Where the areas lie.
    pub fn areas(&self) -> Areas {
        self.areas
    }

    /// The inputs, each the bits of a binary64.
    pub fn inputs(&self) -> &[AtomicU64] {
        self.values(HEADER_SIZE, self.areas.inputs)
    }

    /// The outputs, each the bits of a binary64.
    pub fn outputs(&self) -> &[AtomicU64] {
        self.values(self.areas.outputs_at(), self.areas.outputs)
    }

    fn values(&self, at: usize, count: usize) -> &[AtomicU64] {
        // SAFETY: `Areas` places the values within the mapping, aligned to 8 bytes; they are atomic.
        unsafe { core::slice::from_raw_parts(self.base.add(at).cast().as_ptr(), count) }
    }

    /// The first byte of the state's area. The other side may write there, too: see H-7 for when.
    pub fn state(&self) -> NonNull<u8> {
        // SAFETY: `Areas` places the state within the mapping.
        unsafe { self.base.add(self.areas.state_at()) }
    }

    /// Copies the state's bytes from `offset` on.
    ///
    /// # Panics
    /// They reach beyond the area.
    pub fn copy_state(&self, offset: usize, into: &mut [u8]) {
        self.assert_within(offset, into.len());
        // SAFETY: both ranges are valid and apart. Should the other side break its word and write meanwhile, the
        // bytes are of no one moment, which any bytes may be.
        unsafe {
            let from = self.state().add(offset);
            core::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len());
        }
    }

    /// Whether the state's bytes from `offset` on are these.
    ///
    /// # Panics
    /// They reach beyond the area.
    pub fn state_is(&self, offset: usize, bytes: &[u8]) -> bool {
        self.assert_within(offset, bytes.len());
        // SAFETY: the range is valid; as for `copy_state`.
        let there =
            unsafe { core::slice::from_raw_parts(self.state().add(offset).as_ptr(), bytes.len()) };
        there == bytes
    }

    /// Writes the state's first bytes.
    ///
    /// # Panics
    /// They reach beyond the area.
    pub fn write_state(&self, bytes: &[u8]) {
        self.assert_within(0, bytes.len());
        // SAFETY: as for `copy_state`.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.state().as_ptr(), bytes.len());
        }
    }

    fn assert_within(&self, offset: usize, len: usize) {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.areas.state_max),
            "bytes {offset} to {end:?} of a state of at most {}",
            self.areas.state_max
        );
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that `map` made, and nothing that borrows it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.total) };
    }
}

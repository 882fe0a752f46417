//! Memory that programs and this process share by key.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::call::{bpf, bpf_opening, short_name};

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOK_UP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const MAP_REMOVE: libc::c_long = 3;

/// What kind of map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Found by key.
    Hash,
    /// Numbered elements.
    Array,
    /// Numbered elements in memory that this process may have, too (Linux 5.5).
    SharedArray,
    /// Numbered elements, for each processor one.
    ArrayPerProcessor,
    /// Records one behind the other; its number of entries is its size in bytes, and it has neither keys nor values.
    Ring,
}

impl MapKind {
    /// The kernel's number of it, and its flags.
    const fn numbers(self) -> (u32, u32) {
        match self {
            Self::Hash => (1, 0),
            Self::Array => (2, 0),
            Self::SharedArray => (2, 1 << 10),
            Self::ArrayPerProcessor => (6, 0),
            Self::Ring => (27, 0),
        }
    }
}

/// A map.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    key_len: usize,
    /// Bytes of what a look-up gives: for each processor, where the kind says so.
    value_len: usize,
}

#[repr(C)]
struct MapArguments {
    kind: u32,
    key_len: u32,
    value_len: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

#[repr(C)]
struct ElementArguments {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    /// A map of so many entries, which `bpftool` and others show under the first 15 letters of `name`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(
        name: &str,
        kind: MapKind,
        key_len: usize,
        value_len: usize,
        entries: usize,
    ) -> io::Result<Self> {
        let (number, flags) = kind.numbers();
        let mut arguments = MapArguments {
            kind: number,
            key_len: key_len as u32,
            value_len: value_len as u32,
            entries: entries as u32,
            flags,
            inner: 0,
            node: 0,
            name: short_name(name),
        };
        let processors = match kind {
            MapKind::ArrayPerProcessor => processors()?,
            _ => 1,
        };
        Ok(Self {
            descriptor: bpf_opening(MAP_CREATE, &mut arguments)?,
            key_len,
            value_len: value_len.next_multiple_of(8) * processors,
        })
    }

    /// Its descriptor, as programs name it.
    pub fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Puts a value in, in the place of one that is there.
    pub fn put(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let too_short = value.len().next_multiple_of(8) < self.value_len;
        if key.len() != self.key_len || too_short {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut arguments = ElementArguments {
            map: self.number() as u32,
            padding: 0,
            key: key.as_ptr() as u64,
            value: value.as_ptr() as u64,
            flags: 0,
        };
        bpf(MAP_UPDATE, &mut arguments).map(drop)
    }

    /// Takes a key out, if it is in.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        if key.len() != self.key_len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut arguments = ElementArguments {
            map: self.number() as u32,
            padding: 0,
            key: key.as_ptr() as u64,
            value: 0,
            flags: 0,
        };
        match bpf(MAP_REMOVE, &mut arguments) {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Bytes of a value, those of all processors together.
    pub const fn value_len(&self) -> usize {
        self.value_len
    }

    /// The value at `key`; those of all processors, one behind the other.
    pub fn get(&self, key: &[u8]) -> io::Result<Vec<u8>> {
        if key.len() != self.key_len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut value = vec![0; self.value_len];
        let mut arguments = ElementArguments {
            map: self.number() as u32,
            padding: 0,
            key: key.as_ptr() as u64,
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        bpf(MAP_LOOK_UP, &mut arguments)?;
        Ok(value)
    }
}

/// Processors that the kernel reckons with: the highest number, and one.
fn processors() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    last_processor(&text).map(|last| last + 1).ok_or_else(|| {
        io::Error::other("the kernel does not tell how many processors there may be")
    })
}

fn last_processor(text: &str) -> Option<usize> {
    text.trim().rsplit([',', '-']).next()?.parse().ok()
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_processors_is_read_as_the_kernel_writes_it() {
        assert_eq!(last_processor("0-7\n"), Some(7));
        assert_eq!(last_processor("0\n"), Some(0));
        assert_eq!(last_processor("0-3,6-9\n"), Some(9));
        assert_eq!(last_processor("\n"), None);
    }
}

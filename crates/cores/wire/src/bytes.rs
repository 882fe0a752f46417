//! A reader and a writer of big-endian fields that cannot panic.

use crate::check::Check;
use crate::error::{Field, WireError};

/// Reads fields from the front of a datagram.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `datagram`, which must have `header` bytes at least.
    pub(crate) const fn new(datagram: &'a [u8], header: usize) -> Result<Self, WireError> {
        let total = datagram.len();
        if total < header {
            return Err(WireError::Truncated {
                needed: header,
                got: total,
            });
        }
        Ok(Self {
            rest: datagram,
            total,
        })
    }

    /// A reader of what follows type and version in `datagram`, which must have `header` bytes,
    /// type and version included.
    pub(crate) fn after_prefix(datagram: &'a [u8], header: usize) -> Result<Self, WireError> {
        let mut reader = Self::new(datagram, header)?;
        reader.take::<{ crate::PREFIX_LEN }>()?;
        Ok(reader)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(self.shorter_than(N)),
        }
    }

    const fn shorter_than(&self, wanted: usize) -> WireError {
        WireError::Truncated {
            needed: self.total - self.rest.len() + wanted,
            got: self.total,
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        self.take::<1>().map(|[byte]| byte)
    }
    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_be_bytes)
    }
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_be_bytes)
    }
    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.take().map(u64::from_be_bytes)
    }

    /// Everything that is left.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// What is left, which must be exactly `len` bytes.
    pub(crate) const fn exactly(self, len: usize) -> Result<&'a [u8], WireError> {
        if self.rest.len() < len {
            Err(self.shorter_than(len))
        } else if self.rest.len() > len {
            Err(WireError::Malformed(Field::Length))
        } else {
            Ok(self.rest)
        }
    }
}

/// Writes fields one after the other. What does not fit is left out, so callers hand in buffers of
/// the message's greatest length.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(slot) = self.out.get_mut(self.len..self.len + N) {
            slot.copy_from_slice(&bytes);
            self.len += N;
        }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.put([value]);
    }
    pub(crate) fn u16(&mut self, value: u16) {
        self.put(value.to_be_bytes());
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.put(value.to_be_bytes());
    }
    pub(crate) fn u64(&mut self, value: u64) {
        self.put(value.to_be_bytes());
    }

    /// Replaces the field at `at`, which must have been written.
    pub(crate) fn patch<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(slot) = self.out.get_mut(at..at + N) {
            slot.copy_from_slice(&bytes);
        }
    }

    /// Fills in the checksum at `at`, over all that was written; returns the length.
    pub(crate) fn seal(&mut self, at: usize) -> usize {
        let check = Check::of(self.out.get(..self.len).unwrap_or_default(), at);
        self.patch(at, check.to_be_bytes());
        self.len
    }

    /// Bytes written.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

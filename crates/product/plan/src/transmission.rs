//! What a state costs on the wire.

use crate::input::{Link, Packets};

impl Packets {
    /// Packets of a state of `size` bytes: one for an empty state too.
    pub fn count(&self, size: u32) -> u64 {
        u64::from(size)
            .div_ceil(u64::from(self.payload.max(1)))
            .max(1)
    }

    /// State bytes in the largest packet of a state of `size` bytes.
    pub fn largest(&self, size: u32) -> u32 {
        size.min(self.payload)
    }

    /// Bytes of each packet beyond the state bytes in it and below UDP.
    pub fn overhead(&self) -> u64 {
        u64::from(self.header) + u64::from(self.security)
    }

    /// Bytes on the wire of `link` for the largest packet of a state of `size` bytes.
    pub fn largest_on(&self, link: &Link, size: u32) -> u64 {
        u64::from(self.largest(size)) + self.overhead() + u64::from(link.frame_overhead)
    }

    /// Bytes of that packet's frame that an error can hurt.
    pub fn frame_on(&self, link: &Link, size: u32) -> u64 {
        self.largest_on(link, size) - u64::from(link.gap.min(link.frame_overhead))
    }

    /// Bytes on the wire of `link` for a whole state of `size` bytes, once.
    pub fn state_on(&self, link: &Link, size: u32) -> u64 {
        u64::from(size) + self.count(size) * (self.overhead() + u64::from(link.frame_overhead))
    }
}

//! Seeds from the kernel's random source.

use crate::errno::Errno;
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

/// 64 random bits, for sessions, challenges and the cores' generators.
///
/// # Errors
/// When the kernel has no getrandom (before Linux 3.17) or a sandbox forbids it.
pub fn seed() -> Result<u64, Errno> {
    let mut bytes = [0u8; 8];
    // Up to 256 bytes come whole or not at all.
    retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty()))?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_differ() {
        assert_ne!(super::seed(), super::seed());
    }
}

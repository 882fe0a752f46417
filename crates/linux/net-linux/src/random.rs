//! Seeds and secrets from the kernel's random source.

use crate::errno::Errno;
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

/// 64 random bits, for sessions, challenges and the cores' generators.
///
/// # Errors
/// When the kernel has no getrandom (before Linux 3.17) or a sandbox forbids it.
pub fn seed() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Fills `bytes` with random ones, fit for secrets.
///
/// # Errors
/// As [`seed`].
pub fn fill<const LEN: usize>(bytes: &mut [u8; LEN]) -> Result<(), Errno> {
    // Up to 256 bytes come whole or not at all.
    const { assert!(LEN <= 256) };
    retry_on_intr(|| getrandom(&mut bytes[..], GetRandomFlags::empty()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_differ() {
        assert_ne!(super::seed(), super::seed());
    }

    #[test]
    fn every_byte_is_filled() {
        let mut seen = [false; 256];
        for _ in 0..20 {
            let mut bytes = [0; 256];
            super::fill(&mut bytes).unwrap();
            seen.iter_mut()
                .zip(bytes)
                .for_each(|(seen, byte)| *seen |= byte != 0);
        }
        // Chance leaves one of them at zero 20 times in a row less than once in 10^45.
        assert_eq!(seen, [true; 256]);
    }
}

//! Seeds from the kernel's random source.

use crate::errno::Errno;
use crate::sys;

/// 64 random bits, for sessions, challenges and the cores' generators.
///
/// # Errors
/// When the kernel has no getrandom (before Linux 3.17) or a sandbox forbids it.
pub fn seed() -> Result<u64, Errno> {
    let mut bytes = [0u8; 8];
    loop {
        // SAFETY: `bytes` has room for its length. Up to 256 bytes come whole or not at all.
        let result = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match sys::check_len(result) {
            Ok(_) => return Ok(u64::from_ne_bytes(bytes)),
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_differ() {
        assert_ne!(super::seed(), super::seed());
    }
}

//! How many files this process may have open at a time: sockets, wake-up descriptors and files together.

use std::fmt;

/// The limit is lower than what is needed, and may not be raised so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// How many are needed.
    pub needed: u64,
    /// How many are permitted at most.
    pub permitted: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, permitted } = self;
        write!(
            f,
            "{needed} open files are needed at a time and {permitted} are permitted; raise the limit \
             (`ulimit -n {needed}`, or LimitNOFILE= of the service)"
        )
    }
}

impl std::error::Error for TooFew {}

/// The limit that counts, and the one up to which this process may raise it; `None` if the kernel does not tell.
///
/// In 64 bits on every machine: what a 32-bit `rlimit` cannot hold, it calls unlimited.
fn limits() -> Option<libc::rlimit64> {
    let mut limits = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` is what the call fills.
    let answer = unsafe { libc::getrlimit64(libc::RLIMIT_NOFILE, &raw mut limits) };
    (answer == 0).then_some(limits)
}

/// How many this process may have open; `None` if the kernel does not tell.
pub fn limit() -> Option<u64> {
    limits().map(|limits| limits.rlim_cur)
}

/// Sees to it that this process may have `needed` files open, by raising its limit as far as it may.
///
/// # Errors
/// It may not be raised so far.
pub fn ensure(needed: u64) -> Result<(), TooFew> {
    // Where the kernel does not tell, there is nothing to compare with.
    let Some(limits) = limits() else {
        return Ok(());
    };
    if limits.rlim_cur >= needed {
        return Ok(());
    }
    let raised = libc::rlimit64 {
        rlim_cur: needed,
        ..limits
    };
    // SAFETY: the call reads `raised`.
    let answer = unsafe { libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const raised) };
    let permitted = limits.rlim_max;
    match answer {
        0 => Ok(()),
        _ => Err(TooFew { needed, permitted }),
    }
}

//! How many files this process may have open at a time: sockets, wake-up descriptors and files together.

use crate::errno::Errno;
use crate::sys;
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

/// The limit that counts, and the one up to which this process may raise it.
fn limits() -> Result<libc::rlimit, Errno> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` is what the call fills.
    sys::check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) })?;
    Ok(limits)
}

/// How many this process may have open; `None` if the kernel does not tell.
pub fn limit() -> Option<u64> {
    limits().ok().map(|limits| limits.rlim_cur)
}

/// Sees to it that this process may have `needed` files open, by raising its limit as far as it may.
///
/// # Errors
/// It may not be raised so far.
pub fn ensure(needed: u64) -> Result<(), TooFew> {
    // Where the kernel does not tell, there is nothing to compare with.
    let Ok(limits) = limits() else {
        return Ok(());
    };
    if limits.rlim_cur >= needed {
        return Ok(());
    }
    let raised = libc::rlimit {
        rlim_cur: needed,
        ..limits
    };
    // SAFETY: the call reads `raised`.
    sys::check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) })
        .map(drop)
        .map_err(|_| TooFew {
            needed,
            permitted: limits.rlim_max,
        })
}

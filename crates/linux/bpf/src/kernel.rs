//! The kernel's interface to programs and maps (bpf(2), linux/bpf.h), as far as it is used.
//!
//! | module | owns |
//! |---|---|
//! | `call` | the system call |
//! | `map` | memory that programs and this process share by key |
//! | `program` | what the kernel verifies and runs, and its way to where it does |

mod call;
mod map;
mod program;

use std::ffi::CString;

pub use map::{Map, MapKind};
pub use program::{Link, Mode, Program, Purpose, program_name};

/// The kernel's number of the interface with this name in the thread's namespace; `None`: there is none.
pub fn interface_number(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is a string that lives through the call.
    let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (number != 0).then_some(number)
}

const NO_TIME: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Nanoseconds on the clock of [`crate::assembler::Helper::Now`].
pub fn now() -> u64 {
    let mut time = NO_TIME;
    // SAFETY: `time` is a structure of the kernel's that it fills.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    nanoseconds(time)
}

/// By how many nanoseconds that clock moves at a time.
pub fn tick() -> u64 {
    let mut time = NO_TIME;
    // SAFETY: `time` is a structure of the kernel's that it fills.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    nanoseconds(time)
}

const fn nanoseconds(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

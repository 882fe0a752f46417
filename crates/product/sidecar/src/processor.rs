//! What a process has computed.

use bumpless_base::Duration;
use rustix::process::Pid;

/// The clock that runs while the process is on a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorClock(libc::clockid_t);

impl ProcessorClock {
    /// That of the process with this number; `None` if the system has none for it.
    pub fn of(process: Pid) -> Option<Self> {
        let mut clock = 0;
        // SAFETY: the call writes one `clockid_t`.
        let failed = unsafe { libc::clock_getcpuclockid(process.as_raw_pid(), &raw mut clock) };
        (failed == 0).then_some(Self(clock))
    }

    /// What it shows; `None` once the process is gone.
    pub fn read(self) -> Option<Duration> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call writes one `timespec`.
        let failed = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        let nanos = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        (failed == 0).then_some(Duration::from_nanos(nanos))
    }
}

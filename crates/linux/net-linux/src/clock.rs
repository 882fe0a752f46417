//! The node's clock, and sleeping by it.

use bumpless_base::{Duration, Instant};

/// CLOCK_BOOTTIME as the cores' [`Instant`]s: nanoseconds since boot, the same for all processes
/// on a machine, never set back. It counts suspension, too: a lease must run out while its holder
/// sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The time. Costs some tens of nanoseconds and no system call where the vDSO has the clock.
    pub fn now(self) -> Instant {
        Instant::from_nanos(read(libc::CLOCK_BOOTTIME))
    }

    /// Processor time that the calling thread has used so far (CLOCK_THREAD_CPUTIME_ID). A system call.
    pub fn computed(self) -> Duration {
        Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
    }

    /// Blocks the calling thread until `wake`, through signals too, and returns the time at which
    /// it woke. Returns at once if `wake` is past.
    pub fn sleep_until(self, wake: Instant) -> Instant {
        let time = timespec(wake.as_nanos());
        loop {
            // SAFETY: `time` is valid for reading through the call; with an absolute time the
            // remainder is not written, so a null pointer is allowed.
            let result = unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_BOOTTIME,
                    libc::TIMER_ABSTIME,
                    &raw const time,
                    std::ptr::null_mut(),
                )
            };
            if result != libc::EINTR {
                return self.now();
            }
        }
    }
}

/// What a clock shows, in nanoseconds.
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = timespec(0);
    // SAFETY: `time` is valid for writing through the call. The call cannot fail: both clocks that this is called with
    // exist on every Linux, and the pointer is good.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds in the kernel's layout; where its seconds have 32 bits, at most what they hold, which is 68 years.
pub(crate) fn timespec(nanos: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(nanos / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (nanos % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_the_seconds_of_the_kernel_is_the_latest_one() {
        let seconds = |many: u64| timespec(many * 1_000_000_000).tv_sec;
        assert!(seconds(4_000_000_000) > seconds(2_000_000_000));
    }

    #[test]
    fn a_sleep_never_ends_early_and_one_into_the_past_returns() {
        let clock = Clock;
        for micros in [0, 1, 300, 2_000] {
            let wake = clock.now() + Duration::from_micros(micros);
            assert!(clock.sleep_until(wake) >= wake);
        }
        clock.sleep_until(Instant::ZERO);
    }
}

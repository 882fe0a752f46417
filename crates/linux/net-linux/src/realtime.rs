//! Real-time properties of threads. Each request may be refused; none is needed to run.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU64;

use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::capabilities::{Capability, Effective};
use crate::sys;

/// A request that was refused, as one line for people: what, why, what it costs, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    what: String,
    why: String,
    cost: &'static str,
    remedy: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            why,
            cost,
            remedy,
        } = self;
        write!(f, "{what} refused ({why}): {cost}; {remedy}")
    }
}

impl std::error::Error for Refused {}

/// Gives the calling thread the real-time policy SCHED_FIFO with `priority`, 1 to 99.
///
/// # Errors
/// When the process lacks the privilege or the priority is out of range.
pub fn set_fifo(priority: u8) -> Result<(), Refused> {
    let mut parameters = empty_parameters();
    parameters.sched_priority = priority.into();
    // SAFETY: `parameters` is valid for reading through the call; 0 names the calling thread.
    let result =
        sys::check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) });
    result.map(drop).map_err(|errno| Refused {
        what: format!("real-time priority {priority}"),
        why: errno.to_string(),
        cost: "other processes can delay this thread by milliseconds",
        remedy: match errno.0 {
            libc::EINVAL => "use 1 to 99",
            _ => "grant CAP_SYS_NICE or raise the rtprio limit (LimitRTPRIO= in systemd)",
        },
    })
}

/// Keeps all present and future memory of the process from being paged out.
///
/// # Errors
/// When the process lacks the privilege. A process with a finite limit is refused here even if its
/// present memory fits, since every later allocation beyond the limit would then fail.
pub fn lock_memory() -> Result<(), Refused> {
    let refused = |why: String| Refused {
        what: "locking memory".into(),
        why,
        cost: "under memory pressure a page fault can delay a cycle by milliseconds",
        remedy: "grant CAP_IPC_LOCK or set the memlock limit to unlimited (LimitMEMLOCK= in systemd)",
    };
    let limit = memory_limit();
    if limit != libc::RLIM_INFINITY && !may_lock_without_limit() {
        return Err(refused(format!("the limit is {limit} bytes")));
    }
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|errno| refused(errno.to_string()))
}

/// Confines the calling thread to processor `cpu`, counted from 0.
///
/// # Errors
/// When there is no such processor or the process may not use it.
pub fn pin(cpu: usize) -> Result<(), Refused> {
    let refused = |why: String| Refused {
        what: format!("pinning to processor {cpu}"),
        why,
        cost: "the scheduler may move this thread, which costs some microseconds each time",
        remedy: "choose a processor that this process may use (see `taskset -p`)",
    };
    if cpu >= CpuSet::MAX_CPU {
        return Err(refused("no such processor".into()));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|errno| {
        refused(match errno {
            Errno::INVAL => "no such processor".into(),
            other => other.to_string(),
        })
    })
}

/// Takes the calling thread's timers at their word. An ordinary thread's wake-ups are otherwise
/// delayed by up to 50 us in order to be merged; needs no privilege.
///
/// # Errors
/// When a sandbox forbids it.
pub fn tighten_timers() -> Result<(), Refused> {
    set_current_timer_slack(Some(NonZeroU64::MIN)).map_err(|errno| Refused {
        what: "exact timers".into(),
        why: errno.to_string(),
        cost: "wake-ups are up to 50 us late",
        remedy: "permit prctl(PR_SET_TIMERSLACK)",
    })
}

/// Where the kernel is told how long processors may take to wake (its document "PM Quality Of Service Interface").
const WAKE_LATENCY: &str = "/dev/cpu_dma_latency";

/// As long as it lives, no processor sleeps so deeply that it wakes later. The kernel takes that back when the
/// process ends, however it ends.
#[derive(Debug)]
#[must_use = "dropping it lets processors sleep again"]
pub struct WakeLatency {
    _open: File,
}

/// Lets no processor of the computer sleep so deeply that waking it takes above `micros` microseconds; with zero
/// none sleeps at all.
///
/// # Errors
/// When the process may not ask for that, or the kernel has no such interface.
pub fn limit_wake_latency(micros: u16) -> Result<WakeLatency, Refused> {
    let asked = OpenOptions::new()
        .write(true)
        .open(WAKE_LATENCY)
        .and_then(|mut file| {
            file.write_all(&i32::from(micros).to_ne_bytes())?;
            Ok(WakeLatency { _open: file })
        });
    asked.map_err(|error| Refused {
        what: format!("waking within {micros} us"),
        why: error.to_string(),
        cost: "an idle processor can take tens of microseconds to wake, each time",
        remedy: "permit writing /dev/cpu_dma_latency (a udev rule, or DeviceAllow= in systemd)",
    })
}

fn empty_parameters() -> libc::sched_param {
    // SAFETY: sched_param is plain integers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

fn memory_limit() -> libc::rlim_t {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing through the call.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    if result == 0 { limit.rlim_cur } else { 0 }
}

/// Whether the process has CAP_IPC_LOCK, by which the limit does not count.
fn may_lock_without_limit() -> bool {
    Effective::of_this_thread().has(Capability::IpcLock)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_refusal_says_what_why_cost_and_remedy_in_one_line() {
        for refused in [
            pin(100_000).unwrap_err(),
            pin(1_000).unwrap_err(),
            set_fifo(0xff).unwrap_err(),
        ] {
            let line = refused.to_string();
            assert!(line.contains("refused (") && line.contains("; "), "{line}");
            assert!(!line.contains('\n'));
        }
        assert!(
            set_fifo(200)
                .unwrap_err()
                .to_string()
                .contains("use 1 to 99")
        );
    }

    #[test]
    fn a_thread_can_pin_itself_where_it_runs() {
        // SAFETY: sched_getcpu() takes nothing.
        let cpu = unsafe { libc::sched_getcpu() };
        std::thread::spawn(move || pin(cpu as usize))
            .join()
            .unwrap()
            .unwrap();
    }

    #[test]
    fn what_needs_privilege_is_granted_or_refused_with_a_remedy() {
        for result in std::thread::spawn(|| [set_fifo(1), lock_memory()])
            .join()
            .unwrap()
        {
            if let Err(refused) = result {
                assert!(refused.to_string().contains("grant CAP_"), "{refused}");
            }
        }
    }

    #[test]
    fn processors_are_kept_awake_or_it_is_refused_with_a_remedy() {
        match limit_wake_latency(7) {
            Ok(_held) => {
                // The least of what all processes ask for.
                let mut told = [0; 4];
                let mut device = File::open(WAKE_LATENCY).unwrap();
                device.read_exact(&mut told).unwrap();
                assert!((0..=7).contains(&i32::from_ne_bytes(told)), "{told:?}");
            }
            Err(refused) => assert!(refused.to_string().contains(WAKE_LATENCY), "{refused}"),
        }
    }

    #[test]
    fn timers_can_be_tightened_without_privilege() {
        std::thread::spawn(tighten_timers).join().unwrap().unwrap();
    }
}

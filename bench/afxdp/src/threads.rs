//! Processors and priorities of threads, and the time that they have had.

use std::fs;

/// Processor of who sends.
pub const SENDER: usize = 0;
/// Processor of who receives.
pub const RECEIVER: usize = 1;

/// Before which others on its processor a thread runs.
#[derive(Clone, Copy, Debug)]
pub enum Urgency {
    /// Before all ordinary ones (nice -20): whose wake-ups are counted. A wake-up of a real-time thread took 10 us more of the processor
    /// on the kernel on which this was measured.
    Ordinary,
    /// SCHED_FIFO, for less time than the kernel gives real-time threads at once.
    RealTime(i32),
}

/// Confines a thread (0: the calling one) to a processor and gives it its urgency there.
pub fn place(thread: libc::pid_t, processor: usize, urgency: Urgency) -> Result<(), String> {
    // SAFETY: both structures are the kernel's, and zero is a value of all their fields.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        let mut parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) == 0
            && match urgency {
                Urgency::Ordinary => {
                    libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, -20) == 0
                }
                Urgency::RealTime(priority) => {
                    parameters.sched_priority = priority;
                    let policy = libc::SCHED_FIFO;
                    libc::sched_setscheduler(thread, policy, &raw const parameters) == 0
                }
            }
    };
    let error = std::io::Error::last_os_error();
    done.then_some(())
        .ok_or_else(|| format!("thread {thread} cannot be placed: {error}"))
}

/// Nanoseconds of a processor that a thread which sleeps has had.
pub fn spent(thread: libc::pid_t) -> u64 {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
    let first = text.split_whitespace().next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

/// The kernel's thread that works an interface's packets off.
pub fn of_interface(name: &str) -> Result<libc::pid_t, String> {
    let wanted = format!("napi/{name}-");
    let all = fs::read_dir("/proc").map_err(|error| error.to_string())?;
    let mut numbers = all.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    let found = numbers.find(|number: &libc::pid_t| {
        fs::read_to_string(format!("/proc/{number}/comm"))
            .is_ok_and(|comm| comm.starts_with(&wanted))
    });
    found.ok_or_else(|| format!("{name} has no thread of its own"))
}

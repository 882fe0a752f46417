//! Which signals end a command in order, and which do nothing.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;

use crate::output::Failure;

/// Exit status of what was ended at once.
const AT_ONCE: i32 = 130;

/// A flag that SIGINT, SIGTERM, SIGQUIT and SIGHUP set; a second SIGINT or SIGQUIT then ends the process at once.
///
/// A second SIGTERM or SIGHUP does not: timeout(1) sends SIGTERM to its child and then to the whole group, a closing terminal
/// sends several SIGHUP, one of the kernel's and one of the shell's, and service managers may send one after SIGTERM. Who had SIGHUP or SIGQUIT ignored at the start (`nohup`) has it ignored. SIGUSR1
/// and SIGUSR2, which would kill, do nothing.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    install(&stop, &stop, ignored_signals()).map_err(not_installed)?;
    Ok(stop)
}

/// Has all signals that end a command do nothing, however often they come, for what is to end with its input alone.
///
/// # Errors
/// The system refuses a handler.
pub fn outlast_signals() -> Result<(), Failure> {
    let all = [SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2];
    let all = all.into_iter();
    all.map(|signal| flag::register(signal, Arc::default()))
        .try_for_each(|it| it.map(drop))
        .map_err(not_installed)
}

/// As [`stop_flag`], but SIGHUP sets a flag of its own, the second one: to read a file again.
pub fn stop_and_reload_flags() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    let flags = (Arc::default(), Arc::default());
    install(&flags.0, &flags.1, ignored_signals()).map_err(not_installed)?;
    Ok(flags)
}

fn not_installed(error: io::Error) -> Failure {
    Failure::refused(format_args!("cannot install the signal handlers: {error}"))
}

fn install(stop: &Arc<AtomicBool>, hang_up: &Arc<AtomicBool>, ignored: u64) -> io::Result<()> {
    let is_ignored = |signal: i32| ignored >> (signal - 1) & 1 == 1;
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGQUIT] {
        if signal == SIGQUIT && is_ignored(signal) {
            continue;
        }
        // A person's keys alone are an order to end at once; SIGKILL is one for everybody.
        if signal != SIGTERM {
            flag::register_conditional_shutdown(signal, AT_ONCE, Arc::clone(&asked))?;
        }
        flag::register(signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    if !is_ignored(SIGHUP) {
        flag::register(SIGHUP, Arc::clone(hang_up))?;
    }
    for signal in [SIGUSR1, SIGUSR2] {
        flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// The signals that this process was started with as ignored, a bit each, the first signal's the lowest.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    mask_in(&status)
}

fn mask_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_as_the_kernel_writes_it() {
        assert_eq!(
            mask_in("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"),
            0x1001
        );
        assert_eq!(mask_in("SigIgn:\tnonsense\n"), 0);
        assert_eq!(mask_in(""), 0);
    }
}

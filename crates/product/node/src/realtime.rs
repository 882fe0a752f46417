//! Real-time properties of a node's threads, as far as the system permits them.

use std::sync::Mutex;

use bumpless_net_linux::realtime;

use crate::note::Note;

/// What the system grants only as long as it is held.
#[must_use = "dropping it gives it back"]
pub struct Prepared {
    _wake_latency: Option<realtime::WakeLatency>,
}

/// Real-time properties of the calling thread, as far as they are permitted; what is refused is added to `notes`.
pub fn prepare_thread(settings: &bumpless_config::Realtime, notes: &Mutex<Vec<Note>>) -> Prepared {
    let mut refused = Vec::new();
    let wanted = settings.wake_latency.map(realtime::limit_wake_latency);
    let wake_latency = wanted.and_then(|result| granted(result, &mut refused));
    granted(realtime::tighten_timers(), &mut refused);
    if let Some(cpu) = settings.cpu {
        granted(realtime::pin(cpu.into()), &mut refused);
    }
    if settings.lock_memory {
        granted(realtime::lock_memory(), &mut refused);
    }
    if let Some(priority) = settings.priority {
        granted(realtime::set_fifo(priority), &mut refused);
    }
    if let Ok(mut notes) = notes.lock() {
        notes.extend(refused.into_iter().map(Note::lasting));
    }
    Prepared {
        _wake_latency: wake_latency,
    }
}

/// Real-time properties of the calling thread as an executor's: just below the data plane with this `priority`. What
/// is refused here is refused to the data plane, too, which says so in status.
pub fn prepare_executor_thread(priority: Option<u8>) {
    let _ = realtime::tighten_timers();
    if let Some(priority) = priority {
        let _ = realtime::set_fifo(priority.saturating_sub(1).max(1));
    }
}

fn granted<T>(result: Result<T, realtime::Refused>, refused: &mut Vec<String>) -> Option<T> {
    result.map_err(|error| refused.push(error.to_string())).ok()
}

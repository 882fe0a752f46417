//! What the data-plane thread and the executors share: atomics only, so that neither ever waits for
//! the other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::thread::Thread;

use bumpless_base::{Epoch, Instant};
use bumpless_wire::Role;

/// The right of one group to write outputs, as the data plane last knew it.
#[derive(Debug, Default)]
pub struct GroupGate {
    epoch: AtomicU32,
    until: AtomicU64,
    role: AtomicU8,
    role_since: AtomicU64,
    alone: AtomicBool,
    cold: AtomicBool,
    backup_expected: AtomicBool,
    handing_over: AtomicBool,
}

impl GroupGate {
    /// Publishes the permit; `None` takes it back at once.
    pub fn set_permit(&self, permit: Option<(Epoch, Instant)>) {
        let (epoch, until) = permit.unwrap_or_default();
        if self.epoch.load(Ordering::Relaxed) != epoch.0 {
            // A reader must never see the end of one epoch's permit with the number of another.
            self.until.store(0, Ordering::SeqCst);
            self.epoch.store(epoch.0, Ordering::SeqCst);
        }
        self.until.store(until.as_nanos(), Ordering::SeqCst);
    }

    /// The permit: its epoch and the instant at which it ends.
    pub fn permit(&self) -> Option<(Epoch, Instant)> {
        let before = self.epoch.load(Ordering::SeqCst);
        let until = self.until.load(Ordering::SeqCst);
        let after = self.epoch.load(Ordering::SeqCst);
        (before == after && until != 0).then(|| (Epoch(before), Instant::from_nanos(until)))
    }

    /// Publishes the role, taken at `now`.
    pub fn set_role(&self, role: Role, now: Instant) {
        self.role_since.store(now.as_nanos(), Ordering::SeqCst);
        self.role.store(role as u8, Ordering::SeqCst);
    }

    /// When the role was taken.
    pub fn role_since(&self) -> Instant {
        Instant::from_nanos(self.role_since.load(Ordering::SeqCst))
    }

    /// Publishes whether the primary role began without a fresh state.
    pub fn set_cold(&self, cold: bool) {
        self.cold.store(cold, Ordering::SeqCst);
    }

    /// Whether the primary role began without a fresh state.
    pub fn cold(&self) -> bool {
        self.cold.load(Ordering::SeqCst)
    }

    /// Publishes whether nobody can take over from an older state.
    pub fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Ordering::SeqCst);
    }

    /// Whether nobody can take over from an older state.
    pub fn alone(&self) -> bool {
        self.alone.load(Ordering::SeqCst)
    }

    /// Whether this node is a standing candidate: primary, or ready to be.
    pub fn is_member(&self) -> bool {
        let role = self.role.load(Ordering::SeqCst);
        role == Role::Primary as u8 || role == Role::Backup as u8 || role == Role::Starting as u8
    }

    /// Whether this node is the group's primary.
    pub fn is_primary(&self) -> bool {
        self.role.load(Ordering::SeqCst) == Role::Primary as u8
    }

    /// Publishes whether a backup is there to acknowledge states.
    pub fn set_backup_expected(&self, expected: bool) {
        self.backup_expected.store(expected, Ordering::SeqCst);
    }

    /// Publishes whether the end of each cycle is awaited by an ordered hand-over.
    pub fn set_handing_over(&self, handing_over: bool) {
        self.handing_over.store(handing_over, Ordering::SeqCst);
    }

    /// Whether the end of each cycle is awaited by an ordered hand-over.
    pub fn handing_over(&self) -> bool {
        self.handing_over.load(Ordering::SeqCst)
    }

    /// Whether a backup is there to acknowledge states.
    pub fn backup_expected(&self) -> bool {
        self.backup_expected.load(Ordering::SeqCst)
    }
}

/// What became of a published state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It, or a later one, is at the backup.
    Safe,
    /// It was given up, and no later one is at the backup.
    Failed,
    /// Not known yet.
    Pending,
}

/// The meeting point of one application's executor and the data plane.
///
/// `safe`, `settled` and `published` hold the number of states up to and including a ticket, so
/// that zero means "none yet".
#[derive(Debug, Default)]
pub struct ApplicationPort {
    safe: AtomicU64,
    settled: AtomicU64,
    published: AtomicU64,
    /// When the newest published state expires.
    fresh_until: AtomicU64,
    /// Since when the present cycle runs, zero between cycles.
    cycle_since: AtomicU64,
    behind: AtomicBool,
    in_cycle: AtomicBool,
    paused: AtomicBool,
    epoch_seen: AtomicU32,
    unfit: AtomicBool,
    executor: OnceLock<Thread>,
}

impl ApplicationPort {
    /// Registers the calling thread as the one that [`ApplicationPort::wake`] wakes.
    pub fn register_executor(&self) {
        let _ = self.executor.set(std::thread::current());
    }

    /// Wakes the executor; never blocks.
    pub fn wake(&self) {
        if let Some(thread) = self.executor.get() {
            thread.unpark();
        }
    }

    /// Notes the outcome of the state with this ticket and wakes the executor.
    pub fn settle(&self, ticket: u64, safe: bool) {
        let count = ticket.saturating_add(1);
        if safe {
            self.safe.fetch_max(count, Ordering::SeqCst);
        }
        self.settled.fetch_max(count, Ordering::SeqCst);
        self.wake();
    }

    /// What became of the state with this ticket.
    pub fn outcome(&self, ticket: u64) -> Outcome {
        if self.safe.load(Ordering::SeqCst) > ticket {
            Outcome::Safe
        } else if self.settled.load(Ordering::SeqCst) > ticket {
            Outcome::Failed
        } else {
            Outcome::Pending
        }
    }

    /// Notes the newest published ticket and until when its state may be used.
    pub fn note_published(&self, ticket: u64, fresh_until: Instant) {
        self.published
            .store(ticket.saturating_add(1), Ordering::SeqCst);
        self.fresh_until
            .store(fresh_until.as_nanos(), Ordering::SeqCst);
    }

    /// Until when this node's own newest state may be used.
    pub fn fresh_until(&self) -> Instant {
        Instant::from_nanos(self.fresh_until.load(Ordering::SeqCst))
    }

    /// Says that outputs are to be written although their state is not safe, or that it is again.
    pub fn set_behind(&self, behind: bool) {
        self.behind.store(behind, Ordering::SeqCst);
    }

    /// Whether outputs are to be written although their state is not safe.
    pub fn behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst)
    }

    /// Marks the start of a cycle, or with `None` its end.
    pub fn set_cycle_since(&self, since: Option<Instant>) {
        let nanos = since.map_or(0, Instant::as_nanos);
        self.cycle_since.store(nanos, Ordering::SeqCst);
    }

    /// Since when the present cycle runs.
    pub fn cycle_since(&self) -> Option<Instant> {
        let nanos = self.cycle_since.load(Ordering::SeqCst);
        (nanos != 0).then(|| Instant::from_nanos(nanos))
    }

    /// Whether the newest published state is at the backup.
    pub fn newest_is_safe(&self) -> bool {
        self.safe.load(Ordering::SeqCst) >= self.published.load(Ordering::SeqCst)
    }

    /// Stops the executor before its next cycle, for an ordered hand-over.
    pub fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::SeqCst);
    }

    /// Whether the executor is to stop before its next cycle.
    pub fn paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    /// Marks the span in which the executor may write outputs.
    pub fn set_in_cycle(&self, active: bool) {
        self.in_cycle.store(active, Ordering::SeqCst);
    }

    /// Whether the executor may be about to write outputs.
    pub fn in_cycle(&self) -> bool {
        self.in_cycle.load(Ordering::SeqCst)
    }

    /// Notes the epoch that the field device holds; returns whether it is higher than any before.
    pub fn note_epoch_seen(&self, epoch: Epoch) -> bool {
        self.epoch_seen.fetch_max(epoch.0, Ordering::SeqCst) < epoch.0
    }

    /// Notes whether the application can run here: its field answers and its state was loaded.
    pub fn set_fit(&self, fit: bool) {
        self.unfit.store(!fit, Ordering::SeqCst);
    }

    /// Whether the application can run here.
    pub fn is_fit(&self) -> bool {
        !self.unfit.load(Ordering::SeqCst)
    }

    /// The highest epoch that the field device was seen to hold.
    pub fn epoch_seen(&self) -> Epoch {
        Epoch(self.epoch_seen.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_taken_back_is_gone_at_once_and_epochs_are_never_mixed() {
        let gate = GroupGate::default();
        assert_eq!(gate.permit(), None);
        gate.set_permit(Some((Epoch(3), Instant::from_nanos(500))));
        assert_eq!(gate.permit(), Some((Epoch(3), Instant::from_nanos(500))));
        gate.set_permit(None);
        assert_eq!(gate.permit(), None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..20_000u32 {
                    gate.set_permit(Some((Epoch(n), Instant::from_nanos(u64::from(n) * 1000))));
                }
            });
            for _ in 0..20_000 {
                if let Some((epoch, until)) = gate.permit() {
                    assert_eq!(until.as_nanos(), u64::from(epoch.0) * 1000);
                }
            }
        });
    }

    #[test]
    fn a_later_safe_state_covers_the_ones_before_it() {
        let port = ApplicationPort::default();
        assert_eq!(port.outcome(0), Outcome::Pending);
        port.note_published(0, Instant::ZERO);
        assert!(!port.newest_is_safe());
        assert_eq!(port.outcome(1), Outcome::Pending);
        port.settle(1, false);
        assert_eq!(port.outcome(1), Outcome::Failed);
        port.note_published(3, Instant::ZERO);
        assert!(!port.newest_is_safe());
        port.settle(3, true);
        assert_eq!(
            (port.outcome(1), port.outcome(2)),
            (Outcome::Safe, Outcome::Safe)
        );
        assert!(port.newest_is_safe());
    }
}

//! A group's role and right to write, from the data plane to the executors.

use bumpless_base::{Epoch, Instant, Permit, Role};

use crate::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The right of one group to write outputs, as the data plane last knew it.
#[derive(Debug, Default)]
pub struct PublishedPermit {
    epoch: AtomicU32,
    until: AtomicU64,
    role: AtomicU8,
    role_since: AtomicU64,
    simplex: AtomicBool,
    cold: AtomicBool,
    backup_expected: AtomicBool,
    handing_over: AtomicBool,
}

impl PublishedPermit {
    /// Publishes the permit; `None` takes it back at once.
    pub fn set_permit(&self, permit: Option<Permit>) {
        let permit = permit.map(|Permit { epoch, until }| (epoch, until));
        let (epoch, until) = permit.unwrap_or_default();
        if self.epoch.load(Ordering::Relaxed) != epoch.0 {
            // A reader must never see the end of one epoch's permit with the number of another.
            self.until.store(0, Ordering::SeqCst);
            self.epoch.store(epoch.0, Ordering::SeqCst);
        }
        self.until.store(until.as_nanos(), Ordering::SeqCst);
    }

    /// Publishes what may be written on and for how long, whether a backup is there to acknowledge, and whether
    /// nobody can take over from an older state. Returns whether an executor that waits for any of it has to be woken;
    /// an end of the permit that only moves ends no wait. Looks before it writes: each write makes the processor
    /// wait, and mostly nothing has changed.
    pub fn publish(&self, permit: Option<Permit>, backup_expected: bool, simplex: bool) -> bool {
        let before = self.permit();
        let mut changed = before.is_some() != permit.is_some();
        if before != permit {
            self.set_permit(permit);
        }
        if self.backup_expected() != backup_expected {
            self.set_backup_expected(backup_expected);
            changed = true;
        }
        if self.simplex() != simplex {
            self.set_simplex(simplex);
            changed = true;
        }
        changed
    }

    /// The permit.
    pub fn permit(&self) -> Option<Permit> {
        let before = self.epoch.load(Ordering::SeqCst);
        let until = self.until.load(Ordering::SeqCst);
        let after = self.epoch.load(Ordering::SeqCst);
        (before == after && until != 0).then(|| Permit {
            epoch: Epoch(before),
            until: Instant::from_nanos(until),
        })
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
    pub fn set_simplex(&self, simplex: bool) {
        self.simplex.store(simplex, Ordering::SeqCst);
    }

    /// Whether nobody can take over from an older state.
    pub fn simplex(&self) -> bool {
        self.simplex.load(Ordering::SeqCst)
    }

    /// The role.
    pub fn role(&self) -> Role {
        let published = Role::from_number(self.role.load(Ordering::SeqCst));
        published.unwrap_or(Role::Stopped)
    }

    /// Whether this node is the group's primary.
    pub fn is_primary(&self) -> bool {
        self.role() == Role::Primary
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Miri is a thousand times slower.
    const ROUNDS: u32 = if cfg!(miri) { 100 } else { 20_000 };

    fn permit(epoch: u32, until: u64) -> Permit {
        Permit {
            epoch: Epoch(epoch),
            until: Instant::from_nanos(until),
        }
    }

    #[test]
    fn a_permit_taken_back_is_gone_at_once_and_epochs_are_never_mixed() {
        let gate = PublishedPermit::default();
        assert_eq!(gate.permit(), None);
        gate.set_permit(Some(permit(3, 500)));
        assert_eq!(gate.permit(), Some(permit(3, 500)));
        gate.set_permit(None);
        assert_eq!(gate.permit(), None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..ROUNDS {
                    gate.set_permit(Some(permit(n, u64::from(n) * 1000)));
                }
            });
            for _ in 0..ROUNDS {
                if let Some(Permit { epoch, until }) = gate.permit() {
                    assert_eq!(until.as_nanos(), u64::from(epoch.0) * 1000);
                }
            }
        });
    }
}

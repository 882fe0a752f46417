//! Whether received states open, for status.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bumpless_secure::state::StateRefusal;

/// Whether the state that an application's executor looked at last has opened.
#[derive(Debug, Default)]
pub(super) struct Health(AtomicU32);

/// The refusals, by their number less one.
const REFUSALS: [StateRefusal; 9] = [
    StateRefusal::NotSealed,
    StateRefusal::OtherMethod,
    StateRefusal::Misdirected,
    StateRefusal::UnknownKey(0),
    StateRefusal::Damaged,
    StateRefusal::Forged,
    StateRefusal::Replayed,
    StateRefusal::Old,
    StateRefusal::Future,
];

impl Health {
    pub(super) fn note(&self, refused: Option<StateRefusal>) {
        let number = refused.map_or(0, |refusal| {
            let same = |known: &StateRefusal| {
                std::mem::discriminant(known) == std::mem::discriminant(&refusal)
            };
            let at = REFUSALS.iter().position(same).unwrap_or_default() as u32;
            match refusal {
                StateRefusal::UnknownKey(key) => (u32::from(key) << 8) + at + 1,
                _ => at + 1,
            }
        });
        self.0.store(number, Ordering::Relaxed);
    }

    fn refused(&self) -> Option<StateRefusal> {
        let number = self.0.load(Ordering::Relaxed);
        let at = (number & 0xFF).checked_sub(1)?;
        Some(match *REFUSALS.get(at as usize)? {
            StateRefusal::UnknownKey(_) => StateRefusal::UnknownKey((number >> 8) as u16),
            other => other,
        })
    }
}

/// The executors' healths by the applications' names.
#[derive(Clone, Debug, Default)]
pub struct Healths(Arc<Mutex<Vec<Named>>>);

/// An application's name, and whether its states open, for as long as it runs.
type Named = (String, Weak<Health>);

impl Healths {
    pub(super) fn of(&self, application: &str) -> Arc<Health> {
        let health = Arc::new(Health::default());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, health)| health.strong_count() > 0);
        all.push((application.to_owned(), Arc::downgrade(&health)));
        health
    }

    /// What is wrong, a sentence for each application.
    pub fn weaknesses(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = all.iter().filter_map(|(name, health)| {
            let refused = health.upgrade()?.refused()?;
            Some(format!(
                "the state of '{name}' that has come cannot be used: {refused}"
            ))
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_told_as_it_was_noted() {
        let healths = Healths::default();
        let health = healths.of("tank");
        for refusal in REFUSALS
            .into_iter()
            .chain([StateRefusal::UnknownKey(0xFFFE)])
        {
            health.note(Some(refusal));
            assert_eq!(health.refused(), Some(refusal));
            assert!(healths.weaknesses()[0].ends_with(&refusal.to_string()));
        }
        health.note(None);
        assert_eq!((health.refused(), healths.weaknesses()), (None, vec![]));
    }
}

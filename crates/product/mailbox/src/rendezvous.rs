//! One moment at which several executors do something together, or none of them does.

use crate::sync::{AtomicU32, Ordering};

/// How far the executors of a [`Rendezvous`] have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// So many of them stand still between two cycles; others go on with theirs.
    Gathering(u32),
    /// All stand still, and so many have tried what they are to do.
    Trying(u32),
    /// All have tried it, and each does it before its next cycle. This is decided for good.
    Agreed,
    /// None does it. This is decided for good.
    Off,
}

const TRYING: u32 = 1 << 30;
const AGREED: u32 = 2 << 30;
const OFF: u32 = 3 << 30;
const COUNT: u32 = TRYING - 1;

impl Stage {
    const fn of(word: u32) -> Self {
        let count = word & COUNT;
        match word & !COUNT {
            0 => Self::Gathering(count),
            TRYING => Self::Trying(count),
            AGREED => Self::Agreed,
            _ => Self::Off,
        }
    }

    const fn word(self) -> u32 {
        match self {
            Self::Gathering(count) => count & COUNT,
            Self::Trying(count) => TRYING | (count & COUNT),
            Self::Agreed => AGREED,
            Self::Off => OFF,
        }
    }
}

/// Where several executors agree on one moment.
///
/// Each stands still between two cycles ([`arrive`](Self::arrive)). Once all do, each tries what it is to do
/// ([`agree`](Self::agree)), and when all have, it is decided that all do it. Anybody may call it off before that
/// ([`call_off`](Self::call_off)). All of it is one atomic word, so it is decided once, and for all alike. Nobody waits in
/// here: whoever has changed the stage wakes the others.
#[derive(Debug)]
pub struct Rendezvous {
    of: u32,
    word: AtomicU32,
}

impl Rendezvous {
    /// Of `of` executors.
    pub fn new(of: u32) -> Self {
        Self {
            of,
            word: AtomicU32::new(Stage::Gathering(0).word()),
        }
    }

    /// How far they have come.
    pub fn stage(&self) -> Stage {
        Stage::of(self.word.load(Ordering::SeqCst))
    }

    /// One more stands still. Returns whether it is to: not if it was called off.
    pub fn arrive(&self) -> bool {
        let of = self.of;
        self.change(|stage| match stage {
            Stage::Gathering(count) if count + 1 < of => Some(Stage::Gathering(count + 1)),
            Stage::Gathering(_) => Some(Stage::Trying(0)),
            _ => None,
        })
    }

    /// One more has tried it, and can do it. Returns whether that counts: not if it was called off.
    pub fn agree(&self) -> bool {
        let of = self.of;
        self.change(|stage| match stage {
            Stage::Trying(count) if count + 1 < of => Some(Stage::Trying(count + 1)),
            Stage::Trying(_) => Some(Stage::Agreed),
            _ => None,
        })
    }

    /// Has none of them do it. Returns whether none does: otherwise it was agreed on before, and all do.
    pub fn call_off(&self) -> bool {
        let undecided = |stage| matches!(stage, Stage::Gathering(_) | Stage::Trying(_));
        self.change(|stage| undecided(stage).then_some(Stage::Off)) || self.stage() == Stage::Off
    }

    fn change(&self, next: impl Fn(Stage) -> Option<Stage>) -> bool {
        let next = |word| next(Stage::of(word)).map(Stage::word);
        let order = Ordering::SeqCst;
        self.word.fetch_update(order, order, next).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_try_it_when_the_last_one_has_come_and_do_it_when_all_can() {
        let rendezvous = Rendezvous::new(2);
        assert_eq!(rendezvous.stage(), Stage::Gathering(0));
        assert!(rendezvous.arrive());
        assert_eq!(rendezvous.stage(), Stage::Gathering(1));
        assert!(!rendezvous.agree(), "not before all have come");
        assert!(rendezvous.arrive());
        assert_eq!(rendezvous.stage(), Stage::Trying(0));
        assert!(rendezvous.agree());
        assert_eq!(rendezvous.stage(), Stage::Trying(1));
        assert!(rendezvous.agree());
        assert_eq!(rendezvous.stage(), Stage::Agreed);
        assert!(!rendezvous.call_off(), "it is too late");
        assert_eq!(rendezvous.stage(), Stage::Agreed);
    }

    #[test]
    fn whoever_calls_it_off_does_so_for_all() {
        for steps in 0..4 {
            let rendezvous = Rendezvous::new(2);
            for step in 0..steps {
                let counts = match step {
                    0 | 1 => rendezvous.arrive(),
                    _ => rendezvous.agree(),
                };
                assert!(counts, "step {step}");
            }
            assert!(rendezvous.call_off(), "after {steps} steps");
            assert!(!rendezvous.arrive() && !rendezvous.agree());
            assert!(rendezvous.call_off(), "again");
            assert_eq!(rendezvous.stage(), Stage::Off);
        }
    }

    #[test]
    fn one_alone_needs_nobody() {
        let rendezvous = Rendezvous::new(1);
        assert!(rendezvous.arrive() && rendezvous.agree());
        assert_eq!(rendezvous.stage(), Stage::Agreed);
    }
}

//! A program that takes the place of an earlier version of it, and takes over that one's states as well as its own.
//!
//! States of either version may come for as long as the two nodes do not both run the next one: the executor knows nothing
//! of it, since whatever is loaded becomes a state of the program that runs here.

use crate::retain::{Record, Table};
use crate::{Application, CycleContext, LoadError, Mishap, ProgramFault};
use bumpless_base::Pieces;

/// Makes states of an application from those of the version before.
pub trait Conversion<A>: Send {
    /// Whether `state` was saved by the version before.
    fn is_before(&self, state: &[u8]) -> bool;

    /// Has `application` go on from `state`, which was saved by the version before. It ends by itself, within what a cycle may
    /// take.
    ///
    /// # Errors
    /// It cannot. `application` may be in any state then.
    fn convert(&mut self, state: &[u8], application: &mut A) -> Result<(), LoadError>;
}

/// What tells states of the version before from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Where in a state it stands whose it is, bytes from the beginning.
    pub at: usize,
    /// The version before, as it stands there.
    pub owner: [u8; 8],
}

impl Before {
    /// Whether the version before has saved `state`.
    pub fn has_saved(&self, state: &[u8]) -> bool {
        state
            .get(self.at..)
            .is_some_and(|it| it.starts_with(&self.owner))
    }
}

/// Nothing is converted: the next version begins from its initial state, with the values of variables that both retain.
pub struct Anew {
    before: Before,
    retained: Table,
    record: Vec<u8>,
    state: Box<[u8]>,
}

impl Anew {
    /// For states of `before`, which retains the variables in `retained`; states of the next version have at most `size_max`
    /// bytes.
    pub fn new(before: Before, retained: Table, size_max: usize) -> Self {
        Self {
            before,
            record: Vec::with_capacity(retained.record_len()),
            retained,
            state: vec![0; size_max].into_boxed_slice(),
        }
    }
}

impl<A: Application> Conversion<A> for Anew {
    fn is_before(&self, state: &[u8]) -> bool {
        self.before.has_saved(state)
    }

    fn convert(&mut self, state: &[u8], application: &mut A) -> Result<(), LoadError> {
        application.reset();
        let retains = application.retained().is_some_and(|it| !it.is_empty());
        if !retains || self.retained.is_empty() {
            return Ok(());
        }
        self.record.clear();
        self.retained.cut(state, &mut self.record);
        let len = application.save(&mut self.state);
        if let (Some(table), Some(record)) = (application.retained(), Record::parse(&self.record)) {
            table.apply(record, &mut self.state[..len]);
        }
        application.load(&self.state[..len])
    }
}

/// An application that takes over states of the version before, too.
pub struct Successor<A, C> {
    application: A,
    conversion: C,
    /// Its own state while one of the version before is converted.
    own: Box<[u8]>,
}

impl<A: Application, C: Conversion<A>> Successor<A, C> {
    /// `application`, for which `conversion` makes states.
    pub fn new(application: A, conversion: C) -> Self {
        let own = vec![0; application.state_size_max()].into_boxed_slice();
        Self {
            application,
            conversion,
            own,
        }
    }
}

impl<A: Application, C: Conversion<A>> Application for Successor<A, C> {
    fn inputs(&self) -> usize {
        self.application.inputs()
    }

    fn outputs(&self) -> usize {
        self.application.outputs()
    }

    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        self.application.execute(context, inputs, outputs)
    }

    fn mishap(&mut self) -> Option<Mishap> {
        self.application.mishap()
    }

    fn can_fail(&self) -> bool {
        self.application.can_fail()
    }

    fn keeps_state(&self) -> bool {
        self.application.keeps_state()
    }

    fn restore(&mut self) -> Result<(), LoadError> {
        self.application.restore()
    }

    fn pieces(&self) -> Option<&dyn Pieces> {
        self.application.pieces()
    }

    fn retained(&self) -> Option<&Table> {
        self.application.retained()
    }

    fn state_size_max(&self) -> usize {
        self.application.state_size_max()
    }

    fn state_owner(&self) -> Option<u64> {
        self.application.state_owner()
    }

    fn save(&self, into: &mut [u8]) -> usize {
        self.application.save(into)
    }

    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        if !self.conversion.is_before(state) {
            return self.application.load(state);
        }
        let len = self.application.save(&mut self.own);
        self.conversion
            .convert(state, &mut self.application)
            .inspect_err(|_| {
                // One that does not take its own state either says so in the next execution.
                let _ = self.application.load(&self.own[..len]);
            })
    }

    fn reset(&mut self) {
        self.application.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts; its state is one byte of version and one of count.
    struct Counter {
        version: u8,
        count: u8,
    }

    impl Application for Counter {
        fn inputs(&self) -> usize {
            0
        }
        fn outputs(&self) -> usize {
            0
        }
        fn execute(
            &mut self,
            _: &CycleContext,
            _: &[f64],
            _: &mut [f64],
        ) -> Result<(), ProgramFault> {
            self.count += 1;
            Ok(())
        }
        fn mishap(&mut self) -> Option<Mishap> {
            Some(Mishap {
                fault: ProgramFault::new(crate::ProgramFaultKind::Crash, "ended"),
                counts: true,
            })
        }
        fn state_size_max(&self) -> usize {
            2
        }
        fn save(&self, into: &mut [u8]) -> usize {
            into[..2].copy_from_slice(&[self.version, self.count]);
            2
        }
        fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
            match *state {
                [version, count] if version == self.version => {
                    self.count = count;
                    Ok(())
                }
                _ => Err(LoadError::Value { field: "version" }),
            }
        }
        fn reset(&mut self) {
            self.count = 0;
        }
    }

    /// Adds 100; takes no count above 9, and leaves the application spoilt then.
    struct Added;

    impl Conversion<Counter> for Added {
        fn is_before(&self, state: &[u8]) -> bool {
            state.first() == Some(&1)
        }
        fn convert(&mut self, state: &[u8], application: &mut Counter) -> Result<(), LoadError> {
            application.count = 100 + state[1];
            match state[1] {
                0..10 => Ok(()),
                _ => Err(LoadError::Conversion { reason: "too much" }),
            }
        }
    }

    #[test]
    fn what_happens_to_the_next_version_between_two_cycles_is_told() {
        let counter = Counter {
            version: 2,
            count: 0,
        };
        assert!(Successor::new(counter, Added).mishap().is_some());
    }

    #[test]
    fn states_of_either_version_are_taken_and_one_that_cannot_be_converted_changes_nothing() {
        let mut next = Successor::new(
            Counter {
                version: 2,
                count: 0,
            },
            Added,
        );
        let saved = |next: &Successor<_, _>| {
            let mut state = [0; 2];
            next.save(&mut state);
            state
        };
        next.load(&[1, 5]).unwrap();
        assert_eq!(saved(&next), [2, 105]);
        next.load(&[2, 7]).unwrap();
        assert_eq!(saved(&next), [2, 7]);
        let refused = next.load(&[1, 10]);
        assert_eq!(refused, Err(LoadError::Conversion { reason: "too much" }));
        assert_eq!(saved(&next), [2, 7], "as before");
        assert!(next.load(&[3, 1]).is_err());
        assert_eq!(saved(&next), [2, 7]);
    }
}

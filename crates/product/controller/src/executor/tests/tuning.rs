//! Going on with other settings.

use super::world::{World, accumulator, at, ms, published, settings, written};
use crate::executor::*;
use crate::{Application, CycleContext, LoadError, NoField, ProgramFault};
use bumpless_base::{Epoch, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Says no to every state.
struct Refusing;

impl Application for Refusing {
    fn inputs(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        1
    }
    fn execute(
        &mut self,
        _: &CycleContext,
        _: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        outputs[0] = -1.0;
        Ok(())
    }
    fn state_size_max(&self) -> usize {
        8
    }
    fn save(&self, _: &mut [u8]) -> usize {
        0
    }
    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        Err(LoadError::Length {
            expected: 0,
            found: state.len(),
        })
    }
    fn reset(&mut self) {}
}

#[test]
fn a_tuned_application_keeps_its_state_and_its_next_cycles_beginning() {
    let world = World::new();
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(30), &mut executor);
    let slower = ExecutorSettings {
        period: ms(20),
        ..settings()
    };
    let next = (Box::new(accumulator(&world)), Box::new(world.clone()));
    assert!(executor.tune(slower, next.0, next.1).is_ok());
    world.run_until(at(80), &mut executor);
    let expected = [
        (at(0), 1, 1.0),
        (at(10), 2, 2.0),
        (at(20), 3, 3.0),
        (at(30), 4, 4.0),
        (at(50), 5, 5.0),
        (at(70), 6, 6.0),
    ];
    assert_eq!(written(&world), expected);
}

#[test]
fn what_is_tuned_besides_the_period_holds_from_the_next_cycle_on() {
    let world = World::new();
    world.lock().transfer = Some(ms(3));
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(20), &mut executor);
    let waiting = ExecutorSettings {
        commit: CommitMode::BeforeOutput,
        ..settings()
    };
    let next = (Box::new(accumulator(&world)), Box::new(world.clone()));
    assert!(executor.tune(waiting, next.0, next.1).is_ok());
    world.run_until(at(40), &mut executor);
    let times: Vec<_> = written(&world).iter().map(|write| write.0).collect();
    assert_eq!(times, [at(0), at(10), at(23), at(33)]);
}

#[test]
fn an_application_that_refuses_the_state_leaves_everything_as_it_was() {
    let world = World::new();
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(30), &mut executor);
    let slower = ExecutorSettings {
        period: ms(20),
        ..settings()
    };
    let refused = executor.tune(slower, Box::new(Refusing), Box::new(NoField));
    let (error, (mut back, _)) = refused.err().unwrap();
    assert_eq!(
        error,
        LoadError::Length {
            expected: 0,
            found: 8
        }
    );
    let mut outputs = [0.0];
    let context = CycleContext {
        cycle: 1,
        period: ms(20),
    };
    back.execute(&context, &[0.0], &mut outputs).unwrap();
    assert_eq!(outputs, [-1.0], "what was given comes back");
    world.run_until(at(50), &mut executor);
    let after = &written(&world)[3..];
    assert_eq!(after, [(at(30), 4, 4.0), (at(40), 5, 5.0)]);
}

#[test]
fn a_tuned_backup_goes_on_from_the_state_that_it_received() {
    let world = World::new();
    {
        let mut state = world.lock();
        state.role = Role::Backup;
        state.received = Some(published(1, 41, 41.0));
    }
    let mut executor = world.executor(settings(), |_, _| {});
    world.run_until(at(20), &mut executor);
    let slower = ExecutorSettings {
        period: ms(20),
        ..settings()
    };
    // It has no state of its own yet, so there is nothing that could be refused.
    let next = (Box::new(accumulator(&world)), Box::new(world.clone()));
    assert!(executor.tune(slower, next.0, next.1).is_ok());
    world.schedule(at(24), |state| {
        state.role = Role::Primary;
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        });
    });
    world.run_until(at(60), &mut executor);
    assert_eq!(written(&world), [(at(24), 42, 42.0), (at(44), 43, 43.0)]);
}

/// the partner has made the change already, and has died since.
#[test]
fn a_state_that_a_version_does_not_take_is_gone_on_from_by_the_next_one() {
    let world = World::new();
    {
        let mut state = world.lock();
        state.role = Role::Backup;
        state.received = Some(published(1, 41, 41.0));
    }
    let mut executor = world.executor(settings(), |_, _| {});
    let before = (Box::new(Refusing), Box::new(world.clone()));
    assert!(executor.tune(settings(), before.0, before.1).is_ok());
    world.schedule(at(24), |state| {
        state.role = Role::Primary;
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        });
    });
    world.run_until(at(50), &mut executor);
    assert_eq!(written(&world), [], "it writes nothing");
    let next = (Box::new(accumulator(&world)), Box::new(world.clone()));
    assert!(executor.tune(settings(), next.0, next.1).is_ok());
    world.run_until(at(70), &mut executor);
    let cycles: Vec<_> = written(&world)
        .iter()
        .map(|(_, cycle, sum)| (*cycle, *sum))
        .collect();
    assert_eq!(cycles[..2], [(42, 42.0), (43, 43.0)]);
}

/// what the next version is tried with.
#[test]
fn the_newest_state_is_the_own_one_or_one_of_the_partners_that_has_come_further() {
    let world = World::new();
    let mut executor = world.executor(settings(), |_, _| {});
    let mut state = Vec::with_capacity(64);
    executor.newest_state(&mut state);
    assert!(state.is_empty(), "there is none");
    world.run_until(at(30), &mut executor);
    executor.newest_state(&mut state);
    let of = |sum: f64| published(1, 1, sum)[published(1, 1, sum).len() - 8..].to_vec();
    assert_eq!(state, of(3.0));
    world.lock().received = Some(published(1, 2, 41.0));
    executor.newest_state(&mut state);
    assert_eq!(state, of(3.0), "that is older");
    world.lock().received = Some(published(1, 90, 41.0));
    executor.newest_state(&mut state);
    assert_eq!(state, of(41.0));
}

/// Converts no state for the first few times; counts how often it is asked to.
struct Reluctant {
    inner: Box<dyn Application>,
    refusals: usize,
    asked: Arc<AtomicUsize>,
}

impl Application for Reluctant {
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }
    fn outputs(&self) -> usize {
        self.inner.outputs()
    }
    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        self.inner.execute(context, inputs, outputs)
    }
    fn state_size_max(&self) -> usize {
        self.inner.state_size_max()
    }
    fn save(&self, into: &mut [u8]) -> usize {
        self.inner.save(into)
    }
    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= self.refusals {
            return self.inner.load(state);
        }
        Err(LoadError::Conversion {
            reason: "the program's process does not run",
        })
    }
    fn reset(&mut self) {
        self.inner.reset();
    }
}

/// What a new primary writes within `until` whose program converts nothing for so many times, and how often that is asked to.
fn taken_over(refusals: usize, until: Instant) -> (Vec<(u64, f64)>, usize) {
    let world = World::new();
    {
        let mut state = world.lock();
        state.role = Role::Backup;
        state.received = Some(published(1, 41, 41.0));
    }
    let mut executor = world.executor(settings(), |_, _| {});
    let asked = Arc::new(AtomicUsize::new(0));
    let next = Reluctant {
        inner: Box::new(accumulator(&world)),
        refusals,
        asked: Arc::clone(&asked),
    };
    assert!(
        executor
            .tune(settings(), Box::new(next), Box::new(world.clone()))
            .is_ok()
    );
    world.schedule(at(24), |state| {
        state.role = Role::Primary;
        state.permit = Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        });
    });
    world.run_until(until, &mut executor);
    let written = written(&world);
    let cycles = written.iter().map(|(_, cycle, sum)| (*cycle, *sum));
    (cycles.collect(), asked.load(Ordering::Relaxed))
}

/// the process that converts is about to be there again.
#[test]
fn a_new_primary_tries_again_to_convert_a_state_and_gives_up_after_two_seconds() {
    let (written, asked) = taken_over(20, at(400));
    assert_eq!(asked, 21);
    assert_eq!(written[..2], [(42, 42.0), (43, 43.0)]);
    let (written, asked) = taken_over(usize::MAX, at(6000));
    assert_eq!(written, []);
    assert!((150..=210).contains(&asked), "{asked}");
}

//! What runs modules, and what each such engine gives (G-46).

use std::fmt;
use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_controller::TimeSource;

use super::fault::{Cause, Problem};
use super::interface::Io;
use crate::Limits;

/// What runs modules: both give the same outputs and states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// An interpreter.
    #[default]
    Wasmi,
    /// A compiler: several times as fast. Only in a build with the cargo feature `wasmtime`.
    Wasmtime,
}

impl Engine {
    /// All that there are.
    pub const ALL: [Self; 2] = [Self::Wasmi, Self::Wasmtime];

    /// The word that stands in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wasmi => "wasmi",
            Self::Wasmtime => "wasmtime",
        }
    }

    /// Whether it is in this build.
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::Wasmi => true,
            Self::Wasmtime => cfg!(feature = "wasmtime"),
        }
    }

    /// Steps that a cycle within `limits` may take.
    pub fn steps(self, limits: &Limits) -> u64 {
        // More than any computer does in a nanosecond: the steps of compiled code are instructions of the processor, several at a time.
        let per_nanosecond = match self {
            Self::Wasmi => 4,
            Self::Wasmtime => 64,
        };
        let most = limits.execute.as_nanos().saturating_mul(per_nanosecond);
        limits.fuel.unwrap_or(most)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Steps between two looks at the clock: tens of microseconds, a few hundred on a slow computer.
pub(super) const STRETCH: u64 = 20_000;

/// An instance as an engine gives it, or what is wrong with its module within these limits.
pub(super) fn boxed<I: Instance + 'static, E: fmt::Display>(
    made: Result<I, E>,
    limits: &Limits,
) -> Result<Box<dyn Instance>, Problem> {
    match made {
        Ok(instance) => Ok(Box::new(instance)),
        Err(error) => Err(Problem::set_up(&error, limits.memory)),
    }
}

/// What a call may use.
pub(super) struct Budget<'a> {
    pub(super) steps: u64,
    /// Bytes of memory, for the message only: the store keeps them.
    pub(super) memory: usize,
    /// Time, if somebody looks at it.
    pub(super) time: Option<(Duration, &'a Arc<dyn TimeSource>)>,
}

impl<'a> Budget<'a> {
    /// Of one cycle (G-26, G-27).
    pub(super) fn of_a_cycle(
        engine: Engine,
        limits: &Limits,
        time: Option<&'a Arc<dyn TimeSource>>,
    ) -> Self {
        Self {
            steps: engine.steps(limits),
            memory: limits.memory,
            time: time.map(|time| (limits.execute, time)),
        }
    }

    /// Of what runs before the first cycle (G-28).
    pub(super) fn before_the_first_cycle(limits: &Limits) -> Self {
        Self {
            steps: 1_000_000_000,
            memory: limits.memory,
            time: None,
        }
    }
}

/// A module with memory of its own, and handles to all of its state.
///
/// Globals are those that change, tables those that the code changes, each by its place among them. Values are bits as in a
/// state (G-25).
pub(super) trait Instance: Send {
    /// What the functions that it imports work on.
    fn io(&self) -> &Io;
    /// The same, to be changed between two calls.
    fn io_mut(&mut self) -> &mut Io;

    /// Runs one cycle, and gives the steps that it took.
    fn cycle(&mut self, budget: &Budget<'_>) -> Result<u64, Cause>;
    /// Calls what the host exports under this name and takes and gives nothing, if there is such a function.
    fn procedure(&mut self, name: &str, budget: &Budget<'_>) -> Option<Result<(), Cause>>;
    /// Calls what gives a number, likewise.
    fn number(&mut self, name: &str, budget: &Budget<'_>) -> Option<Result<i32, Cause>>;

    /// A memory, as it is.
    fn memory(&self, at: usize) -> &[u8];
    /// The same, to be changed.
    fn memory_mut(&mut self, at: usize) -> &mut [u8];
    /// Whether it has these pages more.
    fn grow_memory(&mut self, at: usize, pages: u64) -> bool;

    /// A global that can change.
    fn global(&mut self, at: usize) -> u64;
    /// Gives it a value that it can have.
    fn set_global(&mut self, at: usize, bits: u64);
    /// A global that the module changes or exports, by number.
    fn shown_global(&mut self, index: u32) -> Option<u64>;

    /// Elements of a table.
    fn table_size(&self, at: usize) -> usize;
    /// One of them.
    fn element(&mut self, at: usize, index: usize) -> u32;
    /// Gives it a value that it can have.
    fn set_element(&mut self, at: usize, index: usize, bits: u32);
    /// Whether it has these elements more, which are null.
    fn grow_table(&mut self, at: usize, more: u64) -> bool;
}

/// The functions of an instance by number, and the numbers by function.
pub(super) struct Functions<F> {
    by_number: Box<[F]>,
    /// By what an engine tells functions apart by; sorted.
    numbers: Box<[(u64, u32)]>,
}

impl<F> Functions<F> {
    pub(super) fn none() -> Self {
        Self {
            by_number: Box::default(),
            numbers: Box::default(),
        }
    }

    /// All of them with what tells them apart; `None` if it does not.
    pub(super) fn new(all: Vec<(F, u64)>) -> Option<Self> {
        let keys = all.iter().zip(0..);
        let mut numbers: Vec<_> = keys.map(|((_, key), number)| (*key, number)).collect();
        numbers.sort_unstable();
        let distinct = numbers.windows(2).all(|two| two[0].0 != two[1].0);
        distinct.then(|| Self {
            by_number: all.into_iter().map(|(function, _)| function).collect(),
            numbers: numbers.into_boxed_slice(),
        })
    }

    /// The number plus 1 of the function that is referred to, 0 for null and for what is none of them.
    pub(super) fn reference(&self, key: Option<u64>) -> u32 {
        let at = key.and_then(|key| {
            let found = self.numbers.binary_search_by_key(&key, |(key, _)| *key);
            found.ok()
        });
        let number = at.and_then(|at| self.numbers.get(at));
        number.map_or(0, |(_, number)| number + 1)
    }

    /// The reverse.
    pub(super) fn referred(&self, reference: u32) -> Option<&F> {
        self.by_number.get(reference.checked_sub(1)? as usize)
    }
}

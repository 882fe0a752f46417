//! What an executor counts, and how its program last failed, for others to read.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bumpless_base::{Counter, Counters, Instant};
use bumpless_controller::executor::Then;

use crate::short_text::ShortText;

/// One failed execution, for status.
#[derive(Clone, Copy, Debug)]
pub struct ProgramNote {
    /// The number that the cycle would have had.
    pub cycle: u64,
    /// When.
    pub at: Instant,
    /// Why, in words.
    pub cause: ShortText,
    /// What follows.
    pub then: Then,
}

/// What a program that began from its initial state has kept, for status.
#[derive(Clone, Copy, Debug)]
pub struct RetainedNote {
    /// When.
    pub at: Instant,
    /// What became of its retained variables, in words.
    pub what: ShortText,
    /// How many have the values of before.
    pub taken: u32,
    /// How many have none, for their name or type.
    pub lacking: u32,
}

/// What one executor shows, readable from any thread.
#[derive(Debug)]
pub struct CounterBoard {
    counters: [AtomicU64; Counter::ALL.len()],
    /// Field devices that did not answer last, a bit for each.
    silent: AtomicU64,
    /// Neither side ever waits for the other: who finds it taken comes again.
    program: Mutex<Option<ProgramNote>>,
    retained: Mutex<Option<RetainedNote>>,
}

impl Default for CounterBoard {
    fn default() -> Self {
        Self {
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            silent: AtomicU64::new(0),
            program: Mutex::default(),
            retained: Mutex::default(),
        }
    }
}

impl CounterBoard {
    pub(super) fn store(&self, counters: &Counters) {
        for (slot, &counter) in self.counters.iter().zip(Counter::ALL) {
            slot.store(counters.get(counter), Ordering::Relaxed);
        }
    }

    /// Adds the figures to `sum`.
    pub fn add_to(&self, sum: &mut Counters) {
        for (slot, &counter) in self.counters.iter().zip(Counter::ALL) {
            sum.add(counter, slot.load(Ordering::Relaxed));
        }
    }

    /// One figure.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    pub(super) fn note_silent(&self, devices: u64) {
        self.silent.store(devices, Ordering::Relaxed);
    }

    /// Field devices that did not answer last, a bit for each by position.
    pub fn silent(&self) -> u64 {
        self.silent.load(Ordering::Relaxed)
    }

    /// Shows how the program failed; returns whether the place was free.
    pub fn note_program(&self, note: ProgramNote) -> bool {
        let place = self.program.try_lock();
        place.map(|mut place| *place = Some(note)).is_ok()
    }

    /// How the program failed last, if it did and the place is free; else what was `known`.
    pub fn program(&self, known: Option<ProgramNote>) -> Option<ProgramNote> {
        self.program.try_lock().map_or(known, |place| *place)
    }

    /// Shows what was kept; returns whether the place was free.
    pub fn note_retained(&self, note: RetainedNote) -> bool {
        let place = self.retained.try_lock();
        place.map(|mut place| *place = Some(note)).is_ok()
    }

    /// What was kept last, if the place is free; else what was `known`.
    pub fn retained(&self, known: Option<RetainedNote>) -> Option<RetainedNote> {
        self.retained.try_lock().map_or(known, |place| *place)
    }
}

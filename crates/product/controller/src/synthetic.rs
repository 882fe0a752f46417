//! An application without a process: its state has any size and changes by any share per cycle,
//! and every byte can be told from the cycle number, so that a whole state can be told from a mix.
//!
//! The state is the cycle counter in its first 8 bytes, then words of 8 bytes (the last one may
//! be cut). Each cycle rewrites the next words in turn, the share of them that is configured,
//! with a mix of word number and cycle. All little endian: a state shorter than 8 bytes then
//! still holds the low bytes of the counter.

use crate::{Application, CycleContext, LoadError, ProgramFault};
use bumpless_base::pieces::overlay;
use bumpless_base::random::mix64;
use bumpless_base::{Pieces, Revision};

const WORD: usize = 8;

/// Size and rate of change of a synthetic state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticParameters {
    /// Bytes of the state, without the executor's envelope.
    pub size: usize,
    /// Share of the words that each cycle changes, 0 to 1; values outside count as the limit. The
    /// cycle counter changes always.
    pub changed_share: f64,
}

impl SyntheticParameters {
    fn words(&self) -> u64 {
        self.size.saturating_sub(WORD).div_ceil(WORD) as u64
    }

    fn words_per_cycle(&self) -> u64 {
        (self.words() as f64 * self.changed_share.clamp(0.0, 1.0)).ceil() as u64
    }

    /// Whether `state` is, byte for byte, the state after one single cycle; returns that cycle
    /// (of states below 8 bytes: its low bytes).
    pub fn verify(&self, state: &[u8]) -> Result<u64, LoadError> {
        if state.len() != self.size {
            return Err(LoadError::Length {
                expected: self.size,
                found: state.len(),
            });
        }
        let (counter, content) = state.split_at(state.len().min(WORD));
        let mut raw = [0; WORD];
        raw[..counter.len()].copy_from_slice(counter);
        let cycle = u64::from_le_bytes(raw);
        let per_cycle = self.words_per_cycle();
        let mixed = LoadError::Value { field: "content" };
        // Only counters that a run can reach; beyond, positions would overflow.
        let written = cycle.checked_mul(per_cycle).ok_or(mixed)?;
        let words = self.words();
        let expected = |index| word_at(index, words, written, per_cycle);
        let (whole, cut) = content.as_chunks::<WORD>();
        for (index, found) in (0u64..).zip(whole) {
            if u64::from_le_bytes(*found) != expected(index) {
                return Err(mixed);
            }
        }
        let last = match cut.is_empty() {
            true => [0; WORD],
            false => expected(whole.len() as u64).to_le_bytes(),
        };
        match cut == &last[..cut.len()] {
            true => Ok(cycle),
            false => Err(mixed),
        }
    }
}

/// Word `index` of `words` after `written` words were rewritten in turn, `per_cycle` a cycle.
fn word_at(index: u64, words: u64, written: u64, per_cycle: u64) -> u64 {
    let last = match written.checked_sub(index + 1) {
        // The last position not after the newest one that falls on this word, and its cycle.
        Some(back) => {
            let position = written - 1 - back % words;
            position.checked_div(per_cycle).map_or(0, |cycle| cycle + 1)
        }
        None => 0,
    };
    word(index, last)
}

/// Word `index` as cycle `cycle` writes it; cycle 0 is the initial state. No two words of the first
/// 2^32 cycles of a state are equal.
fn word(index: u64, cycle: u64) -> u64 {
    mix64(index << 32 ^ cycle)
}

/// The synthetic application.
#[derive(Clone, Debug)]
pub struct Synthetic {
    parameters: SyntheticParameters,
    cycle: u64,
    state: Box<[u8]>,
}

impl Synthetic {
    /// The application in its initial state (cycle 0).
    pub fn new(parameters: SyntheticParameters) -> Self {
        let mut synthetic = Self {
            parameters,
            cycle: 0,
            state: vec![0; parameters.size].into_boxed_slice(),
        };
        synthetic.reset();
        synthetic
    }

    /// Cycles executed, those of predecessors included.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Writes the words from `first` on, `count` of them, as `cycle` does; none lies beyond the last.
    fn put_words(&mut self, first: u64, count: u64, cycle: u64) {
        let content = self.state.get_mut(WORD..).unwrap_or_default();
        let start = (WORD * first as usize).min(content.len());
        let end = (start + WORD * count as usize).min(content.len());
        let (whole, cut) = content[start..end].as_chunks_mut::<WORD>();
        let last = first + whole.len() as u64;
        for (index, slot) in (first..).zip(whole) {
            *slot = word(index, cycle).to_le_bytes();
        }
        cut.copy_from_slice(&word(last, cycle).to_le_bytes()[..cut.len()]);
    }

    fn put_counter(&mut self) {
        let len = self.state.len().min(WORD);
        self.state[..len].copy_from_slice(&self.cycle.to_le_bytes()[..len]);
    }
}

impl Pieces for Synthetic {
    fn size(&self) -> usize {
        self.state.len()
    }

    fn revision(&self) -> Option<Revision> {
        None
    }

    fn copy(&self, at: usize, piece: &mut [u8], _: Option<Revision>) {
        overlay(piece, at, &self.state, 0);
    }
}

impl Application for Synthetic {
    fn inputs(&self) -> usize {
        0
    }

    fn outputs(&self) -> usize {
        0
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn execute(&mut self, _: &CycleContext, _: &[f64], _: &mut [f64]) -> Result<(), ProgramFault> {
        let (words, per_cycle) = (self.parameters.words(), self.parameters.words_per_cycle());
        let first = self.cycle.wrapping_mul(per_cycle) % words.max(1);
        self.cycle = self.cycle.wrapping_add(1);
        let before_turn = per_cycle.min(words - first.min(words));
        self.put_words(first, before_turn, self.cycle);
        self.put_words(0, per_cycle - before_turn, self.cycle);
        self.put_counter();
        Ok(())
    }

    fn state_size_max(&self) -> usize {
        self.parameters.size
    }

    fn pieces(&self) -> Option<&dyn Pieces> {
        Some(self)
    }

    fn save(&self, into: &mut [u8]) -> usize {
        into[..self.state.len()].copy_from_slice(&self.state);
        self.state.len()
    }

    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        let cycle = self.parameters.verify(state)?;
        self.state.copy_from_slice(state);
        self.cycle = cycle;
        Ok(())
    }

    fn reset(&mut self) {
        self.cycle = 0;
        self.put_words(0, self.parameters.words(), 0);
        self.put_counter();
    }
}

#[cfg(test)]
mod tests;

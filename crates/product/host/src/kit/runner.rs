//! One instance of the program under test in its cycles.

use std::hash::Hasher;

use bumpless_base::Duration;
use bumpless_controller::{Application, CycleContext};

use super::inputs::{Inputs, Reader};

/// An instance, and what goes in and comes out.
pub(super) struct Runner {
    pub(super) application: Box<dyn Application>,
    reader: Reader,
    inputs: Vec<f64>,
    pub(super) outputs: Vec<f64>,
    period: Duration,
    state: Vec<u8>,
}

impl Runner {
    /// At its first cycle.
    pub(super) fn new(
        application: Box<dyn Application>,
        inputs: &Inputs,
        period: Duration,
    ) -> Self {
        let values = application.inputs();
        Self {
            reader: inputs.reader(values),
            inputs: vec![0.0; values],
            outputs: vec![0.0; application.outputs()],
            state: vec![0; application.state_size_max()],
            application,
            period,
        }
    }

    /// Takes the next inputs, which the next execution gets.
    pub(super) fn copy_in(&mut self) {
        self.reader.next(&mut self.inputs);
    }

    /// Executes the cycle with this number.
    pub(super) fn execute(&mut self, cycle: u64) -> Result<(), String> {
        let context = CycleContext {
            cycle,
            period: self.period,
        };
        self.application
            .execute(&context, &self.inputs, &mut self.outputs)
            .map_err(|fault| fault.to_string())
    }

    /// The state as it is.
    pub(super) fn save(&mut self) -> &[u8] {
        let length = self.application.save(&mut self.state);
        &self.state[..length.min(self.state.len())]
    }

    /// Goes on in `other` with the state as it is; returns the instance that it was in.
    pub(super) fn move_to(
        &mut self,
        mut other: Box<dyn Application>,
    ) -> Result<Box<dyn Application>, String> {
        let state = self.save();
        other.load(state).map_err(|error| error.to_string())?;
        Ok(std::mem::replace(&mut self.application, other))
    }

    /// Begins anew: inputs and outputs, too.
    pub(super) fn reset(&mut self, inputs: &Inputs) {
        self.application.reset();
        self.reader = inputs.reader(self.inputs.len());
        self.outputs.fill(0.0);
    }
}

/// A few cycles that have nothing to do with the others, so that an instance is not as it was.
pub(super) fn disturb(application: &mut dyn Application, cycle: u64, period: Duration) {
    let mut outputs = vec![0.0; application.outputs()];
    for beyond in 0..3 {
        let inputs = vec![17.0 + beyond as f64; application.inputs()];
        let context = CycleContext {
            cycle: cycle + beyond,
            period,
        };
        // It may fail: taking over a state heals that.
        let _ = application.execute(&context, &inputs, &mut outputs);
    }
}

/// Tells states apart.
pub(super) fn digest(state: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(state);
    hasher.finish()
}

/// The share of words of 8 bytes in which two states differ.
pub(super) fn changed_share(before: &[u8], now: &[u8]) -> f64 {
    let words = before.len().max(now.len()).div_ceil(8);
    let pairs = before.chunks(8).zip(now.chunks(8));
    let same = pairs.filter(|(before, now)| before == now).count();
    match words {
        0 => 0.0,
        words => (words - same) as f64 / words as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_changed_counts_words_that_came_or_went() {
        assert_eq!(changed_share(&[0; 64], &[0; 64]), 0.0);
        let mut now = [0; 64];
        now[63] = 1;
        assert_eq!(changed_share(&[0; 64], &now), 1.0 / 8.0);
        assert_eq!(changed_share(&[0; 32], &[0; 64]), 0.5);
        assert_eq!(changed_share(&[], &[]), 0.0);
    }
}

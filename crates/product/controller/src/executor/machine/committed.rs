//! The last whole state of a program that can fail: what a failed execution goes back to.

use crate::executor::handover::published_size_max;
use crate::state::{Progress, encode_envelope};
use crate::{Application, LoadError};

/// A copy of the application's state after its last successful execution, or as it was taken up.
pub(super) struct Committed {
    outputs: Box<[f64]>,
    state: Box<[u8]>,
    len: usize,
}

impl Committed {
    /// Memory for a copy, if `application` can fail.
    pub(super) fn of(application: &dyn Application) -> Option<Self> {
        application.can_fail().then(|| Self {
            outputs: vec![0.0; application.outputs()].into_boxed_slice(),
            state: vec![0; application.state_size_max()].into_boxed_slice(),
            len: 0,
        })
    }

    /// Copies what `application` and `outputs` are.
    pub(super) fn take(&mut self, application: &dyn Application, outputs: &[f64]) {
        self.outputs.copy_from_slice(outputs);
        self.len = application.save(&mut self.state).min(self.state.len());
    }

    /// Has `application` and `outputs` be as they were copied.
    pub(super) fn restore(
        &self,
        application: &mut dyn Application,
        outputs: &mut [f64],
    ) -> Result<(), LoadError> {
        outputs.copy_from_slice(&self.outputs);
        application.load(&self.state[..self.len])
    }

    /// Copies the application's own bytes into `into`, which is as long as its longest state, and returns their length.
    pub(super) fn save(&self, into: &mut [u8]) -> usize {
        into[..self.len].copy_from_slice(&self.state[..self.len]);
        self.len
    }

    /// Writes it as a published state; an empty one if `buffer` is too small for `application`, which no partner loads.
    pub(super) fn fill(
        &self,
        application: &dyn Application,
        progress: Progress,
        buffer: &mut [u8],
    ) -> usize {
        if buffer.len() < published_size_max(application) {
            return 0;
        }
        let Some(head) = encode_envelope(progress, &self.outputs, buffer) else {
            return 0;
        };
        let end = head + self.len;
        buffer[head..end].copy_from_slice(&self.state[..self.len]);
        end
    }
}

//! The last whole state of a program that can fail: what a failed execution goes back to.

use crate::executor::handover::{fill, published_size_max};
use crate::state::{Progress, encode_envelope};
use crate::{Application, LoadError};

/// The outputs of the last successful execution, or as they were taken up, and the application's state of that time.
pub(super) struct Committed {
    outputs: Box<[f64]>,
    /// `None`: the application keeps it.
    copy: Option<Copy>,
}

struct Copy {
    state: Box<[u8]>,
    len: usize,
}

impl Committed {
    /// Memory for what `application` does not keep itself, if it can fail.
    pub(super) fn of(application: &dyn Application) -> Option<Self> {
        let copy = || Copy {
            state: vec![0; application.state_size_max()].into_boxed_slice(),
            len: 0,
        };
        application.can_fail().then(|| Self {
            outputs: vec![0.0; application.outputs()].into_boxed_slice(),
            copy: (!application.keeps_state()).then(copy),
        })
    }

    /// The outputs.
    pub(super) fn outputs(&self) -> &[f64] {
        &self.outputs
    }

    /// Whether the application keeps its state.
    pub(super) fn is_kept_by_application(&self) -> bool {
        self.copy.is_none()
    }

    /// Copies what `application` and `outputs` are.
    pub(super) fn take(&mut self, application: &dyn Application, outputs: &[f64]) {
        self.outputs.copy_from_slice(outputs);
        if let Some(copy) = &mut self.copy {
            copy.len = application.save(&mut copy.state).min(copy.state.len());
        }
    }

    /// Has `application` and `outputs` be as they were then.
    pub(super) fn restore(
        &self,
        application: &mut dyn Application,
        outputs: &mut [f64],
    ) -> Result<(), LoadError> {
        outputs.copy_from_slice(&self.outputs);
        match &self.copy {
            Some(copy) => application.load(&copy.state[..copy.len]),
            None => application.restore(),
        }
    }

    /// Copies the application's own bytes into `into`, which is as long as its longest state, and returns their length.
    pub(super) fn save(&self, application: &dyn Application, into: &mut [u8]) -> usize {
        let Some(copy) = &self.copy else {
            return application.save(into);
        };
        into[..copy.len].copy_from_slice(&copy.state[..copy.len]);
        copy.len
    }

    /// Writes it as a published state; an empty one if `buffer` is too small for `application`, which no partner loads.
    pub(super) fn fill(
        &self,
        application: &dyn Application,
        progress: Progress,
        buffer: &mut [u8],
    ) -> usize {
        let Some(copy) = &self.copy else {
            return fill(application, progress, &self.outputs, buffer);
        };
        if buffer.len() < published_size_max(application) {
            return 0;
        }
        let Some(head) = encode_envelope(progress, &self.outputs, buffer) else {
            return 0;
        };
        let end = head + copy.len;
        buffer[head..end].copy_from_slice(&copy.state[..copy.len]);
        end
    }
}

//! States of the version before, made into states of the next one.

use bumpless_controller::successor::{Before, Conversion};
use bumpless_controller::{Application, LoadError};

use crate::plc::Succession;
use crate::sidecar::HEAD;
use crate::{Cause, Sidecar};

/// By names and types of variables, for PLC programs (H-34).
pub struct ByVariables {
    before: Before,
    succession: Succession,
    state: Box<[u8]>,
}

impl ByVariables {
    /// From states whose owner is `before` to those of `next`.
    pub fn new(before: u64, succession: Succession, next: &Sidecar) -> Self {
        Self {
            before: told_by(before),
            succession,
            state: vec![0; next.state_size_max()].into_boxed_slice(),
        }
    }
}

impl Conversion<Sidecar> for ByVariables {
    fn is_before(&self, state: &[u8]) -> bool {
        self.before.has_saved(state)
    }

    fn convert(&mut self, state: &[u8], application: &mut Sidecar) -> Result<(), LoadError> {
        application.reset();
        let len = application.save(&mut self.state);
        let into = &mut self.state[..len];
        if !self.succession.carry(state, into, HEAD) {
            return Err(LoadError::Conversion {
                reason: "it is shorter than the table of its variables says",
            });
        }
        application.load(into)
    }
}

/// By the program itself (H-36).
pub struct ByProgram {
    before: Before,
    version: u64,
}

impl ByProgram {
    /// From states whose owner is `before`, and whose layout has the version `version`.
    pub fn new(before: u64, version: u64) -> Self {
        let before = told_by(before);
        Self { before, version }
    }
}

impl Conversion<Sidecar> for ByProgram {
    fn is_before(&self, state: &[u8]) -> bool {
        self.before.has_saved(state)
    }

    fn convert(&mut self, state: &[u8], application: &mut Sidecar) -> Result<(), LoadError> {
        let old = state.get(HEAD..).unwrap_or_default();
        let converted = application.convert(self.version, old);
        converted.map_err(|cause| LoadError::Conversion {
            reason: match cause {
                Cause::Unanswered(_) => "the program had not converted it by execute_limit_ms",
                Cause::Died(_) => "the program's process ended while it converted it",
                Cause::Failed(_) => "the program says that it cannot",
                _ => "the program's process does not run",
            },
        })
    }
}

/// Where a saved state tells whose it is (H-19).
pub(crate) fn told_by(owner: u64) -> Before {
    Before {
        at: 0,
        owner: owner.to_le_bytes(),
    }
}

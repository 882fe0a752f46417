//! What a program is to the executor: one of its applications, whose state can be copied in pieces.

use bumpless_base::pieces::overlay;
use bumpless_base::{Pieces, Revision};
use bumpless_controller::retain::Table;
use bumpless_controller::{Application, CycleContext, LoadError, Mishap, ProgramFault};

use super::{HEAD, Sidecar};

impl Pieces for Sidecar {
    fn size(&self) -> usize {
        HEAD + self.attached.state_len
    }

    fn revision(&self) -> Option<Revision> {
        Some(Revision {
            of: self.number,
            number: self.committed.revision(),
        })
    }

    fn copy(&self, at: usize, piece: &mut [u8], held: Option<Revision>) {
        overlay(piece, at, &self.attached.owner.to_le_bytes(), 0);
        let skipped = HEAD.saturating_sub(at);
        if let Some(rest) = piece.get_mut(skipped..) {
            let since = held.map(|held| held.number);
            let at = (at + skipped).saturating_sub(HEAD);
            self.committed.copy(at, rest, since);
        }
    }
}

impl Application for Sidecar {
    fn inputs(&self) -> usize {
        self.shape.inputs
    }

    fn outputs(&self) -> usize {
        self.shape.outputs
    }

    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        self.ask_for_outputs(context, inputs, outputs)?;
        if let Some(fault) = ProgramFault::of_outputs(outputs) {
            self.put_state();
            return Err(fault);
        }
        self.commit();
        Ok(())
    }

    fn mishap(&mut self) -> Option<Mishap> {
        self.untold()
    }

    fn keeps_state(&self) -> bool {
        true
    }

    fn restore(&mut self) -> Result<(), LoadError> {
        self.put_state();
        Ok(())
    }

    fn pieces(&self) -> Option<&dyn Pieces> {
        Some(self)
    }

    fn retained(&self) -> Option<&Table> {
        Some(&self.retained)
    }

    fn state_size_max(&self) -> usize {
        HEAD + self.attached.state_len
    }

    fn state_owner(&self) -> Option<u64> {
        Some(self.owner())
    }

    fn save(&self, into: &mut [u8]) -> usize {
        let state = self.committed.state();
        let len = HEAD + state.len();
        into[..HEAD].copy_from_slice(&self.attached.owner.to_le_bytes());
        into[HEAD..len].copy_from_slice(state);
        len
    }

    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        let expected = self.state_size_max();
        let Some((head, state)) = state
            .split_first_chunk::<HEAD>()
            .filter(|_| state.len() == expected)
        else {
            return Err(LoadError::Length {
                expected,
                found: state.len(),
            });
        };
        if u64::from_le_bytes(*head) != self.attached.owner {
            return Err(LoadError::Value {
                field: "program that it is of",
            });
        }
        self.committed.replace(state);
        self.put_state();
        Ok(())
    }

    fn reset(&mut self) {
        self.committed.replace(&self.initial);
        self.put_state();
    }
}

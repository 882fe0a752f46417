//! What an application is to the executor: a function over inputs, outputs and one state.
//!
//! The state is one byte region of known maximum size. It must hold everything that execution
//! depends on besides inputs and configuration, so that a successor that loads it goes on with
//! the same outputs as the original would have. Cycle number, epoch and last outputs are added by
//! the executor (see [`crate::state`]).

use crate::fault::{Mishap, ProgramFault};
use crate::retain::Table;
use bumpless_base::{Duration, Pieces};
use core::fmt;

/// The circumstances of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleContext {
    /// Number of this cycle; it goes on counting where the predecessor stopped.
    pub cycle: u64,
    /// The application's period.
    pub period: Duration,
}

/// A cyclic control application (first paper, section 2.2).
pub trait Application: Send {
    /// How many input values [`execute`](Self::execute) takes.
    fn inputs(&self) -> usize;

    /// How many output values [`execute`](Self::execute) gives.
    fn outputs(&self) -> usize;

    /// Runs one cycle. On entry `outputs` holds the outputs of the cycle before, zeros in the
    /// very first one. Must not block, and ends by itself: a program of somebody else is stopped at its limit.
    ///
    /// # Errors
    /// The program failed. Its state and `outputs` may be anything then; the executor takes neither, and calls
    /// [`load`](Self::load) or [`reset`](Self::reset) before it executes again.
    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault>;

    /// What has happened to the program since this was asked last, for which no cycle has failed. It is asked before each
    /// execution, and has had its effect: the program runs.
    fn mishap(&mut self) -> Option<Mishap> {
        None
    }

    /// Whether [`execute`](Self::execute) ever fails. Then the executor keeps a copy of the last whole state, which
    /// costs memory for one state and, each cycle, the time to copy it.
    fn can_fail(&self) -> bool {
        true
    }

    /// Whether it keeps its last whole state itself: after a failed execution, too, [`save`](Self::save) writes that one,
    /// and [`restore`](Self::restore) goes back to it. Otherwise the executor keeps a copy of it.
    fn keeps_state(&self) -> bool {
        false
    }

    /// Goes back to the state that it keeps, and starts the program again where that is needed, as [`load`](Self::load)
    /// does.
    ///
    /// # Errors
    /// It keeps none.
    fn restore(&mut self) -> Result<(), LoadError> {
        Err(LoadError::NotRunning {
            reason: "it keeps no state to go back to; this is a defect of its host",
        })
    }

    /// What [`save`](Self::save) writes, if it can be copied in pieces or where it has changed.
    fn pieces(&self) -> Option<&dyn Pieces> {
        None
    }

    /// The variables in what [`save`](Self::save) writes that are kept where the state as a whole may not be gone on
    /// from; `None`: it has none.
    fn retained(&self) -> Option<&Table> {
        None
    }

    /// Most bytes that [`save`](Self::save) ever writes.
    fn state_size_max(&self) -> usize;

    /// Whose states it takes over, beside how long they are: a program goes on from those of another one that says the same.
    /// `None`: from those of any application of its kind with its settings.
    fn state_owner(&self) -> Option<u64> {
        None
    }

    /// Copies the state into the front of `into`, which has at least
    /// [`state_size_max`](Self::state_size_max) bytes, and returns its length.
    fn save(&self, into: &mut [u8]) -> usize;

    /// Takes over a saved state. Any bytes may come; on an error the state is unchanged. After a failed execution it
    /// starts the program again where that is needed, which may take some periods but must stay well below a second.
    fn load(&mut self, state: &[u8]) -> Result<(), LoadError>;

    /// Returns to the initial state (cold start), and starts the program again where that is needed. Where it does not
    /// start, the next [`execute`](Self::execute) says so.
    fn reset(&mut self);
}

/// Why a state was not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It has another length than this application's states have.
    Length {
        /// Bytes that a state of this application has, or at least has.
        expected: usize,
        /// Bytes that came.
        found: usize,
    },
    /// Its layout has another version.
    Version {
        /// The version that this program writes and reads.
        expected: u8,
        /// The version that came.
        found: u8,
    },
    /// A field has a value that no saved state can have.
    Value {
        /// The field's name in the layout.
        field: &'static str,
    },
    /// It is of the version before, and nothing could be made of it.
    Conversion {
        /// Why, with what to do about it.
        reason: &'static str,
    },
    /// The program does not run, for this reason, and so has nothing that could take a state.
    NotRunning {
        /// Why, with what to do about it.
        reason: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, found } => {
                write!(f, "the state has {found} bytes instead of {expected}")?;
            }
            Self::Version { expected, found } => {
                write!(
                    f,
                    "the state's layout has version {found} instead of {expected}"
                )?;
            }
            Self::Value { field } => write!(f, "the state's field {field:?} is impossible")?,
            Self::Conversion { reason } => {
                return write!(
                    f,
                    "the state of the version before cannot be converted: {reason}"
                );
            }
            Self::NotRunning { reason } => return write!(f, "the program does not run: {reason}"),
        }
        f.write_str("; run the same program with the same configuration on both nodes")
    }
}

impl std::error::Error for LoadError {}

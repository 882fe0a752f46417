//! Running measurements: processes, the meter beside them, and the cases one after the other.

pub mod allocations;
pub mod cost;
pub mod cut;
pub mod cyclic;
pub mod loss;
pub mod meter;
pub mod pair;
pub mod process;
pub mod progress;
pub mod transfers;

use std::sync::atomic::{AtomicBool, Ordering};

/// Why a measurement gave no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The user wants to stop.
    Stopped,
    /// What went wrong.
    Failed(String),
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// [`Trouble::Stopped`] if `stop` is set.
pub(crate) fn go_on(stop: &AtomicBool) -> Result<(), Trouble> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Trouble::Stopped),
        false => Ok(()),
    }
}

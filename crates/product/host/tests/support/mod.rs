//! What the tests share.
#![allow(dead_code, reason = "not every test file uses all of it")]

#[cfg(feature = "wasm")]
pub mod modules;

use bumpless_base::{Duration, Instant};
use bumpless_controller::Application;
use bumpless_host::kit::{self, Inputs, Report, Surroundings, Trial};

pub const PERIOD: Duration = Duration::from_millis(10);

/// 10,000 cycles, and the state moved before 100 of them.
pub fn trial() -> Trial {
    Trial {
        cycles: 10_000,
        moves: 100,
        seed: 7,
        period: PERIOD,
        inputs: Inputs::Drawn { seed: 3 },
    }
}

/// Puts what `make` makes to the test, by a clock that stands still.
pub fn examined(
    trial: &Trial,
    mut make: impl FnMut() -> Result<Box<dyn Application>, String>,
) -> Report {
    kit::examine(
        trial,
        Surroundings {
            make: &mut make,
            look: &mut Vec::new,
            time: &|| Instant::ZERO,
            progress: &mut |_, _| std::ops::ControlFlow::Continue(()),
        },
    )
}

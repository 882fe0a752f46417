//! Asks a program what it is, before anybody knows with how many values and bytes it is to be started.

use std::sync::atomic::Ordering;

use bumpless_base::Duration;

use crate::process::Process;
use crate::{Command, Limits, Shape, StartCause, StartFault};

/// What a program tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Inputs that it takes.
    pub inputs: usize,
    /// Outputs that it gives.
    pub outputs: usize,
    /// Bytes of its state.
    pub state_len: usize,
    /// The only period with which it can run, if it cannot with any.
    pub period: Option<Duration>,
    /// Version of its state's layout; 0: none.
    pub state_version: u64,
    /// Whether it converts states of other versions.
    pub converts: bool,
}

/// Starts the program without inputs and outputs, reads what it tells, and ends it; `wanted` says whether anybody still
/// waits for that.
///
/// # Errors
/// It does not start, is not ready in time, is not wanted any more, or has a state of more than `state_max` bytes.
pub fn ask(
    command: &Command,
    state_max: usize,
    limits: Limits,
    wanted: &dyn Fn() -> bool,
) -> Result<Told, StartFault> {
    let fault = |cause| StartFault {
        program: command.name(),
        cause,
    };
    let shape = Shape {
        inputs: 0,
        outputs: 0,
        state_max,
    };
    // A program that refuses these numbers says so, and that is no news.
    let silent = Command {
        silent: true,
        ..command.clone()
    };
    let told = tells(&silent, shape, limits, wanted);
    // What it printed may say why.
    let told = match told {
        Err(StartCause::Ended(_)) => tells(command, shape, limits, wanted),
        told => told,
    };
    told.map_err(fault)
}

fn tells(
    command: &Command,
    shape: Shape,
    limits: Limits,
    wanted: &dyn Fn() -> bool,
) -> Result<Told, StartCause> {
    let process = Process::start(command, shape, limits)?;
    let attached = process.attached(shape, limits.start, wanted);
    let header = process.shared().header();
    let number = |field: &core::sync::atomic::AtomicU32| field.load(Ordering::Relaxed) as usize;
    let told = Told {
        inputs: number(&header.program_inputs),
        outputs: number(&header.program_outputs),
        state_len: header.state_len.load(Ordering::Relaxed) as usize,
        period: match header.program_period.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        },
        state_version: header.state_version.load(Ordering::Relaxed),
        converts: header.converts.load(Ordering::Relaxed) == 1,
    };
    process.kill();
    process.watch_to_the_end();
    match attached {
        Ok(_) | Err(StartCause::Count { .. }) if told.state_len > shape.state_max => {
            Err(StartCause::State {
                program: told.state_len as u64,
                configured: shape.state_max as u64,
            })
        }
        Ok(_) | Err(StartCause::Count { .. }) => Ok(told),
        Err(cause) => Err(cause),
    }
}

//! A program that fails when the script says so, around the one that is shipped.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bumpless_config::{self as config, ApplicationKind, ProgramHost};
use bumpless_controller::{Application, CycleContext, LoadError, ProgramFault, ProgramFaultKind};

/// The application that `settings` describe, as it runs here: a program of the user is stopped by steps instead of time.
///
/// # Errors
/// Why it cannot run here.
pub fn build(settings: &config::Application) -> io::Result<Box<dyn Application>> {
    match &settings.kind {
        ApplicationKind::Program(program) if program.host != ProgramHost::Wasm => {
            Err(io::Error::other(format!(
                "the program of '{}' is a process of its own, which takes its own time and cannot be simulated; \
                 what is compiled to WebAssembly can",
                settings.name
            )))
        }
        _ => bumpless_node::program::build_untimed(settings),
    }
}

/// Whether executions fail at present, and how.
#[derive(Clone, Debug, Default)]
pub struct Failing(Arc<Mutex<Option<ProgramFaultKind>>>);

impl Failing {
    /// From here on they do in this way, or do not.
    pub fn set(&self, how: Option<ProgramFaultKind>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = how;
    }

    fn get(&self) -> Option<ProgramFaultKind> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shipped application, whose executions fail while the switch is on: the state has gone on then, and the outputs
/// are nothing that anybody may see.
pub struct Fallible {
    /// The shipped one.
    pub inner: Box<dyn Application>,
    /// The switch.
    pub failing: Failing,
}

impl Application for Fallible {
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }
    fn outputs(&self) -> usize {
        self.inner.outputs()
    }
    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        self.inner.execute(context, inputs, outputs)?;
        let Some(how) = self.failing.get() else {
            return Ok(());
        };
        outputs.fill(1e9);
        Err(ProgramFault::new(how, "simulated"))
    }
    fn state_size_max(&self) -> usize {
        self.inner.state_size_max()
    }
    fn save(&self, into: &mut [u8]) -> usize {
        self.inner.save(into)
    }
    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        self.inner.load(state)
    }
    fn reset(&mut self) {
        self.inner.reset();
    }
}

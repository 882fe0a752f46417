//! WebAssembly modules as programs (`spec/program.md`, G-20 to G-29).
//!
//! A [`Module`] is a file that keeps to the interface; a [`Wasm`] is one of its instances, an application. What runs it, its
//! [`Engine`], is deterministic, NaNs included, and counts steps.

mod blocks;
mod compiled;
#[cfg(feature = "wasmtime")]
mod compiler;
mod conversion;
mod counts;
mod engine;
mod fault;
mod interface;
mod interpreter;
mod layout;
mod module;
mod rewrite;
mod scan;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bumpless_controller::{Application, CycleContext, LoadError, ProgramFault, TimeSource};

use crate::{Limits, Shape, ThreadTime};
use blocks::Blocks;
use engine::{Budget, Instance};
use layout::{Saved, Values};
use rewrite::name;

pub use conversion::ByModule;
pub use counts::Counts;
pub use engine::Engine;
pub use fault::{Cause, Feature, LoadFault, Misuse, Problem, TrapKind};
pub use module::Module;

/// Where in a state it stands whose it is, bytes from the beginning: 8, big endian.
pub const WASM_OWNER_AT: usize = layout::IDENTITY_AT;

/// Why a cycle of a program failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The program's file.
    pub program: String,
    /// The cycle.
    pub cycle: u64,
    /// Why.
    pub cause: Cause,
    /// What it logged last, if anything.
    pub message: Option<String>,
}

impl Fault {
    /// Cause and last message.
    fn what(&self) -> String {
        match &self.message {
            Some(message) => format!("{} (its last message: {message:?})", self.cause),
            None => self.cause.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, cycle, what) = (&self.program, self.cycle, self.what());
        write!(f, "{program} failed in cycle {cycle}: {what}")
    }
}

impl std::error::Error for Fault {}

/// A WebAssembly program: an instance of a [`Module`].
pub struct Wasm {
    module: Arc<Module>,
    shape: Shape,
    limits: Limits,
    time: Option<Arc<dyn TimeSource>>,
    instance: Box<dyn Instance>,
    /// Of each memory.
    blocks: Box<[Blocks]>,
    values: Values,
    /// Bytes of the present state.
    size: usize,
    size_max: usize,
    /// The state before the first cycle.
    initial: Box<[u8]>,
    /// A cycle failed, and nothing was loaded since.
    torn: bool,
    steps: u64,
}

impl Wasm {
    /// The program in the file at `path`, in its initial state, run by `engine`.
    ///
    /// # Errors
    /// Everything that is wrong with the file, or with it under these limits.
    pub fn load(
        path: &Path,
        engine: Engine,
        shape: Shape,
        limits: Limits,
    ) -> Result<Self, LoadFault> {
        Self::new(Arc::new(Module::open(path, engine)?), shape, limits)
    }

    /// An instance of `module` in its initial state.
    ///
    /// # Errors
    /// Everything that is wrong with the module under these limits.
    pub fn new(module: Arc<Module>, shape: Shape, limits: Limits) -> Result<Self, LoadFault> {
        let fault = |problem| LoadFault::one(module.file(), problem);
        let problems = Counts::told_by(&module, &limits)?.against(shape);
        if !problems.is_empty() {
            return Err(LoadFault {
                file: module.file().to_owned(),
                problems,
            });
        }
        let instance = module.compiled().instance(module.parts(), shape, &limits);
        let mut instance = instance.map_err(fault)?;
        begin(instance.as_mut(), &limits).map_err(fault)?;
        let memories = module.memories().enumerate();
        let blocks = memories.map(|(at, (_, most))| {
            Blocks::new(instance.memory(at), layout::pages_max(most, &limits))
        });
        let blocks: Box<[_]> = blocks.collect();
        let values = Values::of(&module, instance.as_mut());
        let size = values.size(&blocks);
        if size > shape.state_max {
            return Err(fault(Problem::StateTooLarge {
                bytes: size,
                allowed: shape.state_max,
            }));
        }
        let mut initial = vec![0; size].into_boxed_slice();
        layout::write(&module, (instance.as_ref(), &values), &blocks, &mut initial);
        let size_max = layout::size_max(&module, &limits).min(shape.state_max);
        Ok(Self {
            shape,
            limits,
            time: Some(Arc::new(ThreadTime)),
            instance,
            blocks,
            values,
            size,
            size_max,
            initial,
            torn: false,
            steps: 0,
            module,
        })
    }

    /// The same, timed by `time`; with `None` only by steps, so that a run can be repeated to the bit.
    #[must_use]
    pub fn timed_by(mut self, time: Option<Arc<dyn TimeSource>>) -> Self {
        self.time = time;
        self
    }

    /// The module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Steps that the last cycle took.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What the program logged last, if anything.
    pub fn message(&self) -> Option<String> {
        self.instance.io().message()
    }

    /// Runs one cycle; see [`Application::execute`].
    ///
    /// # Errors
    /// The cycle failed: `outputs` are as before, and nothing is executed until a state is loaded or the program is reset.
    pub fn run(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), Fault> {
        let ran = self.attempt(context, inputs, outputs);
        ran.map_err(|cause| {
            self.torn = true;
            Fault {
                program: self.module.file().to_owned(),
                cycle: context.cycle,
                cause,
                message: self.message(),
            }
        })
    }

    fn attempt(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), Cause> {
        if self.torn {
            return Err(Cause::Torn);
        }
        let io = self.instance.io_mut();
        io.inputs.copy_from_slice(inputs);
        io.outputs.copy_from_slice(outputs);
        io.cycle = context.cycle;
        io.period = context.period;
        let budget = Budget::of_a_cycle(self.module.engine(), &self.limits, self.time.as_ref());
        self.steps = self.instance.cycle(&budget)?;
        self.look()?;
        outputs.copy_from_slice(&self.instance.io().outputs);
        Ok(())
    }

    /// Looks at what has changed in its state.
    fn look(&mut self) -> Result<(), Cause> {
        for (at, blocks) in self.blocks.iter_mut().enumerate() {
            blocks.scan(self.instance.memory(at));
        }
        self.values.look(self.instance.as_mut());
        self.size = self.values.size(&self.blocks);
        if self.size > self.size_max {
            return Err(Cause::State {
                bytes: self.size,
                limit: self.size_max,
            });
        }
        Ok(())
    }

    fn take_over(&mut self, state: &[u8]) -> Result<(), LoadError> {
        let saved = Saved::parse(state, &self.module, &self.limits)?;
        if state.len() > self.size_max {
            return Err(LoadError::Length {
                expected: self.size_max,
                found: state.len(),
            });
        }
        let no_room = LoadError::Value { field: "pages" };
        if !saved.fits(self.instance.as_ref()) {
            let (module, shape) = (&self.module, self.shape);
            let new = module
                .compiled()
                .instance(module.parts(), shape, &self.limits);
            let mut instance = new.map_err(|_| no_room)?;
            if !saved.fits(instance.as_ref()) {
                return Err(LoadError::Value { field: "table" });
            }
            saved.grow(instance.as_mut())?;
            self.instance = instance;
        } else {
            saved.grow(self.instance.as_mut())?;
        }
        saved.apply(self.instance.as_mut(), &mut self.blocks);
        self.values.look(self.instance.as_mut());
        self.size = self.values.size(&self.blocks);
        self.torn = false;
        Ok(())
    }
}

impl Application for Wasm {
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
        self.run(context, inputs, outputs).map_err(|fault| {
            // Program and cycle are said where this is.
            ProgramFault::new(fault.cause.kind(), fault.what())
        })
    }

    fn state_size_max(&self) -> usize {
        self.size_max
    }

    fn state_owner(&self) -> Option<u64> {
        let [a, b, c, d, e, f, g, h, ..] = self.module.sha256();
        Some(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    fn save(&self, into: &mut [u8]) -> usize {
        let live = (self.instance.as_ref(), &self.values);
        layout::write(&self.module, live, &self.blocks, into)
    }

    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        self.take_over(state)
    }

    fn reset(&mut self) {
        let initial = std::mem::take(&mut self.initial);
        // Only a computer without memory can fail here.
        self.torn = self.take_over(&initial).is_err();
        self.initial = initial;
    }
}

/// Runs what runs once before the first cycle.
fn begin(instance: &mut dyn Instance, limits: &Limits) -> Result<(), Problem> {
    let budget = Budget::before_the_first_cycle(limits);
    for (name, told) in [
        (name::START, "its start function"),
        (name::INITIALIZE, "_initialize"),
    ] {
        let ran = instance.procedure(name, &budget).transpose();
        ran.map_err(|cause| Problem::Beginning {
            function: told,
            cause,
        })?;
    }
    Ok(())
}

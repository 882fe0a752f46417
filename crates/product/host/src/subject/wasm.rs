//! WebAssembly modules.

use std::sync::Arc;

use bumpless_controller::Application;
use bumpless_sidecar::Hash;

use super::{HostKind, Maker, Named, Subject, Unfit, UnfitCause};
use crate::wasm::{self, Counts, Engine, Wasm};
use crate::{Limits, Shape};

/// A module and within which limits it runs.
pub(super) struct Module {
    module: Arc<wasm::Module>,
    limits: Limits,
}

impl Module {
    pub fn engine(&self) -> Option<&'static str> {
        let engine = self.module.engine();
        (engine != Engine::default()).then(|| engine.name())
    }

    pub fn make(&self, shape: Shape) -> Result<Box<dyn Application>, String> {
        let program = Wasm::new(Arc::clone(&self.module), shape, self.limits);
        Ok(Box::new(program.map_err(|fault| fault.to_string())?))
    }
}

/// The module that is named.
pub(super) fn open(named: Named, sha256: Hash) -> Result<Subject, Unfit> {
    if !named.command.is_empty() || !named.arguments.is_empty() {
        return Err(named.unfit(UnfitCause::NoCommand));
    }
    let refused = |said: String| named.unfit(UnfitCause::Module(said));
    let engine = match named.engine.as_deref() {
        Some(word) => {
            let all = Engine::ALL.into_iter();
            let mut found = all.filter(|engine| engine.name() == word);
            found
                .next()
                .ok_or_else(|| named.unfit(UnfitCause::NoEngine))?
        }
        None => Engine::default(),
    };
    let period = named.period.unwrap_or(Named::PERIOD);
    let mut limits = Limits::within(named.limit.unwrap_or(period));
    if let Some(most) = named.memory_max {
        limits.memory = usize::try_from(most).unwrap_or(usize::MAX);
    }
    let module =
        wasm::Module::open(&named.file, engine).map_err(|fault| refused(fault.to_string()))?;
    let counts = Counts::told_by(&module, &limits).map_err(|fault| refused(fault.to_string()))?;
    let told = |count: Option<i32>| count.and_then(|count| usize::try_from(count).ok());
    let missing = |what| named.unfit(UnfitCause::NotTold(what));
    let (inputs, outputs) = (named.inputs, named.outputs);
    let shape = Shape {
        inputs: inputs
            .or(told(counts.inputs))
            .ok_or_else(|| missing("inputs"))?,
        outputs: outputs
            .or(told(counts.outputs))
            .ok_or_else(|| missing("outputs"))?,
        state_max: named.state_max,
    };
    let maker = Module {
        module: Arc::new(module),
        limits,
    };
    // What is wrong with the module is no finding of a test.
    maker.make(shape).map_err(refused)?;
    Ok(Subject {
        host: HostKind::Wasm,
        sha256,
        shape,
        period,
        suspects: Vec::new(),
        retained: Vec::new(),
        maker: Maker::Wasm(maker),
        named,
    })
}

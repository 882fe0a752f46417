//! A module made ready by the engine that is to run it.

#[cfg(feature = "wasmtime")]
use super::compiler;
use super::engine::{Engine, Instance};
use super::fault::Problem;
use super::interpreter;
use super::scan::Parts;
use crate::{Limits, Shape};

/// A module made ready by an engine.
pub(super) enum Compiled {
    Wasmi(interpreter::Compiled),
    #[cfg(feature = "wasmtime")]
    Wasmtime(compiler::Compiled),
}

impl Compiled {
    /// Of a valid module with the host's exports.
    pub(super) fn new(engine: Engine, module: &[u8], parts: &Parts) -> Result<Self, Problem> {
        match engine {
            Engine::Wasmi => interpreter::Compiled::new(module).map(Self::Wasmi),
            #[cfg(feature = "wasmtime")]
            Engine::Wasmtime => compiler::Compiled::new(module, parts).map(Self::Wasmtime),
            #[cfg(not(feature = "wasmtime"))]
            Engine::Wasmtime => {
                let _ = parts;
                Err(Problem::EngineAbsent(engine.name()))
            }
        }
    }

    /// An instance, of which nothing has run.
    pub(super) fn instance(
        &self,
        parts: &Parts,
        shape: Shape,
        limits: &Limits,
    ) -> Result<Box<dyn Instance>, Problem> {
        match self {
            Self::Wasmi(compiled) => compiled.instance(parts, shape, limits),
            #[cfg(feature = "wasmtime")]
            Self::Wasmtime(compiled) => compiled.instance(parts, shape, limits),
        }
    }
}

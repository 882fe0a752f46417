//! Modules on wasmi, which interprets them.

mod imports;
mod run;

use std::fmt::{self, Write};

use ::wasmi::errors::{ErrorKind, HostError};
use ::wasmi::{
    CompilationMode, Config, F32, F64, Func, Global, Memory, Nullable, Ref, RefType, Store, Table,
    TypedFunc, Val, WasmResults,
};

use super::engine::{self, Budget, Functions};
use super::fault::{Cause, Misuse, Problem};
use super::interface::Io;
use super::rewrite::name;
use super::scan::{Content, Parts, Reference};
use crate::{Limits, Shape};
use imports::{Data, linker};
use run::run;

impl HostError for Misuse {}

/// A module that wasmi has translated.
pub(super) struct Compiled {
    engine: ::wasmi::Engine,
    module: ::wasmi::Module,
}

impl Compiled {
    pub(super) fn new(module: &[u8]) -> Result<Self, Problem> {
        let engine = ::wasmi::Engine::new(&config());
        let module = ::wasmi::Module::new(&engine, module);
        let module = module.map_err(|error| Problem::SetUp(error.to_string()))?;
        Ok(Self { engine, module })
    }

    pub(super) fn instance(
        &self,
        parts: &Parts,
        shape: Shape,
        limits: &Limits,
    ) -> Result<Box<dyn engine::Instance>, Problem> {
        engine::boxed(Instance::new(self, parts, shape, limits), limits)
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        // Translating a function when it is first called would make that cycle late, and cost it steps.
        .compilation_mode(CompilationMode::Eager)
        .ignore_custom_sections(true);
    config
}

/// Whether `bytes` are a module that any engine runs; else where they are not, and why.
pub(super) fn validate(bytes: &[u8]) -> Result<(), (usize, String)> {
    let engine = ::wasmi::Engine::new(&config());
    ::wasmi::Module::validate(&engine, bytes).map_err(|error| match error.kind() {
        ErrorKind::Wasm(error) => (error.offset(), error.message().to_owned()),
        error => (0, error.to_string()),
    })
}

/// An instance of a module; nothing of it has run.
struct Instance {
    store: Store<Data>,
    cycle: TypedFunc<(), ()>,
    memories: Box<[Memory]>,
    globals: Box<[(Global, Content)]>,
    /// The tables that the code changes.
    tables: Box<[Table]>,
    functions: Functions<Func>,
    instance: ::wasmi::Instance,
}

impl Instance {
    fn new(
        compiled: &Compiled,
        parts: &Parts,
        shape: Shape,
        limits: &Limits,
    ) -> Result<Self, ::wasmi::Error> {
        let io = Io::new(shape.inputs, shape.outputs, limits.memory);
        let mut store = Store::new(&compiled.engine, Data::new(io));
        store.limiter(|data| &mut data.io.bounds);
        let instance =
            linker(&compiled.engine)?.instantiate_and_start(&mut store, &compiled.module)?;
        let missing = || ::wasmi::Error::new("the module's own parts are not found");
        let memories = (0..parts.memories.len() as u32)
            .map(|index| instance.get_memory(&store, &name::memory(index)));
        let memories: Box<[Memory]> = memories.collect::<Option<_>>().ok_or_else(missing)?;
        let globals = parts.mutable_globals().map(|(index, content)| {
            Some((instance.get_global(&store, &name::global(index))?, content))
        });
        let globals = globals.collect::<Option<_>>().ok_or_else(missing)?;
        let tables = parts.changed_tables.iter();
        let tables = tables.map(|&index| instance.get_table(&store, &name::table(index)));
        let tables = tables.collect::<Option<_>>().ok_or_else(missing)?;
        let functions = match parts.keeps_functions() {
            true => {
                let all = (0..parts.functions.len() as u32).map(|index| {
                    let function = instance.get_func(&store, &name::function(index))?;
                    Some((function, key(&function)))
                });
                let all: Option<_> = all.collect();
                all.and_then(Functions::new).ok_or_else(missing)?
            }
            false => Functions::none(),
        };
        let cycle = instance.get_typed_func(&store, name::CYCLE)?;
        store.data_mut().memory = memories.first().copied();
        Ok(Self {
            store,
            cycle,
            memories,
            globals,
            tables,
            functions,
            instance,
        })
    }

    /// Calls a function of the host's choice, if there is one of this type.
    fn called<R: WasmResults>(
        &mut self,
        name: &str,
        budget: &Budget<'_>,
    ) -> Option<Result<R, Cause>> {
        let function = self.instance.get_typed_func(&self.store, name).ok()?;
        Some(run(&mut self.store, function, budget).map(|(gives, _)| gives))
    }

    fn bits_of(&self, value: &Val) -> u64 {
        match value {
            Val::I32(value) => u64::from(*value as u32),
            Val::I64(value) => *value as u64,
            Val::F32(value) => value.to_bits().into(),
            Val::F64(value) => value.to_bits(),
            // There are only functions of the module's own.
            Val::FuncRef(Nullable::Val(function)) => {
                self.functions.reference(Some(key(function))).into()
            }
            // The host gives no references, and vectors are not valid.
            Val::FuncRef(Nullable::Null) | Val::ExternRef(_) | Val::V128(_) => 0,
        }
    }

    fn function(&self, reference: u32) -> Nullable<Func> {
        match self.functions.referred(reference) {
            Some(function) => Nullable::Val(*function),
            None => Nullable::Null,
        }
    }

    fn value_of(&self, bits: u64, content: Content) -> Val {
        match content {
            Content::I32 => Val::I32(bits as u32 as i32),
            Content::I64 => Val::I64(bits as i64),
            Content::F32 => Val::F32(F32::from_bits(bits as u32)),
            Content::F64 => Val::F64(F64::from_bits(bits)),
            Content::Reference(Reference::Function) => Val::FuncRef(self.function(bits as u32)),
            Content::Reference(Reference::Foreign) => Val::ExternRef(Nullable::Null),
        }
    }
}

impl engine::Instance for Instance {
    fn io(&self) -> &Io {
        &self.store.data().io
    }

    fn io_mut(&mut self) -> &mut Io {
        &mut self.store.data_mut().io
    }

    fn cycle(&mut self, budget: &Budget<'_>) -> Result<u64, Cause> {
        run(&mut self.store, self.cycle, budget).map(|((), steps)| steps)
    }

    fn procedure(&mut self, name: &str, budget: &Budget<'_>) -> Option<Result<(), Cause>> {
        self.called(name, budget)
    }

    fn number(&mut self, name: &str, budget: &Budget<'_>) -> Option<Result<i32, Cause>> {
        self.called(name, budget)
    }

    fn memory(&self, at: usize) -> &[u8] {
        self.memories[at].data(&self.store)
    }

    fn memory_mut(&mut self, at: usize) -> &mut [u8] {
        self.memories[at].data_mut(&mut self.store)
    }

    fn grow_memory(&mut self, at: usize, pages: u64) -> bool {
        self.memories[at].grow(&mut self.store, pages).is_ok()
    }

    fn global(&mut self, at: usize) -> u64 {
        let value = self.globals[at].0.get(&self.store);
        self.bits_of(&value)
    }

    fn set_global(&mut self, at: usize, bits: u64) {
        let (global, content) = self.globals[at];
        let value = self.value_of(bits, content);
        // A mutable global takes what has its type.
        let set = global.set(&mut self.store, value);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    fn shown_global(&mut self, index: u32) -> Option<u64> {
        let global = self
            .instance
            .get_global(&self.store, &name::global(index))?;
        Some(self.bits_of(&global.get(&self.store)))
    }

    fn table_size(&self, at: usize) -> usize {
        self.tables[at].size(&self.store) as usize
    }

    fn element(&mut self, at: usize, index: usize) -> u32 {
        match self.tables[at].get(&self.store, index as u64) {
            Some(Ref::Func(Nullable::Val(function))) => {
                self.functions.reference(Some(key(&function)))
            }
            _ => 0,
        }
    }

    fn set_element(&mut self, at: usize, index: usize, bits: u32) {
        let table = self.tables[at];
        let element = match table.ty(&self.store).element() {
            RefType::Func => Ref::Func(self.function(bits)),
            RefType::Extern => Ref::null(RefType::Extern),
        };
        // Within its size, and of its type.
        let set = table.set(&mut self.store, index as u64, element);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    fn grow_table(&mut self, at: usize, more: u64) -> bool {
        let table = self.tables[at];
        let null = Ref::null(table.ty(&self.store).element());
        table.grow(&mut self.store, more, null).is_ok()
    }
}

/// Tells functions of one instance apart: the interpreter compares no references, but prints each as what it is.
fn key(function: &Func) -> u64 {
    struct Fnv(u64);
    impl Write for Fnv {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing to the hash does not fail.
    let _ = write!(hash, "{function:?}");
    hash.0
}

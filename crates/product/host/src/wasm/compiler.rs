//! Modules on wasmtime, which compiles them.

mod imports;
mod metered;

use ::wasmtime::{
    Config, Func, Global, Instance as Handle, Memory, OperatorCost, OptLevel, Ref, Store, Table,
    Trap, TypedFunc, Val, WasmResults,
};

use super::engine::{self, Budget, Functions};
use super::fault::{Cause, Problem, TrapKind};
use super::interface::Io;
use super::rewrite::name;
use super::scan::{Content, Parts, Reference};
use crate::{Limits, Shape};
use imports::{Data, Handles, Meter, Stopped, fuel, give, linker, taken};
use metered::{LEFT, MOVED, metered};

/// Bytes of stack that a program may use: less than any thread has.
const STACK: usize = 512 << 10;

/// A module that wasmtime has compiled.
pub(super) struct Compiled {
    engine: ::wasmtime::Engine,
    module: ::wasmtime::Module,
}

impl Compiled {
    pub(super) fn new(module: &[u8], parts: &Parts) -> Result<Self, Problem> {
        let set_up = |error: &dyn std::fmt::Display| Problem::SetUp(format!("{error:#}"));
        let engine = ::wasmtime::Engine::new(&config()).map_err(|error| set_up(&error))?;
        let module = metered(module, parts).map_err(|error| set_up(&error))?;
        let module = ::wasmtime::Module::new(&engine, module).map_err(|error| set_up(&error))?;
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
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(costs())
        .cranelift_nan_canonicalization(true)
        .cranelift_opt_level(OptLevel::Speed)
        .wasm_relaxed_simd(false)
        .wasm_backtrace_max_frames(None)
        .max_wasm_stack(STACK)
        // A node's signals are its own, and it may have no more memory locked than it uses: no handlers, and no addresses reserved.
        .signals_based_traps(false)
        .memory_reservation(0)
        .memory_reservation_for_growth(0)
        .memory_guard_size(0)
        .guard_before_linear_memory(false)
        .memory_init_cow(false)
        // An element that is made when it is first used would make that cycle late.
        .table_lazy_init(false);
    config
}

/// A step for each instruction. What moves memory the module counts itself: here it would be a step for each byte, many more than a
/// processor takes.
fn costs() -> OperatorCost {
    let mut costs = OperatorCost::new();
    let moves = &mut costs.variable;
    for cost in [
        &mut moves.memory_copy_per_byte,
        &mut moves.memory_fill_per_byte,
        &mut moves.memory_init_per_byte,
        &mut moves.memory_grow_per_page,
        &mut moves.table_copy_per_element,
        &mut moves.table_fill_per_element,
        &mut moves.table_init_per_element,
        &mut moves.table_grow_per_element,
    ] {
        *cost = 0;
    }
    costs
}

/// An instance of a module; nothing of it has run.
struct Instance {
    store: Store<Data>,
    cycle: TypedFunc<(), ()>,
    memories: Box<[Memory]>,
    globals: Box<[(Global, Content)]>,
    /// The tables that the code changes.
    tables: Box<[(Table, Reference)]>,
    functions: Functions<Func>,
    instance: Handle,
}

impl Instance {
    fn new(
        compiled: &Compiled,
        parts: &Parts,
        shape: Shape,
        limits: &Limits,
    ) -> ::wasmtime::Result<Self> {
        let data = Data {
            io: Io::new(shape.inputs, shape.outputs, limits.memory),
            handles: None,
            meter: Meter::default(),
        };
        let mut store = Store::new(&compiled.engine, data);
        store.limiter(|data| &mut data.io.bounds);
        // Expressions at the beginning take steps, too, and are of a fixed length.
        store.set_fuel(u64::MAX)?;
        let instance = linker(&compiled.engine)?.instantiate(&mut store, &compiled.module)?;
        let missing = || ::wasmtime::Error::msg("the module's own parts are not found");
        let memories = (0..parts.memories.len() as u32)
            .map(|index| instance.get_memory(&mut store, &name::memory(index)));
        let memories: Box<[Memory]> = memories.collect::<Option<_>>().ok_or_else(missing)?;
        let globals = parts.mutable_globals().map(|(index, content)| {
            let global = instance.get_global(&mut store, &name::global(index))?;
            Some((global, content))
        });
        let globals = globals.collect::<Option<_>>().ok_or_else(missing)?;
        let tables = parts.changed_tables.iter().map(|&index| {
            let table = instance.get_table(&mut store, &name::table(index))?;
            Some((table, *parts.tables.get(index as usize)?))
        });
        let tables = tables.collect::<Option<_>>().ok_or_else(missing)?;
        let functions = match parts.keeps_functions() {
            true => {
                let all = (0..parts.functions.len() as u32).map(|index| {
                    let function = instance.get_func(&mut store, &name::function(index))?;
                    Some((function, key(&function, &mut store)))
                });
                let all: Option<_> = all.collect();
                all.and_then(Functions::new).ok_or_else(missing)?
            }
            false => Functions::none(),
        };
        let handles = Handles {
            memory: memories.first().copied(),
            left: instance.get_global(&mut store, LEFT).ok_or_else(missing)?,
            moved: instance.get_global(&mut store, MOVED).ok_or_else(missing)?,
        };
        store.data_mut().handles = Some(handles);
        let cycle = instance.get_typed_func(&mut store, name::CYCLE)?;
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
        let function = self.instance.get_typed_func(&mut self.store, name).ok()?;
        Some(run(&mut self.store, &function, budget).map(|(gives, _)| gives))
    }

    fn bits_of(&mut self, value: &Val) -> u64 {
        match value {
            Val::I32(value) => u64::from(*value as u32),
            Val::I64(value) => *value as u64,
            Val::F32(bits) => (*bits).into(),
            Val::F64(bits) => *bits,
            Val::FuncRef(function) => self.reference(function.as_ref()).into(),
            // The host gives no references, and vectors are not valid.
            _ => 0,
        }
    }

    /// There are only functions of the module's own.
    fn reference(&mut self, function: Option<&Func>) -> u32 {
        let key = function.map(|function| key(function, &mut self.store));
        self.functions.reference(key)
    }

    fn value_of(&self, bits: u64, content: Content) -> Val {
        match content {
            Content::I32 => Val::I32(bits as u32 as i32),
            Content::I64 => Val::I64(bits as i64),
            Content::F32 => Val::F32(bits as u32),
            Content::F64 => Val::F64(bits),
            Content::Reference(Reference::Function) => {
                Val::FuncRef(self.functions.referred(bits as u32).copied())
            }
            Content::Reference(Reference::Foreign) => Val::ExternRef(None),
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
        run(&mut self.store, &self.cycle, budget).map(|((), steps)| steps)
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
        let value = self.globals[at].0.get(&mut self.store);
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
            .get_global(&mut self.store, &name::global(index))?;
        let value = global.get(&mut self.store);
        Some(self.bits_of(&value))
    }

    fn table_size(&self, at: usize) -> usize {
        self.tables[at].0.size(&self.store) as usize
    }

    fn element(&mut self, at: usize, index: usize) -> u32 {
        match self.tables[at].0.get(&mut self.store, index as u64) {
            Some(Ref::Func(function)) => self.reference(function.as_ref()),
            _ => 0,
        }
    }

    fn set_element(&mut self, at: usize, index: usize, bits: u32) {
        let (table, reference) = self.tables[at];
        let element = match reference {
            Reference::Function => Ref::Func(self.functions.referred(bits).copied()),
            Reference::Foreign => Ref::Extern(None),
        };
        // Within its size, and of its type.
        let set = table.set(&mut self.store, index as u64, element);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    fn grow_table(&mut self, at: usize, more: u64) -> bool {
        let (table, reference) = self.tables[at];
        let null = match reference {
            Reference::Function => Ref::Func(None),
            Reference::Foreign => Ref::Extern(None),
        };
        table.grow(&mut self.store, more, null).is_ok()
    }
}

/// Tells functions of one instance apart: where wasmtime keeps them.
fn key(function: &Func, store: &mut Store<Data>) -> u64 {
    function.to_raw(store).addr() as u64
}

/// Calls `function` and returns what it gives, and the steps that it took.
fn run<R: WasmResults>(
    store: &mut Store<Data>,
    function: &TypedFunc<(), R>,
    budget: &Budget<'_>,
) -> Result<(R, u64), Cause> {
    begin(store, budget).map_err(|_| Cause::Trap(TrapKind::Other))?;
    let gave = function.call(&mut *store, ());
    let steps = taken(&mut *store);
    match gave {
        // What it did last nobody has judged.
        Ok(_) if steps > budget.steps => Err(Cause::Steps {
            limit: budget.steps,
        }),
        Ok(gives) => Ok((gives, steps)),
        Err(error) => Err(cause(&error, store, budget)),
    }
}

fn begin(store: &mut Store<Data>, budget: &Budget<'_>) -> ::wasmtime::Result<()> {
    store.data_mut().meter = Meter::new(budget);
    if let Some(handles) = store.data().handles {
        handles.moved.set(&mut *store, Val::I64(0))?;
    }
    give(&mut *store)?;
    store.set_fuel(fuel(budget.steps))
}

fn cause(error: &::wasmtime::Error, store: &mut Store<Data>, budget: &Budget<'_>) -> Cause {
    if let Some(Stopped(cause)) = error.downcast_ref() {
        return cause.clone();
    }
    if let Some(wanted) = store.data_mut().io.bounds.refused.take() {
        return Cause::Memory {
            wanted,
            limit: budget.memory,
        };
    }
    match error.downcast_ref() {
        Some(Trap::OutOfFuel) => Cause::Steps {
            limit: budget.steps,
        },
        Some(found) => Cause::Trap(trap(*found)),
        None => Cause::Trap(TrapKind::OutOfSystemMemory),
    }
}

fn trap(found: Trap) -> TrapKind {
    match found {
        Trap::UnreachableCodeReached => TrapKind::Unreachable,
        Trap::MemoryOutOfBounds => TrapKind::MemoryBounds,
        Trap::TableOutOfBounds => TrapKind::TableBounds,
        Trap::IndirectCallToNull => TrapKind::NullCall,
        Trap::BadSignature => TrapKind::CallType,
        Trap::IntegerDivisionByZero => TrapKind::DivisionByZero,
        Trap::IntegerOverflow => TrapKind::IntegerOverflow,
        Trap::BadConversionToInteger => TrapKind::FloatToInteger,
        Trap::StackOverflow => TrapKind::StackOverflow,
        _ => TrapKind::Other,
    }
}

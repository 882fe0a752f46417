//! A module with memory of its own, and handles to all of its state.

use std::fmt::{self, Write};
use std::sync::Arc;

use wasmi::{Error, Func, Global, Memory, Nullable, Store, Table, TypedFunc};

use super::interface::{Io, linker};
use super::module::Module;
use super::rewrite::name;
use super::scan::Content;
use crate::{Limits, Shape};

/// An instance of a module; nothing of it has run.
pub(super) struct Instance {
    pub(super) store: Store<Io>,
    pub(super) cycle: TypedFunc<(), ()>,
    pub(super) memories: Box<[Memory]>,
    pub(super) globals: Box<[(Global, Content)]>,
    /// The tables that the code changes.
    pub(super) tables: Box<[Table]>,
    pub(super) functions: Functions,
    instance: wasmi::Instance,
}

impl Instance {
    pub(super) fn new(module: &Module, shape: Shape, limits: &Limits) -> Result<Self, Error> {
        let io = Io::new(shape.inputs, shape.outputs, limits.memory);
        let mut store = Store::new(module.engine(), io);
        store.limiter(|io| &mut io.bounds);
        let instance =
            linker(module.engine())?.instantiate_and_start(&mut store, module.compiled())?;
        let parts = module.parts();
        let missing = || Error::new("the module's own parts are not found");
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
            true => Functions::of(&instance, &store, parts.functions.len() as u32)
                .ok_or_else(missing)?,
            false => Functions::default(),
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

    /// A global that the module changes or exports, by number.
    pub(super) fn global(&self, index: u32) -> Option<Global> {
        self.instance.get_global(&self.store, &name::global(index))
    }

    /// A function of the host's choice that takes and gives nothing.
    pub(super) fn procedure(&self, name: &str) -> Option<TypedFunc<(), ()>> {
        self.instance.get_typed_func(&self.store, name).ok()
    }

    /// A function that gives a number.
    pub(super) fn number(&self, name: &str) -> Option<TypedFunc<(), i32>> {
        self.instance.get_typed_func(&self.store, name).ok()
    }
}

/// The functions of an instance by number, and the numbers by function.
#[derive(Default)]
pub(super) struct Functions {
    by_number: Arc<[Func]>,
    /// Sorted.
    numbers: Box<[(u64, u32)]>,
}

impl Functions {
    /// `None` if they cannot be told apart.
    fn of(instance: &wasmi::Instance, store: &Store<Io>, count: u32) -> Option<Self> {
        let all = (0..count).map(|index| instance.get_func(store, &name::function(index)));
        let by_number: Arc<[Func]> = all.collect::<Option<_>>()?;
        let numbered = by_number.iter().zip(0..);
        let mut numbers: Vec<_> = numbered.map(|(func, number)| (key(func), number)).collect();
        numbers.sort_unstable();
        let distinct = numbers.windows(2).all(|two| two[0].0 != two[1].0);
        distinct.then(|| Self {
            by_number,
            numbers: numbers.into_boxed_slice(),
        })
    }

    /// The number plus 1 of the function that is referred to, 0 for null; `None` if there is none.
    pub(super) fn reference(&self, function: Nullable<&Func>) -> Option<u32> {
        let Nullable::Val(function) = function else {
            return Some(0);
        };
        let key = key(function);
        let at = self.numbers.binary_search_by_key(&key, |(key, _)| *key);
        Some(self.numbers.get(at.ok()?)?.1 + 1)
    }

    /// The reverse.
    pub(super) fn referred(&self, reference: u32) -> Option<Nullable<Func>> {
        match reference.checked_sub(1) {
            None => Some(Nullable::Null),
            Some(number) => Some(Nullable::Val(*self.by_number.get(number as usize)?)),
        }
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

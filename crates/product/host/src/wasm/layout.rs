//! The saved state of a module (G-24, G-25).

use bumpless_controller::LoadError;
use wasmi::{F32, F64, Nullable, Ref, RefType, Val};

use super::blocks::{BITS_PER_PAGE, BLOCK, Blocks, PAGE};
use super::instance::{Functions, Instance};
use super::module::Module;
use super::scan::{Content, Reference};
use crate::Limits;

const VERSION: u8 = 1;
const KIND: u8 = 1;
const HEADER: usize = 16;
const GLOBAL: usize = 8;
const COUNT: usize = 4;
const ELEMENT: usize = 4;

/// Bytes of the module's identity in a state.
const IDENTITY: usize = 8;
/// Where in a state the module's identity stands.
pub(super) const IDENTITY_AT: usize = 8;

/// Bytes of the state of `instance`, whose memories have `blocks`.
pub(super) fn size(instance: &Instance, blocks: &[Blocks]) -> usize {
    let tables = instance.tables.iter();
    let tables = tables.map(|table| COUNT + ELEMENT * table.size(&instance.store) as usize);
    let memories = blocks.iter().map(|blocks| COUNT + blocks.size());
    HEADER + GLOBAL * instance.globals.len() + tables.sum::<usize>() + memories.sum::<usize>()
}

/// Bytes that no state of `module` exceeds within `limits`.
pub(super) fn size_max(module: &Module, limits: &Limits) -> usize {
    let parts = module.parts();
    let tables = parts.changed_tables.len() * (COUNT + ELEMENT * elements_max(limits));
    let memories = module.memories();
    let memories =
        memories.map(|(_, most)| COUNT + pages_max(most, limits) * (PAGE + BITS_PER_PAGE));
    HEADER + GLOBAL * module.mutable_globals() + tables + memories.sum::<usize>()
}

/// Pages that a memory whose module says at most `most` can have.
pub(super) fn pages_max(most: Option<u64>, limits: &Limits) -> usize {
    let limit = limits.memory / PAGE;
    most.map_or(limit, |most| {
        limit.min(usize::try_from(most).unwrap_or(limit))
    })
}

fn elements_max(limits: &Limits) -> usize {
    limits.memory / size_of::<u64>()
}

/// Writes the state to the front of `into`, which has room for it, and returns its length.
pub(super) fn write(
    module: &Module,
    instance: &Instance,
    blocks: &[Blocks],
    into: &mut [u8],
) -> usize {
    let size = size(instance, blocks);
    let mut out = Writer(&mut into[..size]);
    out.put(&[VERSION, KIND, 0, 0]);
    out.put(&(size as u32).to_be_bytes());
    out.put(&module.sha256()[..IDENTITY]);
    let store = &instance.store;
    for (global, _) in &instance.globals {
        let value = to_bits(&global.get(store), &instance.functions);
        out.put(&value.to_be_bytes());
    }
    for table in &instance.tables {
        let elements = table.size(store);
        out.put(&(elements as u32).to_be_bytes());
        for at in 0..elements {
            let element = table.get(store, at).map_or(0, |element| {
                reference_to_bits(&element, &instance.functions)
            });
            out.put(&element.to_be_bytes());
        }
    }
    for (memory, blocks) in instance.memories.iter().zip(blocks) {
        out.put(&(blocks.pages() as u32).to_be_bytes());
        blocks.write(memory.data(store), out.take(blocks.size()));
    }
    size
}

struct Writer<'a>(&'a mut [u8]);

impl<'a> Writer<'a> {
    fn take(&mut self, count: usize) -> &'a mut [u8] {
        let (front, rest) = std::mem::take(&mut self.0).split_at_mut(count);
        self.0 = rest;
        front
    }

    fn put(&mut self, bytes: &[u8]) {
        self.take(bytes.len()).copy_from_slice(bytes);
    }
}

pub(super) fn to_bits(value: &Val, functions: &Functions) -> u64 {
    match value {
        Val::I32(value) => u64::from(*value as u32),
        Val::I64(value) => *value as u64,
        Val::F32(value) => value.to_bits().into(),
        Val::F64(value) => value.to_bits(),
        // There are only functions of the module's own.
        Val::FuncRef(function) => functions.reference(function.as_ref()).unwrap_or(0).into(),
        // The host gives no references, and vectors are not valid.
        Val::ExternRef(_) | Val::V128(_) => 0,
    }
}

fn reference_to_bits(reference: &Ref, functions: &Functions) -> u32 {
    match reference {
        Ref::Func(function) => functions.reference(function.as_ref()).unwrap_or(0),
        Ref::Extern(_) => 0,
    }
}

/// A saved state taken apart; everything in it is possible.
pub(super) struct Saved<'a> {
    globals: Vec<u64>,
    tables: Vec<Vec<u32>>,
    memories: Vec<SavedMemory<'a>>,
}

struct SavedMemory<'a> {
    pages: usize,
    bits: &'a [u8],
    content: &'a [u8],
}

impl<'a> Saved<'a> {
    /// Takes `state` apart; total over all inputs.
    pub(super) fn parse(
        state: &'a [u8],
        module: &Module,
        limits: &Limits,
    ) -> Result<Self, LoadError> {
        let mut rest = Reader {
            whole: state.len(),
            rest: state,
        };
        let [version, kind, zero @ ..] = rest.array::<4>()?;
        if version != VERSION {
            return Err(LoadError::Version {
                expected: VERSION,
                found: version,
            });
        }
        require(kind == KIND, "kind")?;
        require(zero == [0; 2], "reserved")?;
        let length = u32::from_be_bytes(rest.array()?) as usize;
        if length != state.len() {
            return Err(LoadError::Length {
                expected: length,
                found: state.len(),
            });
        }
        require(
            rest.take(IDENTITY)? == &module.sha256()[..IDENTITY],
            "program",
        )?;
        let parts = module.parts();
        let functions = parts.functions.len() as u64;
        let mut globals = Vec::new();
        for (_, content) in parts.mutable_globals() {
            let bits = u64::from_be_bytes(rest.array()?);
            require(bits <= largest(content, functions), "global")?;
            globals.push(bits);
        }
        let mut tables = Vec::new();
        for &index in &parts.changed_tables {
            let reference = parts.tables.get(index as usize).copied();
            let content = Content::Reference(reference.unwrap_or(Reference::Foreign));
            tables.push(rest.table(largest(content, functions), limits)?);
        }
        let mut memories = Vec::new();
        let mut bytes = 0;
        for (least, most) in module.memories() {
            let memory = rest.memory()?;
            let possible = memory.pages as u64 >= least && memory.pages <= pages_max(most, limits);
            require(possible, "pages")?;
            bytes += memory.pages * PAGE;
            memories.push(memory);
        }
        require(bytes <= limits.memory, "pages")?;
        match rest.rest {
            [] => Ok(Self {
                globals,
                tables,
                memories,
            }),
            more => Err(LoadError::Length {
                expected: state.len() - more.len(),
                found: state.len(),
            }),
        }
    }

    /// Whether `instance` can become this: its memories and tables only grow.
    pub(super) fn fits(&self, instance: &Instance) -> bool {
        let store = &instance.store;
        let tables = instance.tables.iter().zip(&self.tables);
        let memories = instance.memories.iter().zip(&self.memories);
        tables
            .into_iter()
            .all(|(table, saved)| table.size(store) <= saved.len() as u64)
            && memories
                .into_iter()
                .all(|(memory, saved)| memory.size(store) <= saved.pages as u64)
    }

    /// Gives `instance` the sizes of this.
    pub(super) fn grow(&self, instance: &mut Instance) -> Result<(), LoadError> {
        for (table, saved) in instance.tables.iter().zip(&self.tables) {
            let more = saved.len() as u64 - table.size(&instance.store);
            let null = Ref::null(table.ty(&instance.store).element());
            let grown = table.grow(&mut instance.store, more, null);
            grown.map_err(|_| LoadError::Value { field: "table" })?;
        }
        for (memory, saved) in instance.memories.iter().zip(&self.memories) {
            let more = saved.pages as u64 - memory.size(&instance.store);
            let grown = memory.grow(&mut instance.store, more);
            grown.map_err(|_| LoadError::Value { field: "pages" })?;
        }
        Ok(())
    }

    /// Makes `instance`, which has the sizes of this, and `blocks` what this says.
    pub(super) fn apply(&self, instance: &mut Instance, blocks: &mut [Blocks]) {
        let store = &mut instance.store;
        for ((global, content), &bits) in instance.globals.iter().zip(&self.globals) {
            let value = from_bits(bits, *content, &instance.functions);
            // A mutable global takes what has its type.
            let set = global.set(&mut *store, value);
            debug_assert!(set.is_ok(), "{set:?}");
        }
        for (table, saved) in instance.tables.iter().zip(&self.tables) {
            let ty = table.ty(&*store).element();
            for (at, &bits) in (0..).zip(saved) {
                // Within its size, and of its type.
                let element = reference_from_bits(bits, ty, &instance.functions);
                let set = table.set(&mut *store, at, element);
                debug_assert!(set.is_ok(), "{set:?}");
            }
        }
        let memories = instance.memories.iter().zip(&self.memories);
        for ((memory, saved), blocks) in memories.zip(blocks) {
            blocks.restore(memory.data_mut(&mut *store), saved.bits, saved.content);
        }
    }
}

fn require(possible: bool, field: &'static str) -> Result<(), LoadError> {
    match possible {
        true => Ok(()),
        false => Err(LoadError::Value { field }),
    }
}

/// The largest bits that a value can have.
fn largest(content: Content, functions: u64) -> u64 {
    match content {
        Content::I32 | Content::F32 => u32::MAX.into(),
        Content::I64 | Content::F64 => u64::MAX,
        Content::Reference(Reference::Function) => functions,
        Content::Reference(Reference::Foreign) => 0,
    }
}

fn from_bits(bits: u64, content: Content, functions: &Functions) -> Val {
    match content {
        Content::I32 => Val::I32(bits as u32 as i32),
        Content::I64 => Val::I64(bits as i64),
        Content::F32 => Val::F32(F32::from_bits(bits as u32)),
        Content::F64 => Val::F64(F64::from_bits(bits)),
        Content::Reference(Reference::Function) => {
            Val::FuncRef(functions.referred(bits as u32).unwrap_or_default())
        }
        Content::Reference(Reference::Foreign) => Val::ExternRef(Nullable::Null),
    }
}

fn reference_from_bits(bits: u32, ty: RefType, functions: &Functions) -> Ref {
    match ty {
        RefType::Func => Ref::Func(functions.referred(bits).unwrap_or_default()),
        RefType::Extern => Ref::null(ty),
    }
}

struct Reader<'a> {
    whole: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], LoadError> {
        let (front, rest) = self.rest.split_at_checked(count).ok_or(LoadError::Length {
            expected: (self.whole - self.rest.len()).saturating_add(count),
            found: self.whole,
        })?;
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn count(&mut self) -> Result<usize, LoadError> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    fn table(&mut self, largest: u64, limits: &Limits) -> Result<Vec<u32>, LoadError> {
        let elements = self.count()?;
        require(elements <= elements_max(limits), "table")?;
        let (elements, _) = self.take(elements * ELEMENT)?.as_chunks::<ELEMENT>();
        let elements: Vec<_> = elements
            .iter()
            .map(|bits| u32::from_be_bytes(*bits))
            .collect();
        require(
            elements.iter().all(|&bits| u64::from(bits) <= largest),
            "table",
        )?;
        Ok(elements)
    }

    fn memory(&mut self) -> Result<SavedMemory<'a>, LoadError> {
        let pages = self.count()?;
        let bits = self.take(pages.saturating_mul(BITS_PER_PAGE))?;
        let count: usize = bits.iter().map(|byte| byte.count_ones() as usize).sum();
        let content = self.take(count * BLOCK)?;
        Ok(SavedMemory {
            pages,
            bits,
            content,
        })
    }
}

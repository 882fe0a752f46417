//! The saved state of a module (G-24, G-25).

use bumpless_controller::LoadError;

use super::blocks::{BITS_PER_PAGE, BLOCK, Blocks, PAGE};
use super::engine::Instance;
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

/// What is in a state besides memories, as it was after the last cycle: values as bits.
pub(super) struct Values {
    globals: Box<[u64]>,
    /// The tables that the code changes.
    tables: Box<[Vec<u32>]>,
}

impl Values {
    /// Of an instance of `module`.
    pub(super) fn of(module: &Module, instance: &mut dyn Instance) -> Self {
        let tables = module.changed_tables();
        let mut values = Self {
            globals: vec![0; module.mutable_globals()].into_boxed_slice(),
            tables: vec![Vec::new(); tables].into_boxed_slice(),
        };
        values.look(instance);
        values
    }

    /// Takes them as they are. Room is taken only for a table that has grown.
    pub(super) fn look(&mut self, instance: &mut dyn Instance) {
        for (at, global) in self.globals.iter_mut().enumerate() {
            *global = instance.global(at);
        }
        for (at, table) in self.tables.iter_mut().enumerate() {
            table.clear();
            table.extend((0..instance.table_size(at)).map(|index| instance.element(at, index)));
        }
    }

    /// Bytes of a state with these, whose memories have `blocks`.
    pub(super) fn size(&self, blocks: &[Blocks]) -> usize {
        let tables = self.tables.iter();
        let tables = tables.map(|table| COUNT + ELEMENT * table.len());
        let memories = blocks.iter().map(|blocks| COUNT + blocks.size());
        HEADER + GLOBAL * self.globals.len() + tables.sum::<usize>() + memories.sum::<usize>()
    }
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
    (instance, values): (&dyn Instance, &Values),
    blocks: &[Blocks],
    into: &mut [u8],
) -> usize {
    let size = values.size(blocks);
    let mut out = Writer(&mut into[..size]);
    out.put(&[VERSION, KIND, 0, 0]);
    out.put(&(size as u32).to_be_bytes());
    out.put(&module.sha256()[..IDENTITY]);
    for global in &values.globals {
        out.put(&global.to_be_bytes());
    }
    for table in &values.tables {
        out.put(&(table.len() as u32).to_be_bytes());
        for element in table {
            out.put(&element.to_be_bytes());
        }
    }
    for (at, blocks) in blocks.iter().enumerate() {
        out.put(&(blocks.pages() as u32).to_be_bytes());
        blocks.write(instance.memory(at), out.take(blocks.size()));
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
    pub(super) fn fits(&self, instance: &dyn Instance) -> bool {
        let mut tables = self.tables.iter().enumerate();
        let mut memories = self.memories.iter().enumerate();
        tables.all(|(at, saved)| instance.table_size(at) <= saved.len())
            && memories.all(|(at, saved)| instance.memory(at).len() <= saved.pages * PAGE)
    }

    /// Gives `instance` the sizes of this.
    pub(super) fn grow(&self, instance: &mut dyn Instance) -> Result<(), LoadError> {
        for (at, saved) in self.tables.iter().enumerate() {
            let more = saved.len() - instance.table_size(at);
            require(instance.grow_table(at, more as u64), "table")?;
        }
        for (at, saved) in self.memories.iter().enumerate() {
            let more = saved.pages - instance.memory(at).len() / PAGE;
            require(instance.grow_memory(at, more as u64), "pages")?;
        }
        Ok(())
    }

    /// Makes `instance`, which has the sizes of this, and `blocks` what this says.
    pub(super) fn apply(&self, instance: &mut dyn Instance, blocks: &mut [Blocks]) {
        for (at, &bits) in self.globals.iter().enumerate() {
            instance.set_global(at, bits);
        }
        for (at, saved) in self.tables.iter().enumerate() {
            for (index, &bits) in saved.iter().enumerate() {
                instance.set_element(at, index, bits);
            }
        }
        for ((at, saved), blocks) in self.memories.iter().enumerate().zip(blocks) {
            blocks.restore(instance.memory_mut(at), saved.bits, saved.content);
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

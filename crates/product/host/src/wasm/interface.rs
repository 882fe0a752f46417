//! What a module may import: inputs, outputs, time and a log (G-22).

use bumpless_base::Duration;

use super::fault::Misuse;

/// The module from which everything is imported.
pub(super) const MODULE: &str = "bumpless";

/// Name and type of each import, in words.
pub(super) const IMPORTS: [(&str, &str); 11] = [
    ("input", "(i32) -> (f64)"),
    ("output", "(i32, f64) -> ()"),
    ("last_output", "(i32) -> (f64)"),
    ("inputs", "(i32, i32) -> ()"),
    ("outputs", "(i32, i32) -> ()"),
    ("cycle_number", "() -> (i64)"),
    ("period_ns", "() -> (i64)"),
    ("log", "(i32, i32) -> ()"),
    ("old_has", "(i32, i32) -> (i32)"),
    ("old_global", "(i32, i32) -> (i64)"),
    ("old_memory", "(i32, i32, i32) -> ()"),
];

/// Bytes of a message that are kept.
const MESSAGE: usize = 256;

const VALUE: usize = size_of::<f64>();

/// What the functions that a module imports work on.
pub(super) struct Io {
    pub(super) inputs: Box<[f64]>,
    pub(super) outputs: Box<[f64]>,
    pub(super) cycle: u64,
    pub(super) period: Duration,
    pub(super) bounds: Bounds,
    /// The state of the version before, while it is converted.
    pub(super) old: Option<Shown>,
    message: Message,
}

/// What a version shows of its state to the next one.
pub(super) struct Shown {
    /// The globals that it exports: name, and the bits of the value.
    pub(super) globals: Vec<(String, u64)>,
    /// Its first memory.
    pub(super) memory: Vec<u8>,
}

impl Io {
    pub(super) fn new(inputs: usize, outputs: usize, memory_limit: usize) -> Self {
        Self {
            inputs: vec![0.0; inputs].into_boxed_slice(),
            outputs: vec![0.0; outputs].into_boxed_slice(),
            cycle: 0,
            period: Duration::ZERO,
            bounds: Bounds::new(memory_limit),
            old: None,
            message: Message::default(),
        }
    }

    /// The last message, if there was one.
    pub(super) fn message(&self) -> Option<String> {
        let bytes = self.message.bytes.get(..self.message.length)?;
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
    }
}

struct Message {
    bytes: [u8; MESSAGE],
    length: usize,
}

impl Default for Message {
    fn default() -> Self {
        Self {
            bytes: [0; MESSAGE],
            length: 0,
        }
    }
}

/// Keeps the memories and tables of a module within their limit.
pub(super) struct Bounds {
    limit: usize,
    /// Bytes of all memories, and before the last growth.
    used: usize,
    before: usize,
    /// Bytes that were wanted when more than the limit was.
    pub(super) refused: Option<usize>,
}

impl Bounds {
    /// Bytes that an element of a table counts as.
    const ELEMENT: usize = 8;
    /// No memory has more bytes, and no table more elements, whatever a module says.
    const MEMORY: u64 = 1 << 32;
    const TABLE: u64 = u32::MAX as u64;

    fn new(limit: usize) -> Self {
        Self {
            limit,
            used: 0,
            before: 0,
            refused: None,
        }
    }

    fn refuse(&mut self, wanted: usize) -> Room {
        self.refused = Some(wanted);
        Room::Refused
    }

    /// Whether a memory may have so many bytes.
    pub(super) fn memory(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Room {
        if maximum.is_some_and(|maximum| desired > maximum) || desired as u64 > Self::MEMORY {
            return Room::BeyondItsOwn;
        }
        let total = self.used.saturating_sub(current).saturating_add(desired);
        if total > self.limit {
            return self.refuse(total);
        }
        self.before = self.used;
        self.used = total;
        Room::Enough
    }

    /// Whether a table may have so many elements.
    pub(super) fn table(&mut self, desired: usize, maximum: Option<usize>) -> Room {
        if maximum.is_some_and(|maximum| desired > maximum) || desired as u64 > Self::TABLE {
            return Room::BeyondItsOwn;
        }
        let bytes = desired.saturating_mul(Self::ELEMENT);
        if bytes > self.limit {
            return self.refuse(bytes);
        }
        Room::Enough
    }

    /// The memory that was to grow did not.
    pub(super) fn memory_did_not_grow(&mut self) {
        self.used = self.before;
    }
}

/// Whether a memory or table may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// Not by what the module itself says: growing fails as WebAssembly has it.
    BeyondItsOwn,
    /// Not by the limit: a fault.
    Refused,
}

/// What a function that a module imports sees of the instance that calls it.
pub(super) struct View<'a> {
    /// The first memory.
    pub(super) memory: Option<&'a mut [u8]>,
    pub(super) io: &'a mut Io,
}

/// Bytes that the host copies in less time than a step takes.
const BYTES_A_STEP: u64 = 8;

/// Values go through as bits: what is handed on only stays as it is.
impl View<'_> {
    pub(super) fn input(&self, index: u32) -> Result<u64, Misuse> {
        value("input", index, &self.io.inputs)
    }

    pub(super) fn last_output(&self, index: u32) -> Result<u64, Misuse> {
        value("last_output", index, &self.io.outputs)
    }

    pub(super) fn output(&mut self, index: u32, bits: u64) -> Result<(), Misuse> {
        let outputs = &mut self.io.outputs;
        let there_are = outputs.len();
        let slot = outputs.get_mut(index as usize);
        *slot.ok_or_else(|| no_index("output", index, there_are))? = f64::from_bits(bits);
        Ok(())
    }

    pub(super) fn inputs(&mut self, address: u32, count: u32) -> Result<(), Misuse> {
        let there_are = self.io.inputs.len();
        if count as usize > there_are {
            return Err(no_index("inputs", count, there_are));
        }
        let bytes = u64::from(count) * VALUE as u64;
        let (memory, io) = self.range("inputs", address, bytes)?;
        let (slots, _) = memory.as_chunks_mut::<VALUE>();
        for (slot, value) in slots.iter_mut().zip(&io.inputs) {
            *slot = value.to_le_bytes();
        }
        Ok(())
    }

    pub(super) fn outputs(&mut self, address: u32, count: u32) -> Result<(), Misuse> {
        let there_are = self.io.outputs.len();
        if count as usize > there_are {
            return Err(no_index("outputs", count, there_are));
        }
        let bytes = u64::from(count) * VALUE as u64;
        let (memory, io) = self.range("outputs", address, bytes)?;
        let (slots, _) = memory.as_chunks::<VALUE>();
        for (slot, value) in slots.iter().zip(&mut io.outputs) {
            *value = f64::from_le_bytes(*slot);
        }
        Ok(())
    }

    pub(super) fn log(&mut self, address: u32, length: u32) -> Result<(), Misuse> {
        let (memory, io) = self.range("log", address, length.into())?;
        let kept = memory.len().min(MESSAGE);
        io.message.bytes[..kept].copy_from_slice(&memory[..kept]);
        io.message.length = kept;
        Ok(())
    }

    /// 1 or 0, and the steps that it is worth.
    pub(super) fn old_has(&mut self, address: u32, length: u32) -> Result<(u32, u64), Misuse> {
        let (found, steps) = self.shown("old_has", address, length)?;
        Ok((u32::from(found.is_some()), steps))
    }

    /// The bits, and the steps that they are worth.
    pub(super) fn old_global(&mut self, address: u32, length: u32) -> Result<(u64, u64), Misuse> {
        let import = "old_global";
        let (found, steps) = self.shown(import, address, length)?;
        let bits = found.ok_or(Misuse::NoName { import })?;
        Ok((bits, steps))
    }

    /// The steps that it is worth.
    pub(super) fn old_memory(&mut self, from: u32, into: u32, count: u32) -> Result<u64, Misuse> {
        let import = "old_memory";
        let (memory, io) = self.range(import, into, count.into())?;
        let old = io.old.as_ref().ok_or(Misuse::NoOld { import })?;
        let range = old
            .memory
            .get(from as usize..)
            .and_then(|rest| rest.get(..count as usize));
        let range = range.ok_or(Misuse::Address {
            import,
            address: from,
            length: count.into(),
        })?;
        memory.copy_from_slice(range);
        Ok(u64::from(count) / BYTES_A_STEP)
    }

    /// The value that the version before exports under a name in the first memory, `None` if it exports none; and the steps that it
    /// is worth to look for it.
    fn shown(
        &mut self,
        import: &'static str,
        address: u32,
        length: u32,
    ) -> Result<(Option<u64>, u64), Misuse> {
        let (name, io) = self.range(import, address, length.into())?;
        let old = io.old.as_ref().ok_or(Misuse::NoOld { import })?;
        let found = old.globals.iter().find(|(of, _)| of.as_bytes() == &*name);
        let steps = old.globals.len() as u64 + u64::from(length) / BYTES_A_STEP;
        Ok((found.map(|(_, bits)| *bits), steps))
    }

    /// `length` bytes of the first memory from `address` on.
    fn range(
        &mut self,
        import: &'static str,
        address: u32,
        length: u64,
    ) -> Result<(&mut [u8], &mut Io), Misuse> {
        let outside = || Misuse::Address {
            import,
            address,
            length,
        };
        let memory = self.memory.as_deref_mut().ok_or_else(outside)?;
        let end = u64::from(address) + length;
        let end = usize::try_from(end).map_err(|_| outside())?;
        let range = memory.get_mut(address as usize..end);
        Ok((range.ok_or_else(outside)?, self.io))
    }
}

fn value(import: &'static str, index: u32, values: &[f64]) -> Result<u64, Misuse> {
    let value = values.get(index as usize);
    let value = value.ok_or_else(|| no_index(import, index, values.len()))?;
    Ok(value.to_bits())
}

fn no_index(import: &'static str, index: u32, there_are: usize) -> Misuse {
    Misuse::Index {
        import,
        index,
        there_are,
    }
}

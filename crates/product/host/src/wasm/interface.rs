//! What a module may import: inputs, outputs, time and a log (G-22).

use std::fmt;

use bumpless_base::Duration;
use wasmi::errors::{HostError, MemoryError, TableError};
use wasmi::{Caller, Engine, Error, F64, Linker, Memory, ResourceLimiter, Val};
use wasmi_core::LimiterError;

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
    /// The first memory, once there is one.
    pub(super) memory: Option<Memory>,
    /// The state of the version before, while it is converted.
    pub(super) old: Option<Shown>,
    /// Steps that the host's work was worth beyond those that were left.
    pub(super) owed: u64,
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
            memory: None,
            old: None,
            owed: 0,
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

    fn new(limit: usize) -> Self {
        Self {
            limit,
            used: 0,
            before: 0,
            refused: None,
        }
    }

    fn refuse(&mut self, wanted: usize) -> Result<bool, LimiterError> {
        self.refused = Some(wanted);
        Err(LimiterError::ResourceLimiterDeniedAllocation)
    }
}

impl ResourceLimiter for Bounds {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let total = self.used.saturating_sub(current).saturating_add(desired);
        if total > self.limit {
            return self.refuse(total);
        }
        self.before = self.used;
        self.used = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let bytes = desired.saturating_mul(Self::ELEMENT);
        if bytes > self.limit {
            return self.refuse(bytes);
        }
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), LimiterError> {
        self.used = self.before;
        match error {
            // Goes on when there is fuel again, and then asks again.
            MemoryError::OutOfFuel { .. } => Ok(()),
            _ => Err(LimiterError::ResourceLimiterDeniedAllocation),
        }
    }

    fn table_grow_failed(&mut self, error: &TableError) -> Result<(), LimiterError> {
        match error {
            TableError::OutOfFuel { .. } => Ok(()),
            _ => Err(LimiterError::ResourceLimiterDeniedAllocation),
        }
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        1_000
    }

    fn memories(&self) -> usize {
        100
    }
}

/// Everything that a module may import.
pub(super) fn linker(engine: &Engine) -> Result<Linker<Io>, Error> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(MODULE, "input", input)?
        .func_wrap(MODULE, "output", output)?
        .func_wrap(MODULE, "last_output", last_output)?
        .func_wrap(MODULE, "inputs", inputs)?
        .func_wrap(MODULE, "outputs", outputs)?
        .func_wrap(MODULE, "cycle_number", |caller: Caller<'_, Io>| {
            caller.data().cycle
        })?
        .func_wrap(MODULE, "period_ns", |caller: Caller<'_, Io>| {
            caller.data().period.as_nanos()
        })?
        .func_wrap(MODULE, "log", log)?
        .func_wrap(MODULE, "old_has", old_has)?
        .func_wrap(MODULE, "old_global", old_global)?
        .func_wrap(MODULE, "old_memory", old_memory)?;
    Ok(linker)
}

fn no_index(import: &'static str, index: u32, there_are: usize) -> Error {
    Error::host(Misuse::Index {
        import,
        index,
        there_are,
    })
}

fn input(caller: Caller<'_, Io>, index: u32) -> Result<F64, Error> {
    let inputs = &caller.data().inputs;
    let value = inputs.get(index as usize).copied();
    let value = value.ok_or_else(|| no_index("input", index, inputs.len()))?;
    Ok(F64::from_bits(value.to_bits()))
}

fn output(mut caller: Caller<'_, Io>, index: u32, value: F64) -> Result<(), Error> {
    let outputs = &mut caller.data_mut().outputs;
    let there_are = outputs.len();
    let slot = outputs.get_mut(index as usize);
    *slot.ok_or_else(|| no_index("output", index, there_are))? = f64::from_bits(value.to_bits());
    Ok(())
}

fn last_output(caller: Caller<'_, Io>, index: u32) -> Result<F64, Error> {
    let outputs = &caller.data().outputs;
    let value = outputs.get(index as usize).copied();
    let value = value.ok_or_else(|| no_index("last_output", index, outputs.len()))?;
    Ok(F64::from_bits(value.to_bits()))
}

fn inputs(mut caller: Caller<'_, Io>, address: u32, count: u32) -> Result<(), Error> {
    let there_are = caller.data().inputs.len();
    if count as usize > there_are {
        return Err(no_index("inputs", count, there_are));
    }
    let (memory, io) = range(
        &mut caller,
        "inputs",
        address,
        u64::from(count) * VALUE as u64,
    )?;
    let (slots, _) = memory.as_chunks_mut::<VALUE>();
    for (slot, value) in slots.iter_mut().zip(&io.inputs) {
        *slot = value.to_le_bytes();
    }
    Ok(())
}

fn outputs(mut caller: Caller<'_, Io>, address: u32, count: u32) -> Result<(), Error> {
    let there_are = caller.data().outputs.len();
    if count as usize > there_are {
        return Err(no_index("outputs", count, there_are));
    }
    let (memory, io) = range(
        &mut caller,
        "outputs",
        address,
        u64::from(count) * VALUE as u64,
    )?;
    let (slots, _) = memory.as_chunks::<VALUE>();
    for (slot, value) in slots.iter().zip(&mut io.outputs) {
        *value = f64::from_le_bytes(*slot);
    }
    Ok(())
}

fn log(mut caller: Caller<'_, Io>, address: u32, length: u32) -> Result<(), Error> {
    let (memory, io) = range(&mut caller, "log", address, length.into())?;
    let kept = memory.len().min(MESSAGE);
    io.message.bytes[..kept].copy_from_slice(&memory[..kept]);
    io.message.length = kept;
    Ok(())
}

/// Bytes that the host copies in less time than a step takes.
const BYTES_A_STEP: u64 = 8;

/// The host's work was worth more steps than were left: the clock is to be looked at before the module goes on.
#[derive(Debug)]
pub(super) struct Pause {
    /// What the function that was called gives.
    pub(super) gives: Option<Val>,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pause")
    }
}

impl HostError for Pause {}

/// Counts `steps` for what the host did. A call of it is one step by itself, and nobody looks at the clock between two calls that
/// no loop is around.
fn charge(caller: &mut Caller<'_, Io>, steps: u64, gives: Option<Val>) -> Result<(), Error> {
    let left = caller.get_fuel()?;
    caller.set_fuel(left.saturating_sub(steps))?;
    let owed = steps.saturating_sub(left);
    caller.data_mut().owed += owed;
    match owed {
        0 => Ok(()),
        _ => Err(Error::host(Pause { gives })),
    }
}

/// The value that the version before exports under a name in the first memory, `None` if it exports none; and the steps that it is
/// worth to look for it.
fn shown(
    caller: &mut Caller<'_, Io>,
    import: &'static str,
    address: u32,
    length: u32,
) -> Result<(Option<u64>, u64), Error> {
    let (name, io) = range(caller, import, address, length.into())?;
    let old = io
        .old
        .as_ref()
        .ok_or_else(|| Error::host(Misuse::NoOld { import }))?;
    let found = old.globals.iter().find(|(of, _)| of.as_bytes() == &*name);
    let steps = old.globals.len() as u64 + u64::from(length) / BYTES_A_STEP;
    Ok((found.map(|(_, bits)| *bits), steps))
}

fn old_has(mut caller: Caller<'_, Io>, address: u32, length: u32) -> Result<u32, Error> {
    let (found, steps) = shown(&mut caller, "old_has", address, length)?;
    let has = i32::from(found.is_some());
    charge(&mut caller, steps, Some(Val::I32(has)))?;
    Ok(has.cast_unsigned())
}

fn old_global(mut caller: Caller<'_, Io>, address: u32, length: u32) -> Result<u64, Error> {
    let import = "old_global";
    let (found, steps) = shown(&mut caller, import, address, length)?;
    let bits = found.ok_or_else(|| Error::host(Misuse::NoName { import }))?;
    charge(&mut caller, steps, Some(Val::I64(bits.cast_signed())))?;
    Ok(bits)
}

fn old_memory(mut caller: Caller<'_, Io>, from: u32, into: u32, count: u32) -> Result<(), Error> {
    let import = "old_memory";
    let (memory, io) = range(&mut caller, import, into, count.into())?;
    let old = io
        .old
        .as_ref()
        .ok_or_else(|| Error::host(Misuse::NoOld { import }))?;
    let range = old
        .memory
        .get(from as usize..)
        .and_then(|rest| rest.get(..count as usize));
    let range = range.ok_or_else(|| {
        Error::host(Misuse::Address {
            import,
            address: from,
            length: count.into(),
        })
    })?;
    memory.copy_from_slice(range);
    charge(&mut caller, u64::from(count) / BYTES_A_STEP, None)
}

/// `length` bytes of the first memory from `address` on.
fn range<'a>(
    caller: &'a mut Caller<'_, Io>,
    import: &'static str,
    address: u32,
    length: u64,
) -> Result<(&'a mut [u8], &'a mut Io), Error> {
    let outside = || {
        Error::host(Misuse::Address {
            import,
            address,
            length,
        })
    };
    let memory = caller.data().memory.ok_or_else(outside)?;
    let (memory, io) = memory.data_and_store_mut(caller);
    let end = u64::from(address) + length;
    let end = usize::try_from(end).map_err(|_| outside())?;
    let range = memory.get_mut(address as usize..end);
    Ok((range.ok_or_else(outside)?, io))
}

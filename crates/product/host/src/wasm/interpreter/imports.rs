//! What a module imports, as wasmi calls it.

use std::fmt;

use ::wasmi::errors::{HostError, MemoryError, TableError};
use ::wasmi::{Caller, Engine, Error, F64, Linker, Memory, ResourceLimiter, Val};
use wasmi_core::LimiterError;

use crate::wasm::fault::Misuse;
use crate::wasm::interface::{Bounds, Io, MODULE, Room, View};

/// What a store keeps.
pub(super) struct Data {
    pub(super) io: Io,
    /// The first memory, once there is one.
    pub(super) memory: Option<Memory>,
    /// Steps that the host's work was worth beyond those that were left.
    pub(super) owed: u64,
}

impl Data {
    pub(super) fn new(io: Io) -> Self {
        Self {
            io,
            memory: None,
            owed: 0,
        }
    }
}

fn grown(room: Room) -> Result<bool, LimiterError> {
    match room {
        Room::Enough => Ok(true),
        Room::BeyondItsOwn => Ok(false),
        Room::Refused => Err(LimiterError::ResourceLimiterDeniedAllocation),
    }
}

impl ResourceLimiter for Bounds {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        grown(self.memory(current, desired, maximum))
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        grown(self.table(desired, maximum))
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), LimiterError> {
        self.memory_did_not_grow();
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
pub(super) fn linker(engine: &Engine) -> Result<Linker<Data>, Error> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(
            MODULE,
            "input",
            |mut caller: Caller<'_, Data>, index: u32| {
                let bits = view(&mut caller).input(index).map_err(Error::host)?;
                Ok::<_, Error>(F64::from_bits(bits))
            },
        )?
        .func_wrap(
            MODULE,
            "output",
            |mut caller: Caller<'_, Data>, index: u32, value: F64| {
                view(&mut caller)
                    .output(index, value.to_bits())
                    .map_err(Error::host)
            },
        )?
        .func_wrap(
            MODULE,
            "last_output",
            |mut caller: Caller<'_, Data>, index: u32| {
                let bits = view(&mut caller).last_output(index).map_err(Error::host)?;
                Ok::<_, Error>(F64::from_bits(bits))
            },
        )?
        .func_wrap(
            MODULE,
            "inputs",
            |mut caller: Caller<'_, Data>, address: u32, count: u32| {
                view(&mut caller)
                    .inputs(address, count)
                    .map_err(Error::host)
            },
        )?
        .func_wrap(
            MODULE,
            "outputs",
            |mut caller: Caller<'_, Data>, address: u32, count: u32| {
                view(&mut caller)
                    .outputs(address, count)
                    .map_err(Error::host)
            },
        )?
        .func_wrap(MODULE, "cycle_number", |caller: Caller<'_, Data>| {
            caller.data().io.cycle
        })?
        .func_wrap(MODULE, "period_ns", |caller: Caller<'_, Data>| {
            caller.data().io.period.as_nanos()
        })?
        .func_wrap(
            MODULE,
            "log",
            |mut caller: Caller<'_, Data>, address: u32, length: u32| {
                view(&mut caller).log(address, length).map_err(Error::host)
            },
        )?
        .func_wrap(MODULE, "old_has", old_has)?
        .func_wrap(MODULE, "old_global", old_global)?
        .func_wrap(MODULE, "old_memory", old_memory)?;
    Ok(linker)
}

fn view<'a>(caller: &'a mut Caller<'_, Data>) -> View<'a> {
    match caller.data().memory {
        None => View {
            memory: None,
            io: &mut caller.data_mut().io,
        },
        Some(memory) => {
            let (memory, data) = memory.data_and_store_mut(caller);
            View {
                memory: Some(memory),
                io: &mut data.io,
            }
        }
    }
}

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
fn charge(caller: &mut Caller<'_, Data>, steps: u64, gives: Option<Val>) -> Result<(), Error> {
    let left = caller.get_fuel()?;
    caller.set_fuel(left.saturating_sub(steps))?;
    let owed = steps.saturating_sub(left);
    caller.data_mut().owed += owed;
    match owed {
        0 => Ok(()),
        _ => Err(Error::host(Pause { gives })),
    }
}

fn host(misuse: Misuse) -> Error {
    Error::host(misuse)
}

fn old_has(mut caller: Caller<'_, Data>, address: u32, length: u32) -> Result<u32, Error> {
    let (has, steps) = view(&mut caller).old_has(address, length).map_err(host)?;
    charge(&mut caller, steps, Some(Val::I32(has.cast_signed())))?;
    Ok(has)
}

fn old_global(mut caller: Caller<'_, Data>, address: u32, length: u32) -> Result<u64, Error> {
    let found = view(&mut caller).old_global(address, length);
    let (bits, steps) = found.map_err(host)?;
    charge(&mut caller, steps, Some(Val::I64(bits.cast_signed())))?;
    Ok(bits)
}

fn old_memory(mut caller: Caller<'_, Data>, from: u32, into: u32, count: u32) -> Result<(), Error> {
    let copied = view(&mut caller).old_memory(from, into, count);
    charge(&mut caller, copied.map_err(host)?, None)
}

//! What a module imports, as wasmtime calls it, and the host's function that the module asks whether it may go on.

use std::fmt;
use std::sync::Arc;

use ::wasmtime::{
    AsContextMut, Caller, Engine, Global, Linker, Memory, ResourceLimiter, Result, Val,
};
use bumpless_base::{Duration, Instant};
use bumpless_controller::{TimeSource, Unanswered};

use super::metered::{HOST, PAUSE};
use crate::wasm::engine::{Budget, STRETCH};
use crate::wasm::fault::{Cause, Misuse};
use crate::wasm::interface::{Bounds, Io, MODULE, Room, View};

/// What a store keeps.
pub(super) struct Data {
    pub(super) io: Io,
    /// Of the instance, once there is one.
    pub(super) handles: Option<Handles>,
    pub(super) meter: Meter,
}

/// What of an instance the host works on while it runs.
#[derive(Clone, Copy)]
pub(super) struct Handles {
    /// The first memory.
    pub(super) memory: Option<Memory>,
    pub(super) left: Global,
    pub(super) moved: Global,
}

/// What the call that runs may use.
#[derive(Default)]
pub(super) struct Meter {
    steps: u64,
    time: Option<Watch>,
}

/// Who looks at the clock, and since when.
struct Watch {
    limit: Duration,
    source: Arc<dyn TimeSource>,
    began: Instant,
    before: Option<Duration>,
}

impl Meter {
    pub(super) fn new(budget: &Budget<'_>) -> Self {
        let time = budget.time.map(|(limit, source)| Watch {
            limit,
            source: Arc::clone(source),
            began: source.now(),
            before: source.computed(),
        });
        Self {
            steps: budget.steps,
            time,
        }
    }

    /// Whether a call that has taken so many steps may go on.
    fn judge(&self, taken: u64) -> Result<(), Cause> {
        if let Some(watch) = &self.time {
            let elapsed = watch.source.now().since(watch.began);
            if elapsed >= watch.limit {
                let computed = watch.source.computed().zip(watch.before);
                return Err(Cause::Time(Unanswered {
                    limit: watch.limit,
                    elapsed,
                    computed: computed.map(|(after, before)| after.saturating_sub(before)),
                }));
            }
        }
        match taken > self.steps {
            true => Err(Cause::Steps { limit: self.steps }),
            false => Ok(()),
        }
    }
}

/// Why the host ends a call.
#[derive(Debug)]
pub(super) struct Stopped(pub(super) Cause);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Stopped {}

/// Fuel that a call gets: one more than its steps, so that it shows when they were too few.
pub(super) fn fuel(steps: u64) -> u64 {
    steps.saturating_add(1)
}

/// Steps that the call has taken.
pub(super) fn taken(mut store: impl AsContextMut<Data = Data>) -> u64 {
    let context = store.as_context_mut();
    let given = fuel(context.data().meter.steps);
    let burnt = given.saturating_sub(context.get_fuel().unwrap_or(0));
    burnt.saturating_add(
        number(store, |handles| handles.moved)
            .max(0)
            .cast_unsigned(),
    )
}

fn number(mut store: impl AsContextMut<Data = Data>, of: fn(&Handles) -> Global) -> i64 {
    let handles = store.as_context_mut().data().handles;
    let value = handles.map(|handles| of(&handles).get(&mut store));
    value.and_then(|value| value.i64()).unwrap_or(0)
}

/// Gives the module a stretch.
pub(super) fn give(mut store: impl AsContextMut<Data = Data>) -> Result<()> {
    match store.as_context_mut().data().handles {
        Some(handles) => handles.left.set(&mut store, Val::I64(STRETCH as i64)),
        None => Ok(()),
    }
}

/// The module asks whether it may go on.
fn pause(mut caller: Caller<'_, Data>) -> Result<()> {
    let taken = taken(&mut caller);
    caller.data().meter.judge(taken).map_err(Stopped)?;
    give(&mut caller)
}

/// Counts `steps` for what the host did.
fn charge(caller: &mut Caller<'_, Data>, steps: u64) -> Result<()> {
    let fuel = caller.get_fuel()?;
    caller.set_fuel(fuel.saturating_sub(steps))?;
    let left = number(&mut *caller, |handles| handles.left).saturating_sub_unsigned(steps);
    if left < 0 {
        let taken = taken(&mut *caller);
        caller.data().meter.judge(taken).map_err(Stopped)?;
        return give(caller);
    }
    match caller.data().handles {
        Some(handles) => handles.left.set(caller, Val::I64(left)),
        None => Ok(()),
    }
}

fn grown(room: Room) -> Result<bool> {
    match room {
        Room::Enough => Ok(true),
        Room::BeyondItsOwn => Ok(false),
        Room::Refused => Err(::wasmtime::Error::msg("more memory than allowed")),
    }
}

impl ResourceLimiter for Bounds {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        grown(self.memory(current, desired, maximum))
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        grown(self.table(desired, maximum))
    }

    fn memory_grow_failed(&mut self, error: ::wasmtime::Error) -> Result<()> {
        self.memory_did_not_grow();
        Err(error)
    }

    fn table_grow_failed(&mut self, error: ::wasmtime::Error) -> Result<()> {
        Err(error)
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

fn view<'a>(caller: &'a mut Caller<'_, Data>) -> View<'a> {
    match caller.data().handles.and_then(|handles| handles.memory) {
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

fn stopped<T>(result: Result<T, Misuse>) -> Result<T> {
    Ok(result.map_err(|misuse| Stopped(Cause::Misuse(misuse)))?)
}

/// Everything that a module may import.
pub(super) fn linker(engine: &Engine) -> Result<Linker<Data>> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(HOST, PAUSE, pause)?
        .func_wrap(
            MODULE,
            "input",
            |mut caller: Caller<'_, Data>, index: u32| {
                stopped(view(&mut caller).input(index)).map(f64::from_bits)
            },
        )?
        .func_wrap(
            MODULE,
            "output",
            |mut caller: Caller<'_, Data>, index: u32, value: f64| {
                stopped(view(&mut caller).output(index, value.to_bits()))
            },
        )?
        .func_wrap(
            MODULE,
            "last_output",
            |mut caller: Caller<'_, Data>, index: u32| {
                stopped(view(&mut caller).last_output(index)).map(f64::from_bits)
            },
        )?
        .func_wrap(
            MODULE,
            "inputs",
            |mut caller: Caller<'_, Data>, address: u32, count: u32| {
                stopped(view(&mut caller).inputs(address, count))
            },
        )?
        .func_wrap(
            MODULE,
            "outputs",
            |mut caller: Caller<'_, Data>, address: u32, count: u32| {
                stopped(view(&mut caller).outputs(address, count))
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
                stopped(view(&mut caller).log(address, length))
            },
        )?
        .func_wrap(
            MODULE,
            "old_has",
            |mut caller: Caller<'_, Data>, address: u32, length: u32| {
                let (has, steps) = stopped(view(&mut caller).old_has(address, length))?;
                charge(&mut caller, steps).map(|()| has)
            },
        )?
        .func_wrap(
            MODULE,
            "old_global",
            |mut caller: Caller<'_, Data>, address: u32, length: u32| {
                let (bits, steps) = stopped(view(&mut caller).old_global(address, length))?;
                charge(&mut caller, steps).map(|()| bits)
            },
        )?
        .func_wrap(
            MODULE,
            "old_memory",
            |mut caller: Caller<'_, Data>, from: u32, into: u32, count: u32| {
                let steps = stopped(view(&mut caller).old_memory(from, into, count))?;
                charge(&mut caller, steps)
            },
        )?;
    Ok(linker)
}

//! Runs one function of a module within steps and time.
//!
//! The interpreter counts steps and stops when there are none left, but can go on when it is given more. So it is given a
//! stretch at a time, and the clock is looked at in between.

use std::mem;

use ::wasmi::{
    Error, Store, TrapCode, TypedFunc, TypedResumableCall, TypedResumableCallHostTrap,
    TypedResumableCallOutOfFuel, WasmResults,
};
use bumpless_controller::Unanswered;

use super::imports::{Data, Pause};
use crate::wasm::engine::{Budget, STRETCH};
use crate::wasm::fault::{Cause, Misuse, TrapKind};

/// Calls `function` and returns what it gives, and the steps that it took.
pub(super) fn run<R: WasmResults>(
    store: &mut Store<Data>,
    function: TypedFunc<(), R>,
    budget: &Budget<'_>,
) -> Result<(R, u64), Cause> {
    let began = budget.time.map(|(_, time)| (time.now(), time.computed()));
    let mut taken = 0;
    let mut given = STRETCH.min(budget.steps);
    store.set_fuel(given).map_err(|_| other())?;
    let mut call = function.call_resumable(&mut *store, ());
    loop {
        let left = store.get_fuel().map_err(|_| other())?;
        taken += given.saturating_sub(left) + mem::take(&mut store.data_mut().owed);
        let stopped = match call {
            Ok(TypedResumableCall::Finished(result)) => return Ok((result, taken)),
            Ok(TypedResumableCall::OutOfFuel(stopped)) => Stopped::OutOfFuel(stopped),
            Ok(TypedResumableCall::HostTrap(trap)) => {
                match trap.host_error().downcast_ref::<Pause>() {
                    Some(_) => Stopped::Paused(trap),
                    None => return Err(cause(trap.host_error(), store, budget)),
                }
            }
            Err(error) => return Err(cause(&error, store, budget)),
        };
        if let Some(((limit, time), (began, before))) = budget.time.zip(began)
            && let elapsed = time.now().since(began)
            && elapsed >= limit
        {
            let computed = time.computed().zip(before);
            return Err(Cause::Time(Unanswered {
                limit,
                elapsed,
                computed: computed.map(|(after, before)| after.saturating_sub(before)),
            }));
        }
        let may_take = budget.steps.saturating_sub(taken);
        if stopped.needs() > may_take || may_take == 0 {
            return Err(Cause::Steps {
                limit: budget.steps,
            });
        }
        given = STRETCH.max(stopped.needs()).min(may_take);
        store.set_fuel(given).map_err(|_| other())?;
        call = stopped.resume(store);
    }
}

/// A call that can go on.
enum Stopped<R> {
    /// No steps were left.
    OutOfFuel(TypedResumableCallOutOfFuel<R>),
    /// The host's work was worth more than were left.
    Paused(TypedResumableCallHostTrap<R>),
}

impl<R: WasmResults> Stopped<R> {
    /// Steps without which it does not go on.
    fn needs(&self) -> u64 {
        match self {
            Self::OutOfFuel(stopped) => stopped.required_fuel(),
            Self::Paused(_) => 0,
        }
    }

    fn resume(self, store: &mut Store<Data>) -> Result<TypedResumableCall<R>, Error> {
        match self {
            Self::OutOfFuel(stopped) => stopped.resume(store),
            Self::Paused(trap) => {
                let pause = trap.host_error().downcast_ref::<Pause>();
                let gives = pause.and_then(|pause| pause.gives.clone());
                trap.resume(store, gives.as_slice())
            }
        }
    }
}

fn other() -> Cause {
    Cause::Trap(TrapKind::Other)
}

fn cause(error: &Error, store: &mut Store<Data>, budget: &Budget<'_>) -> Cause {
    if let Some(misuse) = error.downcast_ref::<Misuse>() {
        return Cause::Misuse(*misuse);
    }
    if let Some(wanted) = store.data_mut().io.bounds.refused.take() {
        return Cause::Memory {
            wanted,
            limit: budget.memory,
        };
    }
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => Cause::Steps {
            limit: budget.steps,
        },
        Some(TrapCode::GrowthOperationLimited) => Cause::Trap(TrapKind::OutOfSystemMemory),
        Some(code) => Cause::Trap(trap(code)),
        None => other(),
    }
}

fn trap(code: TrapCode) -> TrapKind {
    match code {
        TrapCode::UnreachableCodeReached => TrapKind::Unreachable,
        TrapCode::MemoryOutOfBounds => TrapKind::MemoryBounds,
        TrapCode::TableOutOfBounds => TrapKind::TableBounds,
        TrapCode::IndirectCallToNull => TrapKind::NullCall,
        TrapCode::BadSignature => TrapKind::CallType,
        TrapCode::IntegerDivisionByZero => TrapKind::DivisionByZero,
        TrapCode::IntegerOverflow => TrapKind::IntegerOverflow,
        TrapCode::BadConversionToInteger => TrapKind::FloatToInteger,
        TrapCode::StackOverflow => TrapKind::StackOverflow,
        TrapCode::OutOfSystemMemory => TrapKind::OutOfSystemMemory,
        _ => TrapKind::Other,
    }
}

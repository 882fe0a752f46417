//! Modules from text, and programs of them.

use std::sync::Arc;

use bumpless_controller::{Application, CycleContext};
use bumpless_host::kit::{Report, Trial};
use bumpless_host::wasm::{Fault, LoadFault, Module, Wasm};
use bumpless_host::{Limits, Shape};

use super::{PERIOD, examined, trial};

/// Everything that a module may import.
pub const IMPORTS: &str = r#"
  (import "bumpless" "input" (func $input (param i32) (result f64)))
  (import "bumpless" "output" (func $output (param i32 f64)))
  (import "bumpless" "last_output" (func $last_output (param i32) (result f64)))
  (import "bumpless" "inputs" (func $inputs (param i32 i32)))
  (import "bumpless" "outputs" (func $outputs (param i32 i32)))
  (import "bumpless" "cycle_number" (func $cycle_number (result i64)))
  (import "bumpless" "period_ns" (func $period_ns (result i64)))
  (import "bumpless" "log" (func $log (param i32 i32)))
"#;

/// A module with all imports and this in it.
pub fn assembled(content: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {IMPORTS} {content})")).expect("the test's own module")
}

pub fn shape(inputs: usize, outputs: usize) -> Shape {
    Shape {
        inputs,
        outputs,
        state_max: 1 << 20,
    }
}

pub fn limits() -> Limits {
    Limits::within(PERIOD)
}

pub fn module(bytes: &[u8]) -> Result<Arc<Module>, LoadFault> {
    Module::read("test.wasm", bytes, crate::ENGINE).map(Arc::new)
}

/// A program that is stopped by its steps only.
pub fn started(bytes: &[u8], shape: Shape, limits: Limits) -> Result<Wasm, LoadFault> {
    Ok(Wasm::new(module(bytes)?, shape, limits)?.timed_by(None))
}

pub fn program(content: &str, inputs: usize, outputs: usize) -> Wasm {
    started(&assembled(content), shape(inputs, outputs), limits()).expect("a program")
}

pub fn context(cycle: u64) -> CycleContext {
    CycleContext {
        cycle,
        period: PERIOD,
    }
}

/// One cycle; gives the outputs.
pub fn step(
    program: &mut Wasm,
    cycle: u64,
    inputs: &[f64],
    last: &[f64],
) -> Result<Vec<f64>, Fault> {
    let mut outputs = last.to_vec();
    program.run(&context(cycle), inputs, &mut outputs)?;
    Ok(outputs)
}

pub fn saved(program: &Wasm) -> Vec<u8> {
    let mut state = vec![0xa5; program.state_size_max()];
    let length = program.save(&mut state);
    state.truncate(length);
    state
}

/// Puts a module to the test.
pub fn module_examined(bytes: &[u8], shape: Shape, trial: &Trial) -> Report {
    let module = module(bytes).expect("a module");
    examined(trial, || {
        let program = Wasm::new(Arc::clone(&module), shape, limits());
        let program = program.map_err(|fault| fault.to_string())?;
        Ok(Box::new(program.timed_by(None)))
    })
}

/// The kit says yes, and has moved the state as often as it should.
pub fn assert_movable(content: &str, inputs: usize, outputs: usize) -> Report {
    let report = module_examined(&assembled(content), shape(inputs, outputs), &trial());
    assert!(report.can_be_redundant(), "{report:#?}");
    assert_eq!((report.cycles, report.moves), (10_000, 200));
    report
}

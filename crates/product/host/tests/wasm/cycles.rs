//! What a module does at its start and in a cycle.

use std::sync::Arc;

use crate::support::modules::{
    IMPORTS, assembled, limits, module, module_examined, program, shape, started, step,
};
use crate::support::trial;
use bumpless_controller::Application;
use bumpless_host::wasm::{Counts, Wasm};

const LEVEL: &str = include_str!("../../../../../examples/programs/level.wat");

pub fn level() -> Vec<u8> {
    wat::parse_str(LEVEL).unwrap()
}

#[test]
fn the_example_moves_at_a_hundred_moments_with_identical_outputs() {
    let report = module_examined(&level(), shape(2, 1), &trial());
    assert!(
        report.can_be_redundant() && report.notes.is_empty(),
        "{report:#?}"
    );
    assert_eq!((report.cycles, report.moves), (10_000, 200));
    // A header and one global.
    assert_eq!(report.state_bytes.max, 24);
}

#[test]
fn the_example_does_what_it_says() {
    let mut program = started(&level(), shape(2, 1), limits()).unwrap();
    let (mut integral, mut last) = (0.0f64, vec![0.0]);
    for cycle in 1..=100 {
        let (level, set_point) = (cycle as f64 / 50.0, 1.0);
        let error = set_point - level;
        integral = (integral + error * (1e7 * 1e-9)).clamp(-10.0, 10.0);
        let valve = (0.8 * error + 0.1 * integral).clamp(0.0, 1.0);
        last = step(&mut program, cycle, &[level, set_point], &last).unwrap();
        assert_eq!(last[0].to_bits(), valve.to_bits(), "cycle {cycle}");
    }
}

#[test]
fn a_program_is_for_as_many_inputs_and_outputs_as_it_tells() {
    let module = module(&level()).unwrap();
    let told = Counts::told_by(&module, &limits()).unwrap();
    assert_eq!((told.inputs, told.outputs), (Some(2), Some(1)));
    let fault = Wasm::new(Arc::clone(&module), shape(3, 0), limits())
        .err()
        .unwrap();
    let said = fault.to_string();
    assert!(
        said.contains("is for 2 inputs") && said.contains("is for 1 outputs"),
        "{said}"
    );
    // A module that counts itself to death is stopped, too.
    let text = format!(
        r#"(module {IMPORTS} (func (export "cycle")) (func (export "bumpless_inputs") (result i32) unreachable))"#
    );
    let fault = started(&wat::parse_str(text).unwrap(), shape(0, 0), limits())
        .err()
        .unwrap();
    assert!(
        fault.to_string().contains("in bumpless_inputs: it gave up"),
        "{fault}"
    );
}

#[test]
fn start_function_and_initialize_run_once_in_this_order() {
    let content = r#"
      (global $g (mut f64) (f64.const 1))
      (func $start (global.set $g (f64.add (global.get $g) (f64.const 2))))
      (start $start)
      (func (export "_initialize") (global.set $g (f64.mul (global.get $g) (f64.const 10))))
      (func (export "cycle") (call $output (i32.const 0) (global.get $g))
        (global.set $g (f64.add (global.get $g) (f64.const 1))))
    "#;
    let mut program = program(content, 0, 1);
    assert_eq!(step(&mut program, 1, &[], &[0.0]).unwrap(), [30.0]);
    assert_eq!(step(&mut program, 2, &[], &[0.0]).unwrap(), [31.0]);
    program.reset();
    assert_eq!(step(&mut program, 1, &[], &[0.0]).unwrap(), [30.0]);
}

#[test]
fn a_beginning_that_fails_is_refused_with_its_function() {
    for (content, words) in [
        (
            r#"(func $s unreachable) (start $s) (func (export "cycle"))"#,
            "fails before its first cycle, in its start function: it gave up",
        ),
        (
            r#"(func (export "_initialize") (drop (i32.div_u (i32.const 1) (i32.const 0)))) (func (export "cycle"))"#,
            "in _initialize: it divided an integer by zero",
        ),
        (
            r#"(memory 1) (data (i32.const 65535) "ab") (func (export "cycle"))"#,
            "cannot be set up",
        ),
        (
            r#"(memory 300) (func (export "cycle"))"#,
            "with 16777216 bytes of memory allowed",
        ),
    ] {
        let fault = started(&assembled(content), shape(0, 0), limits())
            .err()
            .unwrap();
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

#[test]
fn values_go_in_and_out_one_by_one_or_together() {
    let content = r#"(memory 1) (func (export "cycle")
      (call $inputs (i32.const 16) (i32.const 3))
      (call $outputs (i32.const 24) (i32.const 2))
      (call $output (i32.const 2) (f64.add (call $last_output (i32.const 3)) (call $input (i32.const 0))))
      (call $output (i32.const 3) (f64.mul (call $last_output (i32.const 0)) (f64.const 10))))"#;
    let mut program = program(content, 3, 5);
    let outputs = step(
        &mut program,
        1,
        &[1.0, 2.0, 3.0],
        &[9.0, 9.0, 9.0, 4.0, 5.0],
    )
    .unwrap();
    assert_eq!(outputs, [2.0, 3.0, 5.0, 20.0, 5.0]);
}

#[test]
fn growth_beyond_the_modules_own_maximum_fails_as_webassembly_says() {
    let content = r#"(memory 1 2) (table 1 2 funcref) (func (export "cycle")
      (call $output (i32.const 0) (f64.convert_i32_s (memory.grow (i32.const 2))))
      (call $output (i32.const 1) (f64.convert_i32_s (table.grow (ref.null func) (i32.const 5)))))"#;
    let mut program = program(content, 0, 2);
    assert_eq!(step(&mut program, 1, &[], &[0.0; 2]).unwrap(), [-1.0, -1.0]);
}

#[test]
fn exports_of_its_own_change_nothing_not_even_with_the_hosts_names() {
    let content = r#"
      (memory (export "m0") 1) (global $g (export "g0") (mut f64) (f64.const 1))
      (table (export "t0") 1 funcref) (export "f0" (func $other)) (export "start" (func $other))
      (func $other unreachable)
      (func (export "cycle") (table.set (i32.const 0) (ref.func $other))
        (global.set $g (f64.add (global.get $g) (f64.const 1)))
        (call $output (i32.const 0) (global.get $g)))
    "#;
    let report = module_examined(&assembled(content), shape(0, 1), &trial());
    assert!(report.can_be_redundant(), "{report:?}");
}

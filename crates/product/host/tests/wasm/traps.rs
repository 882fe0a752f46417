//! Each trap of spec/program.md, as a module that would fall into it.

use crate::support::PERIOD;
use crate::support::modules::{
    assembled, assert_movable, context, limits, module, program, saved, shape, started, step,
};
use bumpless_controller::{Application, LoadError};
use bumpless_host::wasm::{Cause, Feature, Problem, TrapKind};
use bumpless_host::{Limits, Shape};

/// Keeps something in a global of each type, in a memory and in a second one, none of them exported.
pub const HIDDEN: &str = r#"
  (memory 1) (memory $other 1)
  (global $a (mut i32) (i32.const 1))
  (global $b (mut i64) (i64.const 2))
  (global $c (mut f32) (f32.const 3))
  (global $d (mut f64) (f64.const 4))
  (func (export "cycle") (local $at i32)
    (global.set $a (i32.add (i32.mul (global.get $a) (i32.const 1103515245)) (i32.const 12345)))
    (global.set $b (i64.add (global.get $b) (i64.extend_i32_s (global.get $a))))
    (global.set $c (f32.add (f32.mul (global.get $c) (f32.const 0.5))
      (f32.demote_f64 (call $input (i32.const 0)))))
    (global.set $d (f64.add (f64.mul (global.get $d) (f64.const 0.9)) (call $input (i32.const 0))))
    (local.set $at (i32.and (global.get $a) (i32.const 0xfff8)))
    (call $output (i32.const 0) (f64.convert_i32_s (global.get $a)))
    (call $output (i32.const 1) (f64.convert_i64_s (global.get $b)))
    (call $output (i32.const 2) (f64.promote_f32 (global.get $c)))
    (call $output (i32.const 3) (global.get $d))
    (call $output (i32.const 4) (f64.load (local.get $at)))
    (call $output (i32.const 5) (f64.load $other (i32.and (local.get $at) (i32.const 0xff8))))
    (f64.store (local.get $at) (global.get $d))
    (f64.store $other (i32.and (local.get $at) (i32.const 0xff8)) (call $input (i32.const 0))))
"#;

#[test]
fn trap_hidden_variables() {
    let report = assert_movable(HIDDEN, 1, 6);
    assert!(report.notes.is_empty(), "{report:?}");
}

/// A list through memory by addresses, and functions in a table and in a global that change.
pub const ADDRESSES: &str = r#"
  (memory 1)
  (type $change (func (param f64) (result f64)))
  (table $ways 3 funcref)
  (global $now (mut funcref) (ref.func $double))
  (global $head (mut i32) (i32.const 0))
  (elem declare func $double $half $less)
  (func $double (param f64) (result f64) (f64.mul (local.get 0) (f64.const 2)))
  (func $half (param f64) (result f64) (f64.mul (local.get 0) (f64.const 0.5)))
  (func $less (param f64) (result f64) (f64.sub (local.get 0) (f64.const 1)))
  (func (export "cycle") (local $cell i32) (local $sum f64)
    ;; A cell: address of the next, value.
    (local.set $cell (i32.and (i32.mul (i32.wrap_i64 (call $cycle_number)) (i32.const 16)) (i32.const 0xff0)))
    (i32.store (local.get $cell) (global.get $head))
    (f64.store (i32.add (local.get $cell) (i32.const 8)) (call $input (i32.const 0)))
    (global.set $head (local.get $cell))
    (local.set $sum (f64.load (i32.add (i32.load (global.get $head)) (i32.const 8))))
    (table.set $ways (i32.const 0) (global.get $now))
    (call $output (i32.const 0)
      (call_indirect $ways (type $change) (local.get $sum) (i32.const 0)))
    (if (i32.eqz (i32.rem_u (i32.wrap_i64 (call $cycle_number)) (i32.const 7)))
      (then (global.set $now (ref.func $half))
        (table.set $ways (i32.const 1) (ref.func $less))
        (table.set $ways (i32.const 2) (ref.null func))))
    (if (i32.eqz (i32.rem_u (i32.wrap_i64 (call $cycle_number)) (i32.const 11)))
      (then (global.set $now (ref.func $double))
        (if (ref.is_null (table.get $ways (i32.const 1)))
          (then (table.set $ways (i32.const 1) (ref.func $half))))))
    (if (i32.eqz (ref.is_null (table.get $ways (i32.const 1))))
      (then (call $output (i32.const 1)
        (call_indirect $ways (type $change) (local.get $sum) (i32.const 1)))
        (global.set $now (table.get $ways (i32.const 1)))))
    (call $output (i32.const 2) (f64.convert_i32_u (ref.is_null (table.get $ways (i32.const 2)))))
    (table.set $ways (i32.const 2) (ref.func $double)))
"#;

#[test]
fn trap_addresses() {
    assert_movable(ADDRESSES, 1, 3);
}

#[test]
fn trap_addresses_of_a_table_that_grows() {
    let content = r#"
      (table $t 1 200 funcref) (elem declare func $f)
      (func $f)
      (func (export "cycle")
        (if (i32.eqz (i32.rem_u (i32.wrap_i64 (call $cycle_number)) (i32.const 100)))
          (then (drop (table.grow $t (ref.func $f) (i32.const 1)))))
        (call $output (i32.const 0) (f64.convert_i32_u (table.size $t))))
    "#;
    assert_movable(content, 0, 1);
}

fn unknown_imports(text: &str) -> Vec<String> {
    let bytes = wat::parse_str(text).unwrap();
    let fault = module(&bytes).err().expect("it is refused");
    let names = fault.problems.iter().filter_map(|problem| match problem {
        Problem::UnknownImport { import, .. } => Some(import.clone()),
        _ => None,
    });
    let names: Vec<_> = names.collect();
    for name in &names {
        assert!(fault.to_string().contains(name.as_str()), "{fault}");
    }
    names
}

#[test]
fn trap_clock() {
    let refused = unknown_imports(
        r#"(module
          (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))
          (import "env" "Date.now" (func (result f64)))
          (func (export "cycle")))"#,
    );
    assert_eq!(
        refused,
        ["wasi_snapshot_preview1.clock_time_get", "env.Date.now"]
    );
    // What a program takes for the time goes on in another instance.
    assert_movable(
        r#"(global $last (mut i64) (i64.const 0))
        (func (export "cycle")
          (call $output (i32.const 0) (f64.convert_i64_s (i64.sub (call $cycle_number) (global.get $last))))
          (call $output (i32.const 1)
            (f64.convert_i64_s (i64.mul (call $cycle_number) (call $period_ns))))
          (global.set $last (call $cycle_number)))"#,
        0,
        2,
    );
}

#[test]
fn trap_tick_wrap() {
    let content = r#"(func (export "cycle")
      (call $output (i32.const 0) (f64.convert_i64_u (call $cycle_number))))"#;
    let mut program = program(content, 0, 1);
    for cycle in [1, u64::from(u32::MAX), u64::from(u32::MAX) + 1, 1 << 53] {
        assert_eq!(
            step(&mut program, cycle, &[], &[0.0]).unwrap(),
            [cycle as f64]
        );
    }
}

#[test]
fn trap_random_numbers() {
    let refused = unknown_imports(
        r#"(module
          (import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))
          (import "env" "seed" (global f64))
          (func (export "cycle")))"#,
    );
    assert_eq!(refused, ["wasi_snapshot_preview1.random_get", "env.seed"]);
}

#[test]
fn trap_sockets() {
    let refused = unknown_imports(
        r#"(module
          (import "wasi_snapshot_preview1" "sock_send" (func))
          (import "wasi_snapshot_preview1" "fd_write" (func))
          (import "env" "table" (table 1 funcref))
          (import "env" "memory" (memory 1))
          (func (export "cycle")))"#,
    );
    assert_eq!(refused.len(), 4, "{refused:?}");
    for threads in [
        r#"(module (memory 1 1 shared) (func (export "cycle")))"#,
        r#"(module (memory 1) (func (export "cycle") (drop (i32.atomic.load (i32.const 0)))))"#,
        r#"(module (import "env" "memory" (memory 1 2 shared)) (func (export "cycle")))"#,
    ] {
        let fault = module(&wat::parse_str(threads).unwrap()).err().unwrap();
        let needs = matches!(
            fault.problems[..],
            [Problem::Needs {
                feature: Feature::Threads,
                ..
            }]
        );
        assert!(
            needs && fault.to_string().contains("without threads"),
            "{fault:?}"
        );
    }
}

/// Takes a page every hundred cycles, eight in all, and uses the last one.
pub const GROWING: &str = r#"
  (memory 1 9)
  (func (export "cycle") (local $at i32)
    (if (i32.eqz (i32.rem_u (i32.wrap_i64 (call $cycle_number)) (i32.const 100)))
      (then (drop (memory.grow (i32.const 1)))))
    (local.set $at (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 8)))
    (call $output (i32.const 0) (f64.load (local.get $at)))
    (call $output (i32.const 1) (f64.convert_i32_u (memory.size)))
    (f64.store (local.get $at) (f64.add (f64.load (local.get $at)) (call $input (i32.const 0)))))
"#;

#[test]
fn trap_heap() {
    assert_movable(GROWING, 1, 2);
    // What is taken without end is a fault.
    let content = r#"(memory 1) (func (export "cycle")
      (drop (memory.grow (i32.const 1))) (call $output (i32.const 0) (f64.convert_i32_u (memory.size))))"#;
    let limits = Limits {
        memory: 4 * 65_536,
        ..limits()
    };
    let mut program = started(&assembled(content), shape(0, 1), limits).unwrap();
    for cycle in 1..=3 {
        let pages = step(&mut program, cycle, &[], &[0.0]).unwrap();
        assert_eq!(pages, [cycle as f64 + 1.0]);
    }
    let fault = step(&mut program, 4, &[], &[0.0]).unwrap_err();
    let expected = Cause::Memory {
        wanted: 5 * 65_536,
        limit: 4 * 65_536,
    };
    assert_eq!((fault.cause, fault.cycle), (expected, 4));
    // An instance with more memory takes over a state with less.
    program.reset();
    let pages = step(&mut program, 1, &[], &[0.0]).unwrap();
    assert_eq!(pages, [2.0]);
}

#[test]
fn trap_two_builds() {
    let one = r#"(global $n (mut i32) (i32.const 0)) (func (export "cycle")
      (global.set $n (i32.add (global.get $n) (i32.const 1)))
      (call $output (i32.const 0) (f64.convert_i32_u (global.get $n))))"#;
    let other = format!("{one} (func $another)");
    let mut program = program(one, 0, 1);
    step(&mut program, 1, &[], &[0.0]).unwrap();
    let before = saved(&program);
    let other = started(&assembled(&other), shape(0, 1), limits()).unwrap();
    let refused = program.load(&saved(&other));
    assert_eq!(refused, Err(LoadError::Value { field: "program" }));
    assert_eq!(saved(&program), before);
}

#[test]
fn trap_torn_state() {
    let content = r#"
      (memory 1) (global $g (mut f64) (f64.const 0))
      (func (export "cycle")
        (global.set $g (f64.add (global.get $g) (call $input (i32.const 0))))
        (call $output (i32.const 0) (global.get $g))
        (if (f64.eq (call $input (i32.const 0)) (f64.const 13)) (then unreachable))
        (f64.store (i32.const 8) (global.get $g))
        (call $output (i32.const 1) (f64.load (i32.const 8))))
    "#;
    let mut program = program(content, 1, 2);
    let first = step(&mut program, 1, &[1.0], &[0.0; 2]).unwrap();
    let state = saved(&program);
    let mut outputs = first.clone();
    let fault = program.run(&context(2), &[13.0], &mut outputs).unwrap_err();
    assert_eq!(fault.cause, Cause::Trap(TrapKind::Unreachable));
    assert_eq!(outputs, first, "outputs of a failed cycle are not used");
    let fault = step(&mut program, 2, &[1.0], &first).unwrap_err();
    assert_eq!(fault.cause, Cause::Torn);
    program.load(&state).unwrap();
    assert_eq!(saved(&program), state);
    assert_eq!(step(&mut program, 2, &[1.0], &first).unwrap(), [2.0, 2.0]);
    program.run(&context(3), &[13.0], &mut outputs).unwrap_err();
    program.reset();
    assert_eq!(
        step(&mut program, 1, &[5.0], &[0.0; 2]).unwrap(),
        [5.0, 5.0]
    );
}

#[test]
fn trap_array_bounds() {
    for content in [
        r#"(memory 1) (func (export "cycle") (f64.store (i32.const 65529) (f64.const 1)))"#,
        r#"(memory 1) (func (export "cycle") (drop (i32.load8_u (i32.const -1))))"#,
        r#"(memory 1) (func (export "cycle") (memory.fill (i32.const 65000) (i32.const 1) (i32.const 1000)))"#,
    ] {
        let mut program = program(content, 0, 0);
        let fault = step(&mut program, 1, &[], &[]).unwrap_err();
        assert_eq!(
            fault.cause,
            Cause::Trap(TrapKind::MemoryBounds),
            "{content}"
        );
    }
}

#[test]
fn trap_endless_loop() {
    let limits = Limits {
        fuel: Some(1_000_000),
        ..limits()
    };
    for content in [
        r#"(func (export "cycle") (loop $ever (br $ever)))"#,
        r#"(func $f (call $g)) (func $g (return_call $f)) (func (export "cycle") (loop $ever (br $ever)))"#,
        r#"(func (export "cycle") (local i64) (loop $ever
            (local.set 0 (i64.add (local.get 0) (call $cycle_number))) (br $ever)))"#,
        r#"(func $f (return_call $f)) (func (export "cycle") (call $f))"#,
    ] {
        let mut program = started(&assembled(content), shape(0, 0), limits).unwrap();
        let fault = step(&mut program, 1, &[], &[]).unwrap_err();
        assert_eq!(fault.cause, Cause::Steps { limit: 1_000_000 }, "{content}");
    }
}

#[test]
fn trap_nan_bits() {
    let content = r#"(func (export "cycle")
      (call $output (i32.const 0) (f64.add (call $input (i32.const 0)) (f64.const 1)))
      (call $output (i32.const 1) (f64.div (f64.const 0) (f64.sub (call $input (i32.const 1)) (call $input (i32.const 1)))))
      (call $output (i32.const 2) (f64.sqrt (f64.const -1)))
      (call $output (i32.const 3) (f64.promote_f32 (f32.demote_f64 (call $input (i32.const 0)))))
      (call $output (i32.const 4) (f64.min (call $input (i32.const 0)) (f64.const 1)))
      (call $output (i32.const 5) (call $input (i32.const 0))))"#;
    let mut program = program(content, 2, 6);
    for bits in [
        0x7ff0_0000_0000_0001,
        0xfff8_0000_dead_beef,
        0x7ff8_0000_0000_0000u64,
    ] {
        let inputs = [f64::from_bits(bits), 1.0];
        let outputs = step(&mut program, 1, &inputs, &[0.0; 6]).unwrap();
        let found: Vec<_> = outputs.iter().map(|value| value.to_bits()).collect();
        // The last one is only handed through.
        assert_eq!(found[..5], [0x7ff8_0000_0000_0000; 5], "{bits:#x}");
        assert_eq!(found[5], bits);
    }
}

#[test]
fn trap_dropped_segments() {
    let content = r#"
      (memory 1) (data $d "abc") (table 1 funcref) (elem $e func $f) (func $f)
      (func (export "cycle") (memory.init $d (i32.const 0) (i32.const 0) (i32.const 3)) (data.drop $d) (elem.drop $e))
    "#;
    let fault = module(&assembled(content)).err().unwrap();
    let names: Vec<_> = fault
        .problems
        .iter()
        .map(|problem| match problem {
            Problem::Unmovable { instruction, .. } => *instruction,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["data.drop", "elem.drop"]);
    // A segment that is only copied from is the same everywhere.
    assert_movable(
        r#"(memory 1) (data $d "12345678") (func (export "cycle")
          (call $output (i32.const 0) (f64.load (i32.const 0)))
          (memory.init $d (i32.rem_u (i32.wrap_i64 (call $cycle_number)) (i32.const 7)) (i32.const 0) (i32.const 8)))"#,
        0,
        1,
    );
}

#[test]
fn trap_meaningless_bytes() {
    // The dead end of a stack: written in each cycle, never read.
    let report = assert_movable(
        r#"(memory 1) (func (export "cycle")
          (f64.store (i32.const 128) (call $input (i32.const 0)))
          (call $output (i32.const 0) (f64.convert_i64_u (call $cycle_number))))"#,
        1,
        1,
    );
    assert!(report.notes.is_empty(), "{report:?}");
}

#[test]
fn a_state_larger_than_allowed_is_a_fault_and_a_beginning_is_refused() {
    let content = r#"(memory 4) (func (export "cycle")
      (f64.store (i32.mul (i32.wrap_i64 (call $cycle_number)) (i32.const 256)) (f64.const 1)))"#;
    let bytes = assembled(content);
    // Header, 4 bytes and 32 for each page of the memory, and two blocks.
    let allowed = 16 + 4 + 4 * 32 + 2 * 256;
    let shape = |state_max| Shape {
        inputs: 0,
        outputs: 0,
        state_max,
    };
    let mut program = started(&bytes, shape(allowed), limits()).unwrap();
    assert_eq!(program.state_size_max(), allowed);
    step(&mut program, 1, &[], &[]).unwrap();
    step(&mut program, 2, &[], &[]).unwrap();
    assert_eq!(saved(&program).len(), allowed);
    let fault = step(&mut program, 3, &[], &[]).unwrap_err();
    let expected = Cause::State {
        bytes: allowed + 256,
        limit: allowed,
    };
    assert_eq!(fault.cause, expected);
    let refused = started(&bytes, shape(100), limits()).err().unwrap();
    let expected = Problem::StateTooLarge {
        bytes: 148,
        allowed: 100,
    };
    assert_eq!(refused.problems, [expected]);
    assert_eq!(PERIOD, limits().execute);
}

//! What a state is, and what moves.

use std::sync::Arc;

use crate::support::PERIOD;
use crate::support::modules::{assembled, context, limits, program, saved, shape, step};
use bumpless_controller::Application;
use bumpless_host::Limits;
use bumpless_host::wasm::{Module, Wasm};
use proptest::prelude::*;

/// A program with some of everything in its state.
fn mixed() -> Wasm {
    let content = r#"
      (memory 1 3) (global $g (mut i32) (i32.const 1)) (global $f (mut f32) (f32.const 1))
      (global $r (mut funcref) (ref.null func)) (table $t 1 5 funcref) (elem declare func $x) (func $x)
      (func (export "cycle") (local $at i32)
        (global.set $g (i32.add (i32.mul (global.get $g) (i32.const 1103515245)) (i32.const 12345)))
        (local.set $at (i32.and (global.get $g) (i32.const 0xfff8)))
        (f64.store (local.get $at) (call $input (i32.const 0)))
        (if (i32.and (global.get $g) (i32.const 0x1000))
          (then (drop (table.grow $t (ref.func $x) (i32.const 1))) (drop (memory.grow (i32.const 1)))
            (global.set $r (ref.func $x))))
        (call $output (i32.const 0) (f64.convert_i32_s (global.get $g))))
    "#;
    let mut program = program(content, 1, 1);
    for cycle in 1..=20 {
        step(&mut program, cycle, &[cycle as f64], &[0.0]).unwrap();
    }
    program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_are_taken_over_whole_or_refused_with_nothing_changed(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut program = mixed();
        let before = saved(&program);
        let mut state = before.clone();
        for (at, value) in edits {
            // Mostly where numbers are that say how much follows.
            let at = at.index(if value & 1 == 0 { 64 } else { state.len() });
            state[at] = value;
        }
        if let Some(cut) = cut {
            state.truncate(cut.index(state.len()));
            let length = (state.len() as u32).to_be_bytes();
            if let Some(field) = state.get_mut(4..8) { field.copy_from_slice(&length) }
        }
        for candidate in [&noise, &state] {
            match program.load(candidate) {
                Ok(()) => prop_assert!(&saved(&program) == candidate),
                Err(_) => prop_assert!(saved(&program) == before),
            }
            program.load(&before).unwrap();
        }
    }

    #[test]
    fn any_bytes_as_a_module_run_or_are_refused(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let limits = Limits { fuel: Some(100_000), memory: 1 << 20, ..limits() };
        let mut bytes = assembled(
            r#"(memory 1) (table 2 funcref) (elem (i32.const 0) func $f $f) (func $f)
            (global $g (mut i32) (i32.const 5)) (data (i32.const 8) "abc")
            (func (export "cycle") (global.set $g (i32.load (global.get $g)))
              (table.set (i32.const 1) (table.get (i32.const 0)))
              (call $output (i32.const 0) (call $input (i32.const 0))))"#,
        );
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let mut noisy = b"\0asm\x01\0\0\0".to_vec();
        noisy.extend(&noise);
        for bytes in [&bytes, &noisy] {
            let Ok(module) = Module::read("any", bytes, crate::ENGINE).map(Arc::new) else { continue };
            let Ok(program) = Wasm::new(Arc::clone(&module), shape(1, 1), limits) else { continue };
            let mut program = program.timed_by(None);
            let mut outputs = [0.0];
            for cycle in 1..=3 {
                if program.run(&context(cycle), &[1.0], &mut outputs).is_err() {
                    program.reset();
                }
            }
            let state = saved(&program);
            let other = Wasm::new(module, shape(1, 1), limits).unwrap();
            let mut other = other.timed_by(None);
            prop_assert!(other.load(&state).is_ok());
            prop_assert!(saved(&other) == state);
        }
    }
}

#[test]
fn the_layout_of_a_state_is_the_documented_one() {
    let content = r#"(memory 1) (global $g (mut i32) (i32.const 0x01020304))
      (func (export "cycle") (i32.store8 (i32.const 300) (i32.const 7)))"#;
    let mut program = program(content, 0, 0);
    step(&mut program, 1, &[], &[]).unwrap();
    let state = saved(&program);
    let mut expected = vec![1, 1, 0, 0];
    expected.extend((16u32 + 8 + 4 + 32 + 256).to_be_bytes());
    expected.extend(&program.module().sha256()[..8]);
    expected.extend([0, 0, 0, 0, 1, 2, 3, 4]);
    expected.extend(1u32.to_be_bytes());
    expected.push(0b10);
    expected.extend([0; 31]);
    let mut block = [0; 256];
    block[300 - 256] = 7;
    expected.extend(block);
    assert_eq!(state, expected);
    assert_eq!(PERIOD.as_millis(), 10);
}

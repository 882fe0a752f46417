//! WebAssembly modules as programs: what is refused and how, what a cycle is, what moves.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_controller::successor::Successor;
use bumpless_controller::{Application, ProgramFaultKind, TimeSource, Unanswered};
use bumpless_host::wasm::{
    ByModule, Cause, Counts, Feature, Misuse, Module, Problem, TrapKind, Wasm,
};
use bumpless_host::{Kind, Limits};
use proptest::prelude::*;
use support::modules::{
    IMPORTS, assembled, context, limits, module, module_examined, program, saved, shape, started,
    step,
};
use support::{PERIOD, trial};

const LEVEL: &str = include_str!("../../../../examples/programs/level.wat");

fn level() -> Vec<u8> {
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

fn refusals(bytes: &[u8]) -> (Vec<Problem>, String) {
    let fault = module(bytes).err().expect("it is refused");
    let said = fault.to_string();
    assert!(said.starts_with("test.wasm: "), "{said}");
    (fault.problems, said)
}

#[test]
fn what_is_no_module_is_refused_by_what_it_is() {
    for (bytes, kind, word) in [
        (&b"(module)"[..], Kind::WasmText, "wat2wasm"),
        (b"\0asm\x0d\0\x01\0", Kind::WasmComponent, "core module"),
        (b"\x7fELF\x02\x01\x01", Kind::Elf, "no WebAssembly module"),
        (b"#!/bin/sh", Kind::Script, "no WebAssembly module"),
        (b"", Kind::Unknown, "no WebAssembly module"),
        (b"\0as", Kind::Unknown, "no WebAssembly module"),
    ] {
        let (problems, said) = refusals(bytes);
        assert_eq!(problems, [Problem::Kind(kind)]);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_module_cut_anywhere_is_refused_with_its_place() {
    // Without names, which stand at the end and may be missing.
    let text = r#"(module (import "bumpless" "input" (func (param i32) (result f64))) (memory 1) (global (mut i32) (i32.const 1))
      (table 1 funcref) (elem (i32.const 0) 1) (func (export "cycle") (drop (call 0 (global.get 0)))))"#;
    let whole = wat::parse_str(text).unwrap();
    assert!(module(&whole).is_ok());
    for length in 0..whole.len() {
        let (problems, said) = refusals(&whole[..length]);
        let cut = &problems[..];
        match (length, cut) {
            (..4, [Problem::Kind(Kind::Unknown)]) => {}
            (_, [Problem::Invalid { offset, .. }]) => {
                assert!(
                    *offset <= length && said.contains("cut"),
                    "{length}: {said}"
                );
            }
            // What is left at the end of a section may be a module without the rest.
            (_, [Problem::MissingExport { name: "cycle", .. }]) => {}
            _ => panic!("{length}: {said}"),
        }
    }
}

#[test]
fn everything_wrong_with_an_interface_is_said_at_once() {
    let text = r#"(module
      (import "bumpless" "input" (func (param i64) (result f64)))
      (import "bumpless" "inpt" (func (param i32) (result f64)))
      (import "env" "abort" (func (param i32 i32 i32 i32)))
      (import "bumpless2" "input" (func (param i32) (result f64)))
      (func (export "_start"))
      (func (export "_initialize") (param i32))
      (global (export "bumpless_inputs") i32 (i32.const 3)))"#;
    let (problems, said) = refusals(&wat::parse_str(text).unwrap());
    assert_eq!(said.lines().count(), 7, "{said}");
    for words in [
        "imports bumpless.input as (i64) -> (f64), and it is (i32) -> (f64)",
        "the function bumpless.inpt, which Bumpless does not give",
        "AssemblyScript, compile with --use abort=",
        "the function bumpless2.input",
        "exports no function cycle",
        "exports _start, as a program that runs once does",
        "exports _initialize with another type than () -> ()",
        "exports bumpless_inputs with another type than () -> (i32)",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let missing = Problem::MissingExport {
        name: "cycle",
        command: true,
    };
    assert!(problems.contains(&missing));
    let (_, said) = refusals(
        &wat::parse_str("(module (func (export \"cycle\") (result i32) i32.const 1))").unwrap(),
    );
    assert!(
        said.contains("exports cycle with another type than () -> ()"),
        "{said}"
    );
    let (_, said) = refusals(&wat::parse_str("(module (memory (export \"cycle\") 1))").unwrap());
    assert!(said.contains("exports cycle with another type"), "{said}");
}

#[test]
fn vector_instructions_and_large_memories_are_refused_by_name() {
    let simd = r#"(func (export "cycle") (drop (v128.const i64x2 0 0)))"#;
    let (problems, said) = refusals(&assembled(simd));
    let needs = matches!(
        problems[..],
        [Problem::Needs {
            feature: Feature::Simd,
            ..
        }]
    );
    assert!(needs && said.contains("-msimd128"), "{said}");
    let (problems, said) = refusals(&assembled(
        r#"(global v128 (v128.const i64x2 0 0)) (func (export "cycle"))"#,
    ));
    assert!(matches!(problems[..], [Problem::Needs { .. }]), "{said}");
    let (_, said) = refusals(&assembled(r#"(memory i64 1) (func (export "cycle"))"#));
    assert!(said.contains("memory64"), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_its_cause() {
    for (path, words) in [
        ("/nonexistent/program.wasm", "No such file"),
        ("/", "no regular file"),
        ("/dev/zero", "no regular file"),
    ] {
        let fault = Wasm::load(Path::new(path), shape(0, 0), limits())
            .err()
            .unwrap();
        let said = fault.to_string();
        assert!(said.starts_with(path) && said.contains(words), "{said}");
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
fn a_wrong_use_of_the_interface_is_a_fault_with_what_it_was() {
    let index = |import, index, there_are| {
        Cause::Misuse(Misuse::Index {
            import,
            index,
            there_are,
        })
    };
    let address = |import, address, length| {
        Cause::Misuse(Misuse::Address {
            import,
            address,
            length,
        })
    };
    for (content, cause) in [
        (
            r#"(drop (call $input (i32.const 2)))"#,
            index("input", 2, 2),
        ),
        (
            r#"(drop (call $input (i32.const -1)))"#,
            index("input", u32::MAX, 2),
        ),
        (
            r#"(call $output (i32.const 1) (f64.const 0))"#,
            index("output", 1, 1),
        ),
        (
            r#"(drop (call $last_output (i32.const 7)))"#,
            index("last_output", 7, 1),
        ),
        (
            r#"(call $inputs (i32.const 0) (i32.const 3))"#,
            index("inputs", 3, 2),
        ),
        (
            r#"(call $outputs (i32.const 0) (i32.const -1))"#,
            index("outputs", u32::MAX, 1),
        ),
        (
            r#"(call $inputs (i32.const 65521) (i32.const 2))"#,
            address("inputs", 65_521, 16),
        ),
        (
            r#"(call $outputs (i32.const -8) (i32.const 1))"#,
            address("outputs", u32::MAX - 7, 8),
        ),
        (
            r#"(call $log (i32.const 65535) (i32.const -1))"#,
            address("log", 65_535, u64::from(u32::MAX)),
        ),
    ] {
        let mut program = program(
            &format!("(memory 1) (func (export \"cycle\") {content})"),
            2,
            1,
        );
        let fault = step(&mut program, 1, &[0.0; 2], &[0.0]).unwrap_err();
        assert_eq!(fault.cause, cause, "{content}");
    }
    let mut without = program(
        r#"(func (export "cycle") (call $log (i32.const 0) (i32.const 1)))"#,
        0,
        0,
    );
    let fault = step(&mut without, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause, address("log", 0, 1));
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
fn a_fault_says_program_cycle_cause_and_last_message() {
    let content = r#"(memory 1) (data (i32.const 4) "tank \1b[2J dry")
      (func (export "cycle") (call $log (i32.const 4) (i32.const 13)) unreachable)"#;
    let mut program = program(content, 0, 0);
    let fault = step(&mut program, 17, &[], &[]).unwrap_err();
    assert_eq!(fault.cause, Cause::Trap(TrapKind::Unreachable));
    let said = fault.to_string();
    assert!(
        said.starts_with("test.wasm failed in cycle 17: it gave up (unreachable)"),
        "{said}"
    );
    // What a program says cannot command a terminal.
    assert!(
        said.ends_with(r#"(its last message: "tank \u{1b}[2J dry")"#),
        "{said}"
    );
}

#[test]
fn every_trap_has_a_cause_of_its_own() {
    for (content, trap) in [
        ("unreachable", TrapKind::Unreachable),
        (
            "(drop (i64.rem_s (i64.const 1) (i64.const 0)))",
            TrapKind::DivisionByZero,
        ),
        (
            "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))",
            TrapKind::IntegerOverflow,
        ),
        (
            "(drop (i32.trunc_f64_s (f64.const 1e10)))",
            TrapKind::IntegerOverflow,
        ),
        (
            "(drop (i32.trunc_f64_s (f64.const nan)))",
            TrapKind::FloatToInteger,
        ),
        ("(call_indirect (i32.const 0))", TrapKind::NullCall),
        (
            "(call_indirect (param i32) (i32.const 0) (i32.const 1))",
            TrapKind::CallType,
        ),
        ("(call_indirect (i32.const 9))", TrapKind::TableBounds),
        ("(call $deep)", TrapKind::StackOverflow),
    ] {
        let text = format!(
            "(table 3 funcref) (elem (i32.const 1) func $deep) (func $deep (call $deep))
             (func (export \"cycle\") {content})"
        );
        let mut program = program(&text, 0, 0);
        let fault = step(&mut program, 1, &[], &[]).unwrap_err();
        assert_eq!(fault.cause, Cause::Trap(trap), "{content}");
        program.reset();
        let fault = step(&mut program, 1, &[], &[]).unwrap_err();
        assert_eq!(fault.cause, Cause::Trap(trap), "{content}, again");
    }
}

/// A clock on which each look takes a tenth of a millisecond.
fn ticking() -> (Arc<AtomicU64>, Arc<dyn bumpless_controller::TimeSource>) {
    let looks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looks);
    let time = move || Instant::from_nanos(100_000 * counted.fetch_add(1, Ordering::Relaxed));
    (looks, Arc::new(time))
}

#[test]
fn an_endless_loop_ends_at_the_first_look_at_the_clock_after_its_limit() {
    let bytes = assembled(r#"(func (export "cycle") (loop $ever (br $ever)))"#);
    let limits = Limits::within(Duration::from_millis(2));
    let (looks, time) = ticking();
    let program = started(&bytes, shape(0, 0), limits).unwrap();
    let mut program = program.timed_by(Some(time));
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    let limit = Duration::from_millis(2);
    let unanswered = Unanswered {
        limit,
        elapsed: limit,
        computed: None,
    };
    assert_eq!(fault.cause, Cause::Time(unanswered));
    assert_eq!(fault.cause.kind(), ProgramFaultKind::Overrun);
    // It began at look 0, and at look 20 the limit was reached: no stretch was run after that.
    assert_eq!(looks.load(Ordering::Relaxed), 21);
    // A quick program is looked at once.
    let (looks, time) = ticking();
    let program = started(&level(), shape(2, 1), limits).unwrap();
    let mut program = program.timed_by(Some(time));
    step(&mut program, 1, &[0.0; 2], &[0.0]).unwrap();
    assert_eq!(looks.load(Ordering::Relaxed), 1);
}

/// A clock on which each look takes a tenth of a millisecond, in half of which the thread computes.
struct Halved(AtomicU64);

impl TimeSource for Halved {
    fn now(&self) -> Instant {
        Instant::from_nanos(100_000 * self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn computed(&self) -> Option<Duration> {
        Some(Duration::from_nanos(
            50_000 * self.0.load(Ordering::Relaxed),
        ))
    }
}

#[test]
fn a_loop_that_had_the_processor_half_of_the_time_was_starved() {
    let bytes = assembled(r#"(func (export "cycle") (loop $ever (br $ever)))"#);
    let limits = Limits::within(Duration::from_millis(2));
    let program = started(&bytes, shape(0, 0), limits).unwrap();
    let mut program = program.timed_by(Some(Arc::new(Halved(AtomicU64::new(0)))));
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause.kind(), ProgramFaultKind::Starved);
    // Steps are the same on every computer, and blame the program alone.
    let limits = Limits {
        fuel: Some(1_000),
        ..limits
    };
    let mut program = started(&bytes, shape(0, 0), limits).unwrap();
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause.kind(), ProgramFaultKind::Overrun);
}

#[test]
fn a_program_longer_than_a_stretch_goes_on_where_it_was() {
    let content = r#"(memory 2) (func (export "cycle") (local $n i32) (local $sum f64)
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 131072))
      (loop $next
        (local.set $sum (f64.add (local.get $sum) (f64.mul (call $input (i32.const 0)) (f64.const 0.5))))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $n) (i32.const 100000))))
      (call $output (i32.const 0) (local.get $sum)))"#;
    let mut program = program(content, 1, 1);
    let outputs = step(&mut program, 1, &[3.0], &[0.0]).unwrap();
    assert_eq!(outputs, [150_000.0]);
    let steps = program.steps();
    assert!(steps > 500_000, "{steps}");
    // The same number of steps each time, and to the last one enough.
    step(&mut program, 2, &[4.0], &[0.0]).unwrap();
    assert_eq!(program.steps(), steps);
    for (fuel, enough) in [(steps, true), (steps - 1, false)] {
        let limits = Limits {
            fuel: Some(fuel),
            ..limits()
        };
        let mut program = started(&assembled(content), shape(1, 1), limits).unwrap();
        let ran = step(&mut program, 1, &[3.0], &[0.0]);
        match ran {
            Ok(_) => assert!(enough),
            Err(fault) => assert_eq!((fault.cause, enough), (Cause::Steps { limit: fuel }, false)),
        }
    }
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
fn the_steps_of_an_instruction_that_moves_memory_are_counted_by_its_bytes() {
    let content = r#"(memory 200) (func (export "cycle") (loop $ever
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 13107200)) (br $ever)))"#;
    let limits = Limits {
        fuel: Some(1_000_000),
        ..limits()
    };
    let mut program = started(&assembled(content), shape(0, 0), limits).unwrap();
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause, Cause::Steps { limit: 1_000_000 });
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
            let Ok(module) = Module::read("any", bytes).map(Arc::new) else { continue };
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

/// A version whose sum is a global and whose count lies in memory, and shows both by name.
const OLD: &str = r#"
  (memory 1)
  (global $sum (export "sum") (mut f64) (f64.const 0))
  (global (export "count") i32 (i32.const 4096))
  (func (export "cycle")
    (global.set $sum (f64.add (global.get $sum) (call $input (i32.const 0))))
    (i64.store (i32.const 4096) (i64.add (i64.load (i32.const 4096)) (i64.const 1)))
    (call $output (i32.const 0) (f64.add (global.get $sum) (f64.convert_i64_u (i64.load (i32.const 4096))))))
"#;

/// The next version, which has both elsewhere; `convert` is its function.
fn next_version(convert: &str) -> Vec<u8> {
    let text = format!(
        r#"(module {IMPORTS}
          (import "bumpless" "old_has" (func $old_has (param i32 i32) (result i32)))
          (import "bumpless" "old_global" (func $old_global (param i32 i32) (result i64)))
          (import "bumpless" "old_memory" (func $old_memory (param i32 i32 i32)))
          (memory 1) (data (i32.const 16) "sumcountnone")
          (global $count (mut i64) (i64.const 0))
          (func (export "cycle")
            (f64.store (i32.const 64) (f64.add (f64.load (i32.const 64)) (call $input (i32.const 0))))
            (global.set $count (i64.add (global.get $count) (i64.const 1)))
            (call $output (i32.const 0) (f64.add (f64.load (i32.const 64)) (f64.convert_i64_u (global.get $count)))))
          (func (export "bumpless_convert") (result i32) {convert}))"#
    );
    wat::parse_str(text).unwrap()
}

const CONVERTS: &str = r#"
  (if (i32.eqz (call $old_has (i32.const 16) (i32.const 3))) (then (return (i32.const 1))))
  (if (call $old_has (i32.const 24) (i32.const 4)) (then (return (i32.const 2))))
  (i64.store (i32.const 64) (call $old_global (i32.const 16) (i32.const 3)))
  (call $old_memory (i32.wrap_i64 (call $old_global (i32.const 19) (i32.const 5))) (i32.const 128) (i32.const 8))
  (global.set $count (i64.load (i32.const 128)))
  (i64.store (i32.const 128) (i64.const 0))
  (i32.const 0)
"#;

/// A state of the old version after some cycles, its outputs, and who takes over from it.
fn before(convert: &str) -> (Wasm, Vec<f64>, Successor<Wasm, ByModule>) {
    let mut old = program(OLD, 1, 1);
    let mut last = vec![0.0];
    for cycle in 1..=20 {
        last = step(&mut old, cycle, &[cycle as f64], &last).unwrap();
    }
    let next = started(&next_version(convert), shape(1, 1), limits()).unwrap();
    assert!(next.converts());
    let next = Successor::new(next, ByModule::new(program(OLD, 1, 1)));
    (old, last, next)
}

fn executed(next: &mut Successor<Wasm, ByModule>, cycle: u64) -> f64 {
    let mut outputs = [0.0];
    next.execute(&context(cycle), &[cycle as f64], &mut outputs)
        .unwrap_or_else(|fault| panic!("{fault}"));
    outputs[0]
}

#[test]
fn the_next_version_of_a_module_makes_its_state_of_what_the_one_before_shows() {
    let (mut old, mut last, mut next) = before(CONVERTS);
    assert!(next.state_owner().is_some() && next.state_owner() != old.state_owner());
    next.load(&saved(&old))
        .expect("a state of the version before");
    for cycle in 21..=40 {
        last = step(&mut old, cycle, &[cycle as f64], &last).unwrap();
        assert_eq!(executed(&mut next, cycle), last[0], "cycle {cycle}");
    }
    // Its own state is taken by another instance, as ever.
    let mut state = vec![0; next.state_size_max()];
    let len = next.save(&mut state);
    let mut other = started(&next_version(CONVERTS), shape(1, 1), limits()).unwrap();
    other.load(&state[..len]).expect("a state of this version");
    assert_eq!(
        step(&mut other, 41, &[41.0], &last).unwrap()[0],
        executed(&mut next, 41)
    );
}

#[test]
fn whatever_a_modules_conversion_does_it_ends_and_leaves_the_state_as_it_was() {
    let spoilt = "(i64.store (i32.const 64) (i64.const 5))";
    for (convert, why) in [
        ("(i32.const 7)", "by a number other than 0"),
        ("unreachable", "stopped by itself"),
        (
            "(loop (br 0)) (i32.const 0)",
            "was not ready within execute_limit_ms",
        ),
        (
            "(drop (call $old_global (i32.const 24) (i32.const 4))) (i32.const 0)",
            "a name that is not there",
        ),
        (
            "(call $old_memory (i32.const 65536) (i32.const 0) (i32.const 1)) (i32.const 0)",
            "a name that is not there",
        ),
    ] {
        let (old, _, mut next) = before(&format!("{spoilt} {convert}"));
        assert_eq!(executed(&mut next, 1), 2.0);
        let error = next.load(&saved(&old)).expect_err("it fails").to_string();
        assert!(error.contains(why), "{convert}: {error}");
        assert_eq!(
            executed(&mut next, 2),
            5.0,
            "{convert}: it goes on from its own state"
        );
    }
}

/// What the host does for it counts, too, with and without a loop around it.
#[test]
fn a_conversion_that_has_much_copied_or_looked_for_is_stopped_in_time() {
    let copy = "(call $old_memory (i32.const 0) (i32.const 0) (i32.const 65536))";
    // Beyond the names that are there.
    let look = "(drop (call $old_has (i32.const 0) (i32.const 65536)))";
    for work in [copy, look] {
        let loops = format!("(loop {work} (br 0)) (i32.const 0)");
        let straight = format!("{} (i32.const 0)", work.repeat(1000));
        for convert in [loops, straight] {
            let (looks, time) = ticking();
            let next = started(&next_version(&convert), shape(1, 1), limits()).unwrap();
            let next = next.timed_by(Some(time));
            let mut next = Successor::new(next, ByModule::new(program(OLD, 1, 1)));
            let (old, ..) = before(CONVERTS);
            let refused = next.load(&saved(&old)).expect_err("it is stopped");
            let why = "was not ready within execute_limit_ms";
            assert!(refused.to_string().contains(why), "{refused}");
            // As an endless loop: none was left out.
            assert_eq!(looks.load(Ordering::Relaxed), 101, "{work}");
        }
    }
}

/// Having much copied is no fault: it goes on where it was, with what the host gave.
#[test]
fn a_conversion_goes_on_after_a_look_at_the_clock_as_if_nothing_had_been() {
    let work = "(call $old_memory (i32.const 0) (i32.const 4096) (i32.const 61440))
        (if (call $old_has (i32.const 4096) (i32.const 61440)) (then (return (i32.const 3))))";
    let (mut old, mut last, _) = before(CONVERTS);
    let next = started(
        &next_version(&(work.repeat(5) + CONVERTS)),
        shape(1, 1),
        limits(),
    )
    .unwrap();
    let (looks, time) = ticking();
    let next = next.timed_by(Some(time));
    let mut next = Successor::new(next, ByModule::new(program(OLD, 1, 1)));
    next.load(&saved(&old)).expect("it is converted");
    assert!(looks.load(Ordering::Relaxed) > 3);
    last = step(&mut old, 21, &[21.0], &last).unwrap();
    assert_eq!(executed(&mut next, 21), last[0]);
}

#[test]
fn the_state_of_the_version_before_is_there_in_the_conversion_only() {
    let text = r#"(module (import "bumpless" "old_has" (func $old_has (param i32 i32) (result i32)))
      (memory 1) (func (export "cycle") (drop (call $old_has (i32.const 0) (i32.const 0)))))"#;
    let mut program = started(&wat::parse_str(text).unwrap(), shape(0, 0), limits()).unwrap();
    let fault = program.run(&context(1), &[], &mut []).unwrap_err();
    let misuse = Misuse::NoOld { import: "old_has" };
    assert_eq!(fault.cause, Cause::Misuse(misuse));
}
